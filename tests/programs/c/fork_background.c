/* A process forks while its manager's background thread starts. The child may go on with that
 * manager all the same, and with its own thread. It needs that thread to keep a lock. */
#include "guest.h"

enum { MANAGERS = 300 };

static void lock_and_unlock(RedLock *rl, const char *resource) {
    RedLockLease *lease = new_lease();
    EXPECT(REDLOCK_OK, RedLock_Lock(rl, resource, TTL_MS, lease), lease);
    EXPECT(REDLOCK_OK, RedLock_Unlock(rl, lease), lease);
    RedLockLease_Free(lease);
}

/* The thread of the parent does not keep the locks of the child. */
static void keep(RedLock *rl, RedLockStatus expected) {
    RedLockAcquireOptions options = REDLOCK_ACQUIRE_OPTIONS_INIT;
    RedLockLease *lease = new_lease();
    options.resource = "childs";
    options.ttl_ms = TTL_MS;
    options.keep_alive = 1;
    EXPECT(expected, RedLock_Acquire(rl, &options, lease), lease);
    CHECK(RedLockLease_IsHeld(lease) == (expected == REDLOCK_OK));
    if (expected == REDLOCK_OK) {
        EXPECT(REDLOCK_OK, RedLock_Unlock(rl, lease), lease);
    }
    RedLockLease_Free(lease);
}

int main(int argc, char **argv) {
    no_longer_than(120);
    int managers = is_under_a_tool() ? MANAGERS / 10 : MANAGERS;
    for (int i = 0; i < managers; i++) {
        RedLock *rl = manager_of(argc - 1, argv + 1);
        CHECK(RedLock_SetBackgroundThread(rl, true) == REDLOCK_OK);
        /* The call starts the thread: as it ends, the thread begins. */
        lock_and_unlock(rl, "parents");
        for (volatile int turn = 0; turn < i % 30 * 100; turn++) {
        }
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            no_longer_than(20);
            keep(rl, REDLOCK_INVALID_ARGUMENT);
            CHECK(RedLock_SetBackgroundThread(rl, true) == REDLOCK_OK);
            keep(rl, REDLOCK_OK);
            _exit(0);
        }
        reap(pid);
        RedLock_Free(rl);
    }
    return 0;
}

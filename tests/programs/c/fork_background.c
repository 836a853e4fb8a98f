/* A process forks while its manager's background thread starts. The child may go on with that
 * manager all the same, and with its own thread. */
#include "guest.h"

enum { MANAGERS = 300 };

static void lock_and_unlock(RedLock *rl, const char *resource) {
    RedLockLease *lease = new_lease();
    EXPECT(REDLOCK_OK, RedLock_Lock(rl, resource, TTL_MS, lease), lease);
    EXPECT(REDLOCK_OK, RedLock_Unlock(rl, lease), lease);
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
            CHECK(RedLock_SetBackgroundThread(rl, true) == REDLOCK_OK);
            lock_and_unlock(rl, "childs");
            _exit(0);
        }
        reap(pid);
        RedLock_Free(rl);
    }
    return 0;
}

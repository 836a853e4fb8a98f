/* A manager that has two connections to its server, since the first one does not answer; and a
 * child, which keeps neither of them. */
#include "guest.h"

static void child(RedLock *rl, int parents) {
    no_longer_than(20);
    RedLockLease *lease = new_lease();
    EXPECT(REDLOCK_OK, RedLock_Lock(rl, "childs", TTL_MS, lease), lease);
    EXPECT(REDLOCK_OK, RedLock_Unlock(rl, lease), lease);
    /* One connection, while the parent has two. */
    CHECK(descriptors() == parents - 1);
    _exit(0);
}

int main(int argc, char **argv) {
    no_longer_than(60);
    RedLock *rl = manager_of(argc - 1, argv + 1);
    RedLockLease *lease = new_lease();
    EXPECT(REDLOCK_OK, RedLock_Lock(rl, "parents", TTL_MS, lease), lease);
    EXPECT(REDLOCK_OK, RedLock_Unlock(rl, lease), lease);
    tell_and_await("has a lock");
    CHECK(RedLock_SetTimeouts(rl, 20000, 100) == REDLOCK_OK);
    int before = descriptors();
    while (RedLock_TryLock(rl, "parents", TTL_MS, 10, lease) != REDLOCK_OK) {
    }
    CHECK(descriptors() == before + 1);
    CHECK(RedLock_SetTimeouts(rl, 20000, 20000) == REDLOCK_OK);
    tell_and_await("second connection is open");
    int parents = descriptors();
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        child(rl, parents);
    }
    reap(pid);
    tell_and_await("the child has locked");
    EXPECT(REDLOCK_OK, RedLock_Unlock(rl, lease), lease);
    RedLockLease_Free(lease);
    RedLock_Free(rl);
    return 0;
}

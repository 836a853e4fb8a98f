/* A child that frees the manager has none of its parent's descriptors left. Its parent keeps all of
 * them. */
#include "guest.h"

int main(int argc, char **argv) {
    no_longer_than(60);
    int before = descriptors();
    RedLock *rl = manager_of(argc - 1, argv + 1);
    RedLockLease *lease = new_lease();
    EXPECT(REDLOCK_OK, RedLock_Lock(rl, "parents", TTL_MS, lease), lease);
    int connected = descriptors();
    CHECK(connected > before);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        no_longer_than(20);
        RedLockLease_Free(lease);
        RedLock_Free(rl);
        CHECK(descriptors() == before);
        _exit(0);
    }
    reap(pid);
    CHECK(descriptors() == connected);
    EXPECT(REDLOCK_OK, RedLock_Unlock(rl, lease), lease);
    RedLockLease_Free(lease);
    RedLock_Free(rl);
    CHECK(descriptors() == before);
    return 0;
}

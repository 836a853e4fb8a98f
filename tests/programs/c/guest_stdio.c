/* A daemon has closed its standard streams, and writes to them all the same. That goes nowhere, and
 * to no server. Nothing can be printed here, so the exit status reports the result. */
#include "guest.h"

int main(int argc, char **argv) {
    no_longer_than(20);
    for (int fd = 0; fd < 3; fd++) {
        close(fd);
    }
    RedLock *rl = manager_of(argc - 1, argv + 1);
    RedLockLease *lease = new_lease();
    connect_to_all(rl);
    CHECK(RedLock_Lock(rl, "r", TTL_MS, lease) == REDLOCK_OK);
    for (int fd = 0; fd < 3; fd++) {
        CHECK(fcntl(fd, F_GETFD) == -1 && errno == EBADF);
    }
    CHECK(RedLock_Unlock(rl, lease) == REDLOCK_OK);
    RedLockLease_Free(lease);
    RedLock_Free(rl);
    return 0;
}

/* Prints the result of a lock on the servers that are its arguments: "STATUS: the words". */
#include "guest.h"

int main(int argc, char **argv) {
    no_longer_than(60);
    RedLock *rl = manager_of(argc - 1, argv + 1);
    RedLockLease *lease = new_lease();
    CHECK(RedLock_SetRetry(rl, 1, 0) == REDLOCK_OK);
    RedLockStatus status = RedLock_Lock(rl, "r", TTL_MS, lease);
    char line[5000];
    int length = snprintf(line, sizeof line, "%s: %s\n", RedLockStatus_Name(status),
                          RedLockLease_ErrorMessage(lease));
    if (status == REDLOCK_OK) {
        EXPECT(REDLOCK_OK, RedLock_Unlock(rl, lease), lease);
    }
    CHECK(write(STDIN_FILENO, line, (size_t)length) == length);
    RedLockLease_Free(lease);
    RedLock_Free(rl);
    return 0;
}

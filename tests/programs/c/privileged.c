/* Prints whether its environment must not be trusted ("0" or "1", the kernel's AT_SECURE). Then
 * prints the results of a password that the variable A_PASSWORD holds, and of a lock on the servers
 * that are its arguments: "STATUS: the words". */
#include <sys/auxv.h>

#include "guest.h"

static void say(RedLockStatus status, const char *words) {
    char line[5000];
    int length = snprintf(line, sizeof line, "%s: %s\n", RedLockStatus_Name(status), words);
    CHECK(write(STDIN_FILENO, line, (size_t)length) == length);
}

int main(int argc, char **argv) {
    no_longer_than(60);
    CHECK(write(STDIN_FILENO, getauxval(AT_SECURE) ? "1\n" : "0\n", 2) == 2);

    RedLock *other = RedLock_New();
    CHECK(other);
    RedLockStatus status = RedLock_SetCredentialsFromEnv(other, NULL, "A_PASSWORD");
    say(status, RedLock_ErrorMessage(other));
    if (status != REDLOCK_OK) {
        CHECK(RedLock_SetCredentialsFromEnv(other, "A_PASSWORD", "A_PASSWORD") == status);
        CHECK(strstr(RedLock_ErrorMessage(other), "user_variable"));
    }
    RedLock_Free(other);

    RedLock *rl = manager_of(argc - 1, argv + 1);
    RedLockLease *lease = new_lease();
    CHECK(RedLock_SetRetry(rl, 1, 0) == REDLOCK_OK);
    status = RedLock_Lock(rl, "r", TTL_MS, lease);
    say(status, RedLockLease_ErrorMessage(lease));
    if (status == REDLOCK_OK) {
        EXPECT(REDLOCK_OK, RedLock_Unlock(rl, lease), lease);
    }
    RedLockLease_Free(lease);
    RedLock_Free(rl);
    return 0;
}

/* Takes its credentials from environment variables, and then takes a lock. The names of the
 * variables are the first two arguments, and the first may be empty. The servers are the other
 * arguments. Prints "STATUS: the words" of the first failure, or of the lock. */
#include "guest.h"

static void say(RedLockStatus status, const char *words) {
    char line[5000];
    int length = snprintf(line, sizeof line, "%s: %s\n", RedLockStatus_Name(status), words);
    CHECK(write(STDIN_FILENO, line, (size_t)length) == length);
}

int main(int argc, char **argv) {
    no_longer_than(60);
    CHECK(argc > 3);
    RedLock *rl = manager_of(argc - 3, argv + 3);
    RedLockLease *lease = new_lease();
    const char *user = argv[1][0] ? argv[1] : NULL;
    RedLockStatus status = RedLock_SetCredentialsFromEnv(rl, user, argv[2]);
    if (status == REDLOCK_OK) {
        /* The variables have been read, and later changes of them do not matter. */
        CHECK(setenv(argv[2], "something else", 1) == 0);
        CHECK(!user || unsetenv(user) == 0);
        status = RedLock_Lock(rl, "r", TTL_MS, lease);
        say(status, RedLockLease_ErrorMessage(lease));
        EXPECT(REDLOCK_OK, RedLock_Unlock(rl, lease), lease);
    } else {
        say(status, RedLock_ErrorMessage(rl));
    }
    RedLockLease_Free(lease);
    RedLock_Free(rl);
    return 0;
}

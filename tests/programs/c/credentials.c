/* Takes its credentials from variables of the environment, and a lock: the names of the variables are
 * the first two arguments, of which the first may be empty, and the servers come after them. Says
 * "STATUS: the words" of what failed first, or of the lock. */
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
        /* They were read, and what becomes of them does not matter. */
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

/*
 * Takes a lock on servers that require encryption and a log-in: over TLS, and with a password that is neither
 * in this file nor on the command line.
 *
 *     secure ca.pem [rediss://host:port ...]
 *
 * If REDIS_PASSWORD is set in the environment, it is the password; REDIS_USER may name an ACL user.
 */
#include <stdio.h>
#include <stdlib.h>

#include "redlock.h"

static int fail(RedLock *rl) {
    fprintf(stderr, "%s\n", RedLock_ErrorMessage(rl));
    return 1;
}

static int configure(RedLock *rl, int argc, char **argv) {
    static const char *const usual[] = {"rediss://127.0.0.1:6479", "rediss://127.0.0.1:6480",
                                        "rediss://127.0.0.1:6481"};
    for (int i = 0; i < (argc > 2 ? argc - 2 : 3); i++) {
        if (RedLock_AddServerUrl(rl, argc > 2 ? argv[i + 2] : usual[i], 0) != REDLOCK_OK) {
            return fail(rl);
        }
    }
    /* Without this, the authorities that the system trusts are trusted. */
    if (argc > 1 && RedLock_SetTlsCa(rl, argv[1]) != REDLOCK_OK) {
        return fail(rl);
    }
    if (getenv("REDIS_PASSWORD") != NULL) {
        const char *user = getenv("REDIS_USER") != NULL ? "REDIS_USER" : NULL;
        if (RedLock_SetCredentialsFromEnv(rl, user, "REDIS_PASSWORD") != REDLOCK_OK) {
            return fail(rl);
        }
    }
    return 0;
}

int main(int argc, char **argv) {
    RedLock *rl = RedLock_New();
    RedLockLease *lease = RedLockLease_New();
    int result = configure(rl, argc, argv);

    if (result == 0) {
        RedLockStatus status = RedLock_Lock(rl, "secure:report", 10000, lease);
        if (status == REDLOCK_OK) {
            printf("locked for %d ms, in secret\n", (int)RedLockLease_RemainingMs(lease));
            status = RedLock_Unlock(rl, lease);
        }
        if (status != REDLOCK_OK) {
            fprintf(stderr, "%s: %s\n", RedLockStatus_Name(status),
                    RedLockLease_ErrorMessage(lease));
            result = 1;
        }
    }
    RedLockLease_Free(lease);
    RedLock_Free(rl);
    return result;
}

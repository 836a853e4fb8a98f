/*
 * Takes a lock, works under it, and releases it.
 *
 *     quick_start [host:port ...]
 */
#include <stdio.h>
#include <string.h>

#include "redlock.h"

static void add_server(RedLock *rl, const char *server) {
    char url[256];
    snprintf(url, sizeof url, "%s%s", strstr(server, "://") ? "" : "redis://", server);
    if (RedLock_AddServerUrl(rl, url, 0) != REDLOCK_OK) {
        fprintf(stderr, "%s\n", RedLock_ErrorMessage(rl));
    }
}

int main(int argc, char **argv) {
    static const char *const usual[] = {"127.0.0.1:6379", "127.0.0.1:6380", "127.0.0.1:6381"};
    RedLock *rl = RedLock_New();
    RedLockLease *lease = RedLockLease_New();

    for (int i = 1; i < argc; i++) {
        add_server(rl, argv[i]);
    }
    for (int i = 0; argc < 2 && i < 3; i++) {
        add_server(rl, usual[i]);
    }

    RedLockStatus status = RedLock_Lock(rl, "invoice:42", 10000, lease);
    if (status == REDLOCK_OK) {
        printf("locked for %d ms: sending invoice 42\n", (int)RedLockLease_RemainingMs(lease));
        status = RedLock_Unlock(rl, lease);
    }
    if (status != REDLOCK_OK) {
        fprintf(stderr, "%s: %s\n", RedLockStatus_Name(status), RedLockLease_ErrorMessage(lease));
    }

    RedLockLease_Free(lease);
    RedLock_Free(rl);
    return status == REDLOCK_OK ? 0 : 1;
}

/*
 * A client that waits in vain. The bench watches what the waiter asks the servers.
 *
 *     waiter [--silent] KEY WAIT_MS PORT...      --silent: is not told of releases
 */
#define _GNU_SOURCE
#include "manager.h"
#include "measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    bool silent = argc > 1 && strcmp(argv[1], "--silent") == 0;
    RedLock *rl;
    RedLockLease *lease = RedLockLease_New();
    RedLockStatus status;

    argc -= silent;
    argv += silent;
    if (argc < 4) {
        fputs("waiter [--silent] KEY WAIT_MS PORT...\n", stderr);
        return 2;
    }
    rl = manager_new(argc - 3, argv + 3);
    manager_check("waking", RedLock_SetWaking(rl, !silent), rl, NULL);
    manager_check("connect", RedLock_Connect(rl, 0), rl, NULL);
    if (!measure_ready())
        return 0;
    status = RedLock_TryLock(rl, argv[1], MEASURE_TTL_MS, atoll(argv[2]), lease);
    printf("taken=%d\n", status == REDLOCK_TAKEN);
    RedLockLease_Free(lease);
    RedLock_Free(rl);
    return 0;
}

/*
 * A job that takes longer than one lease: it extends the lock between its steps, stops when the lock is lost,
 * and asks the servers once more before the step that cannot be undone.
 *
 *     long_job [host:port ...]
 */
#define _POSIX_C_SOURCE 200809L

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "redlock.h"

/* The lease is many times as long as the time between two extensions, so that some extensions may fail and the
 * next one makes up for them. It is short enough that others need not wait long if this process dies. */
enum { TTL_MS = 10000, EXTEND_EVERY_MS = 1000, STEPS = 12, STEP_MS = 200, COMMIT_MS = 500 };

static void work_for(int ms) {
    struct timespec left = {ms / 1000, ms % 1000 * 1000000L};
    while (nanosleep(&left, &left) != 0) {
    }
}

/* Whether there is time for another step. Not every step is worth a round trip. */
static bool keep(RedLock *rl, RedLockLease *lease) {
    if (RedLockLease_RemainingMs(lease) > RedLockLease_ValidityMs(lease) - EXTEND_EVERY_MS) {
        return true;
    }
    RedLockStatus status = RedLock_Extend(rl, lease, TTL_MS);
    if (status == REDLOCK_OK) {
        printf("extended: valid for %d ms\n", (int)RedLockLease_ValidityMs(lease));
        return true;
    }
    fprintf(stderr, "not extended: %s\n", RedLockLease_ErrorMessage(lease));
    /* Too few servers answered: a valid lock is still valid. Lost: nothing is left. */
    return RedLockLease_RemainingMs(lease) > STEP_MS;
}

static int run(RedLock *rl, RedLockLease *lease) {
    for (int step = 1; step <= STEPS; step++) {
        if (!keep(rl, lease)) {
            fprintf(stderr, "stopped before step %d: the lock is not safe any more\n", step);
            return 1;
        }
        printf("step %d of %d\n", step, STEPS);
        work_for(STEP_MS);
    }
    /* The clock of this machine says that the lock is held; this call asks the servers that grant it. */
    if (!keep(rl, lease) || RedLock_Confirm(rl, lease, COMMIT_MS) != REDLOCK_OK) {
        fprintf(stderr, "nothing committed: %s\n", RedLockLease_ErrorMessage(lease));
        return 1;
    }
    printf("committed under the lock\n");
    return 0;
}

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
    int result = 1;

    for (int i = 0; i < (argc > 1 ? argc - 1 : 3); i++) {
        add_server(rl, argc > 1 ? argv[i + 1] : usual[i]);
    }
    if (RedLock_Lock(rl, "report:2026", TTL_MS, lease) == REDLOCK_OK) {
        result = run(rl, lease);
        RedLock_Unlock(rl, lease);
    } else {
        fprintf(stderr, "not locked: %s\n", RedLockLease_ErrorMessage(lease));
    }
    RedLockLease_Free(lease);
    RedLock_Free(rl);
    return result;
}

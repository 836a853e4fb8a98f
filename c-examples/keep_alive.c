/*
 * A job of unknown length, under a lock that is kept alive: the library extends the lock in the background, and
 * reports in time when it cannot be kept alive.
 *
 *     keep_alive [host:port ...]
 */
#define _POSIX_C_SOURCE 200809L

#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "redlock.h"

/* Short, so that others need not wait long if this process dies. The job takes longer. */
enum { TTL_MS = 2000, STEPS = 30, STEP_MS = 100 };

static void work_for(int ms) {
    struct timespec left = {ms / 1000, ms % 1000 * 1000000L};
    while (nanosleep(&left, &left) != 0) {
    }
}

/* Called on the library's thread. It does as little as a signal handler would. */
static void on_event(const RedLockEvent *event, void *user_data) {
    if (event->kind == REDLOCK_EVENT_LOST) {
        atomic_store((atomic_bool *)user_data, true);
    }
}

static int run(const atomic_bool *lost) {
    for (int step = 1; step <= STEPS; step++) {
        /* The lock is still valid for a while: long enough for the current step, but not for another one. */
        if (atomic_load(lost)) {
            fprintf(stderr, "stopped before step %d: the lock cannot be kept\n", step);
            return 1;
        }
        work_for(STEP_MS);
    }
    printf("%d steps of %d ms under a lock of %d ms\n", STEPS, STEP_MS, TTL_MS);
    return 0;
}

static void add_server(RedLock *rl, const char *server) {
    if (RedLock_AddServerUrl(rl, server, 0) != REDLOCK_OK) {
        fprintf(stderr, "%s: %s\n", server, RedLock_ErrorMessage(rl));
    }
}

int main(int argc, char **argv) {
    static atomic_bool lost;
    const char *const local[] = {"127.0.0.1:6379", "127.0.0.1:6380", "127.0.0.1:6381"};
    RedLock *rl = RedLock_New();
    RedLockLease *lease = RedLockLease_New();
    for (int i = 1; i < argc; i++) {
        add_server(rl, argv[i]);
    }
    for (int i = 0; argc < 2 && i < 3; i++) {
        add_server(rl, local[i]);
    }
    RedLock_SetEventCallback(rl, on_event, &lost, NULL);
    RedLock_SetBackgroundThread(rl, true);

    RedLockAcquireOptions options = REDLOCK_ACQUIRE_OPTIONS_INIT;
    options.resource = "nightly-report";
    options.ttl_ms = TTL_MS;
    options.tries = 3;
    options.keep_alive = 1;
    int result = 1;
    if (RedLock_Acquire(rl, &options, lease) == REDLOCK_OK) {
        result = run(&lost);
        RedLock_Unlock(rl, lease);
        /* Waits for the thread, which RedLock_Free does not do. */
        RedLock_SetBackgroundThread(rl, false);
    } else {
        fprintf(stderr, "not locked: %s\n", RedLockLease_ErrorMessage(lease));
    }
    RedLockLease_Free(lease);
    RedLock_Free(rl);
    return result;
}

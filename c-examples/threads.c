/*
 * Many threads, one manager: each thread counts under a lock of its own, and all threads count together under
 * one contended lock. A wrong count would mean two holders at once.
 *
 *     threads [host:port ...]
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "redlock.h"

enum { THREADS = 12, ROUNDS = 10, TTL_MS = 10000, WAIT_MS = 30000 };

static RedLock *rl;

/* Read in one step and written in another, so that two threads at once would lose a count. */
static atomic_int together;

struct worker {
    pthread_t thread;
    int number;
    int counted;
};

static int fail(const char *what, RedLockStatus status, RedLockLease *lease) {
    fprintf(stderr, "%s: %s: %s\n", what, RedLockStatus_Name(status),
            RedLockLease_ErrorMessage(lease));
    return 0;
}

/* Only one thread at a time may use a lease, so each thread has its own; the manager is shared. */
static int count_under(const char *resource, RedLockLease *lease, atomic_int *counter) {
    RedLockStatus status = RedLock_TryLock(rl, resource, TTL_MS, WAIT_MS, lease);
    if (status != REDLOCK_OK) {
        return fail(resource, status, lease);
    }
    int seen = atomic_load(counter);
    sched_yield();
    atomic_store(counter, seen + 1);
    status = RedLock_Unlock(rl, lease);
    return status == REDLOCK_OK ? 1 : fail(resource, status, lease);
}

static void *work(void *argument) {
    struct worker *me = argument;
    RedLockLease *lease = RedLockLease_New();
    char own_resource[32];
    atomic_int own = 0;

    snprintf(own_resource, sizeof own_resource, "threads:%d", me->number);
    for (int i = 0; i < ROUNDS; i++) {
        if (!count_under("threads:all", lease, &together) ||
            !count_under(own_resource, lease, &own)) {
            break;
        }
    }
    me->counted = own;
    RedLockLease_Free(lease);
    return NULL;
}

static void add_server(const char *server) {
    char url[256];
    snprintf(url, sizeof url, "%s%s", strstr(server, "://") ? "" : "redis://", server);
    if (RedLock_AddServerUrl(rl, url, 0) != REDLOCK_OK) {
        fprintf(stderr, "%s\n", RedLock_ErrorMessage(rl));
    }
}

int main(int argc, char **argv) {
    static const char *const usual[] = {"127.0.0.1:6379", "127.0.0.1:6380", "127.0.0.1:6381"};
    static struct worker workers[THREADS];
    int started = 0;
    int alone = 0;

    rl = RedLock_New();
    for (int i = 0; i < (argc > 1 ? argc - 1 : 3); i++) {
        add_server(argc > 1 ? argv[i + 1] : usual[i]);
    }
    /* One error message here is better than one from each thread. */
    if (RedLock_Connect(rl, 0) != REDLOCK_OK) {
        fprintf(stderr, "%s\n", RedLock_ErrorMessage(rl));
        RedLock_Free(rl);
        return 1;
    }

    for (; started < THREADS; started++) {
        workers[started].number = started;
        if (pthread_create(&workers[started].thread, NULL, work, &workers[started]) != 0) {
            fprintf(stderr, "only %d threads could be started\n", started);
            break;
        }
    }
    for (int i = 0; i < started; i++) {
        pthread_join(workers[i].thread, NULL);
        alone += workers[i].counted;
    }
    RedLock_Free(rl);

    printf("%d threads: %d counted together, %d alone\n", started, together, alone);
    if (together != THREADS * ROUNDS || alone != THREADS * ROUNDS) {
        fprintf(stderr, "%d each were expected\n", THREADS * ROUNDS);
        return 1;
    }
    return 0;
}

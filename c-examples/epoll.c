/*
 * One thread, one event loop, a thousand locks at once. The loop uses epoll to wait for one descriptor of the
 * library, beside the program's other descriptors. Each lock is taken, held for a moment and released; nothing
 * blocks.
 *
 *     epoll [host:port ...]
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "redlock.h"

enum { LOCKS = 1000, TTL_MS = 10000 };

struct job {
    char resource[32];
    RedLockLease *lease;
    int is_unlocking;
};

static void fail(const char *what, const char *why) {
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static void lock(RedLock *rl, struct job *job) {
    RedLockAcquireOptions options = REDLOCK_ACQUIRE_OPTIONS_INIT;
    options.resource = job->resource;
    options.ttl_ms = TTL_MS;
    options.wait_ms = 2000;
    if (RedLock_SubmitAcquire(rl, &options, job->lease, job) != REDLOCK_OK) {
        fail(job->resource, RedLockLease_ErrorMessage(job->lease));
    }
}

/* Returns how many jobs this event completes. */
static int handle(RedLock *rl, const RedLockEvent *event) {
    struct job *job = event->user_data;
    if (event->status != REDLOCK_OK) {
        fail(job->resource, RedLockLease_ErrorMessage(event->lease));
    }
    if (job->is_unlocking) {
        return 1;
    }
    /* The lock is held here: start the protected work. */
    job->is_unlocking = 1;
    if (RedLock_SubmitUnlock(rl, event->lease, job) != REDLOCK_OK) {
        fail(job->resource, RedLockLease_ErrorMessage(event->lease));
    }
    return 0;
}

int main(int argc, char **argv) {
    static struct job jobs[LOCKS];
    static const char *const local[] = {"127.0.0.1:6379", "127.0.0.1:6380", "127.0.0.1:6381"};
    const char *const *servers = argc > 1 ? (const char *const *)argv + 1 : local;
    int count = argc > 1 ? argc - 1 : 3;
    RedLock *rl = RedLock_New();
    for (int i = 0; i < count; i++) {
        if (RedLock_AddServerUrl(rl, servers[i], 0) != REDLOCK_OK) {
            fail(servers[i], RedLock_ErrorMessage(rl));
        }
    }
    for (int i = 0; i < LOCKS; i++) {
        snprintf(jobs[i].resource, sizeof jobs[i].resource, "epoll-%d", i);
        jobs[i].lease = RedLockLease_New();
        lock(rl, &jobs[i]);
    }

    struct epoll_event ready = {.events = EPOLLIN};
    int loop = epoll_create1(0);
    if (loop < 0 || epoll_ctl(loop, EPOLL_CTL_ADD, RedLock_Descriptor(rl), &ready) != 0) {
        fail("epoll", RedLock_ErrorMessage(rl));
    }
    int done = 0;
    while (done < LOCKS) {
        epoll_wait(loop, &ready, 1, -1);
        RedLockEvent event = REDLOCK_EVENT_INIT;
        while (RedLock_NextEvent(rl, 0, &event) == REDLOCK_OK) {
            done += handle(rl, &event);
        }
    }
    printf("%d locks were taken and released\n", done);

    for (int i = 0; i < LOCKS; i++) {
        RedLockLease_Free(jobs[i].lease);
    }
    RedLock_Free(rl);
    return 0;
}

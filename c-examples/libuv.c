/*
 * Locks in a program whose only thread runs a libuv loop: no call blocks the loop, and no thread is started.
 * Some locks are taken, kept for longer than their TTL, and released. Built with `-lredlock -luv`.
 *
 *     libuv [host:port ...]
 */
#define _POSIX_C_SOURCE 200809L

#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

#include "redlock.h"

enum { LOCKS = 3, TTL_MS = 3000, JOB_MS = 4000 };

struct job {
    char resource[32];
    RedLock *rl;
    RedLockLease *lease;
    uv_timer_t work;
    int is_unlocking;
};

static int jobs_left = LOCKS;

static void fail(const char *what, const char *why) {
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static void check(int result, const char *what) {
    if (result < 0) {
        fail(what, uv_strerror(result));
    }
}

static void check_call(RedLockStatus status, const struct job *job) {
    if (status != REDLOCK_OK) {
        fail(job->resource, RedLockLease_ErrorMessage(job->lease));
    }
}

static void take(struct job *job) {
    RedLockAcquireOptions options = REDLOCK_ACQUIRE_OPTIONS_INIT;
    options.resource = job->resource;
    options.ttl_ms = TTL_MS;
    options.wait_ms = 2000;
    options.keep_alive = 1;
    check_call(RedLock_SubmitAcquire(job->rl, &options, job->lease, job), job);
}

/* The work is done. A real job would be many small steps, each a callback of the loop. */
static void on_work_done(uv_timer_t *work) {
    struct job *job = work->data;
    job->is_unlocking = 1;
    check_call(RedLock_SubmitUnlock(job->rl, job->lease, job), job);
}

static void handle(const RedLockEvent *event, uv_poll_t *ready) {
    struct job *job = event->user_data;
    if (event->kind == REDLOCK_EVENT_LOST) {
        /* The lock is still valid for remaining_ms: long enough to stop the work, but not to finish it. */
        fail(job->resource, "the lock cannot be kept");
    }
    check_call(event->status, job);
    if (!job->is_unlocking) {
        /* The lock is held here: start the protected work. */
        check(uv_timer_start(&job->work, on_work_done, JOB_MS, 0), "uv_timer_start");
    } else if (--jobs_left == 0) {
        /* Nothing is left to wait for: the loop ends. */
        check(uv_poll_stop(ready), "uv_poll_stop");
    }
}

/* The library has work to do or an event to return. This handles all of it; if anything were left, the loop
 * would call it again at once. */
static void on_ready(uv_poll_t *ready, int result, int events) {
    RedLock *rl = ready->data;
    (void)events;
    check(result, "uv_poll");
    for (;;) {
        RedLockEvent event = REDLOCK_EVENT_INIT;
        RedLockStatus status = RedLock_NextEvent(rl, 0, &event);
        if (status == REDLOCK_NO_EVENT) {
            return;
        }
        if (status != REDLOCK_OK) {
            fail("redlock", RedLock_ErrorMessage(rl));
        }
        handle(&event, ready);
    }
}

static RedLock *manager_of(int count, const char *const *servers) {
    RedLock *rl = RedLock_New();
    if (!rl) {
        fail("redlock", "no manager could be made");
    }
    for (int i = 0; i < count; i++) {
        if (RedLock_AddServerUrl(rl, servers[i], 0) != REDLOCK_OK) {
            fail(servers[i], RedLock_ErrorMessage(rl));
        }
    }
    return rl;
}

int main(int argc, char **argv) {
    static struct job jobs[LOCKS];
    static const char *const local[] = {"127.0.0.1:6379", "127.0.0.1:6380", "127.0.0.1:6381"};
    const char *const *servers = argc > 1 ? (const char *const *)argv + 1 : local;
    RedLock *rl = manager_of(argc > 1 ? argc - 1 : 3, servers);
    uv_loop_t loop;
    uv_poll_t ready;
    int descriptor = RedLock_Descriptor(rl);
    if (descriptor < 0) {
        fail("redlock", RedLock_ErrorMessage(rl));
    }
    check(uv_loop_init(&loop), "uv_loop_init");
    check(uv_poll_init(&loop, &ready, descriptor), "uv_poll_init");
    ready.data = rl;
    check(uv_poll_start(&ready, UV_READABLE, on_ready), "uv_poll_start");
    for (int i = 0; i < LOCKS; i++) {
        struct job *job = &jobs[i];
        snprintf(job->resource, sizeof job->resource, "libuv-%d", i);
        job->rl = rl;
        job->lease = RedLockLease_New();
        if (!job->lease) {
            fail(job->resource, "no lease could be made");
        }
        check(uv_timer_init(&loop, &job->work), "uv_timer_init");
        job->work.data = job;
        take(job);
    }
    check(uv_run(&loop, UV_RUN_DEFAULT), "uv_run");
    printf("%d locks of %d ms were kept for %d ms each\n", LOCKS, TTL_MS, JOB_MS);

    /* libuv must release the descriptor before the library closes it. */
    uv_close((uv_handle_t *)&ready, NULL);
    for (int i = 0; i < LOCKS; i++) {
        uv_close((uv_handle_t *)&jobs[i].work, NULL);
    }
    check(uv_run(&loop, UV_RUN_DEFAULT), "uv_run");
    check(uv_loop_close(&loop), "uv_loop_close");
    for (int i = 0; i < LOCKS; i++) {
        RedLockLease_Free(jobs[i].lease);
    }
    RedLock_Free(rl);
    return 0;
}

/*
 * The library, through its C interface. All workers of a process share one manager.
 *
 *     ours [--readers] [--extends] ...   as in workers.h; readers: with one resource for all workers, locked shared;
 *                                        extends: each lock is extended, too
 */
#define _GNU_SOURCE
#include "measure.h"
#include "redlock.h"
#include "workers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Longer than any wait here, so no wait is given up. */
#define WAIT_MS 60000

struct holder {
    RedLockLease *lease;
    char resource[128];
    RedLockAcquireOptions shared;
};

static RedLock *manager;
static bool readers;
static int users;

static void fail(const char *what, RedLockStatus status)
{
    const char *name = RedLockStatus_Name(status);

    fprintf(stderr, "ours: %s: %s: %s\n", what, name, RedLock_ErrorMessage(manager));
    exit(1);
}

static void connect_manager(const struct servers *servers)
{
    RedLockStatus status;

    manager = RedLock_New();
    for (int i = 0; i < servers->count; i++) {
        status = RedLock_AddServerUrl(manager, "127.0.0.1", atoi(servers->ports[i]));
        if (status != REDLOCK_OK)
            fail("add server", status);
    }
    if ((status = RedLock_Connect(manager, 0)) != REDLOCK_OK)
        fail("connect", status);
}

static void *open_holder(const struct servers *servers, const char *resource)
{
    struct holder *h = calloc(1, sizeof *h);

    if (h == NULL)
        measure_fail("holder");
    if (users++ == 0)
        connect_manager(servers);
    h->lease = RedLockLease_New();
    snprintf(h->resource, sizeof h->resource, "%s", resource);
    if (readers)
        *strrchr(h->resource, ':') = '\0';
    h->shared = (RedLockAcquireOptions)REDLOCK_ACQUIRE_OPTIONS_INIT;
    h->shared.resource = h->resource;
    h->shared.mode = REDLOCK_SHARED;
    h->shared.ttl_ms = MEASURE_TTL_MS;
    h->shared.tries = 3;
    return h;
}

static bool lock(void *self)
{
    struct holder *h = self;
    if (readers)
        return RedLock_Acquire(manager, &h->shared, h->lease) == REDLOCK_OK;
    return RedLock_Lock(manager, h->resource, MEASURE_TTL_MS, h->lease) == REDLOCK_OK;
}

static bool wait_for(void *self)
{
    struct holder *h = self;
    return RedLock_TryLock(manager, h->resource, MEASURE_TTL_MS, WAIT_MS, h->lease) == REDLOCK_OK;
}

static bool extend(void *self)
{
    struct holder *h = self;
    return RedLock_Extend(manager, h->lease, MEASURE_TTL_MS) == REDLOCK_OK;
}

static bool unlock(void *self)
{
    struct holder *h = self;
    return RedLock_Unlock(manager, h->lease) == REDLOCK_OK;
}

static void close_holder(void *self)
{
    struct holder *h = self;

    RedLockLease_Free(h->lease);
    free(h);
    if (--users == 0)
        RedLock_Free(manager);
}

int main(int argc, char **argv)
{
    struct contender ours = {open_holder, lock, NULL, unlock, wait_for, close_holder};

    argc--, argv++;
    for (; argc > 0 && strncmp(argv[0], "--", 2) == 0; argc--, argv++) {
        if (strcmp(argv[0], "--readers") == 0)
            readers = true;
        else if (strcmp(argv[0], "--extends") == 0)
            ours.extend = extend;
        else
            break;
    }
    return workers_main(&ours, argc, argv);
}

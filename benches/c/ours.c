/*
 * The library, through its C interface. All workers of a process share one manager.
 *
 *     ours [--background|--unguarded|--fencing|--several] ...   as in workers.h; with the manager's own thread, without
 *         the guard against servers that forget, with fencing tokens, with eight resources in the place of each
 */
#define _GNU_SOURCE
#include "measure.h"
#include "redlock.h"
#include "workers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* More than any wait here: none is given up. */
#define WAIT_MS 60000

#define SEVERAL 8

struct holder {
    RedLockLease *lease;
    char resource[128];
    char names[SEVERAL][140];
    RedLockAcquireOptions all;
    const char *resources[SEVERAL];
};

static RedLock *manager;
static bool background, unguarded, fencing, several;
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
    if ((status = RedLock_SetBackgroundThread(manager, background)) != REDLOCK_OK)
        fail("background thread", status);
    if (unguarded && (status = RedLock_SetRestartGuard(manager, REDLOCK_GUARD_OFF, 0, 0)) != REDLOCK_OK)
        fail("guard", status);
    if ((status = RedLock_SetFencing(manager, fencing)) != REDLOCK_OK)
        fail("fencing", status);
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
    for (int i = 0; i < SEVERAL; i++) {
        snprintf(h->names[i], sizeof h->names[i], "%s:%d", resource, i);
        h->resources[i] = h->names[i];
    }
    h->all = (RedLockAcquireOptions)REDLOCK_ACQUIRE_OPTIONS_INIT;
    h->all.resources = h->resources;
    h->all.resource_count = SEVERAL;
    h->all.ttl_ms = MEASURE_TTL_MS;
    h->all.tries = 3;
    return h;
}

static bool lock(void *self)
{
    struct holder *h = self;
    if (several)
        return RedLock_Acquire(manager, &h->all, h->lease) == REDLOCK_OK;
    return RedLock_Lock(manager, h->resource, MEASURE_TTL_MS, h->lease) == REDLOCK_OK;
}

static bool wait_for(void *self)
{
    struct holder *h = self;
    return RedLock_TryLock(manager, h->resource, MEASURE_TTL_MS, WAIT_MS, h->lease) == REDLOCK_OK;
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
    static const struct contender ours = {open_holder, lock, unlock, wait_for, close_holder};

    const char *option = argc > 1 ? argv[1] : "";
    int options;

    background = strcmp(option, "--background") == 0;
    unguarded = strcmp(option, "--unguarded") == 0;
    fencing = strcmp(option, "--fencing") == 0;
    several = strcmp(option, "--several") == 0;
    options = background || unguarded || fencing || several;
    argc -= 1 + options;
    argv += 1 + options;
    return workers_main(&ours, argc, argv);
}

/*
 * Compares several kinds of locks in one process: a few cycles of each in turn, again and again. So other work on
 * the machine affects all of them equally.
 *
 *     beside [--watched SENTINEL_PORT,... | --clustered NODE_PORT,...] cycles 1 KEY WARM_MS RUN_MS PORT...
 *
 * With --watched or --clustered, the kinds differ in how they find their servers. These Sentinels watch each server
 * under the name m and its port. Of these nodes, each has the slot of one of the tags a, b and c. The figures of a kind begin with its name: plain_lock_p50_us, fenced_unlock_p50_us and so on.
 */
#define _GNU_SOURCE
#include "manager.h"
#include "measure.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* The number of cycles of one kind before the next kind's turn. */
#define STRETCH 20

#define SEVERAL 8

struct kind {
    const char *name;
    bool unguarded, silent, fenced, background, submitted, followed, believing, tagged;
    int32_t mode;
    size_t resources;
    RedLock *rl;
    RedLockLease *lease;
    struct pollfd ready; /* for submitted calls */
    RedLockAcquireOptions options;
    char names[SEVERAL][128];
    const char *each[SEVERAL];
    struct samples locks, unlocks, cycles;
};

static struct kind locks[] = {
    {.name = "plain", .resources = 1},
    {.name = "unguarded", .resources = 1, .unguarded = true},
    {.name = "silent", .resources = 1, .silent = true},
    {.name = "fenced", .resources = 1, .fenced = true},
    {.name = "shared", .resources = 1, .mode = REDLOCK_SHARED},
    {.name = "several", .resources = SEVERAL},
    {.name = "background", .resources = 1, .background = true},
    {.name = "submitted", .resources = 1, .submitted = true},
};

static struct kind ways[] = {
    {.name = "addresses", .resources = 1},
    {.name = "sentinels", .resources = 1, .followed = true},
    {.name = "believed", .resources = 1, .followed = true, .believing = true},
};

static struct kind homes[] = {
    {.name = "addresses", .resources = 1},
    {.name = "tags", .resources = 1, .tagged = true},
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static struct kind *kinds = locks;
static size_t kind_count = COUNT(locks);
static const char *arbiters; /* the ports of Sentinels or nodes, with commas between them */

static size_t cycles, failed;

static struct samples room_for(int64_t run_ms)
{
    size_t room = measure_room(run_ms, kind_count);
    return (struct samples){measure_shared(room * sizeof(float)), room, 0};
}

/* Adds a server that Sentinels or nodes of a cluster name. */
static void add(RedLock *rl, const char *scheme, const char *what, const char *which)
{
    char ports[128], url[512];

    snprintf(ports, sizeof ports, "%s", arbiters);
    snprintf(url, sizeof url, "%s://", scheme);
    for (char *next = strtok(ports, ","); next != NULL; next = strtok(NULL, ",")) {
        size_t end = strlen(url);
        snprintf(url + end, sizeof url - end, "%s127.0.0.1:%s", next == ports ? "" : ",", next);
    }
    snprintf(url + strlen(url), sizeof url - strlen(url), "%s%s", what, which);
    manager_check("add server", RedLock_AddServerUrl(rl, url, 0), rl, NULL);
}

static RedLock *manager_of(const struct kind *k, int count, char **ports)
{
    static const char *const tags[] = {"a", "b", "c"};
    RedLock *rl = manager_new(k->followed || k->tagged ? 0 : count, ports);

    for (int i = 0; i < count && k->followed; i++)
        add(rl, "redis-sentinel", "/m", ports[i]);
    for (size_t i = 0; i < COUNT(tags) && k->tagged; i++)
        add(rl, "redis-cluster", "?tag=", tags[i]);
    if (k->believing)
        manager_check("failover guard", RedLock_SetFailoverGuard(rl, 0), rl, NULL);
    return rl;
}

static void open_kind(struct kind *k, const char *key, int64_t run_ms, int count, char **ports)
{
    RedLock *rl = k->rl = manager_of(k, count, ports);

    if (k->unguarded)
        manager_check("guard", RedLock_SetRestartGuard(rl, REDLOCK_GUARD_OFF, 0, 0), rl, NULL);
    manager_check("waking", RedLock_SetWaking(rl, !k->silent), rl, NULL);
    manager_check("fencing", RedLock_SetFencing(rl, k->fenced), rl, NULL);
    manager_check("background", RedLock_SetBackgroundThread(rl, k->background), rl, NULL);
    manager_check("connect", RedLock_Connect(rl, 0), rl, NULL);
    if (k->submitted)
        k->ready = (struct pollfd){.fd = manager_descriptor(rl), .events = POLLIN};
    k->lease = RedLockLease_New();
    for (size_t i = 0; i < k->resources; i++) {
        /* Names of the same length. */
        snprintf(k->names[i], sizeof k->names[i], "%s:%.6s:%zu", key, k->name, i);
        k->each[i] = k->names[i];
    }
    k->options = (RedLockAcquireOptions)REDLOCK_ACQUIRE_OPTIONS_INIT;
    k->options.resource = k->resources == 1 ? k->names[0] : NULL;
    k->options.resources = k->resources == 1 ? NULL : k->each;
    k->options.resource_count = k->resources == 1 ? 0 : k->resources;
    k->options.mode = k->mode;
    k->options.ttl_ms = MEASURE_TTL_MS;
    k->locks = room_for(run_ms);
    k->unlocks = room_for(run_ms);
    k->cycles = room_for(run_ms);
}

/* Waits for the end of a submitted call. */
static bool wait_for_event(struct kind *k)
{
    RedLockEvent event = REDLOCK_EVENT_INIT;

    while (RedLock_NextEvent(k->rl, 0, &event) == REDLOCK_NO_EVENT)
        poll(&k->ready, 1, -1);
    return event.status == REDLOCK_OK;
}

static bool lock(struct kind *k)
{
    if (!k->submitted)
        return RedLock_Acquire(k->rl, &k->options, k->lease) == REDLOCK_OK;
    return RedLock_SubmitAcquire(k->rl, &k->options, k->lease, NULL) == REDLOCK_OK && wait_for_event(k);
}

static bool unlock(struct kind *k)
{
    if (!k->submitted)
        return RedLock_Unlock(k->rl, k->lease) == REDLOCK_OK;
    return RedLock_SubmitUnlock(k->rl, k->lease, NULL) == REDLOCK_OK && wait_for_event(k);
}

/* The first call checks a connection that was idle for a while, so it is not a sample. */
static void stretch(struct kind *k)
{
    for (int i = 0; i < STRETCH; i++) {
        int64_t start = measure_now_ns(), locked, end;
        bool held = lock(k);
        locked = measure_now_ns();
        held = held && unlock(k);
        end = measure_now_ns();
        if (i > 0) {
            measure_keep(&k->locks, start, locked);
            measure_keep(&k->unlocks, locked, end);
            measure_keep(&k->cycles, start, end);
        }
        cycles++;
        failed += !held;
    }
}

/* A different kind begins each time. */
static void run(int64_t run_ms)
{
    int64_t end = measure_now_ns() + run_ms * 1000000;

    cycles = failed = 0;
    for (size_t i = 0; i < kind_count; i++)
        kinds[i].locks.count = kinds[i].unlocks.count = kinds[i].cycles.count = 0;
    for (size_t first = 0; measure_now_ns() < end; first++)
        for (size_t i = 0; i < kind_count; i++)
            stretch(&kinds[(first + i) % kind_count]);
}

static void print_kind(struct kind *k)
{
    char name[64];

    snprintf(name, sizeof name, "%s_lock", k->name);
    measure_print(name, &k->locks);
    snprintf(name, sizeof name, "%s_unlock", k->name);
    measure_print(name, &k->unlocks);
    snprintf(name, sizeof name, "%s_cycle", k->name);
    measure_print(name, &k->cycles);
}

int main(int argc, char **argv)
{
    double cpu_before;
    int64_t start, run_ms;

    if (argc > 2 && strcmp(argv[1], "--watched") == 0) {
        kinds = ways;
        kind_count = COUNT(ways);
    } else if (argc > 2 && strcmp(argv[1], "--clustered") == 0) {
        kinds = homes;
        kind_count = COUNT(homes);
    }
    if (kinds != locks) {
        arbiters = argv[2];
        argc -= 2;
        argv += 2;
    }
    if (argc < 7) {
        fputs("beside [--watched SENTINEL_PORT,... | --clustered NODE_PORT,...] "
              "cycles 1 KEY WARM_MS RUN_MS PORT...\n",
              stderr);
        return 2;
    }
    run_ms = atoll(argv[5]);
    for (size_t i = 0; i < kind_count; i++)
        open_kind(&kinds[i], argv[3], run_ms, argc - 6, argv + 6);
    run(atoll(argv[4]));
    if (!measure_ready())
        return 0;
    measure_running();
    cpu_before = measure_cpu_us(RUSAGE_SELF);
    start = measure_now_ns();
    run(run_ms);
    printf("cycles=%zu failed=%zu busy_us=%.0f seconds=%.6f", cycles, failed,
           measure_cpu_us(RUSAGE_SELF) - cpu_before, (double)(measure_now_ns() - start) / 1e9);
    for (size_t i = 0; i < kind_count; i++)
        print_kind(&kinds[i]);
    puts("");
    for (size_t i = 0; i < kind_count; i++) {
        RedLockLease_Free(kinds[i].lease);
        RedLock_Free(kinds[i].rl);
    }
    return 0;
}

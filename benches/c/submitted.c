/*
 * The library's submitted calls: one thread with an event loop of its own, and CLIENTS locks in flight. Each
 * client locks and unlocks a resource of its own, one call after the other. It does through the C interface what
 * loop.c does with bare sockets.
 *
 *     submitted cycles  CLIENTS KEY WARM_MS RUN_MS PORT...
 *     submitted exactly CLIENTS KEY COUNT PORT...
 */
#define _GNU_SOURCE
#include "manager.h"
#include "measure.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

struct client {
    RedLockLease *lease;
    char resource[128];
    bool locking; /* otherwise unlocking */
    int64_t since_ns;
};

static RedLock *manager;
static struct pollfd ready = {.events = POLLIN};
static struct client *clients;
static size_t client_count, running;
static struct samples locks, unlocks;
static size_t cycles, failed;
static int64_t end_ns;
static size_t most; /* cycles that a run may have */

static void begin(struct client *c, bool locking, int64_t now_ns)
{
    RedLockStatus status;

    c->locking = locking;
    c->since_ns = now_ns;
    if (locking) {
        RedLockAcquireOptions options = REDLOCK_ACQUIRE_OPTIONS_INIT;
        options.resource = c->resource;
        options.ttl_ms = MEASURE_TTL_MS;
        status = RedLock_SubmitAcquire(manager, &options, c->lease, c);
    } else {
        status = RedLock_SubmitUnlock(manager, c->lease, c);
    }
    manager_check("submit", status, manager, c->lease);
}

/* After a cycle, the next cycle begins, unless the time has passed. */
static void handle(const RedLockEvent *event)
{
    struct client *c = event->user_data;
    bool done = event->status == REDLOCK_OK;
    int64_t now_ns = measure_now_ns();

    measure_keep(c->locking ? &locks : &unlocks, c->since_ns, now_ns);
    if (c->locking && done) {
        begin(c, false, now_ns);
        return;
    }
    cycles++;
    failed += !done;
    if (now_ns < end_ns && cycles < most)
        begin(c, true, now_ns);
    else
        running--;
}

/* Runs until the time has passed and every client has released its lock. */
static void run(int64_t run_ms, size_t most_cycles)
{
    locks.count = unlocks.count = cycles = failed = 0;
    most = most_cycles;
    end_ns = measure_now_ns() + run_ms * 1000000;
    running = client_count;
    for (size_t i = 0; i < client_count; i++)
        begin(&clients[i], true, measure_now_ns());
    while (running > 0) {
        RedLockEvent event = REDLOCK_EVENT_INIT;
        if (poll(&ready, 1, 10000) <= 0)
            measure_fail("poll");
        while (RedLock_NextEvent(manager, 0, &event) == REDLOCK_OK)
            handle(&event);
    }
}

static void prepare(size_t count, const char *key, int server_count, char **ports)
{
    manager = manager_connect(server_count, ports);
    ready.fd = manager_descriptor(manager);
    client_count = count;
    clients = calloc(count, sizeof *clients);
    if (clients == NULL)
        measure_fail("clients");
    for (size_t i = 0; i < count; i++) {
        clients[i].lease = RedLockLease_New();
        snprintf(clients[i].resource, sizeof clients[i].resource, "%s:%zu", key, i);
    }
}

static void finish(void)
{
    for (size_t i = 0; i < client_count; i++)
        RedLockLease_Free(clients[i].lease);
    free(clients);
    RedLock_Free(manager);
}

static void measure(int64_t warm_ms, int64_t run_ms)
{
    size_t room = measure_room(warm_ms > run_ms ? warm_ms : run_ms, 1);

    locks = (struct samples){measure_shared(room * sizeof(float)), room, 0};
    unlocks = (struct samples){measure_shared(room * sizeof(float)), room, 0};
    run(warm_ms, SIZE_MAX);
    if (!measure_ready())
        return;
    measure_running();

    double cpu_before = measure_cpu_us(RUSAGE_SELF);
    int64_t start_ns = measure_now_ns();
    run(run_ms, SIZE_MAX);
    printf("cycles=%zu failed=%zu busy_us=%.0f seconds=%.6f", cycles, failed,
           measure_cpu_us(RUSAGE_SELF) - cpu_before, (double)(measure_now_ns() - start_ns) / 1e9);
    measure_print("lock", &locks);
    measure_print("unlock", &unlocks);
    puts("");
}

int main(int argc, char **argv)
{
    if (argc > 5 && strcmp(argv[1], "exactly") == 0 && atol(argv[2]) > 0) {
        prepare((size_t)atol(argv[2]), argv[3], argc - 5, argv + 5);
        run(3600000, (size_t)atol(argv[4]));
    } else if (argc > 6 && strcmp(argv[1], "cycles") == 0 && atol(argv[2]) > 0) {
        prepare((size_t)atol(argv[2]), argv[3], argc - 6, argv + 6);
        measure(atoll(argv[4]), atoll(argv[5]));
    } else {
        fputs("submitted cycles CLIENTS KEY WARM_MS RUN_MS PORT...\n"
              "submitted exactly CLIENTS KEY COUNT PORT...\n", stderr);
        return 2;
    }
    finish();
    return failed > 0;
}

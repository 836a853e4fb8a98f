/*
 * The time from a release until a waiter in another process has the lock, after two seconds of waiting. Each
 * worker is a process that waits for a resource of its own. This process holds all of the resources, and releases
 * them one after the other. Before each release, it takes and releases a lock that no other process wants, to
 * measure a round trip.
 *
 *     woken cycles WORKERS KEY WARM_MS RUN_MS PORT...
 */
#define _GNU_SOURCE
#include "crew.h"
#include "manager.h"
#include "measure.h"

#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#define WAIT_MS 60000
#define WAITED_MS 2000

/* The pause between two releases, so that one does not disturb the next. Also the pause between the round trip
 * and the release. */
#define PAUSE_MS 6
#define BREATH_MS 1

static struct {
    pthread_barrier_t line;
    atomic_bool over;
    sem_t has_it;
    int64_t granted_ns; /* when the awaited worker got the lock */
    atomic_int failed;
    double busy_us[];
} *board;

static const char *key;
static int workers, servers;
static char **ports;

static void pause_ms(int64_t ms)
{
    const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
}

static void name_resource(char *name, size_t size, int number)
{
    snprintf(name, size, "%s:%d", key, number);
}

static void work(int number)
{
    RedLock *rl = manager_connect(servers, ports);
    RedLockLease *lease = RedLockLease_New();
    char name[128];

    name_resource(name, sizeof name, number);
    while (pthread_barrier_wait(&board->line), !board->over) {
        bool held = RedLock_TryLock(rl, name, MEASURE_TTL_MS, WAIT_MS, lease) == REDLOCK_OK;
        board->granted_ns = measure_now_ns();
        sem_post(&board->has_it);
        held = held && RedLock_Unlock(rl, lease) == REDLOCK_OK;
        board->failed += !held;
    }
    board->busy_us[number] = measure_cpu_us(RUSAGE_SELF);
    RedLockLease_Free(lease);
    RedLock_Free(rl);
}

static void time_round_trip(RedLock *rl, RedLockLease *lease, struct samples *trips)
{
    char name[128];
    int64_t start;

    name_resource(name, sizeof name, workers);
    start = measure_now_ns();
    manager_check("lock", RedLock_Lock(rl, name, MEASURE_TTL_MS, lease), rl, lease);
    measure_keep(trips, start, measure_now_ns());
    manager_check("unlock", RedLock_Unlock(rl, lease), rl, lease);
}

static void batch(RedLock *rl, RedLockLease **leases, struct samples *trips, struct samples *woken)
{
    char name[128];

    for (int i = 0; i < workers; i++) {
        name_resource(name, sizeof name, i);
        manager_check("hold", RedLock_TryLock(rl, name, MEASURE_TTL_MS, WAIT_MS, leases[i]), rl, leases[i]);
    }
    pthread_barrier_wait(&board->line);
    pause_ms(WAITED_MS);
    for (int i = 0; i < workers; i++) {
        int64_t released;
        pause_ms(PAUSE_MS);
        time_round_trip(rl, leases[workers], trips);
        pause_ms(BREATH_MS);
        released = measure_now_ns();
        manager_check("release", RedLock_Unlock(rl, leases[i]), rl, leases[i]);
        while (sem_wait(&board->has_it) != 0)
            continue;
        measure_keep(woken, released, board->granted_ns);
    }
}

int main(int argc, char **argv)
{
    struct samples trips = {.room = 10000}, woken = {.room = 10000};
    RedLock *rl;
    RedLockLease **leases;
    int64_t start, end;
    double before, busy_us;

    if (argc < 7) {
        fputs("woken cycles WORKERS KEY WARM_MS RUN_MS PORT...\n", stderr);
        return 2;
    }
    workers = atoi(argv[2]);
    key = argv[3];
    servers = argc - 6;
    ports = argv + 6;
    board = measure_shared(sizeof *board + (size_t)workers * sizeof board->busy_us[0]);
    crew_line(&board->line, workers + 1);
    sem_init(&board->has_it, 1, 0);
    for (int i = 0; i < workers; i++)
        crew_start(work, i);
    trips.us = measure_shared(trips.room * sizeof(float));
    woken.us = measure_shared(woken.room * sizeof(float));
    rl = manager_connect(servers, ports);
    leases = calloc((size_t)workers + 1, sizeof(RedLockLease *));
    if (leases == NULL)
        measure_fail("leases");
    for (int i = 0; i <= workers; i++)
        leases[i] = RedLockLease_New();
    if (!measure_ready())
        return 0;
    measure_running();
    before = measure_cpu_us(RUSAGE_SELF);
    start = measure_now_ns();
    end = start + atoll(argv[5]) * 1000000;
    do
        batch(rl, leases, &trips, &woken);
    while (measure_now_ns() + (int64_t)WAITED_MS * 1000000 < end);
    crew_dismiss();
    board->over = true;
    pthread_barrier_wait(&board->line);
    crew_wait();
    busy_us = measure_cpu_us(RUSAGE_SELF) - before;
    for (int i = 0; i < workers; i++)
        busy_us += board->busy_us[i];
    printf("cycles=%zu failed=%d busy_us=%.0f seconds=%.6f", woken.count, board->failed, busy_us,
           (double)(measure_now_ns() - start) / 1e9);
    measure_print("trip", &trips);
    measure_print("woken", &woken);
    puts("");
    return 0;
}

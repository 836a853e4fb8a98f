/*
 * Permits of a semaphore. This process holds HELD of them. WORKERS other processes take one each at the same
 * moment, hold it until all of them do, and release it, again and again.
 *
 *     semaphore PERMITS HELD cycles WORKERS KEY WARM_MS RUN_MS PORT...
 */
#define _GNU_SOURCE
#include "crew.h"
#include "manager.h"
#include "measure.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#define WAIT_MS 5000

struct worker {
    struct samples locks, unlocks;
    size_t cycles, failed;
    double busy_us;
};

static struct {
    pthread_barrier_t line;
    atomic_bool over;
    struct worker workers[];
} *board;

static RedLockAcquireOptions options = REDLOCK_ACQUIRE_OPTIONS_INIT;
static int workers, servers;
static char **ports;

static void cycle(struct worker *w, RedLock *rl, RedLockLease *lease)
{
    int64_t start = measure_now_ns(), now;
    bool held = RedLock_Acquire(rl, &options, lease) == REDLOCK_OK;

    measure_keep(&w->locks, start, measure_now_ns());
    pthread_barrier_wait(&board->line);
    start = measure_now_ns();
    held = held && RedLock_Unlock(rl, lease) == REDLOCK_OK;
    now = measure_now_ns();
    measure_keep(&w->unlocks, start, now);
    w->cycles++;
    w->failed += !held;
}

/* All workers begin a cycle together. The parent process decides whether there is another one. */
static void work(int number)
{
    struct worker *w = &board->workers[number];
    RedLock *rl = manager_connect(servers, ports);
    RedLockLease *lease = RedLockLease_New();

    for (int part = 0; part < 2; part++) { /* the warm-up, then the measurement */
        double before;
        pthread_barrier_wait(&board->line);
        w->locks.count = w->unlocks.count = w->cycles = w->failed = 0;
        before = measure_cpu_us(RUSAGE_SELF);
        while (pthread_barrier_wait(&board->line), !board->over)
            cycle(w, rl, lease);
        w->busy_us = measure_cpu_us(RUSAGE_SELF) - before;
        pthread_barrier_wait(&board->line);
    }
    RedLockLease_Free(lease);
    RedLock_Free(rl);
}

static void run(int64_t run_ms)
{
    int64_t end;

    board->over = false;
    pthread_barrier_wait(&board->line);
    end = measure_now_ns() + run_ms * 1000000;
    while (!board->over) {
        board->over = measure_now_ns() >= end;
        pthread_barrier_wait(&board->line);
        if (!board->over)
            pthread_barrier_wait(&board->line);
    }
    pthread_barrier_wait(&board->line);
}

static void hold(int held)
{
    RedLock *rl = manager_connect(servers, ports);

    for (int i = 0; i < held; i++) {
        RedLockLease *lease = RedLockLease_New();
        manager_check("hold", RedLock_Acquire(rl, &options, lease), rl, lease);
    }
}

static void print(int64_t run_ms, int64_t took_ns)
{
    size_t cycles = 0, failed = 0, room = measure_room(run_ms, 1) * (size_t)workers;
    struct samples locks = {measure_shared(room * sizeof(float)), room, 0};
    double busy_us = 0;

    for (int i = 0; i < workers; i++) {
        const struct worker *w = &board->workers[i];
        cycles += w->cycles;
        failed += w->failed;
        busy_us += w->busy_us;
        for (size_t n = 0; n < w->locks.count; n++)
            locks.us[locks.count++] = w->locks.us[n];
    }
    printf("cycles=%zu failed=%zu busy_us=%.0f seconds=%.6f", cycles, failed, busy_us,
           (double)took_ns / 1e9);
    measure_print("lock", &locks);
    puts("");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    int64_t start, run_ms;

    if (argc < 9) {
        fputs("semaphore PERMITS HELD cycles WORKERS KEY WARM_MS RUN_MS PORT...\n", stderr);
        return 2;
    }
    workers = atoi(argv[4]);
    servers = argc - 8;
    ports = argv + 8;
    run_ms = atoll(argv[7]);
    options.resource = argv[5];
    options.permits = atoi(argv[1]);
    options.ttl_ms = MEASURE_TTL_MS;
    options.wait_ms = WAIT_MS;
    board = measure_shared(sizeof *board + (size_t)workers * sizeof board->workers[0]);
    crew_line(&board->line, workers + 1);
    for (int i = 0; i < workers; i++) {
        size_t room = measure_room(run_ms, 1);
        board->workers[i].locks = (struct samples){measure_shared(room * sizeof(float)), room, 0};
        board->workers[i].unlocks = (struct samples){measure_shared(room * sizeof(float)), room, 0};
        crew_start(work, i);
    }
    hold(atoi(argv[2]));
    run(atoll(argv[6]));
    if (!measure_ready())
        return 0;
    measure_running();
    start = measure_now_ns();
    crew_dismiss();
    run(run_ms);
    crew_wait();
    print(run_ms, measure_now_ns() - start);
    return 0;
}

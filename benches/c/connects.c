/*
 * The cost of connecting: a manager with the guard against servers that forget, and one without it, in turn.
 *
 *     connects cycles 1 KEY WARM_MS RUN_MS PORT...
 */
#define _GNU_SOURCE
#include "manager.h"
#include "measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

/* The pause between two of them. A closed connection keeps its port for a minute, and the number of ports is
 * limited. */
#define PAUSE_NS 4000000

static int count;
static char **ports;
static size_t cycles;

static void connect_once(bool guarded, struct samples *s)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    RedLock *rl = manager_new(count, ports);
    int64_t start;

    if (!guarded)
        manager_check("guard", RedLock_SetRestartGuard(rl, REDLOCK_GUARD_OFF, 0, 0), rl, NULL);
    start = measure_now_ns();
    manager_check("connect", RedLock_Connect(rl, 0), rl, NULL);
    measure_keep(s, start, measure_now_ns());
    RedLock_Free(rl);
    cycles++;
    clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
}

static void run(int64_t run_ms, struct samples *guarded, struct samples *unguarded)
{
    int64_t end = measure_now_ns() + run_ms * 1000000;

    cycles = guarded->count = unguarded->count = 0;
    while (measure_now_ns() < end) {
        connect_once(true, guarded);
        connect_once(false, unguarded);
    }
}

int main(int argc, char **argv)
{
    struct samples guarded, unguarded;
    double cpu_before;
    int64_t start, run_ms;

    if (argc < 7) {
        fputs("connects cycles 1 KEY WARM_MS RUN_MS PORT...\n", stderr);
        return 2;
    }
    count = argc - 6;
    ports = argv + 6;
    run_ms = atoll(argv[5]);
    guarded.room = unguarded.room = measure_room(run_ms, 1);
    guarded.us = measure_shared(guarded.room * sizeof *guarded.us);
    unguarded.us = measure_shared(unguarded.room * sizeof *unguarded.us);
    run(atoll(argv[4]), &guarded, &unguarded);
    if (!measure_ready())
        return 0;
    measure_running();
    cpu_before = measure_cpu_us(RUSAGE_SELF);
    start = measure_now_ns();
    run(run_ms, &guarded, &unguarded);
    printf("cycles=%zu failed=0 busy_us=%.0f seconds=%.6f", cycles,
           measure_cpu_us(RUSAGE_SELF) - cpu_before, (double)(measure_now_ns() - start) / 1e9);
    measure_print("guarded", &guarded);
    measure_print("unguarded", &unguarded);
    puts("");
    return 0;
}

/*
 * How a lock is measured. Both programs of the bench, the floor and the library, go through the
 * same loop with the same clock, so that they differ in nothing but what they do to take a lock.
 *
 * The talk with the driver, a line each: "ready" after the warm-up, then any line from the driver
 * starts the measuring, "running" as it starts, and the figures as key=value at its end. An end of
 * input instead of a line ends the program: it never outlives its driver.
 */
#ifndef MEASURE_H
#define MEASURE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#define MEASURE_TTL_MS 30000

/* What is measured: lock and unlock, each telling whether it succeeded. */
struct subject {
    bool (*lock)(void *self);
    bool (*unlock)(void *self);
    void *self;
};

struct samples {
    uint32_t *lock_ns;
    uint32_t *unlock_ns;
    size_t room;
    size_t locks;
    size_t unlocks;
    size_t failed;
    double cpu_us;
};

static int64_t measure_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static double measure_cpu_us(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e6
         + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static uint32_t *measure_room(size_t count)
{
    uint32_t *all = malloc(count * sizeof *all);
    if (all == NULL) {
        fputs("no memory for the samples\n", stderr);
        exit(1);
    }
    /* Touched now, or the first write to each page would be measured as part of a lock. */
    for (size_t i = 0; i < count; i++)
        all[i] = 1;
    return all;
}

/* One after the other for so long. Each call is a sample, whatever it answered: a failure that
 * takes its time must not make the rest look good. A lock that failed is not unlocked. */
static void measure_run(const struct subject *it, int64_t run_ms, struct samples *s)
{
    double cpu_before = measure_cpu_us();
    int64_t start = measure_now_ns();
    int64_t end = start + run_ms * 1000000;

    s->locks = s->unlocks = s->failed = 0;
    while (start < end && s->locks < s->room) {
        bool held = it->lock(it->self);
        int64_t locked = measure_now_ns();
        s->lock_ns[s->locks++] = (uint32_t)(locked - start);
        start = locked;
        if (held) {
            held = it->unlock(it->self);
            start = measure_now_ns();
            s->unlock_ns[s->unlocks++] = (uint32_t)(start - locked);
        }
        if (!held)
            s->failed++;
    }
    s->cpu_us = measure_cpu_us() - cpu_before;
}

static int measure_by_size(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void measure_print(const char *name, uint32_t *ns, size_t count)
{
    if (count == 0)
        return;
    qsort(ns, count, sizeof *ns, measure_by_size);
    printf(" %s_p50_us=%.2f %s_p99_us=%.2f %s_max_us=%.2f", name, ns[count / 2] / 1e3, name,
           ns[count * 99 / 100] / 1e3, name, ns[count - 1] / 1e3);
}

/* Warm-up, the talk with the driver, the run and its figures. Returns what main is to return. */
static int measure_main(const struct subject *it, int64_t warm_ms, int64_t run_ms)
{
    struct samples s = {.room = (size_t)run_ms * 200 + 1000}; /* as if a cycle took 5 us */
    char line[16];

    s.lock_ns = measure_room(s.room);
    s.unlock_ns = measure_room(s.room);
    measure_run(it, warm_ms, &s);
    puts("ready");
    fflush(stdout);
    if (fgets(line, sizeof line, stdin) != NULL) {
        puts("running");
        fflush(stdout);
        measure_run(it, run_ms, &s);
        printf("cycles=%zu failed=%zu cpu_us=%.2f", s.locks, s.failed, s.cpu_us / (double)s.locks);
        measure_print("lock", s.lock_ns, s.locks);
        measure_print("unlock", s.unlock_ns, s.unlocks);
        puts("");
        fflush(stdout);
    }
    free(s.lock_ns);
    free(s.unlock_ns);
    return 0;
}

#endif

#define _GNU_SOURCE
#include "measure.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

/* More values where distributions bend: at the fast end, and near the slowest. */
static const double PERCENTS[] = {1,  5,  10, 20, 30, 40,   50,   60,   70,   75,    80,
                                  85, 90, 93, 95, 97, 98, 99, 99.5, 99.7, 99.9, 99.95, 99.99};

int64_t measure_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

double measure_cpu_us(int whose)
{
    struct rusage u;
    getrusage(whose, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e6
         + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

void *measure_shared(size_t bytes)
{
    int flags = MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE;
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (at == MAP_FAILED)
        measure_fail("memory for the samples");
    memset(at, 0, bytes);
    return at;
}

void measure_keep(struct samples *s, int64_t from_ns, int64_t to_ns)
{
    if (s->count < s->room)
        s->us[s->count++] = (float)(to_ns - from_ns) / 1000;
}

size_t measure_room(int64_t run_ms, size_t workers)
{
    /* Each worker gets room for twice its share, because some may get more cycles than others. */
    size_t share = workers == 1 ? 1 : 2;
    return (size_t)run_ms * 400 * share / workers + 1000;
}

bool measure_ready(void)
{
    char line[16];

    puts("ready");
    fflush(stdout);
    return fgets(line, sizeof line, stdin) != NULL;
}

void measure_running(void)
{
    puts("running");
    fflush(stdout);
}

static int by_size(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

void measure_print(const char *name, struct samples *s)
{
    qsort(s->us, s->count, sizeof *s->us, by_size);
    for (size_t i = 0; i < sizeof PERCENTS / sizeof *PERCENTS; i++) {
        double below = (double)s->count * PERCENTS[i] / 100;
        if (s->count > 0 && (PERCENTS[i] <= 50 || below < (double)s->count - 1))
            printf(" %s_p%g_us=%.2f", name, PERCENTS[i], (double)s->us[(size_t)below]);
    }
    if (s->count > 0)
        printf(" %s_most_us=%.2f", name, (double)s->us[s->count - 1]);
}

void measure_fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(1);
}

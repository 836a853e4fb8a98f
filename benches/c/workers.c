#define _GNU_SOURCE
#include "workers.h"
#include "board.h"
#include "crew.h"
#include "measure.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define HOLD_NS 1000000

static bool processes;
static const struct contender *contender;
static struct servers servers;
static const char *key;
static struct board *board;

/* Runs one cycle after the other until the end. Each call is a sample, whatever its result, because a slow
 * failure must not make the other figures look good. A lock that failed is not unlocked. */
static void run_cycles(struct worker *w, int64_t end)
{
    int64_t start = measure_now_ns();

    while (start < end) {
        bool held = contender->lock(w->self);
        int64_t locked = measure_now_ns();
        measure_keep(&w->locks, start, locked);
        start = locked;
        if (held && contender->extend != NULL) {
            held = contender->extend(w->self);
            locked = measure_now_ns();
            measure_keep(&w->extensions, start, locked);
            start = locked;
        }
        if (held) {
            held = contender->unlock(w->self);
            start = measure_now_ns();
            measure_keep(&w->unlocks, locked, start);
        }
        w->cycles++;
        w->failed += !held;
    }
}

/* A wait that begins in time and ends too late is a sample, but not a cycle. */
static void run_contended(struct worker *w, int64_t end)
{
    const struct timespec hold = {.tv_nsec = HOLD_NS};
    int64_t start;

    while ((start = measure_now_ns()) < end) {
        bool held = contender->wait(w->self);
        int64_t locked = measure_now_ns(), released;
        measure_keep(&w->locks, start, locked);
        if (held && locked < end) {
            board_enter(board, w, locked);
            clock_nanosleep(CLOCK_MONOTONIC, 0, &hold, NULL);
            w->cycles++;
            board_leave(board);
        }
        if (held) {
            released = measure_now_ns();
            w->held_ns += locked < end ? released - locked : 0;
            held = contender->unlock(w->self);
            measure_keep(&w->unlocks, released, measure_now_ns());
        }
        w->failed += !held;
    }
}

static void run(struct worker *w, int64_t run_ms)
{
    int whose = processes ? RUSAGE_SELF : RUSAGE_THREAD;
    double cpu_before = measure_cpu_us(whose);
    int64_t end = measure_now_ns() + run_ms * 1000000;

    if (board->contended)
        run_contended(w, end);
    else
        run_cycles(w, end);
    w->busy_us = measure_cpu_us(whose) - cpu_before;
    w->end_ns = measure_now_ns();
}

static void *work(void *arg)
{
    struct worker *w = arg;

    run(w, board->warm_ms);
    pthread_barrier_wait(&board->line);
    pthread_barrier_wait(&board->line);
    run(w, board->run_ms);
    pthread_barrier_wait(&board->line);
    return NULL;
}

/* The first worker is the program itself, so a single worker has no other threads beside it. It talks with the
 * bench while the other workers wait at the barrier. */
static void lead(struct worker *w)
{
    run(w, board->warm_ms);
    pthread_barrier_wait(&board->line);
    if (!measure_ready())
        exit(0);
    measure_running();
    board_clear(board);
    board->start_ns = measure_now_ns();
    pthread_barrier_wait(&board->line);
    run(w, board->run_ms);
    if (processes)
        crew_dismiss();
    pthread_barrier_wait(&board->line);
    board_print(board);
}

static void open_worker(struct worker *w)
{
    char resource[128];

    snprintf(resource, sizeof resource, "%s:%d", key, board->contended ? 0 : w->number);
    w->self = contender->open(&servers, resource);
}

static void work_apart(int number)
{
    struct worker *w = &board->workers[number];

    open_worker(w);
    work(w);
    contender->close(w->self);
}

static void run_processes(void)
{
    for (int i = 1; i < board->count; i++)
        crew_start(work_apart, i);
    open_worker(&board->workers[0]);
    lead(&board->workers[0]);
    contender->close(board->workers[0].self);
    crew_wait();
}

static void run_threads(void)
{
    for (int i = 0; i < board->count; i++)
        open_worker(&board->workers[i]);
    for (int i = 1; i < board->count; i++)
        if (pthread_create(&board->workers[i].thread, NULL, work, &board->workers[i]) != 0)
            measure_fail("pthread_create");
    lead(&board->workers[0]);
    for (int i = 1; i < board->count; i++)
        pthread_join(board->workers[i].thread, NULL);
    for (int i = 0; i < board->count; i++)
        contender->close(board->workers[i].self);
}

static int run_exactly(long count, const char *key)
{
    void *self = contender->open(&servers, key);
    int failed = 0;

    for (long i = 0; i < count; i++)
        failed |= !contender->lock(self) || !contender->unlock(self);
    contender->close(self);
    return failed;
}

int workers_main(const struct contender *it, int argc, char **argv)
{
    if (argc > 0 && strcmp(argv[0], "--processes") == 0) {
        processes = true;
        argc--, argv++;
    }
    contender = it;
    if (argc > 3 && strcmp(argv[0], "exactly") == 0) {
        servers = (struct servers){argc - 3, argv + 3};
        return run_exactly(atol(argv[1]), argv[2]);
    }
    bool contended = argc > 5 && strcmp(argv[0], "contend") == 0;
    if (argc <= 5 || atoi(argv[1]) < 1 || (!contended && strcmp(argv[0], "cycles") != 0)) {
        fputs("... [--processes] cycles|contend WORKERS KEY WARM_MS RUN_MS PORT...\n"
              "... exactly COUNT KEY PORT...\n", stderr);
        return 2;
    }
    servers = (struct servers){argc - 5, argv + 5};
    key = argv[2];
    board = board_new(atoi(argv[1]), contended, it->extend != NULL, atoll(argv[3]), atoll(argv[4]));
    if (processes)
        run_processes();
    else
        run_threads();
    return 0;
}

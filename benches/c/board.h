/*
 * The common record of a program's workers: which worker held the contended resource last, and what each
 * worker has measured. It is in memory that processes share.
 */
#ifndef BOARD_H
#define BOARD_H

#include "measure.h"

#include <pthread.h>
#include <stdatomic.h>

struct worker {
    int number;
    pthread_t thread;
    void *self; /* the contender's state of this worker */
    struct samples locks, extensions, unlocks;
    struct samples gaps; /* from a release by another worker until this one had the lock */
    size_t cycles, failed;
    int64_t held_ns, end_ns;
    double busy_us;
};

struct board {
    pthread_barrier_t line;
    bool contended;
    int count;
    int64_t warm_ms, run_ms, start_ns;
    atomic_int last;   /* the number of the worker that held it last */
    _Atomic int64_t released_ns; /* when its hold ended */
    atomic_int inside; /* how many hold it now; a lock must prevent more than one */
    atomic_size_t handovers, overlaps;
    struct worker workers[];
};

struct board *board_new(int count, bool contended, bool extends, int64_t warm_ms, int64_t run_ms);

/* Deletes the results of the warm-up, except which worker held the resource last. */
void board_clear(struct board *board);

/* Called by a worker that has got the resource at that time, and before the worker releases it. */
void board_enter(struct board *board, struct worker *w, int64_t locked_ns);
void board_leave(struct board *board);

/* Prints the figures of all workers together, on one line. */
void board_print(struct board *board);

#endif

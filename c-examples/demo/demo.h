/*
 * The common part of the demo's files: the story (demo.c) and the two workers (worker.c). common.h adds the
 * servers (servers.c) and the output for the viewer (terminal.c).
 */
#ifndef DEMO_H
#define DEMO_H

#include <stdatomic.h>

#include "common.h"

enum {
    SERVERS = 5,
    QUORUM = SERVERS / 2 + 1,
    WORKERS = 2,
    TTL_MS = 3000, /* how long a lock lasts when it is not released */
};

/*
 * The memory that the workers share: one page, which all processes of the demo share. The atomic members belong
 * to the referee. The others are protected only by the lock that is shown here.
 */
struct board {
    atomic_bool closing;      /* finish the turn and end */
    atomic_int servers_up;    /* how many of the servers can answer now */
    atomic_int scene;         /* increases each time something is done to a server */
    atomic_int explained;     /* the last scene in which a worker said why it waits */
    atomic_int holders;       /* workers between taking and releasing the lock */
    atomic_int most_holders;  /* the greatest value of holders ever seen */
    int last_holder;          /* the worker that had the last turn, -1 before the first */
    long counter;             /* read, changed and written back in each turn */
    struct tally {
        int turns;
        int handovers;        /* turns right after a turn of the other worker */
        int turns_at_quorum;  /* turns begun without a server to spare */
        int failed;           /* calls that did not do what they should do */
    } tally[WORKERS];
};

/* worker.c: takes the lock, works, releases it, until the board closes. Returns an exit code. */
int work(int me, const struct server servers[SERVERS], struct board *board);

#endif

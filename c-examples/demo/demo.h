/*
 * What the files of the demo share: the story (demo.c) and the two workers (worker.c), beside what common.h
 * has of the servers (servers.c) and the person who watches (terminal.c).
 */
#ifndef DEMO_H
#define DEMO_H

#include <stdatomic.h>

#include "common.h"

enum {
    SERVERS = 5,
    QUORUM = SERVERS / 2 + 1,
    WORKERS = 2,
    TTL_MS = 3000, /* how long a lock lasts when nobody gives it back */
};

/*
 * Where the workers meet: one page of memory that all processes of the demo share. The atomic
 * members are the referee's. The others are guarded by nothing but the lock that is shown here.
 */
struct board {
    atomic_bool closing;      /* finish your turn and go home */
    atomic_int servers_up;    /* how many of the servers can answer just now */
    atomic_int scene;         /* goes up each time something is done to a server */
    atomic_int explained;     /* the last scene in which a worker said why it waits */
    atomic_int holders;       /* workers between taking the lock and giving it back */
    atomic_int most_holders;  /* the greatest value of holders ever seen */
    int last_holder;          /* the worker that had the last turn, -1 before the first */
    long counter;             /* read, worked upon and written back in each turn */
    struct tally {
        int turns;
        int handovers;        /* turns right after a turn of the other worker */
        int turns_at_quorum;  /* turns begun with no server to spare */
        int failed;           /* calls that did not do what they should */
    } tally[WORKERS];
};

/* worker.c: takes the lock, works, gives it back, until the board closes. Returns an exit code. */
int work(int me, const struct server servers[SERVERS], struct board *board);

#endif

/*
 * The common part of the cluster demo's files: the story (main.c), the nodes (nodes.c), and the workers that share
 * a lock (worker.c).
 */
#ifndef CLUSTER_H
#define CLUSTER_H

#include <stdatomic.h>

#include "../demo/common.h"

enum {
    TAGS = 3,          /* each is one slot of the cluster, and one voter */
    QUORUM = TAGS / 2 + 1,
    MASTERS = 3,
    NODES = 2 * MASTERS, /* behind the masters a replica of each, in the same order */
    WORKERS = 2,
    TTL_MS = 3000,     /* how long a lock lasts when it is not released */
};

/* A voter. */
struct tag {
    const char *name;
    int slot;
    struct server *master; /* the one that the story knows */
};

/* What the first worker has seen of a voter. */
struct sight {
    atomic_int port;   /* of the node that has the slot; 0: not known */
    atomic_bool votes;
    bool has_voted;    /* before */
};

/* The memory that all processes of the demo share. The lock that is shown here protects `tally`. */
struct board {
    atomic_bool closing;   /* finish the turn and end */
    struct sight sights[TAGS];
    atomic_int overlaps;   /* how often a holder found another one at work: see worker.c */
    struct tally {
        int turns;
        int turns_at_quorum;   /* turns begun while a voter was missing */
        int failed;        /* calls that did not do what they should do */
    } tally[WORKERS];
};

/* nodes.c: a function that fails returns false, and has printed the reason on stderr. */
bool nodes_open(struct server nodes[NODES]);
bool nodes_place(struct server nodes[NODES], struct tag *tag); /* fills in all but the name */
bool nodes_move_slot(struct server nodes[NODES], const struct tag *tag, struct server *to);

/* worker.c: takes the lock, works, releases it, until the board closes. `file` is that in which the work is done.
 * Returns an exit code. */
int work(int me, const struct server nodes[NODES], const struct tag tags[TAGS], struct board *board, int file);

#endif

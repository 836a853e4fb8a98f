/* A thread that locks, and every call of the library that it may make. Each call writes its lines
 * to the log. */
#ifndef ACTOR_H
#define ACTOR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "journal.h"
#include "redlock.h"

enum { RESOURCES_MAX = 16, SLOTS_MAX = 200, RESOURCE_SIZE = 64 };

/* The driver's orders to all workers. */
enum orders { WORK, REST, END };

/* A file that all processes have mapped. Only the lock guards the counters. */
struct board {
    _Atomic uint64_t orders;
    _Atomic uint64_t counters[RESOURCES_MAX];
    struct {
        /* How many threads are between their last check of the time and the end of their write. A
         * process that is stopped there would write after its lock has expired. */
        _Atomic uint64_t writing;
        /* How many threads have nothing more to do. */
        _Atomic uint64_t resting;
    } slots[SLOTS_MAX];
};

struct actor {
    const struct journal *journal;
    RedLock *manager;
    struct board *board;
    /* Where this process tells that it is writing. */
    _Atomic uint64_t *writing;
    int thread;
    uint64_t dice;
    RedLockLease *lease;
    /* The last use of the lease, with the lock that it had then. */
    char resource[RESOURCE_SIZE];
    int number;
    char token[HASH_SIZE];
    int64_t ttl_ms;
    /* The token that was continued last, by number of the resource. */
    char continued[RESOURCES_MAX][HASH_SIZE];
};

/* Sets the timeouts, the number of tries, and the pause between them. */
void actor_settings(RedLock *manager);

/* At least 0, and less than `sides`. */
int roll(struct actor *actor, int sides);

void pause_ms(int64_t ms);

/* Resource `number` is shared, and has a counter. -1 is a resource that only this thread uses. */
bool lock(struct actor *actor, int number, int64_t ttl_ms);
bool try_lock(struct actor *actor, int number, int64_t ttl_ms, int64_t wait_ms);
bool continue_lock(struct actor *actor, int number, int64_t ttl_ms);

/* On the lock of the lease. */
RedLockStatus extend(struct actor *actor, int64_t ttl_ms);
RedLockStatus confirm(struct actor *actor, int64_t least_ms);
RedLockStatus unlock(struct actor *actor);
bool look(struct actor *actor);

/* Frees the lease without a release. */
void give_up(struct actor *actor);

/* Reads the counter of the resource, waits, and writes one more, unless the lock has expired by
 * then. */
void count_up(struct actor *actor, int64_t ms);

#endif

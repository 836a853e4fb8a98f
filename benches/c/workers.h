/*
 * Workers that take and release locks, as threads or as processes, and what main does with them.
 *
 *     PROGRAM [OPTION...] cycles  WORKERS KEY WARM_MS RUN_MS PORT...
 *     PROGRAM [OPTION...] contend WORKERS KEY WARM_MS RUN_MS PORT...
 *     PROGRAM [OPTION...] exactly COUNT   KEY PORT...
 *
 * cycles: each worker locks and unlocks a resource of its own, again and again. contend: all workers want one
 * resource, hold it for a millisecond, and want it again at once. exactly: one worker, COUNT cycles, and no
 * exchange with the bench. With --processes, the workers are processes and not threads.
 */
#ifndef WORKERS_H
#define WORKERS_H

#include <stdbool.h>

/* The servers, by their ports on this machine. */
struct servers {
    int count;
    char **ports;
};

/* The measured client. Its state belongs to one worker. The contender decides what the workers of a process
 * share. Calls return whether they succeeded. */
struct contender {
    void *(*open)(const struct servers *servers, const char *resource);
    bool (*lock)(void *self);
    bool (*extend)(void *self); /* called between lock and unlock; may be NULL */
    bool (*unlock)(void *self);
    bool (*wait)(void *self); /* like lock, but waits as long as necessary */
    void (*close)(void *self);
};

/* Takes the arguments after the program's own options. Returns the exit status for main. */
int workers_main(const struct contender *it, int argc, char **argv);

#endif

/*
 * Workers that take and release locks, as threads or as processes, and what main does with them.
 *
 *     PROGRAM [OPTION...] cycles  WORKERS KEY WARM_MS RUN_MS PORT...
 *     PROGRAM [OPTION...] contend WORKERS KEY WARM_MS RUN_MS PORT...
 *     PROGRAM [OPTION...] exactly COUNT   KEY PORT...
 *
 * cycles: each worker locks and unlocks a resource of its own, one after the other. contend: all
 * want one resource, hold it for a millisecond, and want it again at once. exactly: one worker,
 * so many cycles, and no talk. With --processes the workers are processes rather than threads.
 */
#ifndef WORKERS_H
#define WORKERS_H

#include <stdbool.h>

/* The servers, by their ports on this machine. */
struct servers {
    int count;
    char **ports;
};

/* What is measured. Its state belongs to one worker; what all of a process share is its own
 * affair. Calls tell whether they succeeded. */
struct contender {
    void *(*open)(const struct servers *servers, const char *resource);
    bool (*lock)(void *self);
    bool (*unlock)(void *self);
    bool (*wait)(void *self); /* as lock, for as long as it takes */
    void (*close)(void *self);
};

/* Takes the arguments behind the options of the program's own. Returns what main is to return. */
int workers_main(const struct contender *it, int argc, char **argv);

#endif

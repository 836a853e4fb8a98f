/*
 * What every program of the bench has in common: the clock, the samples, the figures that they end
 * in, and the talk with the driver.
 *
 * The talk, a line each: "ready" after the warm-up, then any line from the driver starts the
 * measuring, "running" as it starts, and the figures as key=value at its end. An end of input
 * instead of a line ends the program: it never outlives its driver.
 */
#ifndef MEASURE_H
#define MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Long enough that no lock ends by itself while it is measured. */
#define MEASURE_TTL_MS 30000

/* How long calls took, in microseconds. A call beyond the room is not kept. */
struct samples {
    float *us;
    size_t room;
    size_t count;
};

int64_t measure_now_ns(void);

/* Processor time in microseconds of the calling thread (RUSAGE_THREAD) or of the process
 * (RUSAGE_SELF), by the system and by the program itself. */
double measure_cpu_us(int whose);

/* Zeroed memory that forked children share. Its pages are there already, or the first write to
 * each would be measured as part of a lock. It counts as shared memory, not as the program's. */
void *measure_shared(size_t bytes);

void measure_keep(struct samples *s, int64_t from_ns, int64_t to_ns);

/* Room for so many workers that share a run, as if a cycle took 2.5 us. */
size_t measure_room(int64_t run_ms, size_t workers);

/* Tells the driver that the warm-up is over. False if it has gone and nothing is to be done. */
bool measure_ready(void);

void measure_running(void);

/* Prints percentiles: name_p50_us=59.12 and so on, as far as there are samples to tell them, and the
 * greatest, name_most_us. Sorts the samples. */
void measure_print(const char *name, struct samples *s);

/* Ends the program with the reason of errno. */
void measure_fail(const char *what) __attribute__((noreturn));

#endif

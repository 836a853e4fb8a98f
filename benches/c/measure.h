/*
 * Shared parts of all programs of the bench: the clock, the samples, the final figures, and the exchange with the
 * bench.
 *
 * The exchange is line by line. The program prints "ready" after the warm-up, and then any line from the bench
 * starts the measurement. It prints "running" when that starts, and the figures as key=value at its end. If the
 * input ends instead, the program ends, so that it never outlives the bench.
 */
#ifndef MEASURE_H
#define MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Long enough that no lock expires while it is measured. */
#define MEASURE_TTL_MS 30000

/* How long calls took, in microseconds. When there is no room left, further calls are not recorded. */
struct samples {
    float *us;
    size_t room;
    size_t count;
};

int64_t measure_now_ns(void);

/* The processor time in microseconds of the calling thread (RUSAGE_THREAD) or of the process (RUSAGE_SELF), in
 * the kernel and in user space together. */
double measure_cpu_us(int whose);

/* Zeroed memory that forked children share. Its pages are already present. Otherwise the first write to each page
 * would be measured as part of a lock. It counts as shared memory, not as the program's own. */
void *measure_shared(size_t bytes);

void measure_keep(struct samples *s, int64_t from_ns, int64_t to_ns);

/* The room for each of the workers that share a run, if a cycle takes 2.5 us. */
size_t measure_room(int64_t run_ms, size_t workers);

/* Tells the bench that the warm-up is over. Returns false if the bench is gone and there is nothing to do. */
bool measure_ready(void);

void measure_running(void);

/* Prints percentiles: name_p50_us=59.12 and so on, provided there are enough samples for them. Also prints the
 * greatest, name_most_us. Sorts the samples. */
void measure_print(const char *name, struct samples *s);

/* Ends the program with the message for errno. */
void measure_fail(const char *what) __attribute__((noreturn));

#endif

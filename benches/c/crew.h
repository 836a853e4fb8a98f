/*
 * Child processes that work for a program of the bench.
 */
#ifndef CREW_H
#define CREW_H

#include <pthread.h>

/* Starts a child. It ends when its work is done, or with its parent. If a child ends before crew_dismiss, the
 * program ends, because the other children would wait for it. */
void crew_start(void (*work)(int number), int number);

/* After this call, a child that ends has done its work. */
void crew_dismiss(void);

/* Waits until all children have ended. */
void crew_wait(void);

/* A barrier in memory that processes share. */
void crew_line(pthread_barrier_t *line, int count);

#endif

/*
 * Child processes that work for a program of the bench.
 */
#ifndef CREW_H
#define CREW_H

#include <pthread.h>

/* Starts one. It ends when its work is done, or with its parent. A child that ends before crew_dismiss ends the
 * program: others would wait for it. */
void crew_start(void (*work)(int number), int number);

/* From now on they end because they are done. */
void crew_dismiss(void);

/* Waits until all have ended. */
void crew_wait(void);

/* A barrier in memory that processes share. */
void crew_line(pthread_barrier_t *line, int count);

#endif

#define _GNU_SOURCE
#include "board.h"

#include <stdio.h>
#include <string.h>

struct board *board_new(int count, bool contended, int64_t warm_ms, int64_t run_ms)
{
    size_t room = measure_room(warm_ms > run_ms ? warm_ms : run_ms, (size_t)count);
    struct board *board = measure_shared(sizeof *board + (size_t)count * sizeof board->workers[0]);
    float *samples = measure_shared(2 * (size_t)count * room * sizeof *samples);
    pthread_barrierattr_t shared;

    pthread_barrierattr_init(&shared);
    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&board->line, &shared, (unsigned)count);
    pthread_barrierattr_destroy(&shared);
    board->contended = contended;
    board->count = count;
    board->warm_ms = warm_ms;
    board->run_ms = run_ms;
    board->last = -1;
    for (int i = 0; i < count; i++) {
        board->workers[i].number = i;
        board->workers[i].locks = (struct samples){samples, room, 0};
        board->workers[i].unlocks = (struct samples){samples + room, room, 0};
        samples += 2 * room;
    }
    return board;
}

void board_clear(struct board *board)
{
    for (int i = 0; i < board->count; i++) {
        struct worker *w = &board->workers[i];
        w->locks.count = w->unlocks.count = w->cycles = w->failed = 0;
        w->held_ns = 0;
    }
    board->handovers = 0;
}

void board_enter(struct board *board, const struct worker *w)
{
    if (atomic_fetch_add(&board->inside, 1) != 0)
        board->overlaps++;
    if (atomic_exchange(&board->last, w->number) != w->number)
        board->handovers++;
}

void board_leave(struct board *board)
{
    atomic_fetch_sub(&board->inside, 1);
}

/* The samples of all workers in one place, to be sorted. */
static struct samples all_of(const struct board *board, bool unlocks)
{
    size_t total = 0;
    for (int i = 0; i < board->count; i++)
        total += unlocks ? board->workers[i].unlocks.count : board->workers[i].locks.count;

    struct samples all = {measure_shared((total + 1) * sizeof *all.us), total, 0};
    for (int i = 0; i < board->count; i++) {
        const struct worker *w = &board->workers[i];
        const struct samples *one = unlocks ? &w->unlocks : &w->locks;
        memcpy(all.us + all.count, one->us, one->count * sizeof *one->us);
        all.count += one->count;
    }
    return all;
}

static void print_contention(const struct board *board, size_t cycles)
{
    size_t least = SIZE_MAX, most = 0;
    int64_t held_ns = 0;

    for (int i = 0; i < board->count; i++) {
        const struct worker *w = &board->workers[i];
        least = w->cycles < least ? w->cycles : least;
        most = w->cycles > most ? w->cycles : most;
        held_ns += w->held_ns;
    }
    printf(" handovers=%zu overlaps=%zu least=%zu most=%zu", board->handovers, board->overlaps,
           least, most);
    if (cycles > 0)
        printf(" hold_us=%.1f", (double)held_ns / 1e3 / (double)cycles);
}

void board_print(struct board *board)
{
    struct samples locks = all_of(board, false), unlocks = all_of(board, true);
    size_t cycles = 0, failed = 0;
    double busy_us = 0;
    int64_t end_ns = board->start_ns;

    for (int i = 0; i < board->count; i++) {
        const struct worker *w = &board->workers[i];
        cycles += w->cycles;
        failed += w->failed;
        busy_us += w->busy_us;
        end_ns = w->end_ns > end_ns ? w->end_ns : end_ns;
    }
    if (board->contended) /* what comes after the end is no cycle */
        end_ns = board->start_ns + board->run_ms * 1000000;
    printf("cycles=%zu failed=%zu busy_us=%.0f seconds=%.6f", cycles, failed, busy_us,
           (double)(end_ns - board->start_ns) / 1e9);
    if (board->contended)
        print_contention(board, cycles);
    measure_print("lock", &locks);
    measure_print("unlock", &unlocks);
    puts("");
    fflush(stdout);
}

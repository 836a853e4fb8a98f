#define _GNU_SOURCE
#include "board.h"
#include "crew.h"

#include <stdio.h>
#include <string.h>

struct board *board_new(int count, bool contended, bool extends, int64_t warm_ms, int64_t run_ms)
{
    size_t room = measure_room(warm_ms > run_ms ? warm_ms : run_ms, (size_t)count);
    struct board *board = measure_shared(sizeof *board + (size_t)count * sizeof board->workers[0]);
    size_t kinds = 2 + (size_t)contended + (size_t)extends;
    float *samples = measure_shared(kinds * (size_t)count * room * sizeof *samples);

    crew_line(&board->line, count);
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
        if (contended) {
            board->workers[i].gaps = (struct samples){samples, room, 0};
            samples += room;
        }
        if (extends) {
            board->workers[i].extensions = (struct samples){samples, room, 0};
            samples += room;
        }
    }
    return board;
}

void board_clear(struct board *board)
{
    for (int i = 0; i < board->count; i++) {
        struct worker *w = &board->workers[i];
        w->locks.count = w->unlocks.count = w->gaps.count = w->extensions.count = 0;
        w->cycles = w->failed = 0;
        w->held_ns = 0;
    }
    board->handovers = 0;
}

void board_enter(struct board *board, struct worker *w, int64_t locked_ns)
{
    int last;

    if (atomic_fetch_add(&board->inside, 1) != 0)
        board->overlaps++;
    last = atomic_exchange(&board->last, w->number);
    if (last == w->number)
        return;
    board->handovers++;
    if (last >= 0)
        measure_keep(&w->gaps, board->released_ns, locked_ns);
}

void board_leave(struct board *board)
{
    board->released_ns = measure_now_ns();
    atomic_fetch_sub(&board->inside, 1);
}

static const struct samples *samples_of(const struct worker *w, size_t which)
{
    const struct samples *all[] = {&w->locks, &w->unlocks, &w->gaps, &w->extensions};
    return all[which];
}

/* The samples of all workers in one place, for sorting. */
static struct samples all_of(const struct board *board, size_t which)
{
    size_t total = 0;
    for (int i = 0; i < board->count; i++)
        total += samples_of(&board->workers[i], which)->count;

    struct samples all = {measure_shared((total + 1) * sizeof *all.us), total, 0};
    for (int i = 0; i < board->count; i++) {
        const struct samples *one = samples_of(&board->workers[i], which);
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
    struct samples locks = all_of(board, 0), unlocks = all_of(board, 1), gaps = all_of(board, 2);
    struct samples extensions = all_of(board, 3);
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
    if (board->contended) /* work after the end does not count as a cycle */
        end_ns = board->start_ns + board->run_ms * 1000000;
    printf("cycles=%zu failed=%zu busy_us=%.0f seconds=%.6f", cycles, failed, busy_us,
           (double)(end_ns - board->start_ns) / 1e9);
    if (board->contended)
        print_contention(board, cycles);
    measure_print("lock", &locks);
    measure_print("unlock", &unlocks);
    measure_print("gap", &gaps);
    measure_print("extend", &extensions);
    puts("");
    fflush(stdout);
}

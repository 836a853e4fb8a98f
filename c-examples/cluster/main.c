/*
 * `make demo-cluster`: three slots of a Redis Cluster are the three voters for a lock that two processes share, while
 * a master is killed, and a slot moves to another master. It starts its own nodes and leaves nothing behind.
 *
 * worker.c shows how a program uses the library; this file runs the story around it.
 */
#define _DEFAULT_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <redlock.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cluster.h"

enum {
    SCENE_MS = 60000,  /* an event that takes longer does not happen any more */
    PAUSE_MS = 500,    /* between two scenes */
    LEAST_TURNS = 3,   /* a worker that had fewer was starved */
};

static struct server nodes[NODES];
static struct tag tags[TAGS] = {{.name = "a"}, {.name = "b"}, {.name = "c"}};
static struct board *board;
static pid_t workers[WORKERS];
static FILE *file; /* it has no name */

static bool prepare(void) {
    long none = 0;
    void *page = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    file = tmpfile();
    if (page == MAP_FAILED || file == NULL || write(fileno(file), &none, sizeof none) != (ssize_t)sizeof none) {
        complain("no memory or file for all processes: %s", strerror(errno));
        return false;
    }
    board = page; /* all zero */
    if (!nodes_open(nodes)) {
        return false;
    }
    for (int i = 0; i < TAGS; i++) {
        if (!nodes_place(nodes, &tags[i])) {
            return false;
        }
    }
    return true;
}

/* --- Workers --- */

static bool start_workers(void) {
    pid_t parent = getpid();
    for (int i = 0; i < WORKERS; i++) {
        workers[i] = fork();
        if (workers[i] == 0) {
            die_with_parent(parent);
            _exit(work(i, nodes, tags, board, fileno(file)));
        }
        if (workers[i] < 0) {
            complain("fork: %s", strerror(errno));
            workers[i] = 0;
            return false;
        }
    }
    return true;
}

/* Records the workers that ended. False if a worker ended with an error. */
static bool look_after_workers(int *running) {
    *running = 0;
    for (int i = 0; i < WORKERS; i++) {
        int status = 0;
        if (workers[i] != 0 && waitpid(workers[i], &status, WNOHANG) == workers[i]) {
            workers[i] = 0;
            if (WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE) {
                raise(SIGPIPE); /* the reader is gone: the signal must reach the whole demo */
            }
            if (status != 0) {
                if (caught_signal() == 0) {
                    complain("worker %c ended by itself, with wait status %d", 'A' + i, status);
                }
                return false;
            }
        }
        *running += workers[i] != 0;
    }
    return true;
}

/* --- The story --- */

static bool go_on(void) {
    int running = 0;
    return sleep_ms(20) && look_after_workers(&running) && servers_all_alive(nodes, NODES);
}

static bool pause_between(void) {
    for (int64_t end = clock_ms() + PAUSE_MS; clock_ms() < end;) {
        if (!go_on()) {
            return false;
        }
    }
    return true;
}

/* Waits until the first worker has seen this of a voter. */
static bool wait_for(const struct tag *tag, bool is_at_master, bool votes) {
    const struct sight *sight = &board->sights[tag - tags];
    for (int64_t end = clock_ms() + SCENE_MS; clock_ms() < end;) {
        int port = atomic_load(&sight->port);
        if ((port != 0 && port == tag->master->port) == is_at_master && atomic_load(&sight->votes) == votes) {
            return true;
        }
        if (!go_on()) {
            return false;
        }
    }
    complain("tag %s does not come on", tag->name);
    return false;
}

static bool wait_for_all(void) {
    for (int i = 0; i < TAGS; i++) {
        if (!wait_for(&tags[i], true, true)) {
            return false;
        }
    }
    return pause_between();
}

static bool kill_master(struct tag *tag) {
    struct server *master = tag->master;
    say(">>", "the master of tag %s, :%d, is killed (SIGKILL)", tag->name, master->port);
    if (!server_kill(master) || !wait_for(tag, false, true)) {
        return false;
    }
    tag->master = master + MASTERS; /* its replica */
    return wait_for(tag, true, true) && pause_between();
}

/*
 * A master that gets a slot begins a new epoch, and all of its tags have no vote for a while. Except for the master
 * that was elected last, which has the newest epoch already: so here two tags keep their votes.
 */
static bool move_and_back(struct tag *tag, const struct tag *other) {
    struct server *home = tag->master;
    say(">>", "the slot of tag %s is moved with its keys to :%d, the master of tag %s: "
        "two tags on one master are one voter",
        tag->name, other->master->port, other->name);
    if (!nodes_move_slot(nodes, tag, other->master)) {
        return false;
    }
    tag->master = other->master;
    if (!wait_for(tag, true, false) || !pause_between()) {
        return false;
    }
    say(">>", "the slot of tag %s is moved back to :%d", tag->name, home->port);
    if (!nodes_move_slot(nodes, tag, home)) {
        return false;
    }
    tag->master = home;
    return wait_for(tag, true, true) && pause_between();
}

static bool close_the_board(void) {
    int running = WORKERS;
    int64_t end = clock_ms() + SCENE_MS;
    atomic_store(&board->closing, true);
    while (running > 0) {
        if (clock_ms() > end) {
            complain("a worker does not end");
            return false;
        }
        if (!sleep_ms(20) || !look_after_workers(&running)) {
            return false;
        }
    }
    return true;
}

static bool play(void) {
    say(">>", "A and B begin: the voters are new, and nobody knows what they have forgotten");
    return start_workers() && wait_for_all() && kill_master(&tags[1]) && move_and_back(&tags[2], &tags[1])
        && close_the_board();
}

static void introduce(void) {
    printf("redlock %s: two processes, A and B, share one lock on a Redis Cluster.\n"
           "Three slots of it are the voters, and %d of them must grant the lock:\n\n"
           "  voter   slot    master            its replica\n", RedLock_Version(), QUORUM);
    for (int i = 0; i < TAGS; i++) {
        const struct server *master = tags[i].master;
        printf("  tag %s   %-5d   127.0.0.1:%d   127.0.0.1:%d\n", tags[i].name, tags[i].slot, master->port,
               (master + MASTERS)->port);
    }
    printf("\n");
    fflush(stdout);
}

static bool verdict(const char *what, bool good) {
    if (!good) {
        complain("%s", what);
    }
    return good;
}

static bool sum_up(void) {
    const struct tally *a = &board->tally[0];
    const struct tally *b = &board->tally[1];
    int turns = a->turns + b->turns;
    int at_quorum = a->turns_at_quorum + b->turns_at_quorum;
    int failed = a->failed + b->failed;
    int overlaps = atomic_load(&board->overlaps);
    long done = -1;
    bool is_read = pread(fileno(file), &done, sizeof done, 0) == (ssize_t)sizeof done;

    printf("\nAfter %.1f seconds:\n", (double)clock_ms() / 1000);
    printf("  %-51s A %d, B %d\n", "turns", a->turns, b->turns);
    printf("  %-51s %d\n", "turns begun while a voter was missing", at_quorum);
    printf("  %-51s %d\n", "turns in which a second holder was at work", overlaps);
    printf("  %-51s %ld of %d\n", "work done that only the lock guarded", done, turns);
    printf("  %-51s %d\n", "calls that failed", failed);
    fflush(stdout);

    bool good = verdict("there were two holders at once", overlaps == 0);
    good &= verdict("work was lost", is_read && done == turns);
    good &= verdict("a worker was starved", a->turns >= LEAST_TURNS && b->turns >= LEAST_TURNS);
    good &= verdict("nobody had a turn while a voter was missing", at_quorum > 0);
    good &= verdict("a call failed", failed == 0);
    return good;
}

static void clean_up(void) {
    workers_end(workers, WORKERS);
    servers_close(nodes, NODES);
    if (file != NULL) {
        fclose(file);
    }
}

int main(void) {
    catch_signals();
    clock_start();
    bool good = prepare();
    if (good) {
        introduce();
        clock_start();
        good = play() && sum_up();
    }
    clean_up();
    return end_of_demo(good);
}

/*
 * The demo: two processes share one lock on five servers, while one of the servers is killed and another one
 * frozen. `make demo` runs it. It starts its own servers and leaves nothing behind.
 *
 * demo/worker.c shows how a program uses the library; this file runs the story around it.
 */
#define _DEFAULT_SOURCE
#include <errno.h>
#include <redlock.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "demo/demo.h"

enum {
    KILL_MS = 2000,
    FREEZE_MS = 3500,
    THAW_MS = 6200,
    RESTART_MS = 7400, /* down for longer than TTL_MS: see restart_server */
    CLOSE_MS = 9200,
    LEAVE_MS = 15000,  /* by then the workers must be gone */
    LEAST_TURNS = 3,   /* a worker that had fewer was starved */
};

static struct server servers[SERVERS];
static struct server *const killed = &servers[1];
static struct server *const frozen = &servers[3];
static struct board *board;
static pid_t workers[WORKERS];

static bool make_board(void) {
    void *page = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) {
        complain("no shared memory: %s", strerror(errno));
        return false;
    }
    board = page; /* all zero */
    atomic_init(&board->servers_up, SERVERS);
    atomic_init(&board->explained, -1);
    board->last_holder = -1;
    return true;
}

static bool start_workers(void) {
    pid_t parent = getpid();
    for (int i = 0; i < WORKERS; i++) {
        workers[i] = fork();
        if (workers[i] == 0) {
            die_with_parent(parent);
            _exit(work(i, servers, board));
        }
        if (workers[i] < 0) {
            complain("fork: %s", strerror(errno));
            workers[i] = 0;
            return false;
        }
    }
    return true;
}

static bool ended_well(int i, int status) {
    if (status == 0) {
        return true;
    }
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE) {
        raise(SIGPIPE); /* the reader is gone: the signal must reach the whole demo */
    } else if (caught_signal() == 0) {
        complain("worker %c ended by itself, with wait status %d", 'A' + i, status);
    }
    return false;
}

/* Records the workers that ended. False if a worker ended with an error. */
static bool look_after_workers(int *running) {
    *running = 0;
    for (int i = 0; i < WORKERS; i++) {
        int status = 0;
        if (workers[i] != 0 && waitpid(workers[i], &status, WNOHANG) == workers[i]) {
            workers[i] = 0;
            if (!ended_well(i, status)) {
                return false;
            }
        }
        *running += workers[i] != 0;
    }
    return true;
}

static bool wait_till(int64_t moment) {
    int running = 0;
    while (clock_ms() < moment) {
        if (!sleep_ms(20) || !look_after_workers(&running) || !servers_all_alive(servers, SERVERS)) {
            return false;
        }
    }
    return true;
}

static void next_scene(int servers_up) {
    atomic_store(&board->servers_up, servers_up);
    atomic_fetch_add(&board->scene, 1);
}

static bool kill_server(void) {
    say(">>", "server :%d is killed (SIGKILL): 4 of 5 are left, %d are needed", killed->port, QUORUM);
    if (!server_kill(killed)) {
        return false;
    }
    next_scene(4);
    return true;
}

static bool freeze_server(void) {
    say(">>", "server :%d is frozen as well (SIGSTOP): 3 of 5 are left, just enough", frozen->port);
    server_freeze(frozen);
    next_scene(3);
    return true;
}

static bool thaw_server(void) {
    say(">>", "server :%d goes on (SIGCONT) with all that it was sent meanwhile", frozen->port);
    next_scene(4);
    server_thaw(frozen);
    return true;
}

/* A server that came back empty any sooner could grant a lock again that it had granted before. */
static bool restart_server(void) {
    say(">>", "server :%d is started again, empty: it was away for longer than any lock lasts",
        killed->port);
    if (!server_restart(killed)) {
        return false;
    }
    next_scene(5);
    return true;
}

static bool close_the_board(void) {
    int running = WORKERS;
    atomic_store(&board->closing, true);
    while (running > 0) {
        if (clock_ms() > LEAVE_MS) {
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
    return start_workers()
        && wait_till(KILL_MS) && kill_server()
        && wait_till(FREEZE_MS) && freeze_server()
        && wait_till(THAW_MS) && thaw_server()
        && wait_till(RESTART_MS) && restart_server()
        && wait_till(CLOSE_MS) && close_the_board();
}

static void introduce(void) {
    printf("redlock %s: two processes, A and B, share one lock on five servers.\n"
           "%d of them must grant it. It lasts %d ms unless it is given back; whoever holds it works alone.\n"
           "The servers:", RedLock_Version(), QUORUM, TTL_MS);
    for (int i = 0; i < SERVERS; i++) {
        printf(" 127.0.0.1:%d", servers[i].port);
    }
    printf("\n\n");
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
    int most = atomic_load(&board->most_holders);
    int turns = a->turns + b->turns;
    int at_quorum = a->turns_at_quorum + b->turns_at_quorum;
    int failed = a->failed + b->failed;

    printf("\nAfter %.1f seconds:\n", (double)clock_ms() / 1000);
    printf("  %-51s A %d, B %d\n", "turns", a->turns, b->turns);
    printf("  %-51s to A %d, to B %d\n", "hand-overs from one to the other", a->handovers, b->handovers);
    printf("  %-51s %d\n", "turns begun while only 3 of the 5 servers answered", at_quorum);
    printf("  %-51s %d\n", "greatest number of holders at one time", most);
    printf("  %-51s %ld of %d\n", "work done that only the lock guarded", board->counter, turns);
    printf("  %-51s %d\n", "calls that failed", failed);
    fflush(stdout);

    bool good = verdict("there were two holders at once", most == 1);
    good &= verdict("work was lost", board->counter == turns);
    good &= verdict("a worker was starved", a->turns >= LEAST_TURNS && b->turns >= LEAST_TURNS);
    good &= verdict("nobody had a turn while two servers were away", at_quorum > 0);
    good &= verdict("a call failed", failed == 0);
    return good;
}

static void clean_up(void) {
    workers_end(workers, WORKERS);
    servers_close(servers, SERVERS);
}

int main(void) {
    catch_signals();
    clock_start();
    bool good = servers_open(servers, SERVERS) && make_board();
    if (good) {
        introduce();
        clock_start();
        good = play() && sum_up();
    }
    clean_up();
    return end_of_demo(good);
}

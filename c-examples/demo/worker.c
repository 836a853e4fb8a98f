/* One worker: a process that takes the lock, does its work and releases the lock. */
#define _DEFAULT_SOURCE
#include <redlock.h>
#include <signal.h>
#include <unistd.h>

#include "demo.h"

enum {
    WORK_MS = 750,     /* how long a turn takes */
    REST_MS = 90,      /* between two turns, so that the other worker gets its own */
    RETRY_MS = 40,     /* mean pause between two tries for a lock that is taken */
    PATIENCE_MS = 5000 /* a worker that waits longer is starving */
};

static const char *const names[WORKERS] = {"A", "B"};

static RedLock *connect_to(const struct server servers[SERVERS]) {
    RedLock *rl = RedLock_New();
    for (int i = 0; i < SERVERS; i++) {
        if (RedLock_AddServerUrl(rl, "127.0.0.1", servers[i].port) != REDLOCK_OK) {
            complain("%s", RedLock_ErrorMessage(rl));
            RedLock_Free(rl);
            return NULL;
        }
    }
    RedLock_SetRetry(rl, 1, RETRY_MS);
    return rl;
}

/* Once for each event of a server, because the library's messages are long. */
static void explain_waiting(int me, struct board *board, RedLockLease *lease) {
    int scene = atomic_load(&board->scene);
    int explained = atomic_exchange(&board->explained, scene);
    if (explained != scene) {
        say(names[me], "waits: %s", RedLockLease_ErrorMessage(lease));
    }
}

/* The first try reports at once that the lock is taken, and why; only then does the worker wait for it. */
static bool take(int me, struct board *board, RedLock *rl, RedLockLease *lease) {
    RedLockStatus status = RedLock_TryLock(rl, "the-resource", TTL_MS, 0, lease);
    if (RedLockStatus_IsRetriable(status)) {
        explain_waiting(me, board, lease);
        status = RedLock_TryLock(rl, "the-resource", TTL_MS, PATIENCE_MS, lease);
    }
    if (status == REDLOCK_OK) {
        return true;
    }
    say(names[me], "gets no lock, %s: %s", RedLockStatus_Name(status),
        RedLockLease_ErrorMessage(lease));
    board->tally[me].failed++;
    return false;
}

static void referee_in(int me, struct board *board) {
    int inside = atomic_fetch_add(&board->holders, 1) + 1;
    int most = atomic_load(&board->most_holders);
    while (inside > most && !atomic_compare_exchange_weak(&board->most_holders, &most, inside)) {
        continue;
    }
    if (inside > 1) {
        say(names[me], "IS NOT ALONE: %d workers hold the lock at once", inside);
    }
}

static void referee_out(struct board *board) {
    atomic_fetch_sub(&board->holders, 1);
}

/* The work that the lock protects. Two workers here at once would lose a count. */
static void do_the_work(int me, struct board *board) {
    struct tally *mine = &board->tally[me];
    long counter = board->counter;
    mine->turns++;
    mine->handovers += board->last_holder >= 0 && board->last_holder != me;
    mine->turns_at_quorum += atomic_load(&board->servers_up) == QUORUM;
    board->last_holder = me;
    sleep_ms(WORK_MS);
    board->counter = counter + 1;
}

/* It says so first: the other worker may say that it holds the lock before this one comes back from the call. */
static void give_back(int me, struct board *board, RedLock *rl, RedLockLease *lease) {
    say(names[me], "gives the lock back, %d ms before its end", (int)RedLockLease_RemainingMs(lease));
    RedLockStatus status = RedLock_Unlock(rl, lease);
    if (status != REDLOCK_OK) {
        say(names[me], "cannot give the lock back, %s: %s", RedLockStatus_Name(status),
            RedLockLease_ErrorMessage(lease));
        board->tally[me].failed++;
    }
}

int work(int me, const struct server servers[SERVERS], struct board *board) {
    /* Ctrl-C reaches all processes of the demo; the first process handles it for the others. */
    signal(SIGINT, SIG_IGN);
    signal(SIGQUIT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGTERM, SIG_DFL);
    signal(SIGPIPE, SIG_DFL);

    RedLock *rl = connect_to(servers);
    RedLockLease *lease = RedLockLease_New();
    if (rl == NULL || lease == NULL) {
        return 1;
    }
    while (!atomic_load(&board->closing)) {
        if (take(me, board, rl, lease)) {
            referee_in(me, board);
            say(names[me], "holds the lock, valid for %d ms", (int)RedLockLease_ValidityMs(lease));
            do_the_work(me, board);
            referee_out(board);
            give_back(me, board, rl, lease);
        }
        sleep_ms(REST_MS);
    }
    RedLockLease_Free(lease);
    RedLock_Free(rl);
    return 0;
}

/* One worker: a process that takes the lock, does its work and releases the lock. */
#define _DEFAULT_SOURCE
#include <fcntl.h>
#include <redlock.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cluster.h"

enum {
    WORK_MS = 600,      /* how long a turn takes */
    REST_MS = 60,       /* between two turns, so that the other worker gets its own */
    LOOK_MS = 200,      /* a worker that waits looks at the voters so often */
    PATIENCE_MS = 30000 /* a worker that waits longer is starving */
};

static const char *const names[WORKERS] = {"A", "B"};

/* Each voter has a URL, which names some nodes of the cluster, and the tag. They know the other nodes. */
static RedLock *connect_to(const struct server nodes[NODES], const struct tag tags[TAGS]) {
    RedLock *rl = RedLock_New();
    for (int i = 0; i < TAGS; i++) {
        char url[256];
        snprintf(url, sizeof url, "redis-cluster://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d?tag=%s",
                 nodes[0].port, nodes[1].port, nodes[2].port, tags[i].name);
        if (RedLock_AddServerUrl(rl, url, 0) != REDLOCK_OK) {
            complain("%s", RedLock_ErrorMessage(rl));
            RedLock_Free(rl);
            return NULL;
        }
    }
    RedLock_SetRetry(rl, 1, LOOK_MS / 5);
    return rl;
}

/* --- What the viewer is told of the voters --- */

/* The name of a voter is "tag a (127.0.0.1:7000)". Before its node is known, it names no node, but the cluster. */
static int port_of(const RedLockServerInfo *info) {
    const char *colon = strrchr(info->name, ':');
    return colon == NULL || strstr(info->name, "(cluster ") != NULL ? 0 : (int)strtol(colon + 1, NULL, 10);
}

/* Whether it says something of the node that has the slot now, and not of the one that had it before. */
static bool is_news(const RedLockServerInfo *info, int port) {
    char text[16];
    snprintf(text, sizeof text, ":%d:", port);
    return info->connected || port == 0 || strstr(info->words, text) != NULL;
}

static void tell_of(int me, const struct tag *tag, struct sight *sight, const RedLockServerInfo *info) {
    int port = port_of(info);
    if (!is_news(info, port)) {
        return;
    }
    int old_port = atomic_exchange(&sight->port, port);
    bool old_votes = atomic_exchange(&sight->votes, info->votes != 0);
    bool is_first = !sight->has_voted;
    sight->has_voted |= info->votes != 0;
    if (is_first) {
        return; /* all are the same at the beginning */
    }
    if (port != old_port && !info->votes) {
        say(names[me], "tag %s has a new owner, :%d: %s", tag->name, port, info->words);
    } else if (info->votes && !old_votes) {
        say(names[me], "tag %s votes again, at :%d", tag->name, port);
    } else if (!info->votes && old_votes) {
        say(names[me], "tag %s has no vote: %s", tag->name, info->words);
    }
}

/* The first worker says what has changed; the other one sees the same. */
static int count_votes(int me, RedLock *rl, const struct tag tags[TAGS], struct board *board) {
    RedLockServerInfo infos[TAGS];
    size_t count = TAGS;
    int votes = 0;
    for (int i = 0; i < TAGS; i++) {
        infos[i] = (RedLockServerInfo)REDLOCK_SERVER_INFO_INIT;
    }
    if (RedLock_Servers(rl, infos, &count) != REDLOCK_OK) {
        return 0;
    }
    for (int i = 0; i < TAGS; i++) {
        votes += infos[i].votes != 0;
        if (me == 0) {
            tell_of(me, &tags[i], &board->sights[i], &infos[i]);
        }
    }
    return votes;
}

/* --- A turn --- */

static bool take(int me, RedLock *rl, RedLockLease *lease, const struct tag tags[TAGS], struct board *board) {
    bool was_told = false;
    RedLockStatus status = RedLock_TryLock(rl, "the-resource", TTL_MS, 0, lease);
    for (int64_t end = clock_ms() + PATIENCE_MS; RedLockStatus_IsRetriable(status) && clock_ms() < end;) {
        int votes = count_votes(me, rl, tags, board);
        if (me == 0 && votes < QUORUM && !was_told) {
            say(names[me], "waits: %d of %d voters have a vote, so nobody can take the lock", votes, TAGS);
            was_told = true;
        }
        status = RedLock_TryLock(rl, "the-resource", TTL_MS, LOOK_MS, lease);
    }
    if (status == REDLOCK_OK) {
        return true;
    }
    say(names[me], "gets no lock, %s: %s", RedLockStatus_Name(status), RedLockLease_ErrorMessage(lease));
    board->tally[me].failed++;
    return false;
}

/*
 * The referee knows nothing of redlock: it is the system's own lock on the file. A holder never waits for it. If
 * another process has it, two hold the lock at once.
 */
static bool referee(int file, short type) {
    struct flock whole = {.l_type = type, .l_whence = SEEK_SET};
    return fcntl(file, F_SETLK, &whole) == 0;
}

/* The work that the lock protects: to add one to a number in a file. Two workers here at once would lose a count. */
static void do_the_work(int me, struct board *board, int file) {
    long number = 0;
    if (!referee(file, F_WRLCK)) {
        say(names[me], "IS NOT ALONE: the other worker holds the lock, too");
        atomic_fetch_add(&board->overlaps, 1);
    }
    bool good = pread(file, &number, sizeof number, 0) == (ssize_t)sizeof number;
    sleep_ms(WORK_MS);
    number++;
    good = good && pwrite(file, &number, sizeof number, 0) == (ssize_t)sizeof number;
    board->tally[me].turns++;
    board->tally[me].failed += !good;
    referee(file, F_UNLCK);
}

/* If too few voters can be told, the lock ends by itself. */
static void give_back(int me, RedLock *rl, RedLockLease *lease) {
    if (RedLock_Unlock(rl, lease) != REDLOCK_OK) {
        say(names[me], "cannot give the lock back: %s", RedLockLease_ErrorMessage(lease));
    }
}

int work(int me, const struct server nodes[NODES], const struct tag tags[TAGS], struct board *board, int file) {
    /* Ctrl-C reaches all processes of the demo; the first process handles it for the others. */
    signal(SIGINT, SIG_IGN);
    signal(SIGQUIT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGTERM, SIG_DFL);
    signal(SIGPIPE, SIG_DFL);

    RedLock *rl = connect_to(nodes, tags);
    RedLockLease *lease = RedLockLease_New();
    if (rl == NULL || lease == NULL) {
        return 1;
    }
    while (!atomic_load(&board->closing)) {
        if (take(me, rl, lease, tags, board)) {
            int votes = count_votes(me, rl, tags, board);
            say(names[me], "holds the lock; %d of %d voters have a vote", votes, TAGS);
            board->tally[me].turns_at_quorum += votes == QUORUM;
            do_the_work(me, board, file);
            give_back(me, rl, lease);
        }
        sleep_ms(REST_MS);
    }
    RedLockLease_Free(lease);
    RedLock_Free(rl);
    return 0;
}

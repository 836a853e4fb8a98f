/*
 * What the files of the demo share: the story (demo.c), the two workers (worker.c), the servers
 * (servers.c) and the person who watches (terminal.c).
 */
#ifndef DEMO_H
#define DEMO_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    SERVERS = 5,
    QUORUM = SERVERS / 2 + 1,
    WORKERS = 2,
    TTL_MS = 3000, /* how long a lock lasts when nobody gives it back */
};

/* A server of our own: a process that listens on a port of 127.0.0.1. */
struct server {
    int port;
    pid_t pid; /* 0 while it does not run */
    int held;  /* a socket that keeps the port for it meanwhile, else -1 */
};

/*
 * Where the workers meet: one page of memory that all processes of the demo share. The atomic
 * members are the referee's. The others are guarded by nothing but the lock that is shown here.
 */
struct board {
    atomic_bool closing;      /* finish your turn and go home */
    atomic_int servers_up;    /* how many of the servers can answer just now */
    atomic_int scene;         /* goes up each time something is done to a server */
    atomic_int explained;     /* the last scene in which a worker said why it waits */
    atomic_int holders;       /* workers between taking the lock and giving it back */
    atomic_int most_holders;  /* the greatest value of holders ever seen */
    int last_holder;          /* the worker that had the last turn, -1 before the first */
    long counter;             /* read, worked upon and written back in each turn */
    struct tally {
        int turns;
        int handovers;        /* turns right after a turn of the other worker */
        int turns_at_quorum;  /* turns begun with no server to spare */
        int failed;           /* calls that did not do what they should */
    } tally[WORKERS];
};

/* worker.c: takes the lock, works, gives it back, until the board closes. Returns an exit code. */
int work(int me, const struct server servers[SERVERS], struct board *board);

/* servers.c: each returns false, and has said why on stderr, when it did not succeed. */
bool servers_open(struct server servers[SERVERS]);
void servers_close(struct server servers[SERVERS]);
bool server_kill(struct server *server);
bool server_restart(struct server *server);
void server_freeze(const struct server *server);
void server_thaw(const struct server *server);
bool servers_all_alive(struct server servers[SERVERS]);
void die_with_parent(pid_t parent);

/* terminal.c: lines for the person who watches, and that person's Ctrl-C. */
void clock_start(void);
int64_t clock_ms(void);
void say(const char *who, const char *format, ...) __attribute__((format(printf, 2, 3)));
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
void catch_signals(void);
int caught_signal(void);
bool sleep_ms(int64_t ms); /* false as soon as a signal was caught */

#endif

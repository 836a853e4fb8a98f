/*
 * The common part of demo.c and fencing/: servers of their own (servers.c), and output for the viewer
 * (terminal.c).
 */
#ifndef COMMON_H
#define COMMON_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A server of the demo: a process that listens on a port of 127.0.0.1. */
struct server {
    int port;
    pid_t pid; /* 0 while it does not run */
    int held;  /* a socket that reserves the port meanwhile, else -1 */
    void (*prepare)(const struct server *server); /* called in its process before the server starts; may be NULL */
};

/* servers.c: a function that fails returns false, and has printed the reason on stderr. */
bool servers_open(struct server servers[], int count); /* members set in `prepare` stay */
void servers_close(struct server servers[], int count);
bool server_kill(struct server *server);
bool server_restart(struct server *server);
void server_freeze(const struct server *server);
void server_thaw(const struct server *server);
int64_t server_clock_ms(const struct server *server); /* 0 if the server does not report it */
bool servers_all_alive(struct server servers[], int count);
void die_with_parent(pid_t parent);

/* terminal.c: lines for the viewer, and the viewer's Ctrl-C. */
void clock_start(void);
int64_t clock_ms(void);
void say(const char *who, const char *format, ...) __attribute__((format(printf, 2, 3)));
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
void catch_signals(void);
int caught_signal(void);
bool sleep_ms(int64_t ms); /* false as soon as a signal was caught */

#endif

/*
 * What demo.c and fencing/ both use: servers of their own (servers.c), and the person who watches
 * (terminal.c).
 */
#ifndef COMMON_H
#define COMMON_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A server of our own: a process that listens on a port of 127.0.0.1. */
struct server {
    int port;
    pid_t pid; /* 0 while it does not run */
    int held;  /* a socket that keeps the port for it meanwhile, else -1 */
    void (*prepare)(const struct server *server); /* called in its process before it is one; may be NULL */
};

/* servers.c: each returns false, and has said why on stderr, when it did not succeed. */
bool servers_open(struct server servers[], int count); /* what they have in `prepare` stays */
void servers_close(struct server servers[], int count);
bool server_kill(struct server *server);
bool server_restart(struct server *server);
void server_freeze(const struct server *server);
void server_thaw(const struct server *server);
int64_t server_clock_ms(const struct server *server); /* 0 if it does not tell */
bool servers_all_alive(struct server servers[], int count);
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

/*
 * The common part of demo.c, fencing/ and cluster/: servers of their own (servers.c), and output for the viewer
 * (terminal.c).
 */
#ifndef COMMON_H
#define COMMON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* A server of the demo: a process that listens on a port of 127.0.0.1. */
struct server {
    int port;
    pid_t pid; /* 0 while it does not run */
    int held;  /* a socket that reserves the port meanwhile, else -1 */
    bool is_node; /* of a cluster; it listens on a second port, too */
    void (*prepare)(const struct server *server); /* called in its process before the server starts; may be NULL */
};

/* servers.c: a function that fails returns false, and has printed the reason on stderr. */
bool servers_open(struct server servers[], int count); /* `is_node` and `prepare` stay as they are */
void servers_close(struct server servers[], int count);
bool server_kill(struct server *server);
bool server_restart(struct server *server);
void server_freeze(const struct server *server);
void server_thaw(const struct server *server);
int64_t server_clock_ms(const struct server *server); /* 0 if the server does not report it */
FILE *server_ask(const struct server *server, const char *line); /* the answer, to be closed; NULL if there is none */
bool servers_all_alive(struct server servers[], int count);
void die_with_parent(pid_t parent);
void workers_end(const pid_t workers[], int count); /* at once; those that are 0 do not run */

/* terminal.c: lines for the viewer, and the viewer's Ctrl-C. */
void clock_start(void);
int64_t clock_ms(void);
void say(const char *who, const char *format, ...) __attribute__((format(printf, 2, 3)));
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
void catch_signals(void);
int caught_signal(void);
int end_of_demo(bool good); /* the exit code */
bool sleep_ms(int64_t ms); /* false as soon as a signal was caught */

#endif

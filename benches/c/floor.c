/*
 * The floor: the minimum cost of taking and releasing a lock, with means that the library has, too. It uses
 * non-blocking sockets and poll on one thread. The commands are encoded in advance. All servers are asked at
 * once, and it returns at the majority. There is no retry, no reconnect and no deadline: any fault ends the
 * program.
 *
 *     floor [--same SCRIPT] ...   and on as in workers.h
 *
 * With --same, it sends what the library sends, and checks the servers' notes ("wire.h").
 *
 * Each worker has connections of its own. For a floor with shared connections, see loop.c.
 */
#define _GNU_SOURCE
#include "measure.h"
#include "wire.h"
#include "workers.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct server {
    int fd;
    uint64_t answered; /* lines read since the connection was made */
    bool in_favour;    /* its vote on the command in hand */
    struct note note;
    char input[4096];
    size_t have;
};

/* Every command goes to every server. So one count of expected lines is enough for all servers, and the
 * position of a reply in a server's stream tells its command. */
struct quorum {
    struct server servers[WIRE_SERVERS_MAX];
    struct pollfd ready[WIRE_SERVERS_MAX];
    nfds_t count;
    uint64_t asked;
    struct command acquire, release;
};


/* Counts the received lines. */
static void receive(struct server *s, uint64_t vote, const struct command *c)
{
    ssize_t n = recv(s->fd, s->input + s->have, sizeof s->input - s->have, 0);
    if (n <= 0)
        measure_fail("recv");
    s->have += (size_t)n;

    char *line = s->input, *rest = s->input + s->have, *end;
    while ((end = memchr(line, '\n', (size_t)(rest - line))) != NULL) {
        if (s->answered++ == vote)
            s->in_favour = strncmp(line, c->yes, strlen(c->yes)) == 0;
        if (c->note > 0 && s->answered == vote + c->note)
            wire_check_note(&s->note, line, (size_t)(end - line));
        line = end + 1;
    }
    s->have = (size_t)(rest - line);
    memmove(s->input, line, s->have);
}

/* Asks all servers, and returns at the majority. Later replies are read during the next commands. */
static bool ask(struct quorum *q, const struct command *c)
{
    uint64_t vote = q->asked;
    nfds_t in_favour = 0, done = 0;

    q->asked += c->lines;
    for (nfds_t i = 0; i < q->count; i++)
        if (send(q->servers[i].fd, c->bytes, c->length, MSG_NOSIGNAL) != (ssize_t)c->length)
            measure_fail("send");

    while (in_favour <= q->count / 2 && done < q->count) {
        int left = poll(q->ready, q->count, 10000);
        if (left <= 0)
            measure_fail("poll");
        for (nfds_t i = 0; left > 0; i++) {
            struct server *s = &q->servers[i];
            if (q->ready[i].revents == 0)
                continue;
            left--;
            receive(s, vote, c);
            if (s->answered == q->asked) {
                done++;
                in_favour += s->in_favour;
            }
        }
    }
    return in_favour > q->count / 2;
}

static bool lock(void *self)
{
    struct quorum *q = self;
    return ask(q, &q->acquire);
}

static bool unlock(void *self)
{
    struct quorum *q = self;
    return ask(q, &q->release);
}

/* Asks again at once, which is the maximum cost of contention. */
static bool wait_for(void *self)
{
    struct quorum *q = self;

    while (!ask(q, &q->acquire))
        ask(q, &q->release);
    return true;
}

static void *open_connections(const struct servers *servers, const char *resource)
{
    struct quorum *q = calloc(1, sizeof *q);
    struct token token;
    char digest[41] = "";

    if (q == NULL || servers->count > WIRE_SERVERS_MAX)
        measure_fail("servers");
    q->count = (nfds_t)servers->count;
    for (nfds_t i = 0; i < q->count; i++) {
        q->servers[i].fd = wire_connect(servers->ports[i], digest);
        q->ready[i] = (struct pollfd){.fd = q->servers[i].fd, .events = POLLIN};
    }
    token = wire_token();
    q->acquire = wire_acquire(resource, &token);
    q->release = wire_release(resource, &token, digest);
    return q;
}

static void close_connections(void *self)
{
    struct quorum *q = self;

    for (nfds_t i = 0; i < q->count; i++)
        close(q->servers[i].fd);
    free(q);
}

int main(int argc, char **argv)
{
    static const struct contender floor = {open_connections, lock, NULL, unlock, wait_for,
                                           close_connections};

    if (argc > 2 && strcmp(argv[1], "--same") == 0) {
        wire_send_the_same(argv[2]);
        argc -= 2;
        argv += 2;
    }
    return workers_main(&floor, argc - 1, argv + 1);
}

/*
 * The floor: what taking and releasing a lock costs at the least, by the means the library has as
 * well. Non-blocking sockets and poll on one thread, the commands encoded beforehand, all servers
 * asked at once, back at the majority. No retry, no reconnect, no deadline: any fault ends it.
 *
 *     floor [--eval] [--pttl] KEY WARM_MS RUN_MS PORT...
 *
 * --eval releases with EVAL and the whole script rather than EVALSHA; --pttl asks for the time
 * left behind each SET in the same write. Both to know what they would cost.
 */
#define _GNU_SOURCE
#include "measure.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MOST_SERVERS 64
#define TOKEN "0123456789ABCDEF0123456789ABCDEF01234567"
#define SCRIPT                                                                                     \
    "if redis.call('GET',KEYS[1])==ARGV[1] then return redis.call('DEL',KEYS[1]) else return 0 end"

struct command {
    char bytes[1024];
    size_t length;
    uint64_t replies; /* that a server sends for it; the first one is the vote */
    const char *yes;  /* how a vote in favour begins */
};

struct server {
    int fd;
    uint64_t answered; /* replies read since the connection was made */
    bool in_favour;    /* its vote on the command in hand */
    char input[4096];
    size_t have;
};

/* Every command goes to every server, so one count of replies asked for serves all of them, and
 * the place of a reply in a server's stream tells which command it belongs to. */
struct quorum {
    struct server servers[MOST_SERVERS];
    struct pollfd ready[MOST_SERVERS];
    nfds_t count;
    uint64_t asked;
    struct command acquire, release;
};

static void fail(const char *what)
{
    fprintf(stderr, "floor: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void add(struct command *c, int count, const char *const *words)
{
    size_t at = c->length, room = sizeof c->bytes;

    at += (size_t)snprintf(c->bytes + at, room - at, "*%d\r\n", count);
    for (int i = 0; i < count && at < room; i++)
        at += (size_t)snprintf(c->bytes + at, room - at, "$%zu\r\n%s\r\n", strlen(words[i]), words[i]);
    if (at >= room) {
        errno = E2BIG;
        fail("encode");
    }
    c->length = at;
    c->replies++;
}

static int dial(const char *port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) != 0)
        fail("connect");
    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0)
        fail("TCP_NODELAY");
    return fd;
}

/* Loads the script, while the socket still blocks, and gives its digest: "$40\r\n<digest>\r\n". */
static void load_script(int fd, char digest[41])
{
    struct command load = {.length = 0};
    char reply[47];

    add(&load, 3, (const char *[]){"SCRIPT", "LOAD", SCRIPT});
    if (send(fd, load.bytes, load.length, MSG_NOSIGNAL) != (ssize_t)load.length)
        fail("send");
    if (recv(fd, reply, sizeof reply, MSG_WAITALL) != (ssize_t)sizeof reply || reply[0] != '$')
        fail("SCRIPT LOAD");
    memcpy(digest, reply + 5, 40);
    digest[40] = '\0';
}

/* Counts what has arrived; a reply here is always one line. */
static void receive(struct server *s, uint64_t vote, const char *yes)
{
    ssize_t n = recv(s->fd, s->input + s->have, sizeof s->input - s->have, 0);
    if (n <= 0)
        fail("recv");
    s->have += (size_t)n;

    char *line = s->input, *rest = s->input + s->have, *end;
    while ((end = memchr(line, '\n', (size_t)(rest - line))) != NULL) {
        if (s->answered++ == vote)
            s->in_favour = strncmp(line, yes, strlen(yes)) == 0;
        line = end + 1;
    }
    s->have = (size_t)(rest - line);
    memmove(s->input, line, s->have);
}

/* Asks all servers, returns at the majority. What the others answer later is read in its turn. */
static bool ask(struct quorum *q, const struct command *c)
{
    uint64_t vote = q->asked;
    nfds_t in_favour = 0, done = 0;

    q->asked += c->replies;
    for (nfds_t i = 0; i < q->count; i++)
        if (send(q->servers[i].fd, c->bytes, c->length, MSG_NOSIGNAL) != (ssize_t)c->length)
            fail("send");

    while (in_favour <= q->count / 2 && done < q->count) {
        int left = poll(q->ready, q->count, 10000);
        if (left <= 0)
            fail("poll");
        for (nfds_t i = 0; left > 0; i++) {
            struct server *s = &q->servers[i];
            if (q->ready[i].revents == 0)
                continue;
            left--;
            receive(s, vote, c->yes);
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

static void prepare(struct quorum *q, char **ports, const char *key, bool eval, bool pttl)
{
    char digest[41] = "", ttl[16];

    for (nfds_t i = 0; i < q->count; i++) {
        int fd = dial(ports[i]);
        load_script(fd, digest);
        if (fcntl(fd, F_SETFL, O_NONBLOCK) != 0)
            fail("O_NONBLOCK");
        q->servers[i].fd = fd;
        q->ready[i] = (struct pollfd){.fd = fd, .events = POLLIN};
    }
    snprintf(ttl, sizeof ttl, "%d", MEASURE_TTL_MS);
    q->acquire.yes = "+OK";
    add(&q->acquire, 6, (const char *[]){"SET", key, TOKEN, "NX", "PX", ttl});
    if (pttl)
        add(&q->acquire, 2, (const char *[]){"PTTL", key});
    q->release.yes = ":1";
    add(&q->release, 5,
        (const char *[]){eval ? "EVAL" : "EVALSHA", eval ? SCRIPT : digest, "1", key, TOKEN});
}

int main(int argc, char **argv)
{
    static struct quorum q;
    bool eval = false, pttl = false;

    for (; argc > 1 && strncmp(argv[1], "--", 2) == 0; argc--, argv++) {
        eval |= strcmp(argv[1], "--eval") == 0;
        pttl |= strcmp(argv[1], "--pttl") == 0;
    }
    if (argc < 5 || argc > 4 + MOST_SERVERS) {
        fputs("floor [--eval] [--pttl] KEY WARM_MS RUN_MS PORT...\n", stderr);
        return 2;
    }
    q.count = (nfds_t)(argc - 4);
    prepare(&q, argv + 4, argv[1], eval, pttl);
    return measure_main(&(struct subject){lock, unlock, &q}, atoll(argv[2]), atoll(argv[3]));
}

/*
 * Far or slow servers: passes all requests on to servers that are near and fast, and passes their replies back with
 * a delay.
 *
 *     delay DELAY_US TICK_US PORT...   prints the ports that it listens on, one a line; ends when its input ends
 *
 * If TICK_US is not 0, it looks only so often while there is traffic, and sleeps while there is none. So it takes
 * little processor time from the measured programs, and the delay is longer by up to a tick.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PAIRS_MAX 128
#define CHUNKS 64            /* replies that may be delayed at once */
#define CHUNK_SIZE (1 << 18) /* the maximum size of each */
#define SERVERS_MAX 16

struct chunk {
    int64_t due_ns;
    size_t length, sent;
    char *bytes;
};

/* A client's connection, and the corresponding connection to the server. */
struct pair {
    int client, server;
    struct chunk replies[CHUNKS];
    unsigned first, count;
};

static struct pair pairs[PAIRS_MAX];
static struct pollfd watched[1 + SERVERS_MAX + 2 * PAIRS_MAX];
static unsigned pair_count;
static int listeners[SERVERS_MAX];
static int64_t delay_ns, tick_ns, last_look_ns;

static void fail(const char *what)
{
    fprintf(stderr, "delay: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void prepare(int fd)
{
    int on = 1;

    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0)
        fail("TCP_NODELAY");
    if (fcntl(fd, F_SETFL, O_NONBLOCK) != 0)
        fail("O_NONBLOCK");
}

static int listen_somewhere(void)
{
    struct sockaddr_in here = {.sin_family = AF_INET};
    socklen_t length = sizeof here;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || bind(fd, (struct sockaddr *)&here, sizeof here) != 0 || listen(fd, 128) != 0)
        fail("listen");
    if (getsockname(fd, (struct sockaddr *)&here, &length) != 0)
        fail("getsockname");
    printf("%d\n", ntohs(here.sin_port));
    fflush(stdout);
    return fd;
}

static void accept_one(int listener, int port)
{
    struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int client = accept(listener, NULL, NULL);
    int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (client < 0 || server < 0 || pair_count == PAIRS_MAX)
        fail("accept");
    if (connect(server, (struct sockaddr *)&there, sizeof there) != 0)
        fail("connect");
    prepare(client);
    prepare(server);
    pairs[pair_count++] = (struct pair){.client = client, .server = server};
}

static void close_pair(unsigned which)
{
    struct pair *p = &pairs[which];

    close(p->client);
    close(p->server);
    for (; p->count > 0; p->count--, p->first++)
        free(p->replies[p->first % CHUNKS].bytes);
    *p = pairs[--pair_count];
}

/* Passes requests on at once. Returns false at the end of the connection. */
static bool pass_requests(struct pair *p)
{
    static char bytes[CHUNK_SIZE];
    ssize_t n = recv(p->client, bytes, sizeof bytes, 0);

    if (n < 0)
        return errno == EAGAIN;
    return n > 0 && send(p->server, bytes, (size_t)n, MSG_NOSIGNAL) == n;
}

static bool take_replies(struct pair *p)
{
    static char bytes[CHUNK_SIZE];

    if (p->count == CHUNKS)
        return true;
    ssize_t n = recv(p->server, bytes, sizeof bytes, 0);
    if (n <= 0)
        return n < 0 && errno == EAGAIN;

    struct chunk *c = &p->replies[(p->first + p->count++) % CHUNKS];
    *c = (struct chunk){last_look_ns + delay_ns, (size_t)n, 0, malloc((size_t)n)};
    if (c->bytes == NULL)
        fail("malloc");
    memcpy(c->bytes, bytes, (size_t)n);
    return true;
}

static bool give_replies(struct pair *p)
{
    while (p->count > 0) {
        struct chunk *c = &p->replies[p->first % CHUNKS];
        if (c->due_ns > now_ns())
            return true;
        ssize_t n = send(p->client, c->bytes + c->sent, c->length - c->sent, MSG_NOSIGNAL);
        if (n < 0)
            return errno == EAGAIN;
        c->sent += (size_t)n;
        if (c->sent < c->length)
            return true;
        free(c->bytes);
        p->first++;
        p->count--;
    }
    return true;
}

/* When the next reply is due; -1 if none is delayed. */
static int64_t next_due_ns(void)
{
    int64_t due = -1;

    for (unsigned i = 0; i < pair_count; i++) {
        const struct pair *p = &pairs[i];
        if (p->count > 0 && (due < 0 || p->replies[p->first % CHUNKS].due_ns < due))
            due = p->replies[p->first % CHUNKS].due_ns;
    }
    return due;
}

/* Waits until something arrives or a reply is due. With ticks, it always sleeps for a whole tick, and everything that
 * arrives in it is handled together. Its delay counts from the start of the tick. */
static void rest(int servers)
{
    int64_t due = next_due_ns(), left = due - now_ns();
    struct timespec wait = {.tv_nsec = tick_ns};
    unsigned count = 1;

    if (tick_ns > 0) {
        last_look_ns = now_ns();
        nanosleep(&wait, NULL);
        left = 0;
    }
    wait = (struct timespec){.tv_nsec = left > 0 ? left : 0};
    watched[0] = (struct pollfd){.fd = STDIN_FILENO, .events = POLLIN};
    for (int i = 0; i < servers; i++)
        watched[count++] = (struct pollfd){.fd = listeners[i], .events = POLLIN};
    for (unsigned i = 0; i < pair_count; i++) {
        watched[count++] = (struct pollfd){.fd = pairs[i].client, .events = POLLIN};
        watched[count++] = (struct pollfd){.fd = pairs[i].server, .events = POLLIN};
    }
    if (ppoll(watched, count, due < 0 ? NULL : &wait, NULL) < 0)
        fail("ppoll");
    if (tick_ns == 0)
        last_look_ns = now_ns();
}

int main(int argc, char **argv)
{
    int servers = argc - 3;

    if (servers < 1 || servers > SERVERS_MAX) {
        fputs("delay DELAY_US TICK_US PORT...\n", stderr);
        return 2;
    }
    delay_ns = atoll(argv[1]) * 1000;
    tick_ns = atoll(argv[2]) * 1000;
    /* Otherwise the system adds 50 us to each wait. */
    prctl(PR_SET_TIMERSLACK, 1UL);
    for (int i = 0; i < servers; i++)
        listeners[i] = listen_somewhere();

    for (;;) {
        rest(servers);
        if (watched[0].revents != 0)
            return 0;
        for (int i = 0; i < servers; i++)
            if (watched[1 + i].revents != 0)
                accept_one(listeners[i], atoi(argv[3 + i]));
        for (unsigned i = pair_count; i-- > 0;)
            if (!pass_requests(&pairs[i]) || !take_replies(&pairs[i]) || !give_replies(&pairs[i]))
                close_pair(i);
    }
}

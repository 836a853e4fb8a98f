/*
 * A slow server: passes all requests on to a fast server, and passes its replies back with a delay. It checks
 * once per millisecond while there is traffic, and sleeps while there is none. So it takes little processor time
 * from the measured programs.
 *
 *     delay DELAY_MS PORT       prints the port that it listens on; ends when its input ends
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
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PAIRS_MAX 128
#define CHUNKS 64            /* replies that may be delayed at once */
#define CHUNK_SIZE (1 << 18) /* the maximum size of each */
#define TICK_MS 1

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
static struct pollfd watched[2 + 2 * PAIRS_MAX];
static unsigned pair_count;
static int64_t delay_ns, last_look_ns;

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

static bool under_way(void)
{
    for (unsigned i = 0; i < pair_count; i++)
        if (pairs[i].count > 0)
            return true;
    return false;
}

/* Waits until something arrives. While replies are delayed, waits at most a tick. It always sleeps for the whole
 * tick. Everything that arrives in a tick is handled together, and its delay counts from the start of the tick. */
static void rest(int listener)
{
    const struct timespec tick = {.tv_nsec = TICK_MS * 1000000};
    unsigned count = 2;

    last_look_ns = now_ns();
    nanosleep(&tick, NULL);
    watched[0] = (struct pollfd){.fd = STDIN_FILENO, .events = POLLIN};
    watched[1] = (struct pollfd){.fd = listener, .events = POLLIN};
    for (unsigned i = 0; i < pair_count; i++) {
        watched[count++] = (struct pollfd){.fd = pairs[i].client, .events = POLLIN};
        watched[count++] = (struct pollfd){.fd = pairs[i].server, .events = POLLIN};
    }
    if (poll(watched, count, under_way() ? 0 : -1) < 0)
        fail("poll");
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fputs("delay DELAY_MS PORT\n", stderr);
        return 2;
    }
    delay_ns = atoll(argv[1]) * 1000000;
    int listener = listen_somewhere();

    for (;;) {
        rest(listener);
        if (watched[0].revents != 0)
            return 0;
        if (watched[1].revents != 0)
            accept_one(listener, atoi(argv[2]));
        for (unsigned i = pair_count; i-- > 0;)
            if (!pass_requests(&pairs[i]) || !take_replies(&pairs[i]) || !give_replies(&pairs[i]))
                close_pair(i);
    }
}

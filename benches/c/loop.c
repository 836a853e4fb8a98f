/*
 * The floor for many callers: one thread, one connection per server, CLIENTS locks in flight. At each wake-up, it
 * reads what all servers have sent. Some clients' commands are decided by that. It then writes their next
 * commands to each server in one go. It wakes no thread, and shares nothing between threads. The callers of the
 * library are threads, so the library cannot quite reach this.
 *
 *     loop [--same SCRIPT] cycles  CLIENTS KEY WARM_MS RUN_MS PORT...
 *     loop [--same SCRIPT] exactly CLIENTS KEY COUNT PORT...
 *
 * With --same, it sends what the library sends, and checks the servers' notes ("wire.h").
 */
#define _GNU_SOURCE
#include "measure.h"
#include "wire.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

/* As many acquires share a reading of the note, and so many commands at the most are behind the first of them. */
#define GRANTS_MAX 8
#define GROUP_MAX 16

/* A power of two, greater than the number of rounds between the fastest and the slowest server can ever be. */
#define ROUNDS 65536

struct client {
    struct command acquire, release;
    bool locking; /* otherwise unlocking */
    int64_t since_ns;
};

/* A command that was sent to all servers, and its votes so far. */
struct round {
    struct client *client;
    uint32_t in_favour, against;
    uint32_t lines; /* of the replies that each server sends for this command */
    uint32_t note;  /* which of them is the server's note, from 1; 0 if none */
};

/* Each server replies to the rounds in the order in which they began. */
struct server {
    int fd;
    uint64_t round;
    uint32_t lines; /* of that round that were read already */
    struct note note;
    char input[65536];
    size_t have;
};

static struct server servers[WIRE_SERVERS_MAX];
static struct pollfd ready[WIRE_SERVERS_MAX];
static nfds_t server_count;
static struct round rounds[ROUNDS];
static uint64_t begun;

/* The bytes for every server's next write. */
static char output[1 << 20];
static size_t output_length;

static struct command reading; /* empty, unless the commands are those of the library */
static uint32_t grouped, grants; /* commands since the last reading, from the first acquire on */

static struct client *clients;
static size_t client_count, running;
static struct samples locks, unlocks;
static size_t cycles, failed;
static size_t most; /* cycles that a run may have */
static int64_t now_ns, end_ns;

/* Reads the note behind the last command, for all acquires since the last reading. */
static void read_note(void)
{
    struct round *last = &rounds[(begun - 1) % ROUNDS];

    if (grouped == 0)
        return;
    last->note = last->lines + (uint32_t)reading.note;
    last->lines += (uint32_t)reading.lines;
    memcpy(output + output_length, reading.bytes, reading.length);
    output_length += reading.length;
    grouped = grants = 0;
}

static void begin(struct client *c, bool locking)
{
    const struct command *command = locking ? &c->acquire : &c->release;

    for (nfds_t i = 0; i < server_count; i++)
        if (begun - servers[i].round >= ROUNDS || output_length + command->length + reading.length > sizeof output) {
            errno = ENOBUFS;
            measure_fail("a server that lags behind");
        }
    c->locking = locking;
    c->since_ns = now_ns;
    rounds[begun++ % ROUNDS] = (struct round){.client = c, .lines = (uint32_t)command->lines};
    memcpy(output + output_length, command->bytes, command->length);
    output_length += command->length;
    if (reading.length > 0 && (locking || grouped > 0)) {
        grouped++;
        grants += locking;
        if (grants == GRANTS_MAX || grouped == GROUP_MAX)
            read_note();
    }
}

/* After a cycle, the next cycle begins, unless the time has passed. */
static void decide(struct client *c, bool granted)
{
    measure_keep(c->locking ? &locks : &unlocks, c->since_ns, now_ns);
    if (c->locking && granted) {
        begin(c, false);
        return;
    }
    cycles++;
    failed += !granted;
    if (now_ns < end_ns && cycles < most)
        begin(c, true);
    else
        running--;
}

static void vote(struct round *r, const char *line)
{
    const char *yes = r->client->locking ? r->client->acquire.yes : r->client->release.yes;
    bool in_favour = strncmp(line, yes, strlen(yes)) == 0;
    uint32_t votes = in_favour ? ++r->in_favour : ++r->against;
    nfds_t majority = server_count / 2 + 1;

    if (votes == (in_favour ? majority : server_count + 1 - majority)) {
        struct client *c = r->client;
        r->client = NULL;
        decide(c, in_favour);
    }
}

/* The first line of a round is the vote. */
static void receive(struct server *s)
{
    ssize_t n = recv(s->fd, s->input + s->have, sizeof s->input - s->have, 0);
    if (n <= 0)
        measure_fail("recv");
    s->have += (size_t)n;

    char *line = s->input, *rest = s->input + s->have, *end;
    while ((end = memchr(line, '\n', (size_t)(rest - line))) != NULL) {
        struct round *r = &rounds[s->round % ROUNDS];
        if (s->lines++ == 0 && r->client != NULL)
            vote(r, line);
        if (s->lines == r->note)
            wire_check_note(&s->note, line, (size_t)(end - line));
        if (s->lines == r->lines) {
            s->lines = 0;
            s->round++;
        }
        line = end + 1;
    }
    s->have = (size_t)(rest - line);
    memmove(s->input, line, s->have);
}

/* If a server is so far behind that its connection is full, waits for it. */
static void send_all(int fd)
{
    struct pollfd room = {.fd = fd, .events = POLLOUT};

    for (size_t sent = 0; sent < output_length;) {
        ssize_t n = send(fd, output + sent, output_length - sent, MSG_NOSIGNAL);
        if (n > 0)
            sent += (size_t)n;
        else if (errno != EAGAIN || poll(&room, 1, 10000) <= 0)
            measure_fail("send");
    }
}

static void flush(void)
{
    read_note();
    for (nfds_t i = 0; i < server_count && output_length > 0; i++)
        send_all(servers[i].fd);
    output_length = 0;
}

/* Runs until the time has passed and every client has released its lock. */
static void run(int64_t run_ms, size_t most_cycles)
{
    most = most_cycles;
    locks.count = unlocks.count = cycles = failed = 0;
    now_ns = measure_now_ns();
    end_ns = now_ns + run_ms * 1000000;
    running = client_count;
    for (size_t i = 0; i < client_count; i++)
        begin(&clients[i], true);
    while (running > 0) {
        flush();
        int left = poll(ready, server_count, 10000);
        if (left <= 0)
            measure_fail("poll");
        now_ns = measure_now_ns();
        for (nfds_t i = 0; left > 0; i++)
            if (ready[i].revents != 0) {
                left--;
                receive(&servers[i]);
            }
    }
}

static void prepare(size_t count, const char *key, char **ports)
{
    struct token token = wire_token();
    char digest[41] = "", resource[128];

    reading = wire_reading();

    for (nfds_t i = 0; i < server_count; i++) {
        servers[i].fd = wire_connect(ports[i], digest);
        ready[i] = (struct pollfd){.fd = servers[i].fd, .events = POLLIN};
    }
    client_count = count;
    clients = measure_shared(count * sizeof *clients);
    for (size_t i = 0; i < count; i++) {
        snprintf(resource, sizeof resource, "%s:%zu", key, i);
        clients[i].acquire = wire_acquire_of_several(resource, &token);
        clients[i].release = wire_release(resource, &token, digest);
    }
}

static void measure(int64_t warm_ms, int64_t run_ms)
{
    size_t room = measure_room(warm_ms > run_ms ? warm_ms : run_ms, 1);

    locks = (struct samples){measure_shared(room * sizeof(float)), room, 0};
    unlocks = (struct samples){measure_shared(room * sizeof(float)), room, 0};
    run(warm_ms, SIZE_MAX);
    if (!measure_ready())
        return;
    measure_running();

    double cpu_before = measure_cpu_us(RUSAGE_SELF);
    int64_t start_ns = measure_now_ns();
    run(run_ms, SIZE_MAX);
    printf("cycles=%zu failed=%zu busy_us=%.0f seconds=%.6f", cycles, failed,
           measure_cpu_us(RUSAGE_SELF) - cpu_before, (double)(measure_now_ns() - start_ns) / 1e9);
    measure_print("lock", &locks);
    measure_print("unlock", &unlocks);
    puts("");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    bool exactly;

    if (argc > 2 && strcmp(argv[1], "--same") == 0) {
        wire_send_the_same(argv[2]);
        argc -= 2;
        argv += 2;
    }
    exactly = argc > 5 && strcmp(argv[1], "exactly") == 0;
    argv += exactly ? 5 : 6;
    argc -= exactly ? 5 : 6;
    if (argc < 1 || argc > WIRE_SERVERS_MAX || (!exactly && strcmp(argv[-5], "cycles") != 0)) {
        fputs("loop [--same SCRIPT] cycles CLIENTS KEY WARM_MS RUN_MS PORT...\n"
              "loop [--same SCRIPT] exactly CLIENTS KEY COUNT PORT...\n", stderr);
        return 2;
    }
    server_count = (nfds_t)argc;
    prepare((size_t)atol(argv[exactly ? -3 : -4]), argv[exactly ? -2 : -3], argv);
    if (exactly)
        run(3600000, (size_t)atol(argv[-1]));
    else
        measure(atoll(argv[-2]), atoll(argv[-1]));
    return failed > 0;
}

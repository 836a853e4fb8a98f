/*
 * Our clients beside clients that poll: plain Redlock, which sends no wake-ups. After a refusal it releases what it
 * may have got, as redsync and node redlock do, and asks again 10 to 20 ms later. All want one resource, hold it for HOLD_MS, and want it again REST_MS after its release.
 *
 *     polling OURS RIVALS HOLD_MS REST_MS KEY RUN_MS PORT...
 *
 * OURS and RIVALS: the numbers of processes. The figures are turns and requests of each, for all servers together:
 * ours_turns, ours_requests, rival_turns, rival_requests; and share, our turns as a part of an equal share.
 */
#define _GNU_SOURCE
#include "crew.h"
#include "manager.h"
#include "measure.h"
#include "wire.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>

#define PAUSE_LEAST_MS 10
#define PAUSE_MOST_MS 20

struct count {
    uint64_t turns, requests;
};

struct shared {
    pthread_barrier_t line;
    struct count ours, rivals;
};

static int ours, rivals, ports;
static double hold_ms, rest_ms;
static const char *key;
static char **port;
static int64_t run_ms;
static struct shared *shared;

static void pause_for(double ms)
{
    int64_t ns = (int64_t)(ms * 1e6);
    struct timespec t = {ns / 1000000000, ns % 1000000000};

    clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}

static void pause_between_tries(void)
{
    uint32_t dice;

    if (getrandom(&dice, sizeof dice, 0) != (ssize_t)sizeof dice)
        measure_fail("getrandom");
    pause_for(PAUSE_LEAST_MS + (PAUSE_MOST_MS - PAUSE_LEAST_MS) * (double)dice / UINT32_MAX);
}

static void count(struct count *c, uint64_t turns, uint64_t requests)
{
    __atomic_add_fetch(&c->turns, turns, __ATOMIC_RELAXED);
    __atomic_add_fetch(&c->requests, requests, __ATOMIC_RELAXED);
}

/* One process of ours. */
static void wait_for_it(void)
{
    RedLock *rl = manager_connect(ports, port);
    RedLockLease *lease = RedLockLease_New();
    RedLockStats before = REDLOCK_STATS_INIT, after = REDLOCK_STATS_INIT;
    uint64_t turns = 0;

    RedLock_GetStats(rl, &before);
    pthread_barrier_wait(&shared->line);
    int64_t end = measure_now_ns() + run_ms * 1000000, left_ms;
    while ((left_ms = (end - measure_now_ns()) / 1000000) > 0) {
        if (RedLock_TryLock(rl, key, MEASURE_TTL_MS, left_ms, lease) != REDLOCK_OK)
            continue;
        turns++;
        pause_for(hold_ms);
        RedLock_Unlock(rl, lease);
        pause_for(rest_ms);
    }
    RedLock_GetStats(rl, &after);
    count(&shared->ours, turns, after.requests - before.requests);
    RedLockLease_Free(lease);
    RedLock_Free(rl);
}

static int sockets[WIRE_SERVERS_MAX];

/* Sends the command to all servers, and waits for all answers, of one line each. Returns how many agree. */
static int ask(const struct command *c)
{
    int agree = 0;

    for (int i = 0; i < ports; i++)
        if (send(sockets[i], c->bytes, c->length, MSG_NOSIGNAL) != (ssize_t)c->length)
            measure_fail("send");
    for (int i = 0; i < ports; i++) {
        char line[64];
        size_t have = 0;
        struct pollfd ready = {.fd = sockets[i], .events = POLLIN};
        while (have == 0 || line[have - 1] != '\n') {
            ssize_t n = poll(&ready, 1, 10000) == 1 ? recv(sockets[i], line + have, sizeof line - have, 0) : 0;
            if (n <= 0)
                measure_fail("recv");
            have += (size_t)n;
        }
        agree += strncmp(line, c->yes, strlen(c->yes)) == 0;
    }
    return agree;
}

/* One process of the rival's. */
static void ask_again_and_again(void)
{
    char digest[41] = "";
    uint64_t turns = 0, rounds = 0;

    for (int i = 0; i < ports; i++)
        sockets[i] = wire_connect(port[i], digest);
    pthread_barrier_wait(&shared->line);
    for (int64_t end = measure_now_ns() + run_ms * 1000000; measure_now_ns() < end;) {
        struct token token = wire_token();
        struct command acquire = wire_acquire(key, &token), release = wire_release(key, &token, digest);
        int granted = ask(&acquire);

        if (granted > ports / 2) {
            turns++;
            pause_for(hold_ms);
        }
        ask(&release);
        rounds += 2;
        if (granted > ports / 2)
            pause_for(rest_ms);
        else
            pause_between_tries();
    }
    count(&shared->rivals, turns, rounds * (uint64_t)ports);
}

static void work(int number)
{
    if (number < ours)
        wait_for_it();
    else
        ask_again_and_again();
}

int main(int argc, char **argv)
{
    if (argc < 8) {
        fprintf(stderr, "usage: polling OURS RIVALS HOLD_MS REST_MS KEY RUN_MS PORT...\n");
        return 2;
    }
    ours = atoi(argv[1]);
    rivals = atoi(argv[2]);
    hold_ms = atof(argv[3]);
    rest_ms = atof(argv[4]);
    key = argv[5];
    run_ms = atoll(argv[6]);
    port = argv + 7;
    ports = argc - 7;
    shared = measure_shared(sizeof *shared);
    crew_line(&shared->line, ours + rivals);
    for (int i = 0; i < ours + rivals; i++)
        crew_start(work, i);
    crew_dismiss();
    crew_wait();
    struct count us = shared->ours, them = shared->rivals;
    double equal = (double)(us.turns + them.turns) * ours / (ours + rivals);
    printf("ours_turns=%llu ours_requests=%llu rival_turns=%llu rival_requests=%llu share=%.2f\n",
           (unsigned long long)us.turns, (unsigned long long)us.requests, (unsigned long long)them.turns,
           (unsigned long long)them.requests, equal > 0 ? (double)us.turns / equal : 0.0);
    return 0;
}

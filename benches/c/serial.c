/*
 * A traditional client: hiredis, blocking, one server after the other. Each attempt has a new token. After a
 * failed attempt it releases everything, and then waits for a random pause.
 *
 *     serial [--pause LEAST_MS MOST_MS] ...   and on as in workers.h
 *
 * The default pause is 100 to 300 ms, which is the meaning of 200 ms in CRedLock. With 0 and 5 it polls as
 * redis-plus-plus does. Each worker has connections of its own.
 */
#define _GNU_SOURCE
#include "measure.h"
#include "workers.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#define TRIES 3
#define TOKEN_BYTES 20
#define DRIFT 0.01
#define PRECISION_MS 2
#define CONNECT_MS 1500
#define SCRIPT                                                                                     \
    "if redis.call('GET',KEYS[1])==ARGV[1] then return redis.call('DEL',KEYS[1]) else return 0 end"

struct client {
    const struct servers *servers;
    redisContext **connections;
    char resource[128];
    char token[2 * TOKEN_BYTES + 1];
};

static double pause_least_ms = 100, pause_most_ms = 300;

static void random_bytes(void *to, size_t count)
{
    if (getrandom(to, count, 0) != (ssize_t)count)
        measure_fail("getrandom");
}

static void make_token(char *token)
{
    unsigned char bytes[TOKEN_BYTES];

    random_bytes(bytes, sizeof bytes);
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(token + 2 * i, 3, "%02X", bytes[i]);
}

static void pause_a_while(void)
{
    uint32_t dice;

    random_bytes(&dice, sizeof dice);
    double ms = pause_least_ms + (pause_most_ms - pause_least_ms) * dice / UINT32_MAX;
    int64_t ns = (int64_t)(ms * 1e6);
    struct timespec t = {ns / 1000000000, ns % 1000000000};
    nanosleep(&t, NULL);
}

static redisContext *connection(struct client *c, int server)
{
    const struct timeval patience = {CONNECT_MS / 1000, CONNECT_MS % 1000 * 1000};
    redisContext **here = &c->connections[server];

    if (*here == NULL)
        *here = redisConnectWithTimeout("127.0.0.1", atoi(c->servers->ports[server]), patience);
    if (*here != NULL && (*here)->err != 0) {
        redisFree(*here);
        *here = NULL;
    }
    return *here;
}

/* Returns NULL if there is no connection, or if the connection is lost. */
static redisReply *say(struct client *c, int server, int count, const char **words)
{
    redisContext *connected = connection(c, server);
    redisReply *reply = connected == NULL ? NULL : redisCommandArgv(connected, count, words, NULL);

    if (connected != NULL && reply == NULL) {
        redisFree(connected);
        c->connections[server] = NULL;
    }
    return reply;
}

static bool set_one(struct client *c, int server)
{
    char ttl[16];
    snprintf(ttl, sizeof ttl, "%d", MEASURE_TTL_MS);

    const char *words[] = {"SET", c->resource, c->token, "NX", "PX", ttl};
    redisReply *reply = say(c, server, 6, words);
    bool set = reply != NULL && reply->type == REDIS_REPLY_STATUS && strcmp(reply->str, "OK") == 0;
    freeReplyObject(reply);
    return set;
}

static bool delete_one(struct client *c, int server)
{
    const char *words[] = {"EVAL", SCRIPT, "1", c->resource, c->token};
    redisReply *reply = say(c, server, 5, words);
    bool deleted = reply != NULL && reply->type == REDIS_REPLY_INTEGER && reply->integer == 1;
    freeReplyObject(reply);
    return deleted;
}

static bool unlock(void *self)
{
    struct client *c = self;
    int count = 0;

    for (int i = 0; i < c->servers->count; i++)
        count += delete_one(c, i);
    return count > c->servers->count / 2;
}

static bool attempt(struct client *c)
{
    int64_t start = measure_now_ns();
    int count = 0;

    make_token(c->token);
    for (int i = 0; i < c->servers->count; i++)
        count += set_one(c, i);
    double gone_ms = (double)(measure_now_ns() - start) / 1e6;
    bool valid = MEASURE_TTL_MS - gone_ms - MEASURE_TTL_MS * DRIFT - PRECISION_MS > 0;
    if (valid && count > c->servers->count / 2)
        return true;
    unlock(c);
    return false;
}

static bool lock(void *self)
{
    for (int tries = 0; tries < TRIES; tries++) {
        if (attempt(self))
            return true;
        pause_a_while();
    }
    return false;
}

static bool wait_for(void *self)
{
    while (!attempt(self))
        pause_a_while();
    return true;
}

static void *open_client(const struct servers *servers, const char *resource)
{
    struct client *c = calloc(1, sizeof *c);
    redisContext **connections = calloc((size_t)servers->count, sizeof *connections);

    if (c == NULL || connections == NULL)
        measure_fail("client");
    c->servers = servers;
    c->connections = connections;
    snprintf(c->resource, sizeof c->resource, "%s", resource);
    for (int i = 0; i < servers->count; i++)
        connection(c, i);
    return c;
}

static void close_client(void *self)
{
    struct client *c = self;

    for (int i = 0; i < c->servers->count; i++)
        if (c->connections[i] != NULL)
            redisFree(c->connections[i]);
    free(c->connections);
    free(c);
}

int main(int argc, char **argv)
{
    static const struct contender serial = {open_client, lock, NULL, unlock, wait_for, close_client};

    if (argc > 3 && strcmp(argv[1], "--pause") == 0) {
        pause_least_ms = atof(argv[2]);
        pause_most_ms = atof(argv[3]);
        argc -= 3;
        argv += 3;
    }
    return workers_main(&serial, argc - 1, argv + 1);
}

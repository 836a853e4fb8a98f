/* Names that resolve oddly. This program is its own resolver: its definitions come before those of
 * the C library. The arguments are the ports of three servers on 127.0.0.1. These ports are closed
 * on 127.0.0.2 and 127.0.0.3, and on 127.0.0.4 connections get no answer. */
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdatomic.h>

#include "guest.h"

enum { SLOW_MS = 1500 };

static atomic_int asked;
static atomic_bool has_moved;

static struct addrinfo *entry(const char *address, struct addrinfo *next) {
    struct addrinfo *it = calloc(1, sizeof *it);
    struct sockaddr_in *place = calloc(1, sizeof *place);
    CHECK(it && place);
    place->sin_family = AF_INET;
    CHECK(inet_pton(AF_INET, address, &place->sin_addr) == 1);
    it->ai_family = AF_INET;
    it->ai_socktype = SOCK_STREAM;
    it->ai_addrlen = sizeof *place;
    it->ai_addr = (struct sockaddr *)place;
    it->ai_next = next;
    return it;
}

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **found) {
    (void)service;
    (void)hints;
    atomic_fetch_add(&asked, 1);
    if (strcmp(name, "many.test") == 0) {
        *found = entry("127.0.0.2", entry("127.0.0.3", entry("127.0.0.1", NULL)));
        return 0;
    }
    if (strcmp(name, "hanging.test") == 0) {
        *found = entry("127.0.0.4", entry("127.0.0.1", NULL));
        return 0;
    }
    if (strcmp(name, "moving.test") == 0) {
        *found = entry(atomic_load(&has_moved) ? "127.0.0.1" : "127.0.0.2", NULL);
        return 0;
    }
    if (strncmp(name, "slow", 4) == 0) {
        struct timespec pause = {SLOW_MS / 1000, SLOW_MS % 1000 * 1000000L};
        nanosleep(&pause, NULL);
        return EAI_AGAIN;
    }
    return EAI_NONAME;
}

void freeaddrinfo(struct addrinfo *list) {
    while (list) {
        struct addrinfo *next = list->ai_next;
        free(list->ai_addr);
        free(list);
        list = next;
    }
}

/* A manager of servers with these names, each on the port of the same position. */
static RedLock *manager_at(const char *const names[3], char **ports) {
    RedLock *rl = RedLock_New();
    CHECK(rl);
    CHECK(RedLock_SetTimeouts(rl, 20000, 20000) == REDLOCK_OK);
    CHECK(RedLock_SetRetry(rl, 1, 0) == REDLOCK_OK);
    for (int i = 0; i < 3; i++) {
        CHECK(RedLock_AddServerUrl(rl, names[i], atoi(ports[i])) == REDLOCK_OK);
    }
    return rl;
}

static void locks(RedLock *rl, RedLockLease *lease) {
    EXPECT(REDLOCK_OK, RedLock_Lock(rl, "r", TTL_MS, lease), lease);
    EXPECT(REDLOCK_OK, RedLock_Extend(rl, lease, TTL_MS), lease);
    EXPECT(REDLOCK_OK, RedLock_Unlock(rl, lease), lease);
}

static void addresses_need_no_look_up(char **ports, RedLockLease *lease) {
    const char *const names[] = {"127.0.0.1", "127.0.0.1", "::ffff:127.0.0.1"};
    RedLock *rl = manager_at(names, ports);
    connect_to_all(rl);
    locks(rl, lease);
    CHECK(atomic_load(&asked) == 0);
    RedLock_Free(rl);
}

static void every_address_of_a_name_is_tried(char **ports, RedLockLease *lease) {
    const char *const names[] = {"many.test", "many.test", "127.0.0.1"};
    RedLock *rl = manager_at(names, ports);
    /* One after the other in the first try. */
    locks(rl, lease);
    CHECK(atomic_load(&asked) == 2);
    RedLock_Free(rl);
}

/* An address that never answers uses its share of the connect timeout, and no more. */
static void an_address_that_hangs_is_passed_over(char **ports, RedLockLease *lease) {
    const char *const names[] = {"hanging.test", "hanging.test", "127.0.0.1"};
    RedLock *rl = manager_at(names, ports);
    CHECK(RedLock_SetTimeouts(rl, 2000, 20000) == REDLOCK_OK);
    CHECK(RedLock_Connect(rl, 6000) == REDLOCK_OK);
    locks(rl, lease);
    RedLock_Free(rl);
}

/* If no address works, the name is looked up again, though not all the time. */
static void a_name_that_moves_is_followed(char **ports, RedLockLease *lease) {
    const char *const names[] = {"moving.test", "moving.test", "127.0.0.1"};
    RedLock *rl = manager_at(names, ports);
    int before = atomic_load(&asked);
    for (int i = 0; i < 20; i++) {
        EXPECT(REDLOCK_UNREACHABLE, RedLock_Lock(rl, "r", TTL_MS, lease), lease);
    }
    CHECK(atomic_load(&asked) - before < 20);
    atomic_store(&has_moved, true);
    EXPECT(REDLOCK_OK, RedLock_TryLock(rl, "r", TTL_MS, 20000, lease), lease);
    EXPECT(REDLOCK_OK, RedLock_Unlock(rl, lease), lease);
    /* An address that works stays in use as long as it works. */
    before = atomic_load(&asked);
    for (int i = 0; i < 20; i++) {
        locks(rl, lease);
    }
    CHECK(atomic_load(&asked) == before);
    RedLock_Free(rl);
}

static void a_slow_resolver_is_not_asked_without_need(char **ports, RedLockLease *lease) {
    const char *const names[] = {"slow.test", "127.0.0.1", "127.0.0.1"};
    RedLock *rl = manager_at(names, ports);
    int before = atomic_load(&asked);
    for (int i = 0; i < 20; i++) {
        locks(rl, lease);
    }
    CHECK(atomic_load(&asked) == before);
    RedLock_Free(rl);
}

/* Each name is looked up once, and then left alone for ten times as long as the look-up took. */
static void a_slow_resolver_is_not_asked_again_and_again(char **ports, RedLockLease *lease) {
    const char *const names[] = {"slow-1.test", "slow-2.test", "127.0.0.1"};
    RedLock *rl = manager_at(names, ports);
    int before = atomic_load(&asked);
    for (int i = 0; i < 20; i++) {
        EXPECT(REDLOCK_UNREACHABLE, RedLock_Lock(rl, "r", TTL_MS, lease), lease);
        CHECK(strstr(RedLockLease_ErrorMessage(lease), "cannot resolve the host name"));
    }
    CHECK(atomic_load(&asked) - before <= 4);
    RedLock_Free(rl);
}

int main(int argc, char **argv) {
    no_longer_than(60);
    CHECK(argc == 4);
    char **ports = argv + 1;
    RedLockLease *lease = new_lease();
    addresses_need_no_look_up(ports, lease);
    every_address_of_a_name_is_tried(ports, lease);
    an_address_that_hangs_is_passed_over(ports, lease);
    a_name_that_moves_is_followed(ports, lease);
    a_slow_resolver_is_not_asked_without_need(ports, lease);
    a_slow_resolver_is_not_asked_again_and_again(ports, lease);
    RedLockLease_Free(lease);
    return 0;
}

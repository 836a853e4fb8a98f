/* A program that keeps a lock while its servers get other addresses, one after the other. It is its own
 * resolver: its definitions come before those of the C library. The first argument says who looks up names: the
 * library's own "thread", or this program, which asks for "events". The other arguments are the ports of three
 * servers. They are on 127.0.0.2 before they move, and on 127.0.0.3 after that. */
#define _GNU_SOURCE

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#include "guest.h"

enum { SERVERS = 3, KEPT_MS = 8000 };

static const char *const NAMES[SERVERS] = {"a.test", "b.test", "c.test"};

/* Whether a server has its new address, and whether the resolver has told that. */
static atomic_bool has_moved[SERVERS], is_known[SERVERS];
/* Whether the resolver says nothing, and how many threads wait for it. */
static atomic_bool is_stuck;
static atomic_int waiting;
/* How many threads the system does not give. */
static atomic_int lacking;

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *),
                   void *argument) {
    static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (atomic_load(&lacking) > 0) {
        atomic_fetch_sub(&lacking, 1);
        return EAGAIN;
    }
    *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
    return real(thread, attributes, body, argument);
}

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **found) {
    (void)service;
    (void)hints;
    atomic_fetch_add(&waiting, 1);
    while (atomic_load(&is_stuck)) {
        usleep(1000);
    }
    atomic_fetch_sub(&waiting, 1);
    int which = name[0] - 'a';
    CHECK(which >= 0 && which < SERVERS);
    struct addrinfo *it = calloc(1, sizeof *it);
    struct sockaddr_in *place = calloc(1, sizeof *place);
    CHECK(it && place);
    place->sin_family = AF_INET;
    bool is_new = atomic_load(&has_moved[which]);
    CHECK(inet_pton(AF_INET, is_new ? "127.0.0.3" : "127.0.0.2", &place->sin_addr) == 1);
    atomic_store(&is_known[which], is_new);
    it->ai_family = AF_INET;
    it->ai_socktype = SOCK_STREAM;
    it->ai_addrlen = sizeof *place;
    it->ai_addr = (struct sockaddr *)place;
    *found = it;
    return 0;
}

void freeaddrinfo(struct addrinfo *list) {
    free(list->ai_addr);
    free(list);
}

static RedLock *manager_at(char **ports) {
    RedLock *rl = RedLock_New();
    CHECK(rl);
    CHECK(RedLock_SetTimeouts(rl, 20000, 20000) == REDLOCK_OK);
    for (int i = 0; i < SERVERS; i++) {
        CHECK(RedLock_AddServerUrl(rl, NAMES[i], atoi(ports[i])) == REDLOCK_OK);
    }
    return rl;
}

static uint64_t renewed(RedLock *rl) {
    RedLockStats stats = REDLOCK_STATS_INIT;
    CHECK(RedLock_GetStats(rl, &stats) == REDLOCK_OK);
    return stats.renewed;
}

/* The resolver says nothing. The lock is renewed all the same. */
static void is_renewed_meanwhile(RedLock *rl) {
    while (atomic_load(&waiting) == 0) {
        usleep(1000);
    }
    uint64_t before = renewed(rl);
    while (renewed(rl) < before + 2) {
        usleep(1000);
    }
    CHECK(!RedLock_IsLookUpDue(rl));
    CHECK(atomic_load(&waiting) == 1);
    atomic_store(&is_stuck, false);
}

static bool has_vote(RedLock *rl, int which) {
    RedLockServerInfo servers[SERVERS] = {REDLOCK_SERVER_INFO_INIT};
    size_t count = SERVERS;
    CHECK(RedLock_Servers(rl, servers, &count) == REDLOCK_OK && count == SERVERS);
    return servers[which].connected && servers[which].votes;
}

/* Looks up what is due, and drives for a moment. */
static void drive(RedLock *rl) {
    RedLockEvent event = REDLOCK_EVENT_INIT;
    CHECK(RedLock_NextEvent(rl, 10, &event) == REDLOCK_NO_EVENT);
    if (RedLock_IsLookUpDue(rl)) {
        CHECK(RedLock_LookUp(rl) == REDLOCK_OK);
    }
}

/* Tells the test a word, and waits until the test says something. Meanwhile the lock is kept. */
static void tell_and_keep(const char *word, RedLock *rl, bool has_thread) {
    tell(word);
    struct pollfd words = {.fd = STDIN_FILENO, .events = POLLIN};
    while (!has_thread && poll(&words, 1, 0) == 0) {
        drive(rl);
    }
    await();
}

/* Keeps a lock while the servers move. */
static void keeps(char **ports, bool has_thread) {
    RedLock *rl = manager_at(ports);
    CHECK(!RedLock_IsLookUpDue(NULL) && !RedLock_IsLookUpDue(rl));
    if (has_thread) {
        CHECK(RedLock_SetBackgroundThread(rl, true) == REDLOCK_OK);
    } else {
        /* The addresses are known before the first call. */
        CHECK(RedLock_LookUp(rl) == REDLOCK_OK);
        CHECK(RedLock_Descriptor(rl) >= 0);
    }
    RedLockLease *lease = new_lease();
    RedLockAcquireOptions options = REDLOCK_ACQUIRE_OPTIONS_INIT;
    options.resource = "r";
    options.ttl_ms = KEPT_MS;
    options.keep_alive = 1;
    EXPECT(REDLOCK_OK, RedLock_Acquire(rl, &options, lease), lease);
    for (int i = 0; i < SERVERS; i++) {
        tell_and_keep("move", rl, has_thread);
        atomic_store(&is_stuck, has_thread && i == 0);
        /* Without a thread, the name is looked up later. */
        atomic_store(&lacking, has_thread && i == 1);
        atomic_store(&has_moved[i], true);
        if (atomic_load(&is_stuck)) {
            is_renewed_meanwhile(rl);
        }
        /* Before that, the library may not have noticed yet that the connection is lost. */
        while (!atomic_load(&is_known[i]) || !has_vote(rl, i)) {
            if (has_thread) {
                usleep(1000);
            } else {
                drive(rl);
            }
        }
        CHECK(RedLockLease_IsHeld(lease) && atomic_load(&lacking) == 0);
        tell_and_keep("moved", rl, has_thread);
    }
    EXPECT(REDLOCK_OK, RedLock_Unlock(rl, lease), lease);
    RedLockLease_Free(lease);
    RedLock_Free(rl);
}

static void *look_up(void *rl) {
    CHECK(RedLock_LookUp(rl) == REDLOCK_OK);
    return NULL;
}

static void submit(RedLock *rl, const char *resource, RedLockLease *lease) {
    RedLockAcquireOptions options = REDLOCK_ACQUIRE_OPTIONS_INIT;
    options.resource = resource;
    options.ttl_ms = TTL_MS;
    CHECK(RedLock_SubmitAcquire(rl, &options, lease, NULL) == REDLOCK_OK);
}

/* Waits for the end of the call, in one of two ways. Returns before the time is over if a look-up is due. */
static RedLockStatus wait_for(RedLock *rl, RedLockLease *lease, bool takes_events) {
    RedLockEvent event = REDLOCK_EVENT_INIT;
    if (!takes_events) {
        return RedLock_Wait(rl, lease, 50000);
    }
    RedLockStatus status = RedLock_NextEvent(rl, 50000, &event);
    return status == REDLOCK_OK ? event.status : status;
}

/* The resolver says nothing. A thread that waits for events or for a call does not wait for it, and the call can be
 * cancelled. A later call gets what the resolver says in the end. */
static void leaves_the_resolver_to_a_thread(char **ports, bool takes_events) {
    RedLock *rl = manager_at(ports);
    CHECK(!RedLock_IsLookUpDue(rl));
    RedLockLease *lease = new_lease();
    CHECK(RedLockLease_SetDoneEvents(lease, takes_events) == REDLOCK_OK);
    atomic_store(&is_stuck, true);
    submit(rl, "r", lease);
    CHECK(wait_for(rl, lease, takes_events) == REDLOCK_NO_EVENT);
    CHECK(RedLock_IsLookUpDue(rl) && atomic_load(&waiting) == 0);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, look_up, rl) == 0);
    while (atomic_load(&waiting) == 0) {
        usleep(1000);
    }
    CHECK(!RedLock_IsLookUpDue(rl));
    CHECK(RedLock_Cancel(rl, lease) == REDLOCK_OK);
    CHECK(wait_for(rl, lease, takes_events) == REDLOCK_CANCELLED);
    submit(rl, "r", lease);
    atomic_store(&is_stuck, false);
    CHECK(wait_for(rl, lease, takes_events) == REDLOCK_OK);
    CHECK(pthread_join(thread, NULL) == 0);
    EXPECT(REDLOCK_OK, RedLock_Unlock(rl, lease), lease);
    RedLockLease_Free(lease);
    RedLock_Free(rl);
}

/* Nobody looks up the names. A call that blocks does, and so helps the one that waits for them. */
static void a_blocking_call_looks_up(char **ports) {
    RedLock *rl = manager_at(ports);
    CHECK(!RedLock_IsLookUpDue(rl));
    RedLockLease *lease = new_lease(), *other = new_lease();
    submit(rl, "r", lease);
    CHECK(wait_for(rl, lease, true) == REDLOCK_NO_EVENT);
    EXPECT(REDLOCK_OK, RedLock_Lock(rl, "other", TTL_MS, other), other);
    CHECK(wait_for(rl, lease, true) == REDLOCK_OK);
    EXPECT(REDLOCK_OK, RedLock_Unlock(rl, lease), lease);
    EXPECT(REDLOCK_OK, RedLock_Unlock(rl, other), other);
    RedLockLease_Free(lease);
    RedLockLease_Free(other);
    RedLock_Free(rl);
}

/* The only thread waits without a limit: it looks up the names itself. */
static void a_wait_without_a_limit_looks_up(char **ports) {
    RedLock *rl = manager_at(ports);
    CHECK(!RedLock_IsLookUpDue(rl));
    RedLockLease *lease = new_lease();
    submit(rl, "r", lease);
    RedLockEvent event = REDLOCK_EVENT_INIT;
    CHECK(RedLock_NextEvent(rl, -1, &event) == REDLOCK_OK && event.status == REDLOCK_OK);
    EXPECT(REDLOCK_OK, RedLock_Unlock(rl, lease), lease);
    RedLockLease_Free(lease);
    RedLock_Free(rl);
}

/* A manager can be freed while a thread waits for the resolver. Nothing is left of it after that. */
static void can_be_freed_meanwhile(char **ports) {
    for (int i = 0; i < SERVERS; i++) {
        atomic_store(&has_moved[i], i != 0);
    }
    /* The thread of the manager before may still end. */
    while (threads() > 1) {
        usleep(1000);
    }
    int before = descriptors();
    RedLock *rl = manager_at(ports);
    CHECK(RedLock_SetBackgroundThread(rl, true) == REDLOCK_OK);
    RedLockLease *lease = new_lease();
    RedLockAcquireOptions options = REDLOCK_ACQUIRE_OPTIONS_INIT;
    options.resource = "r";
    options.ttl_ms = TTL_MS;
    options.keep_alive = 1;
    options.wait_ms = 60000;
    EXPECT(REDLOCK_OK, RedLock_Acquire(rl, &options, lease), lease);
    atomic_store(&is_stuck, true);
    while (atomic_load(&waiting) == 0) {
        usleep(1000);
    }
    EXPECT(REDLOCK_OK, RedLock_Unlock(rl, lease), lease);
    RedLock_Free(rl);
    RedLockLease_Free(lease);
    /* The background thread ends soon after. */
    while (descriptors() > before) {
        usleep(1000);
    }
    CHECK(atomic_load(&waiting) == 1);
    atomic_store(&is_stuck, false);
    while (threads() > 1) {
        usleep(1000);
    }
    CHECK(atomic_load(&waiting) == 0);
}

int main(int argc, char **argv) {
    no_longer_than(60);
    CHECK(argc == 2 + SERVERS);
    bool has_thread = strcmp(argv[1], "thread") == 0;
    if (!has_thread) {
        leaves_the_resolver_to_a_thread(argv + 2, true);
        leaves_the_resolver_to_a_thread(argv + 2, false);
        a_blocking_call_looks_up(argv + 2);
        a_wait_without_a_limit_looks_up(argv + 2);
    }
    keeps(argv + 2, has_thread);
    if (has_thread) {
        can_be_freed_meanwhile(argv + 2);
    }
    return 0;
}

/* Makes every system call fail that the library makes in a conversation with three servers: the
 * first, the second and so on until there is none left, each in every plausible way.
 *
 * Usage: failing_calls once|alike|all THREADS FIRST STEP URL URL URL SOCKET SOCKET SOCKET
 * With 0 threads, calls are submitted, and a thread of the library does some of the work. Calls
 * number FIRST, FIRST + STEP and so on fail: alone, with all later ones of the same function, or
 * with all later ones of any function. The sockets are those of the same servers.
 *
 * Whatever fails, each call of the library ends with a status and its words, the words are true,
 * and nothing is printed. When the fault is over, the same manager locks again, no server keeps a
 * key, and no descriptor is left. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <sys/un.h>

#include "failing_shim.h"
#include "guest.h"

enum { SERVERS = 3, QUORUM = 2 };

static char **urls, **sockets;
static int thread_count;
static bool submits;

/* One thread's part of a conversation. */
struct talk {
    RedLock *rl;
    RedLockLease *lease, *continued;
    char resource[64];
    pthread_t thread;
};

/* How often a call of this function was the first to fail. */
static int times_struck[CALLS];

/* The servers, as seen by a client other than the library --------------------------------------- */

static int ask(int server, const char *command, char *reply, size_t size) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", sockets[server]);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0);
    CHECK(send(fd, command, strlen(command), 0) == (ssize_t)strlen(command));
    size_t length = 0;
    while (length < 2 || memcmp(reply + length - 2, "\r\n", 2) != 0 ||
           (reply[0] == '$' && reply[1] != '-' && memchr(reply, '\n', length - 2) == NULL)) {
        ssize_t got = recv(fd, reply + length, size - 1 - length, 0);
        CHECK(got > 0);
        length += (size_t)got;
    }
    reply[length] = 0;
    return close(fd);
}

/* How many servers have the key: with this value, or with any value if it is NULL. */
static int having(const char *key, const char *value) {
    int count = 0;
    for (int i = 0; i < SERVERS; i++) {
        char command[128], reply[256];
        snprintf(command, sizeof command, "GET %s\r\n", key);
        ask(i, command, reply, sizeof reply);
        count += reply[1] != '-' && (!value || strstr(reply, value));
    }
    return count;
}

/* A release that failed before is sent again when the manager is used. */
static void wait_until_gone(RedLock *rl, const char *key) {
    bool is_locked;
    for (int64_t since = now_ms(); having(key, NULL) > 0; usleep(2000)) {
        CHECK(now_ms() - since < 20000);
        if (now_ms() - since > 100) {
            CHECK(RedLock_IsLocked(rl, "another", &is_locked) == REDLOCK_OK);
        }
    }
}

/* The conversation -------------------------------------------------------------------------------- */

/* All bytes of the token are random bytes from the system. */
static bool is_random(const char *token) {
    unsigned char bytes[20];
    CHECK(strlen(token) == 2 * sizeof bytes);
    for (size_t i = 0; i < sizeof bytes; i++) {
        CHECK(sscanf(token + 2 * i, "%2hhx", &bytes[i]) == 1);
    }
    return was_given(bytes, sizeof bytes);
}

/* Any outcome is allowed that is not the caller's fault. */
static void is_honest(RedLockStatus status, const char *words) {
    CHECK(status >= REDLOCK_OK || status == REDLOCK_INTERNAL);
    CHECK(status == REDLOCK_OK || words[0]);
    if (status != REDLOCK_OK && is_harmless()) {
        fprintf(stderr, "%s: %s\n", RedLockStatus_Name(status), words);
        exit(1);
    }
}

static void hear(int32_t level, const char *line, void *unused) {
    (void)unused;
    CHECK(line[0]);
    if (level == 1 && is_harmless()) {
        fprintf(stderr, "%s\n", line);
        exit(1);
    }
}

/* One failure costs no lock, except failures without which there is no token, or no way to wake a
 * thread. It may cost an extension, because perhaps only two servers have the lock. */
static void is_taken_in_spite_of_one_failure(RedLockStatus status, const char *words) {
    int struck = atomic_load(&fault->struck);
    bool is_needed = struck == GETRANDOM || struck == SOCKETPAIR || struck == IOCTL ||
                     struck == PTHREAD_CREATE;
    if (fault->extent == THIS_ONE && status != (is_needed ? REDLOCK_INTERNAL : REDLOCK_OK) &&
        status != REDLOCK_OK) {
        fprintf(stderr, "%s: %s\n", RedLockStatus_Name(status), words);
        exit(1);
    }
}

/* After a call that takes or renews, the statements of a lease must be true. */
static bool holds(struct talk *talk, RedLockStatus status, RedLockLease *lease) {
    is_honest(status, RedLockLease_ErrorMessage(lease));
    if (status != REDLOCK_OK) {
        return false;
    }
    const char *token = RedLockLease_Token(lease);
    CHECK(RedLockLease_IsHeld(lease) && is_random(token));
    CHECK(having(talk->resource, token) >= QUORUM);
    return true;
}

static void take(struct talk *talk) {
    RedLockLease *lease = talk->lease;
    RedLockStatus status = RedLock_Lock(talk->rl, talk->resource, TTL_MS, lease);
    is_taken_in_spite_of_one_failure(status, RedLockLease_ErrorMessage(lease));
    if (holds(talk, status, lease)) {
        holds(talk, RedLock_Extend(talk->rl, lease, TTL_MS), lease);
    } else {
        CHECK(!RedLockLease_IsHeld(lease) && !RedLockLease_Token(lease)[0]);
    }
}

static void give(struct talk *talk, RedLockLease *lease) {
    bool was_held = RedLockLease_IsHeld(lease);
    RedLockStatus status = RedLock_Unlock(talk->rl, lease);
    is_honest(status, RedLockLease_ErrorMessage(lease));
    CHECK(!RedLockLease_IsHeld(lease));
    if (status == REDLOCK_OK) {
        CHECK(was_held && having(talk->resource, NULL) <= SERVERS - QUORUM);
    }
}

static void *converse(void *argument) {
    struct talk *talk = argument;
    bool is_locked;
    take(talk);
    RedLockStatus status = RedLock_Confirm(talk->rl, talk->lease, 1);
    is_honest(status, RedLockLease_ErrorMessage(talk->lease));
    if (status == REDLOCK_OK) {
        CHECK(having(talk->resource, RedLockLease_Token(talk->lease)) >= QUORUM);
    }
    status = RedLock_IsLocked(talk->rl, talk->resource, &is_locked);
    is_honest(status, thread_count > 1 ? "?" : RedLock_ErrorMessage(talk->rl));
    give(talk, talk->lease);
    RedLockLease *again = talk->continued;
    status = RedLock_ContinueLock(talk->rl, talk->resource, TTL_MS, again);
    is_taken_in_spite_of_one_failure(status, RedLockLease_ErrorMessage(again));
    if (holds(talk, status, again)) {
        holds(talk, RedLock_ContinueLock(talk->rl, talk->resource, TTL_MS, again), again);
    }
    give(talk, again);
    return NULL;
}

/* The status of a submitted call, from the event. The descriptor announces the event, if there is
 * one. */
static RedLockStatus outcome_of(struct talk *talk, RedLockLease *lease, RedLockStatus submitted) {
    is_honest(submitted, RedLockLease_ErrorMessage(lease));
    if (submitted != REDLOCK_OK) {
        return submitted;
    }
    int fd = RedLock_Descriptor(talk->rl);
    for (;;) {
        struct pollfd watched = {.fd = fd, .events = POLLIN};
        CHECK(fd < 0 || poll(&watched, 1, 60000) == 1);
        RedLockEvent event = REDLOCK_EVENT_INIT;
        RedLockStatus status = RedLock_NextEvent(talk->rl, fd < 0 ? -1 : 0, &event);
        if (status == REDLOCK_OK) {
            CHECK(event.kind == REDLOCK_EVENT_DONE && event.lease == lease);
            is_honest(event.status, RedLockLease_ErrorMessage(lease));
            return event.status;
        }
        if (status != REDLOCK_NO_EVENT) {
            is_honest(status, RedLock_ErrorMessage(talk->rl));
        }
    }
}

static void converse_by_events(struct talk *talk) {
    int fd = RedLock_Descriptor(talk->rl);
    CHECK(fd >= 0 || RedLock_ErrorMessage(talk->rl)[0]);
    RedLockAcquireOptions options = REDLOCK_ACQUIRE_OPTIONS_INIT;
    options.resource = talk->resource;
    options.ttl_ms = TTL_MS;
    options.tries = 2;
    options.keep_alive = 1;
    RedLockLease *lease = talk->lease;
    RedLockStatus status =
        outcome_of(talk, lease, RedLock_SubmitAcquire(talk->rl, &options, lease, NULL));
    is_taken_in_spite_of_one_failure(status, RedLockLease_ErrorMessage(lease));
    if (holds(talk, status, lease)) {
        outcome_of(talk, lease, RedLock_SubmitExtend(talk->rl, lease, TTL_MS, NULL));
        outcome_of(talk, lease, RedLock_SubmitConfirm(talk->rl, lease, 1, NULL));
    }
    outcome_of(talk, lease, RedLock_SubmitUnlock(talk->rl, lease, NULL));
    CHECK(!RedLockLease_IsHeld(lease));

    status = RedLock_SetBackgroundThread(talk->rl, true);
    is_honest(status, RedLock_ErrorMessage(talk->rl));
    talk->lease = talk->continued;
    take(talk);
    give(talk, talk->lease);
    talk->lease = lease;
    CHECK(RedLock_SetBackgroundThread(talk->rl, false) == REDLOCK_OK);
}

/* The fault is over: all is well again, and nothing is left of it. */
static void recover(struct talk *talk) {
    CHECK(RedLock_SetTimeouts(talk->rl, 20000, 20000) == REDLOCK_OK);
    /* A resolver that has failed is left alone for a moment. */
    for (int64_t since = now_ms(); RedLock_Connect(talk->rl, 0) || RedLock_ErrorMessage(talk->rl)[0];
         usleep(2000)) {
        CHECK(now_ms() - since < 20000);
    }
    wait_until_gone(talk->rl, talk->resource);
    take(talk);
    CHECK(RedLockLease_IsHeld(talk->lease));
    EXPECT(REDLOCK_OK, RedLock_Unlock(talk->rl, talk->lease), talk->lease);
    wait_until_gone(talk->rl, talk->resource);
}

/* Even that may fail, because the URL parser uses a hash map, which needs randomness. There is no
 * conversation without servers and without trusted authorities, so the fault is over then. */
static RedLock *new_manager(void) {
    RedLock *rl = RedLock_New();
    CHECK(rl && RedLock_SetRetry(rl, 2, 2) == REDLOCK_OK);
    int64_t timeout = fault->extent == THIS_ONE ? 20000 : 40;
    CHECK(RedLock_SetTimeouts(rl, timeout, timeout) == REDLOCK_OK);
    CHECK(RedLock_SetLogger(rl, hear, NULL, NULL) == REDLOCK_OK);
    const char *authority = getenv("REDLOCK_TEST_TLS_CA");
    if (authority && RedLock_SetTlsCa(rl, authority) != REDLOCK_OK) {
        CHECK(RedLock_ErrorMessage(rl)[0]);
        atomic_store(&fault->on, false);
        CHECK(RedLock_SetTlsCa(rl, authority) == REDLOCK_OK);
    }
    for (int i = 0; i < SERVERS; i++) {
        if (RedLock_AddServerUrl(rl, urls[i], 0) != REDLOCK_OK) {
            CHECK(RedLock_ErrorMessage(rl)[0]);
            atomic_store(&fault->on, false);
            CHECK(RedLock_AddServerUrl(rl, urls[i], 0) == REDLOCK_OK);
        }
    }
    return rl;
}

/* If the system seems to have no getrandom, its files are read instead, and kept open: one by the
 * standard library and one for tokens. */
static int random_files(void) {
    int count = 0;
    for (int fd = 0; fd < 300; fd++) {
        char name[32], path[32] = "";
        snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
        count += readlink(name, path, sizeof path - 1) > 0 && strcmp(path, "/dev/urandom") == 0;
    }
    CHECK(count <= 2);
    return count;
}

/* One process, one conversation, one fault. */
static void run(void) {
    no_longer_than(60);
    int before = descriptors();
    struct talk talks[8];
    atomic_store(&fault->on, true);
    RedLock *rl = new_manager();
    for (int i = 0; i < thread_count; i++) {
        talks[i] = (struct talk){.rl = rl, .lease = new_lease(), .continued = new_lease()};
        snprintf(talks[i].resource, sizeof talks[i].resource, "failing-%d-%d-%d-%d",
                 (int)fault->extent, fault->first, fault->outcome, i);
    }
    for (int i = 1; i < thread_count; i++) {
        CHECK(pthread_create(&talks[i].thread, NULL, converse, &talks[i]) == 0);
    }
    if (submits) {
        converse_by_events(&talks[0]);
    } else {
        converse(&talks[0]);
    }
    for (int i = 1; i < thread_count; i++) {
        CHECK(pthread_join(talks[i].thread, NULL) == 0);
    }
    /* Some runs skip the recovery, and then handles are freed while nothing works. */
    bool recovers = fault->extent != THIS_AND_ALL_LATER || fault->outcome % 2 == 0;
    if (atomic_load(&fault->struck) >= 0 && recovers) {
        atomic_store(&fault->on, false);
    }
    for (int i = 0; i < thread_count; i++) {
        if (!atomic_load(&fault->on)) {
            recover(&talks[i]);
        }
        RedLockLease_Free(talks[i].lease);
        RedLockLease_Free(talks[i].continued);
    }
    RedLock_Free(rl);
    atomic_store(&fault->on, false);
    /* A thread that has ended may be counted for a moment. */
    for (int64_t since = now_ms(); threads() > 1; usleep(1000)) {
        CHECK(now_ms() - since < 20000);
    }
    CHECK(descriptors() - random_files() == before);
}

/* All faults, one after the other ----------------------------------------------------------------- */

/* Returns whether there was such a call. */
static bool fails(enum extent extent, int first, int outcome) {
    *fault = (struct fault){.extent = extent, .first = first, .outcome = outcome, .struck = -1};
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        run();
        exit(0);
    }
    int how;
    CHECK(waitpid(pid, &how, 0) == pid);
    int struck = atomic_load(&fault->struck);
    if (how != 0) {
        fprintf(stderr, "status %x: call %d, %s, failed in its way %d\n", (unsigned)how, first,
                struck < 0 ? "which was not made" : calls[struck].name, outcome);
        exit(1);
    }
    if (struck >= 0) {
        times_struck[struck]++;
    }
    return struck >= 0;
}

/* Makes the call of this number fail in all its ways. Returns whether there was one. */
static bool fails_in_every_way(enum extent extent, int first) {
    int ways = 1;
    for (int i = 0; i < ways; i++) {
        if (!fails(extent, first, i)) {
            return false;
        }
        ways = extent == THIS_AND_ALL_LATER ? WAYS_MAX : ways_of(atomic_load(&fault->struck));
    }
    return true;
}

int main(int argc, char **argv) {
    CHECK(argc == 5 + 2 * SERVERS);
    enum extent extent = strcmp(argv[1], "once") == 0    ? THIS_ONE
                         : strcmp(argv[1], "alike") == 0 ? THIS_AND_ITS_LIKE
                                                         : THIS_AND_ALL_LATER;
    submits = strcmp(argv[2], "0") == 0;
    thread_count = submits ? 1 : atoi(argv[2]);
    urls = argv + 5;
    sockets = urls + SERVERS;
    set_up_shim();
    /* The number of calls differs a little from run to run. */
    for (int first = atoi(argv[3]), none = 0; none < 3 * thread_count; first += atoi(argv[4])) {
        none = fails_in_every_way(extent, first) ? 0 : none + 1;
    }
    for (int i = 0; i < CALLS; i++) {
        if (times_struck[i]) {
            tell(calls[i].name);
        }
    }
    return 0;
}

/*
 * Many threads do everything to the library that threads may do, for a while. The program is made
 * for ThreadSanitizer. By itself it checks three things. Every call ends with a sensible status.
 * One thread at a time holds the lock that all want. No part of the play is idle.
 *
 * Usage: storm SECONDS unix://PATH...
 */
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "redlock.h"

enum { TTL_MS = 20000, SHARED_LEASES = 2 };

static char **servers;
static int server_count;
static RedLock *ours, *rival;
static RedLockLease *shared_leases[SHARED_LEASES];
static atomic_bool is_over;
static atomic_long lines;

/* Changed by the threads of `ours` that hold the lock. Nothing else guards it. */
static long guarded;
/* How many threads hold the lock, through either manager. */
static atomic_int holders;

static void fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("storm: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

/* Whether the call has succeeded. Servers are frozen all the time, but a negative status is the
 * fault of a call. */
static bool done(RedLockStatus status, RedLockLease *lease)
{
    if (status < 0)
        fail("%s: %s", RedLockStatus_Name(status), RedLockLease_ErrorMessage(lease));
    return status == REDLOCK_OK;
}

static void on_line(int32_t level, const char *message, void *user_data)
{
    (void)level;
    (void)message;
    atomic_fetch_add((atomic_long *)user_data, 1);
}

static RedLock *new_manager(void)
{
    RedLock *rl = RedLock_New();
    for (int i = 0; i < server_count; i++)
        if (RedLock_AddServerUrl(rl, servers[i], 0) != REDLOCK_OK)
            fail("%s: %s", servers[i], RedLock_ErrorMessage(rl));
    RedLock_SetLogger(rl, on_line, &lines, NULL);
    return rl;
}

/* The parts. Each is played again and again by its threads, and tells whether it was of any use ---- */

static bool play_alone(int number, RedLockLease *lease)
{
    char resource[32];
    snprintf(resource, sizeof resource, "alone-%d", number);
    if (!done(RedLock_TryLock(ours, resource, TTL_MS, 0, lease), lease))
        return false;
    bool locked;
    done(RedLock_Extend(ours, lease, 2 * TTL_MS), lease);
    done(RedLock_Confirm(ours, lease, 1), lease);
    done(RedLock_IsLocked(ours, resource, &locked), lease);
    return done(RedLock_Unlock(ours, lease), lease);
}

static bool hold(RedLock *rl, RedLockLease *lease)
{
    if (atomic_fetch_add(&holders, 1) != 0)
        fail("two have the lock");
    if (rl == ours)
        guarded++;
    usleep(200);
    if (!RedLockLease_IsHeld(lease))
        fail("the lock was lost");
    atomic_fetch_sub(&holders, 1);
    return done(RedLock_Unlock(rl, lease), lease);
}

static bool play_in_line(int number, RedLockLease *lease)
{
    return done(RedLock_TryLock(ours, "all", TTL_MS, 200 + number, lease), lease)
        && hold(ours, lease);
}

static bool play_hasty(int number, RedLockLease *lease)
{
    return done(RedLock_TryLock(ours, "all", TTL_MS, number % 4, lease), lease)
        && hold(ours, lease);
}

static bool play_patient(int number, RedLockLease *lease)
{
    (void)number;
    return done(RedLock_Lock(ours, "all", TTL_MS, lease), lease) && hold(ours, lease);
}

static bool play_rival(int number, RedLockLease *lease)
{
    (void)number;
    return done(RedLock_TryLock(rival, "all", TTL_MS, 500, lease), lease) && hold(rival, lease);
}

/* Whatever one thread does to the lease, the other may have done before. */
static bool play_shared(int number, RedLockLease *lease)
{
    (void)lease;
    char resource[32];
    snprintf(resource, sizeof resource, "shared-%d", number % SHARED_LEASES);
    RedLockLease *shared = shared_leases[number % SHARED_LEASES];
    RedLockStatus locked = RedLock_TryLock(ours, resource, TTL_MS, 5, shared);
    bool may_be = locked == REDLOCK_INVALID_ARGUMENT || done(locked, shared);
    done(RedLock_Extend(ours, shared, TTL_MS), shared);
    done(RedLock_Unlock(ours, shared), shared);
    return may_be;
}

/* The strings of a lease are valid only until the next call on it, so only numbers can be read. */
static bool play_onlooker(int number, RedLockLease *lease)
{
    (void)lease;
    RedLockLease *shared = shared_leases[number % SHARED_LEASES];
    usleep(100);
    RedLock_ErrorMessage(ours);
    RedLockLease_IsHeld(shared);
    RedLockLease_ValidityMs(shared);
    return RedLockLease_RemainingMs(shared) > 0;
}

static bool play_continued(int number, RedLockLease *lease)
{
    char resource[32];
    snprintf(resource, sizeof resource, "continued-%d", number / 2);
    if (!done(RedLock_ContinueLock(ours, resource, TTL_MS, lease), lease))
        return false;
    done(RedLock_ContinueLock(ours, resource, TTL_MS, lease), lease);
    if (number % 2 == 0)
        done(RedLock_Unlock(ours, lease), lease);
    return true;
}

static bool play_settings(int number, RedLockLease *lease)
{
    static int times;
    (void)number;
    times++;
    RedLock_SetRetry(ours, 1 + times % 3, 1 + times % 20);
    RedLock_SetTimeouts(ours, 500, times % 2 ? 0 : 300);
    RedLock_SetLogger(ours, times % 2 ? on_line : NULL, &lines, NULL);
    usleep(500);
    return done(RedLock_TryLock(ours, "settings", TTL_MS, 0, lease), lease)
        && done(RedLock_Unlock(ours, lease), lease);
}

/* A manager that is freed with its own lock. */
static bool play_short_lived(int number, RedLockLease *lease)
{
    char resource[32];
    snprintf(resource, sizeof resource, "short-%d", number);
    RedLock *rl = new_manager();
    bool locked = done(RedLock_TryLock(rl, resource, 50, 100, lease), lease);
    RedLock_Free(rl);
    usleep(60000);
    return locked;
}

/* Breaks every connection to a server. The server keeps its data. */
static bool play_breaking(int number, RedLockLease *lease)
{
    static const char kill_all[] = "CLIENT KILL TYPE normal\r\n";
    static const char scheme[] = "unix://";
    static int times;
    (void)number;
    (void)lease;
    const char *server = servers[times++ % server_count];
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    if (strncmp(server, scheme, strlen(scheme)) != 0)
        fail("%s is no unix socket", server);
    strncpy(address.sun_path, server + strlen(scheme), sizeof address.sun_path - 1);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    char said[32];
    bool worked = connect(fd, (struct sockaddr *)&address, sizeof address) == 0
        && write(fd, kill_all, strlen(kill_all)) > 0 && read(fd, said, sizeof said) > 0;
    close(fd);
    usleep(100000);
    return worked;
}

struct part {
    const char *name;
    int threads;
    bool (*play)(int number, RedLockLease *lease);
    atomic_long plays, uses;
};

static struct part parts[] = {
    { "alone", 16, play_alone, 0, 0 },
    { "in line", 12, play_in_line, 0, 0 },
    { "hasty", 8, play_hasty, 0, 0 },
    { "patient", 4, play_patient, 0, 0 },
    { "rival", 2, play_rival, 0, 0 },
    { "shared", 6, play_shared, 0, 0 },
    { "onlooker", 1, play_onlooker, 0, 0 },
    { "continued", 4, play_continued, 0, 0 },
    { "settings", 1, play_settings, 0, 0 },
    { "short-lived", 2, play_short_lived, 0, 0 },
    { "breaking", 1, play_breaking, 0, 0 },
};

enum { PARTS = sizeof parts / sizeof *parts, THREADS_MAX = 64 };

struct player {
    pthread_t thread;
    struct part *part;
    int number;
};

static void *play(void *argument)
{
    struct player *player = argument;
    RedLockLease *lease = RedLockLease_New();
    while (!atomic_load(&is_over)) {
        atomic_fetch_add(&player->part->plays, 1);
        if (player->part->play(player->number, lease))
            atomic_fetch_add(&player->part->uses, 1);
    }
    RedLockLease_Free(lease);
    return NULL;
}

static int start(struct player *players)
{
    int count = 0;
    for (int i = 0; i < PARTS; i++)
        for (int number = 0; number < parts[i].threads; number++) {
            struct player *player = &players[count++];
            player->part = &parts[i];
            player->number = number;
            if (pthread_create(&player->thread, NULL, play, player) != 0)
                fail("no thread");
        }
    return count;
}

static void report(void)
{
    bool is_idle = false;
    for (int i = 0; i < PARTS; i++) {
        long uses = atomic_load(&parts[i].uses);
        printf("%-12s %2d threads: %7ld calls, %7ld of use\n", parts[i].name, parts[i].threads,
               atomic_load(&parts[i].plays), uses);
        is_idle = is_idle || uses == 0;
    }
    printf("changes of what the lock guards: %ld; lines logged: %ld\n", guarded, atomic_load(&lines));
    if (atomic_load(&lines) == 0)
        fail("nobody was told of the connections that broke");
    if (is_idle)
        fail("a part that was of no use");
}

int main(int argc, char **argv)
{
    struct player players[THREADS_MAX];
    if (argc < 3)
        fail("usage: storm SECONDS unix://PATH...");
    servers = argv + 2;
    server_count = argc - 2;
    ours = new_manager();
    rival = new_manager();
    for (int i = 0; i < SHARED_LEASES; i++)
        shared_leases[i] = RedLockLease_New();
    int count = start(players);
    unsigned seconds = (unsigned)atoi(argv[1]);
    sleep(seconds);
    atomic_store(&is_over, true);
    /* Ends the program if a call does not end. */
    alarm(120);
    for (int i = 0; i < count; i++)
        pthread_join(players[i].thread, NULL);
    report();
    for (int i = 0; i < SHARED_LEASES; i++)
        RedLockLease_Free(shared_leases[i]);
    RedLock_Free(rival);
    RedLock_Free(ours);
    return 0;
}

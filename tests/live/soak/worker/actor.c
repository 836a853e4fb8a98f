#define _GNU_SOURCE
#include "actor.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "../../../programs/c/check.h"

enum {
    CONNECT_MS = 300,
    TRIES = 3,
    DELAY_MS = 60,
    /* How long a call that has to connect waits for connections that are about to follow. */
    FOLLOW_MS = 20,
    /* How much longer an attempt may take that was begun in time. */
    LAST_TRY_MS = 25,
    REPLY_MS_MIN = 25,
    REPLY_MS_MAX = 500,
    /* The validity that a write needs. It is more than a thread waits for a processor between its
     * check of the time and the write after it. */
    MARGIN_MS = 50,
    NS_PER_MS = 1000000,
};

void actor_settings(RedLock *manager) {
    CHECK(RedLock_SetTimeouts(manager, CONNECT_MS, 0) == REDLOCK_OK);
    /* For runs in which servers forget, and two holders must be detected. */
    if (getenv("REDLOCK_UNGUARDED")) {
        CHECK(RedLock_SetRestartGuard(manager, REDLOCK_GUARD_OFF, 0, 0) == REDLOCK_OK);
    }
    CHECK(RedLock_SetRetry(manager, TRIES, DELAY_MS) == REDLOCK_OK);
}

/* SplitMix64. */
int roll(struct actor *actor, int sides) {
    uint64_t z = actor->dice += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return (int)((z ^ (z >> 31)) % (uint64_t)sides);
}

void pause_ms(int64_t ms) {
    struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * NS_PER_MS};
    while (nanosleep(&left, &left) != 0) {
        CHECK(errno == EINTR);
    }
}

/* How long one try may take: connecting, and the replies. */
static int64_t try_bound(int64_t ttl_ms) {
    int64_t reply_ms = ttl_ms / 20;
    reply_ms = reply_ms < REPLY_MS_MIN ? REPLY_MS_MIN : reply_ms;
    reply_ms = reply_ms > REPLY_MS_MAX ? REPLY_MS_MAX : reply_ms;
    return CONNECT_MS + FOLLOW_MS + reply_ms;
}

static int64_t tries_bound(int64_t ttl_ms) {
    return TRIES * try_bound(ttl_ms) + (TRIES - 1) * (DELAY_MS + DELAY_MS / 2);
}

static const char *name_of(RedLockStatus status) {
    return RedLockStatus_Name(status) + strlen("REDLOCK_");
}

static void say_call(struct actor *actor, const char *op, int64_t ttl_ms, int64_t bound_ms,
                     const char *token) {
    char ttl[32] = "", of[HASH_SIZE + 8] = "";
    if (ttl_ms > 0) {
        snprintf(ttl, sizeof ttl, " ttl=%lld", (long long)ttl_ms);
    }
    if (*token) {
        snprintf(of, sizeof of, " token=%s", token);
    }
    say(actor->journal, actor->thread, now(), "call op=%s resource=%s%s bound=%lld%s", op,
        actor->resource, ttl, (long long)bound_ms, of);
}

/* The time is read before the lease is asked, so the lock has been held until then at least. The
 * deadline is between the remaining time after the first moment and, rounded up, after the second. */
static void say_return(struct actor *actor, const char *op, RedLockStatus status) {
    int64_t time = now();
    int64_t left_ms = RedLockLease_RemainingMs(actor->lease);
    int64_t seen = now();
    bool held = RedLockLease_IsHeld(actor->lease);
    bool is_ours = status != REDLOCK_FORKED;
    char hash[HASH_SIZE] = "", lock[128] = "";
    if (is_ours) {
        hash_token(RedLockLease_Token(actor->lease), hash);
    }
    if (*hash) {
        snprintf(lock, sizeof lock, " token=%s until=%lld until_max=%lld", hash,
                 (long long)(time + left_ms * NS_PER_MS),
                 (long long)(seen + (left_ms + 1) * NS_PER_MS));
    }
    say(actor->journal, actor->thread, time, "return op=%s resource=%s status=%s held=%d%s", op,
        actor->resource, name_of(status), held, lock);
}

static void aim(struct actor *actor, int number, int64_t ttl_ms) {
    actor->number = number;
    actor->ttl_ms = ttl_ms;
    if (number < 0) {
        snprintf(actor->resource, RESOURCE_SIZE, "own-%s-%d", actor->journal->name, actor->thread);
    } else {
        snprintf(actor->resource, RESOURCE_SIZE, "shared-%d", number);
    }
}

static bool keep(struct actor *actor, const char *op, RedLockStatus status) {
    say_return(actor, op, status);
    hash_token(status == REDLOCK_OK ? RedLockLease_Token(actor->lease) : "", actor->token);
    return status == REDLOCK_OK;
}

bool lock(struct actor *actor, int number, int64_t ttl_ms) {
    aim(actor, number, ttl_ms);
    say_call(actor, "lock", ttl_ms, tries_bound(ttl_ms), "");
    return keep(actor, "lock",
                RedLock_Lock(actor->manager, actor->resource, ttl_ms, actor->lease));
}

bool try_lock(struct actor *actor, int number, int64_t ttl_ms, int64_t wait_ms) {
    aim(actor, number, ttl_ms);
    say_call(actor, "try_lock", ttl_ms, wait_ms + try_bound(ttl_ms) + LAST_TRY_MS, "");
    return keep(actor, "try_lock",
                RedLock_TryLock(actor->manager, actor->resource, ttl_ms, wait_ms, actor->lease));
}

bool continue_lock(struct actor *actor, int number, int64_t ttl_ms) {
    aim(actor, number, ttl_ms);
    char *continued = actor->continued[number];
    bool has_one = RedLockLease_IsHeld(actor->lease);
    say_call(actor, "continue_lock", ttl_ms, tries_bound(ttl_ms),
             has_one ? actor->token : continued);
    RedLockStatus status =
        RedLock_ContinueLock(actor->manager, actor->resource, ttl_ms, actor->lease);
    bool ok = keep(actor, "continue_lock", status);
    /* If servers are silent, the lock is still held, and may be continued later. */
    if (status != REDLOCK_UNREACHABLE) {
        strcpy(continued, actor->token);
    } else {
        hash_token(RedLockLease_Token(actor->lease), actor->token);
    }
    return ok;
}

RedLockStatus extend(struct actor *actor, int64_t ttl_ms) {
    say_call(actor, "extend", ttl_ms, try_bound(ttl_ms), actor->token);
    RedLockStatus status = RedLock_Extend(actor->manager, actor->lease, ttl_ms);
    say_return(actor, "extend", status);
    return status;
}

RedLockStatus confirm(struct actor *actor, int64_t least_ms) {
    say_call(actor, "confirm", 0, try_bound(actor->ttl_ms) + REPLY_MS_MAX, actor->token);
    RedLockStatus status = RedLock_Confirm(actor->manager, actor->lease, least_ms);
    say_return(actor, "confirm", status);
    return status;
}

RedLockStatus unlock(struct actor *actor) {
    say_call(actor, "unlock", 0, try_bound(actor->ttl_ms) + REPLY_MS_MAX, actor->token);
    RedLockStatus status = RedLock_Unlock(actor->manager, actor->lease);
    say_return(actor, "unlock", status);
    if (status != REDLOCK_FORKED && actor->number >= 0) {
        actor->continued[actor->number][0] = 0;
    }
    return status;
}

bool look(struct actor *actor) {
    int64_t time = now();
    bool held = RedLockLease_IsHeld(actor->lease);
    say(actor->journal, actor->thread, time, "look resource=%s token=%s held=%d", actor->resource,
        actor->token, held);
    return held;
}

void give_up(struct actor *actor) {
    if (RedLockLease_IsHeld(actor->lease)) {
        say(actor->journal, actor->thread, now(), "drop resource=%s token=%s", actor->resource,
            actor->token);
    }
    RedLockLease_Free(actor->lease);
    actor->lease = RedLockLease_New();
    CHECK(actor->lease);
    actor->token[0] = 0;
}

void count_up(struct actor *actor, int64_t ms) {
    _Atomic uint64_t *counter = &actor->board->counters[actor->number];
    const struct journal *journal = actor->journal;
    uint64_t value = atomic_load_explicit(counter, memory_order_relaxed) + 1;
    pause_ms(ms);
    /* Logged before the write, because a process that is killed in between may have written or not. */
    say(journal, actor->thread, now(), "writing resource=%s token=%s value=%llu", actor->resource,
        actor->token, (unsigned long long)value);
    atomic_fetch_add(actor->writing, 1);
    bool is_time = RedLockLease_RemainingMs(actor->lease) >= MARGIN_MS;
    if (is_time) {
        atomic_store_explicit(counter, value, memory_order_relaxed);
    }
    int64_t time = now();
    atomic_fetch_sub(actor->writing, 1);
    say(journal, actor->thread, time, "%s resource=%s token=%s value=%llu",
        is_time ? "wrote" : "abandon", actor->resource, actor->token, (unsigned long long)value);
}

/* A process that takes a lock and works under it. */
#define _DEFAULT_SOURCE
#include <inttypes.h>
#include <redlock.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fencing.h"

enum {
    RETRY_MS = 40,
    PATIENCE_MS = 60000, /* a longer wait would be in vain */
    SLOWEST_MS = 20000,  /* a server that answers later than this is down: the machine may be busy */
};

static RedLock *manager_for(const struct orders *orders) {
    RedLock *rl = RedLock_New();
    for (int i = 0; i < SERVERS; i++) {
        if (RedLock_AddServerUrl(rl, "127.0.0.1", orders->servers[i].port) != REDLOCK_OK) {
            complain("%s", RedLock_ErrorMessage(rl));
            RedLock_Free(rl);
            return NULL;
        }
    }
    RedLock_SetRetry(rl, 1, RETRY_MS);
    RedLock_SetTimeouts(rl, SLOWEST_MS, SLOWEST_MS);
    RedLock_SetRestartGuard(rl, orders->guard, 0, 0);
    RedLock_SetFencing(rl, orders->has_token);
    return rl;
}

static bool take(const struct orders *orders, RedLock *rl, RedLockLease *lease) {
    RedLockStatus status = RedLock_TryLock(rl, orders->resource, orders->ttl_ms, 0, lease);
    if (status == REDLOCK_TAKEN) {
        say(orders->name, "waits: somebody else holds the lock");
    }
    if (RedLockStatus_IsRetriable(status)) {
        status = RedLock_TryLock(rl, orders->resource, orders->ttl_ms, PATIENCE_MS, lease);
    }
    if (status != REDLOCK_OK) {
        complain("%s gets no lock, %s: %s", orders->name, RedLockStatus_Name(status),
                 RedLockLease_ErrorMessage(lease));
    }
    return status == REDLOCK_OK;
}

enum outcome { WRITTEN, REFUSED, TOO_LATE, BROKEN };

static enum outcome outcome_of(int changed_rows) {
    return changed_rows == FAILED ? BROKEN : changed_rows == 0 ? REFUSED : WRITTEN;
}

/*
 * The work under the lock. A program can be stopped at any moment: by the garbage collector of its language, by
 * a machine that swaps, by a virtual machine that is moved. The worst moment is after the last check of the
 * lease and before the write, so this worker stops itself there.
 */
static enum outcome work(const struct orders *orders, const RedLockLease *lease, bool freezes) {
    const struct store *store = orders->store;
    struct values values = {.id = orders->account, .token = RedLockLease_FencingToken(lease)};
    char with_token[64] = "";
    if (orders->has_token) {
        enum outcome claimed = outcome_of(store->run(CLAIM_SQL, &values));
        if (claimed != WRITTEN) {
            return claimed;
        }
        snprintf(with_token, sizeof with_token, " with fencing token %" PRId64, values.token);
    }
    if (!store->read(&values, &values.balance)) {
        return BROKEN;
    }
    if (!RedLockLease_IsHeld(lease)) {
        return TOO_LATE; /* this machine was too slow up to here */
    }
    say(orders->name, "holds the lock%s, and reads %" PRId64, with_token, values.balance);
    if (freezes) {
        raise(SIGSTOP);
    }
    values.balance += orders->amount;
    enum outcome written = outcome_of(store->run(orders->has_token ? FENCED_SQL : UNFENCED_SQL, &values));
    if (written == WRITTEN) {
        say(orders->name, "writes %" PRId64, values.balance);
    } else if (written == REFUSED) {
        say(orders->name, "wants to write %" PRId64 "%s: %s changes no row, for a greater token is there",
            values.balance, with_token, store->name);
    }
    return written;
}

/* Adds the amount to the balance. A write that the database refused is done again under a new lock. */
int deposit(const struct orders *orders, struct place *place) {
    RedLock *rl = manager_for(orders);
    RedLockLease *lease = RedLockLease_New();
    bool freezes = orders->freezes;
    enum outcome outcome = BROKEN;
    if (rl == NULL || lease == NULL) {
        return EXIT_FAILURE;
    }
    while (take(orders, rl, lease)) {
        outcome = work(orders, lease, freezes);
        RedLock_Unlock(rl, lease); /* REDLOCK_LOST if the lock had ended */
        if (outcome == WRITTEN || outcome == BROKEN) {
            break;
        }
        if (outcome == REFUSED) {
            say(orders->name, "begins again");
            atomic_store(&place->was_refused, true);
            freezes = false;
        }
        outcome = BROKEN;
    }
    RedLockLease_Free(lease);
    RedLock_Free(rl);
    return outcome == WRITTEN ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Tries once to take the lock, at once or when the story says so, and holds it until the story needs no more.
 */
int hold(const struct orders *orders, struct place *place) {
    RedLock *rl = manager_for(orders);
    RedLockLease *lease = RedLockLease_New();
    if (rl == NULL || lease == NULL) {
        return EXIT_FAILURE;
    }
    if (orders->waits) {
        /* An empty message means that all servers are connected, and not only a quorum. */
        while (RedLock_Connect(rl, 0) != REDLOCK_OK || *RedLock_ErrorMessage(rl) != '\0') {
            if (!sleep_ms(10)) {
                break;
            }
        }
        atomic_store(&place->is_connected, true);
        while (!atomic_load(&place->may_try) && sleep_ms(5)) {
            continue;
        }
    }
    RedLockStatus status = RedLock_TryLock(rl, orders->resource, orders->ttl_ms, 0, lease);
    if (status == REDLOCK_OK) {
        say(orders->name, "holds the lock, valid for %d s", (int)(RedLockLease_RemainingMs(lease) / 1000));
        atomic_store(&place->was_had, true);
    } else {
        RedLockLease_CopyErrorMessage(lease, place->words, sizeof place->words);
        say(orders->name, "does not get the lock: %s", place->words);
    }
    atomic_store(&place->is_tried, true);
    while (!atomic_load(&place->may_end) && sleep_ms(10)) {
        continue;
    }
    atomic_store(&place->was_kept, RedLockLease_IsHeld(lease));
    RedLockLease_Free(lease);
    RedLock_Free(rl);
    return EXIT_SUCCESS;
}

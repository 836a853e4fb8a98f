/* A callback forks, and returns in both processes. The call that it was called in ends as usual in
 * the parent. In the child it ends with REDLOCK_FORKED, and the child goes on with its own
 * connections. The first argument is "logger" or "password", the second the password of the user
 * `locker`. */
#include "guest.h"

static const char *secret;
static int count;
static char **urls;
static RedLock *manager;
static RedLockLease *kept, *lease;
static bool forks, is_child;
static pid_t asked_in;

/* The parent waits here until the child has ended. */
static void fork_once(void) {
    if (forks) {
        forks = false;
        pid_t pid = fork();
        CHECK(pid >= 0);
        is_child = pid == 0;
        if (!is_child) {
            reap(pid);
        }
    }
}

static void on_line(int32_t level, const char *line, void *data) {
    CHECK(level > 0 && line[0] && data == &forks);
    fork_once();
}

/* The lease of the current call. */
static RedLockLease *in_use;

static bool answer(const char *server, char *password, size_t size, void *data) {
    CHECK(server[0] && size > strlen(secret) && data == &forks);
    if (in_use) {
        CHECK(RedLockLease_Resource(in_use) != NULL);
        CHECK(RedLock_Confirm(manager, in_use, 0) == REDLOCK_INVALID_ARGUMENT);
    }
    fork_once();
    if (in_use && is_child) {
        CHECK(RedLock_Confirm(manager, in_use, 0) == REDLOCK_FORKED);
    }
    asked_in = getpid();
    memcpy(password, secret, strlen(secret) + 1);
    return true;
}

/* All calls, by their number. The words are those of the call, too. */
enum { LOCK, TRY, CONTINUE, EXTEND, CONFIRM, IS_LOCKED, CONNECT, UNLOCK, CALLS };

static RedLockStatus call(int which, const char **words) {
    bool locked = true;
    RedLockStatus status = REDLOCK_OK;
    bool has_lease = which != IS_LOCKED && which != CONNECT;
    RedLockLease *used = which == LOCK || which == TRY || which == UNLOCK ? lease : kept;
    in_use = has_lease ? used : NULL;
    switch (which) {
    case LOCK: status = RedLock_Lock(manager, "r", TTL_MS, lease); break;
    case TRY: status = RedLock_TryLock(manager, "r", TTL_MS, 20000, lease); break;
    case CONTINUE: status = RedLock_ContinueLock(manager, "kept", TTL_MS, kept); break;
    case EXTEND: status = RedLock_Extend(manager, kept, TTL_MS); break;
    case CONFIRM: status = RedLock_Confirm(manager, kept, 1); break;
    case IS_LOCKED: status = RedLock_IsLocked(manager, "kept", &locked); break;
    case CONNECT: status = RedLock_Connect(manager, 0); break;
    case UNLOCK: status = RedLock_Unlock(manager, lease); break;
    }
    in_use = NULL;
    *words = has_lease ? RedLockLease_ErrorMessage(used) : RedLock_ErrorMessage(manager);
    CHECK(status == REDLOCK_OK || !locked || which != IS_LOCKED);
    return status;
}

static void child_goes_on(RedLockStatus status, const char *words) {
    no_longer_than(60);
    CHECK(status == REDLOCK_FORKED);
    CHECK(strstr(words, "parent"));
    RedLockLease *const leases[] = {kept, lease};
    for (int i = 0; i < 2; i++) {
        CHECK(!RedLockLease_IsHeld(leases[i]));
        status = RedLock_Extend(manager, leases[i], TTL_MS);
        /* A call that takes a lock has emptied its lease before. */
        CHECK(status == REDLOCK_FORKED || status == REDLOCK_LOST);
    }
    connect_to_all(manager);
    RedLockLease *own = new_lease();
    EXPECT(REDLOCK_OK, RedLock_TryLock(manager, "childs", TTL_MS, 20000, own), own);
    EXPECT(REDLOCK_OK, RedLock_Confirm(manager, own, 1), own);
    CHECK(!asked_in || asked_in == getpid());
    tell_and_await("the child has a lock");
    EXPECT(REDLOCK_OK, RedLock_Unlock(manager, own), own);
    RedLockLease_Free(own);
    RedLockLease_Free(kept);
    RedLockLease_Free(lease);
    free_when_all_have_heard(manager);
    _exit(0);
}

/* A manager that does not know the password yet. */
static RedLock *new_manager(void) {
    RedLock *made = manager_of(count, urls);
    CHECK(RedLock_SetPasswordCallback(made, "locker", answer, &forks, NULL) == REDLOCK_OK);
    return made;
}

/* Makes the call until the callback was called in it. */
static void fork_in(int which, bool asks) {
    bool was_called = false;
    while (!was_called) {
        const char *words;
        if (which == UNLOCK) {
            EXPECT(REDLOCK_OK, RedLock_TryLock(manager, "r", TTL_MS, 20000, lease), lease);
        }
        /* A manager that was not asked for the password yet, or has not logged a lost connection in the last second. */
        free_when_all_have_heard(manager);
        manager = new_manager();
        if (!asks) {
            connect_to_all(manager);
            CHECK(RedLock_SetLogger(manager, on_line, &forks, NULL) == REDLOCK_OK);
            tell_and_await("break the connections");
        }
        forks = true;
        RedLockStatus status = call(which, &words);
        was_called = !forks;
        forks = false;
        if (is_child) {
            child_goes_on(status, words);
        }
        /* If connections break during the call, it need not succeed. */
        if (status != REDLOCK_OK && (asks || status != REDLOCK_UNREACHABLE)) {
            fprintf(stderr, "call %d gave %s: %s\n", which, RedLockStatus_Name(status), words);
            exit(1);
        }
        if (which == LOCK || which == TRY || which == UNLOCK) {
            while (RedLock_Unlock(manager, lease) == REDLOCK_UNREACHABLE) {
            }
        }
    }
    RedLockStatus status = REDLOCK_UNREACHABLE;
    while (status == REDLOCK_UNREACHABLE) {
        status = RedLock_Confirm(manager, kept, 1);
    }
    EXPECT(REDLOCK_OK, status, kept);
}

int main(int argc, char **argv) {
    no_longer_than(60);
    CHECK(argc > 3);
    secret = argv[2];
    count = argc - 3;
    urls = argv + 3;
    bool asks = strcmp(argv[1], "password") == 0;
    manager = new_manager();
    connect_to_all(manager);
    kept = new_lease();
    lease = new_lease();
    EXPECT(REDLOCK_OK, RedLock_ContinueLock(manager, "kept", TTL_MS, kept), kept);
    for (int which = 0; which < CALLS; which++) {
        fork_in(which, asks);
    }
    EXPECT(REDLOCK_OK, RedLock_Unlock(manager, kept), kept);
    RedLockLease_Free(kept);
    RedLockLease_Free(lease);
    free_when_all_have_heard(manager);
    return 0;
}

/* A child with the pid of its parent, and a grandchild with the same pid, do not mistake their
 * parents' locks for their own. The first argument tells why the pid is the same: "shim", or
 * "namespaces" of PIDs, in each of which the first process is 1. */
#define _GNU_SOURCE
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "guest.h"

static bool in_namespaces;
static RedLock *rl;
static RedLockLease *parents;

/* Forks; -1 if that is not permitted. */
static pid_t forked(void) {
    pid_t before = getpid();
    pid_t child = in_namespaces ? (pid_t)syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0)
                                : fork();
    if (child == 0) {
        /* By default no signal ends the first process of a namespace, but this one does. */
        CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
        CHECK(getpid() == (in_namespaces ? 1 : before));
    }
    return child;
}

static void belongs_to_the_parent(RedLockLease *lease) {
    CHECK(!RedLockLease_IsHeld(lease));
    CHECK(RedLockLease_RemainingMs(lease) == 0);
    EXPECT(REDLOCK_FORKED, RedLock_Confirm(rl, lease, 0), lease);
    EXPECT(REDLOCK_FORKED, RedLock_Extend(rl, lease, TTL_MS), lease);
    EXPECT(REDLOCK_FORKED, RedLock_ContinueLock(rl, "parents", TTL_MS, lease), lease);
    EXPECT(REDLOCK_FORKED, RedLock_Unlock(rl, lease), lease);
}

static RedLockLease *locks_on_its_own(const char *resource) {
    RedLockLease *lease = new_lease();
    EXPECT(REDLOCK_TAKEN, RedLock_TryLock(rl, "parents", TTL_MS, 0, lease), lease);
    EXPECT(REDLOCK_OK, RedLock_TryLock(rl, resource, TTL_MS, 20000, lease), lease);
    EXPECT(REDLOCK_OK, RedLock_Confirm(rl, lease, 1), lease);
    return lease;
}

static void releases(RedLockLease *lease) {
    EXPECT(REDLOCK_OK, RedLock_Unlock(rl, lease), lease);
    RedLockLease_Free(lease);
}

static void grandchild(RedLockLease *childs) {
    belongs_to_the_parent(parents);
    if (childs) {
        belongs_to_the_parent(childs);
        RedLockLease_Free(childs);
    }
    connect_to_all(rl);
    releases(locks_on_its_own("grandchilds"));
    RedLockLease_Free(parents);
    RedLock_Free(rl);
    _exit(0);
}

/* It checks its lease after its own child has done so, or before. */
static void child(bool looks_first) {
    RedLockLease *own = looks_first ? locks_on_its_own("childs") : NULL;
    pid_t pid = forked();
    CHECK(pid >= 0);
    if (pid == 0) {
        grandchild(own);
    }
    reap(pid);
    belongs_to_the_parent(parents);
    connect_to_all(rl);
    if (!looks_first) {
        own = locks_on_its_own("childs");
    }
    EXPECT(REDLOCK_OK, RedLock_Extend(rl, own, TTL_MS), own);
    tell_and_await("the child has a lock");
    releases(own);
    RedLockLease_Free(parents);
    RedLock_Free(rl);
    _exit(0);
}

static void parent(int count, char **urls) {
    rl = manager_of(count, urls);
    connect_to_all(rl);
    CHECK(RedLock_SetRetry(rl, 1, 0) == REDLOCK_OK);
    parents = new_lease();
    EXPECT(REDLOCK_OK, RedLock_ContinueLock(rl, "parents", TTL_MS, parents), parents);
    tell_and_await("the parent has a lock");
    for (int looks_first = 0; looks_first < 2; looks_first++) {
        pid_t pid = forked();
        CHECK(pid >= 0);
        if (pid == 0) {
            child(looks_first);
        }
        reap(pid);
        EXPECT(REDLOCK_OK, RedLock_Confirm(rl, parents, 1), parents);
        EXPECT(REDLOCK_OK, RedLock_Extend(rl, parents, TTL_MS), parents);
    }
    releases(parents);
    RedLock_Free(rl);
}

int main(int argc, char **argv) {
    no_longer_than(60);
    CHECK(argc > 2);
    in_namespaces = strcmp(argv[1], "namespaces") == 0;
    if (!in_namespaces) {
        parent(argc - 2, argv + 2);
        return 0;
    }
    if (geteuid() != 0) {
        /* A user who is nobody here may be somebody there. */
        (void)!unshare(CLONE_NEWUSER);
    }
    pid_t pid = forked();
    if (pid < 0) {
        CHECK(errno == EPERM || errno == ENOSYS || errno == ENOSPC || errno == EINVAL);
        tell("not permitted");
        return 0;
    }
    if (pid == 0) {
        parent(argc - 2, argv + 2);
        _exit(0);
    }
    reap(pid);
    return 0;
}

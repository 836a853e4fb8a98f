/* A lease belongs to the process that took it. Its children may go on with the manager. Their use
 * of the lease, or of the manager's memory, has no effect on the parent or the servers. */
#include "guest.h"

/* Every call with a lease of the parent is refused, before and after this process has its own
 * connections. */
static void belongs_to_the_parent(RedLock *rl, RedLockLease *lease) {
    EXPECT(REDLOCK_FORKED, RedLock_Lock(rl, "another", TTL_MS, lease), lease);
    EXPECT(REDLOCK_FORKED, RedLock_TryLock(rl, "parents", TTL_MS, -1, lease), lease);
    EXPECT(REDLOCK_FORKED, RedLock_ContinueLock(rl, "parents", TTL_MS, lease), lease);
    EXPECT(REDLOCK_FORKED, RedLock_ContinueLock(rl, "another", TTL_MS, lease), lease);
    EXPECT(REDLOCK_FORKED, RedLock_Extend(rl, lease, TTL_MS), lease);
    EXPECT(REDLOCK_FORKED, RedLock_Unlock(rl, lease), lease);
    EXPECT(REDLOCK_FORKED, RedLock_Confirm(rl, lease, 0), lease);
    CHECK(strstr(RedLockLease_ErrorMessage(lease), "parent"));
    CHECK(!RedLockLease_IsHeld(lease));
    CHECK(RedLockLease_RemainingMs(lease) == 0);
}

/* Takes, keeps and releases its own lock. */
static void locks_on_its_own(RedLock *rl, const char *resource) {
    RedLockLease *lease = new_lease();
    EXPECT(REDLOCK_OK, RedLock_Lock(rl, resource, TTL_MS, lease), lease);
    CHECK(RedLockLease_IsHeld(lease));
    EXPECT(REDLOCK_OK, RedLock_Extend(rl, lease, TTL_MS), lease);
    EXPECT(REDLOCK_OK, RedLock_Confirm(rl, lease, 1), lease);
    EXPECT(REDLOCK_OK, RedLock_Unlock(rl, lease), lease);
    RedLockLease_Free(lease);
}

static void grandchild(RedLock *rl, RedLockLease *parents, RedLockLease *childs) {
    no_longer_than(20);
    belongs_to_the_parent(rl, parents);
    belongs_to_the_parent(rl, childs);
    connect_to_all(rl);
    locks_on_its_own(rl, "grandchilds");
    belongs_to_the_parent(rl, childs);
    RedLockLease_Free(childs);
    RedLockLease_Free(parents);
    RedLock_Free(rl);
    _exit(0);
}

static void child(RedLock *rl, RedLockLease *parents) {
    no_longer_than(20);
    int inherited = descriptors();
    belongs_to_the_parent(rl, parents);
    connect_to_all(rl);
    locks_on_its_own(rl, "childs");
    belongs_to_the_parent(rl, parents);
    CHECK(descriptors() == inherited);

    /* The child cannot continue a lock that the parent continued. */
    RedLockLease *lease = new_lease();
    CHECK(RedLock_SetRetry(rl, 1, 0) == REDLOCK_OK);
    EXPECT(REDLOCK_TAKEN, RedLock_ContinueLock(rl, "continued", TTL_MS, lease), lease);
    EXPECT(REDLOCK_TAKEN, RedLock_Lock(rl, "parents", TTL_MS, lease), lease);
    EXPECT(REDLOCK_OK, RedLock_ContinueLock(rl, "childs", TTL_MS, lease), lease);
    tell_and_await("the child has a lock");
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        grandchild(rl, parents, lease);
    }
    reap(pid);
    EXPECT(REDLOCK_OK, RedLock_Confirm(rl, lease, 1), lease);
    EXPECT(REDLOCK_OK, RedLock_Unlock(rl, lease), lease);
    RedLockLease_Free(lease);
    RedLockLease_Free(parents);
    RedLock_Free(rl);
    _exit(0);
}

static void child_that_only_frees(RedLock *rl, RedLockLease *parents, int before) {
    no_longer_than(20);
    RedLockLease_Free(parents);
    RedLock_Free(rl);
    CHECK(descriptors() == before);
    _exit(0);
}

static pid_t forked(void) {
    pid_t pid = fork();
    CHECK(pid >= 0);
    return pid;
}

/* The check of another program that a child of ours has become. */
static int count_descriptors(const char *expected) {
    CHECK(descriptors() == atoi(expected));
    return 0;
}

static void child_that_runs_another_program(char *program, int before) {
    char number[16];
    snprintf(number, sizeof number, "%d", before);
    execl(program, program, "descriptors", number, (char *)NULL);
    _exit(9);
}

/* A child that ends without freeing them can still reach them, and so has leaked nothing. */
static RedLock *rl;
static RedLockLease *parents, *continued;

int main(int argc, char **argv) {
    no_longer_than(60);
    if (strcmp(argv[1], "descriptors") == 0) {
        return count_descriptors(argv[2]);
    }
    int before = descriptors();
    rl = manager_of(argc - 1, argv + 1);
    connect_to_all(rl);
    parents = new_lease();
    continued = new_lease();
    EXPECT(REDLOCK_OK, RedLock_Lock(rl, "parents", TTL_MS, parents), parents);
    EXPECT(REDLOCK_OK, RedLock_ContinueLock(rl, "continued", TTL_MS, continued), continued);
    tell_and_await("the parent has a lock");

    pid_t pid = forked();
    if (pid == 0) {
        child(rl, parents);
    }
    reap(pid);
    tell_and_await("the child has locked");

    pid = forked();
    if (pid == 0) {
        child_that_only_frees(rl, parents, before);
    }
    reap(pid);
    pid = forked();
    if (pid == 0) {
        /* Leaves everything as it is, and ends in the ordinary way. */
        return 0;
    }
    reap(pid);
    pid = forked();
    if (pid == 0) {
        child_that_runs_another_program(argv[0], before);
    }
    reap(pid);
    tell_and_await("the children have ended");

    CHECK(RedLockLease_IsHeld(parents));
    EXPECT(REDLOCK_OK, RedLock_Confirm(rl, parents, 1), parents);
    EXPECT(REDLOCK_OK, RedLock_Extend(rl, parents, TTL_MS), parents);
    RedLockLease *fresh = new_lease();
    EXPECT(REDLOCK_OK, RedLock_ContinueLock(rl, "continued", TTL_MS, fresh), fresh);
    CHECK(strcmp(RedLockLease_Token(fresh), RedLockLease_Token(continued)) == 0);
    EXPECT(REDLOCK_OK, RedLock_Unlock(rl, fresh), fresh);
    EXPECT(REDLOCK_OK, RedLock_Unlock(rl, parents), parents);
    tell_and_await("the parent has released");

    RedLockLease_Free(fresh);
    RedLockLease_Free(continued);
    RedLockLease_Free(parents);
    RedLock_Free(rl);
    CHECK(descriptors() == before);
    return 0;
}

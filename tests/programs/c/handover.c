/* A lock goes from a process to its child, and from there to another program, by a ticket. */
#include "guest.h"

static const char name[] = "handed";

static void is_nobodys(RedLock *rl, RedLockLease *lease, RedLockStatus status) {
    EXPECT(status, RedLock_Extend(rl, lease, TTL_MS), lease);
    EXPECT(status, RedLock_Confirm(rl, lease, 0), lease);
    EXPECT(status, RedLock_Unlock(rl, lease), lease);
    CHECK(!RedLockLease_IsHeld(lease) && RedLockLease_RemainingMs(lease) == 0);
}

/* The child of the giver, with the manager that it has inherited. */
static void child(RedLock *rl, RedLockLease *givers, const char *ticket) {
    no_longer_than(20);
    is_nobodys(rl, givers, REDLOCK_FORKED);
    RedLockLease *lease = new_lease();
    EXPECT(REDLOCK_FORKED, RedLock_Adopt(rl, ticket, givers), givers);
    EXPECT(REDLOCK_OK, RedLock_Adopt(rl, ticket, lease), lease);
    CHECK(RedLockLease_IsHeld(lease) && strcmp(RedLockLease_Resource(lease), name) == 0);
    EXPECT(REDLOCK_OK, RedLock_Confirm(rl, lease, 1), lease);
    EXPECT(REDLOCK_OK, RedLock_Extend(rl, lease, 2 * TTL_MS), lease);
    CHECK(RedLockLease_RemainingMs(lease) > TTL_MS);
    tell_and_await("the child has the lock");
    char next[REDLOCK_TICKET_SIZE(sizeof name - 1)];
    EXPECT(REDLOCK_OK, RedLock_Detach(rl, lease, next, sizeof next), lease);
    is_nobodys(rl, lease, REDLOCK_LOST);
    RedLockLease_Free(lease);
    RedLockLease_Free(givers);
    RedLock_Free(rl);
    CHECK(setenv("TICKET", next, 1) == 0);
}

/* Another program, which finds the ticket in its environment. */
static int heir(int count, char **urls) {
    no_longer_than(20);
    RedLock *rl = manager_of(count, urls);
    RedLockLease *lease = new_lease();
    EXPECT(REDLOCK_OK, RedLock_Adopt(rl, getenv("TICKET"), lease), lease);
    CHECK(RedLockLease_RemainingMs(lease) > TTL_MS);
    tell_and_await("the heir has the lock");
    EXPECT(REDLOCK_OK, RedLock_Unlock(rl, lease), lease);
    EXPECT(REDLOCK_LOST, RedLock_Adopt(rl, getenv("TICKET"), lease), lease);
    RedLockLease_Free(lease);
    free_when_all_have_heard(rl);
    return 0;
}

int main(int argc, char **argv) {
    no_longer_than(60);
    if (getenv("TICKET")) {
        return heir(argc - 1, argv + 1);
    }
    RedLock *rl = manager_of(argc - 1, argv + 1);
    connect_to_all(rl);
    RedLockLease *lease = new_lease(), *other = new_lease();
    char ticket[REDLOCK_TICKET_SIZE(sizeof name - 1)];
    EXPECT(REDLOCK_OK, RedLock_ContinueLock(rl, name, TTL_MS, lease), lease);
    EXPECT(REDLOCK_OK, RedLock_ContinueLock(rl, name, TTL_MS, other), other);
    tell_and_await("the parent has the lock");
    EXPECT(REDLOCK_INVALID_ARGUMENT, RedLock_Detach(rl, lease, ticket, 20), lease);
    CHECK(RedLockLease_IsHeld(lease));
    EXPECT(REDLOCK_OK, RedLock_Detach(rl, lease, ticket, sizeof ticket), lease);
    /* No handle holds it any more, and it cannot be continued. */
    is_nobodys(rl, other, REDLOCK_LOST);
    CHECK(RedLock_SetRetry(rl, 1, 0) == REDLOCK_OK);
    EXPECT(REDLOCK_TAKEN, RedLock_ContinueLock(rl, name, TTL_MS, other), other);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        child(rl, lease, ticket);
        execv("/proc/self/exe", argv);
        _exit(9);
    }
    /* None of this harms the child. */
    is_nobodys(rl, lease, REDLOCK_LOST);
    RedLockLease_Free(lease);
    RedLockLease_Free(other);
    RedLock_Free(rl);
    reap(pid);
    return 0;
}

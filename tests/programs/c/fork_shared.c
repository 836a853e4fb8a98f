/* A shared lock belongs to the process that took it, as any lock does, also if it was downgraded
 * from an exclusive lock. Its children get an error, and may hold their own shared lock beside it. */
#include "guest.h"

/* The parent holds each resource, shared: the first was taken as shared, the second was downgraded. */
enum { COUNT = 2 };
static const char *const RESOURCES[COUNT] = {"taken", "made"};

/* A child that ends without freeing them can still reach them, and so has leaked nothing. */
static RedLock *rl;
static RedLockLease *parents[COUNT];

static RedLockStatus read_it(const char *resource, RedLockLease *lease) {
    RedLockAcquireOptions options = REDLOCK_ACQUIRE_OPTIONS_INIT;
    options.resource = resource;
    options.ttl_ms = TTL_MS;
    options.mode = REDLOCK_SHARED;
    options.tries = 1;
    return RedLock_Acquire(rl, &options, lease);
}

/* Every call with these leases is refused, and they hold nothing here. */
static void belong_to_the_parent(RedLockLease *const *leases) {
    for (int i = 0; i < COUNT; i++) {
        RedLockLease *lease = leases[i];
        char ticket[512];
        EXPECT(REDLOCK_FORKED, read_it(RESOURCES[i], lease), lease);
        EXPECT(REDLOCK_FORKED, read_it("another", lease), lease);
        EXPECT(REDLOCK_FORKED, RedLock_Extend(rl, lease, TTL_MS), lease);
        EXPECT(REDLOCK_FORKED, RedLock_Confirm(rl, lease, 0), lease);
        EXPECT(REDLOCK_FORKED, RedLock_Downgrade(rl, lease), lease);
        EXPECT(REDLOCK_FORKED, RedLock_SubmitDowngrade(rl, lease, NULL), lease);
        EXPECT(REDLOCK_FORKED, RedLock_KeepAlive(rl, lease, NULL), lease);
        EXPECT(REDLOCK_FORKED, RedLock_Detach(rl, lease, ticket, sizeof ticket), lease);
        EXPECT(REDLOCK_FORKED, RedLock_Unlock(rl, lease), lease);
        CHECK(strstr(RedLockLease_ErrorMessage(lease), "parent"));
        CHECK(!RedLockLease_IsHeld(lease) && RedLockLease_RemainingMs(lease) == 0);
    }
}

static void free_all(RedLockLease **leases) {
    for (int i = 0; i < COUNT; i++) {
        RedLockLease_Free(leases[i]);
    }
}

static pid_t forked(void) {
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        no_longer_than(20);
    }
    return pid;
}

/* Reads beside its parent, and has a child that does the same. */
static void child(void) {
    RedLockLease *own[COUNT], *alone = new_lease();
    belong_to_the_parent(parents);
    connect_to_all(rl);
    belong_to_the_parent(parents);
    for (int i = 0; i < COUNT; i++) {
        EXPECT(REDLOCK_TAKEN, RedLock_TryLock(rl, RESOURCES[i], TTL_MS, 0, alone), alone);
        own[i] = new_lease();
        EXPECT(REDLOCK_OK, read_it(RESOURCES[i], own[i]), own[i]);
        CHECK(strcmp(RedLockLease_Token(own[i]), RedLockLease_Token(parents[i])) != 0);
    }
    tell_and_await("the child reads");
    pid_t pid = forked();
    if (pid == 0) {
        belong_to_the_parent(parents);
        belong_to_the_parent(own);
        free_all(own);
        free_all(parents);
        RedLock_Free(rl);
        _exit(0);
    }
    reap(pid);
    tell_and_await("the grandchild has ended");
    for (int i = 0; i < COUNT; i++) {
        CHECK(RedLockLease_IsHeld(own[i]) && RedLockLease_Mode(own[i]) == REDLOCK_SHARED);
        EXPECT(REDLOCK_OK, RedLock_Confirm(rl, own[i], 1), own[i]);
        EXPECT(REDLOCK_OK, RedLock_Unlock(rl, own[i]), own[i]);
        /* Its parent still reads. */
        EXPECT(REDLOCK_TAKEN, RedLock_TryLock(rl, RESOURCES[i], TTL_MS, 0, alone), alone);
    }
    /* It downgrades its own lock to a shared one. */
    EXPECT(REDLOCK_OK, RedLock_Lock(rl, "childs", TTL_MS, alone), alone);
    EXPECT(REDLOCK_OK, RedLock_Downgrade(rl, alone), alone);
    EXPECT(REDLOCK_OK, RedLock_Unlock(rl, alone), alone);
    RedLockLease_Free(alone);
    free_all(own);
    free_all(parents);
    free_when_all_have_heard(rl);
    _exit(0);
}

/* The parent was about to downgrade an exclusive lock. */
static void fork_in_a_downgrade(void) {
    RedLockLease *lease = new_lease();
    RedLockEvent event = REDLOCK_EVENT_INIT;
    EXPECT(REDLOCK_OK, RedLock_Lock(rl, "becoming", TTL_MS, lease), lease);
    tell_and_await("it is about to be made shared");
    EXPECT(REDLOCK_OK, RedLock_SubmitDowngrade(rl, lease, NULL), lease);
    pid_t pid = forked();
    if (pid == 0) {
        CHECK(RedLock_NextEvent(rl, 0, &event) == REDLOCK_NO_EVENT);
        EXPECT(REDLOCK_FORKED, RedLock_Downgrade(rl, lease), lease);
        EXPECT(REDLOCK_FORKED, RedLock_Unlock(rl, lease), lease);
        CHECK(!RedLockLease_IsHeld(lease));
        RedLockLease_Free(lease);
        free_all(parents);
        RedLock_Free(rl);
        _exit(0);
    }
    reap(pid);
    CHECK(RedLock_NextEvent(rl, 60000, &event) == REDLOCK_OK);
    CHECK(event.lease == lease && event.kind == REDLOCK_EVENT_DONE);
    EXPECT(REDLOCK_OK, event.status, lease);
    CHECK(RedLockLease_IsHeld(lease) && RedLockLease_Mode(lease) == REDLOCK_SHARED);
    tell_and_await("it was made shared");
    EXPECT(REDLOCK_OK, RedLock_Unlock(rl, lease), lease);
    RedLockLease_Free(lease);
}

int main(int argc, char **argv) {
    no_longer_than(60);
    int before = descriptors();
    rl = manager_of(argc - 1, argv + 1);
    CHECK(RedLock_SetRetry(rl, 1, 0) == REDLOCK_OK);
    connect_to_all(rl);
    for (int i = 0; i < COUNT; i++) {
        parents[i] = new_lease();
    }
    EXPECT(REDLOCK_OK, read_it(RESOURCES[0], parents[0]), parents[0]);
    EXPECT(REDLOCK_OK, RedLock_Lock(rl, RESOURCES[1], TTL_MS, parents[1]), parents[1]);
    EXPECT(REDLOCK_OK, RedLock_Downgrade(rl, parents[1]), parents[1]);
    tell_and_await("the parent reads");

    pid_t pid = forked();
    if (pid == 0) {
        child();
    }
    reap(pid);
    tell_and_await("the child has read");
    pid = forked();
    if (pid == 0) {
        /* Only frees. */
        free_all(parents);
        RedLock_Free(rl);
        CHECK(descriptors() == before);
        _exit(0);
    }
    reap(pid);
    pid = forked();
    if (pid == 0) {
        /* Leaves everything as it is, and ends in the ordinary way. */
        return 0;
    }
    reap(pid);
    tell_and_await("the children have ended");

    for (int i = 0; i < COUNT; i++) {
        CHECK(RedLockLease_IsHeld(parents[i]));
        CHECK(RedLockLease_Mode(parents[i]) == REDLOCK_SHARED);
        EXPECT(REDLOCK_OK, RedLock_Confirm(rl, parents[i], 1), parents[i]);
        EXPECT(REDLOCK_OK, RedLock_Extend(rl, parents[i], TTL_MS), parents[i]);
        EXPECT(REDLOCK_OK, RedLock_Unlock(rl, parents[i]), parents[i]);
    }
    tell_and_await("the parent has left");
    fork_in_a_downgrade();
    tell_and_await("all is left");
    free_all(parents);
    free_when_all_have_heard(rl);
    CHECK(descriptors() == before);
    return 0;
}

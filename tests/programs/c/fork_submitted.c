/* Calls are in progress as the process forks. The child gets no events of them and cannot end them,
 * and its parent has one event for each. */
#include "guest.h"

enum { CALLS = 4 };

static RedLock *manager;
static RedLockLease *leases[CALLS];
static int told[CALLS];

static void submit_all(void) {
    RedLockAcquireOptions options = REDLOCK_ACQUIRE_OPTIONS_INIT;
    options.resource = "acquired";
    options.ttl_ms = TTL_MS;
    EXPECT(REDLOCK_OK, RedLock_SubmitAcquire(manager, &options, leases[0], &told[0]), leases[0]);
    EXPECT(REDLOCK_OK, RedLock_SubmitExtend(manager, leases[1], TTL_MS, &told[1]), leases[1]);
    EXPECT(REDLOCK_OK, RedLock_SubmitConfirm(manager, leases[2], 0, &told[2]), leases[2]);
    EXPECT(REDLOCK_OK, RedLock_SubmitUnlock(manager, leases[3], &told[3]), leases[3]);
}

/* The parent's current calls do not concern it. */
static void look(void) {
    RedLockEvent event = REDLOCK_EVENT_INIT;
    no_longer_than(20);
    for (int i = 0; i < CALLS; i++) {
        CHECK(RedLock_NextEvent(manager, 20, &event) == REDLOCK_NO_EVENT);
        CHECK(!RedLockLease_IsHeld(leases[i]));
        CHECK(RedLock_Cancel(manager, leases[i]) == REDLOCK_OK);
        CHECK(RedLock_NextEvent(manager, 0, &event) == REDLOCK_NO_EVENT);
        RedLockLease_Free(leases[i]);
    }
    CHECK(RedLock_NextEvent(manager, 0, &event) == REDLOCK_NO_EVENT);
    RedLock_Free(manager);
    _exit(0);
}

int main(int argc, char **argv) {
    static const char *const resources[CALLS] = {"acquired", "extended", "confirmed", "released"};
    RedLockEvent event = REDLOCK_EVENT_INIT;
    no_longer_than(60);
    manager = manager_of(argc - 1, argv + 1);
    connect_to_all(manager);
    for (int i = 0; i < CALLS; i++) {
        leases[i] = new_lease();
        if (i > 0) {
            EXPECT(REDLOCK_OK, RedLock_Lock(manager, resources[i], TTL_MS, leases[i]), leases[i]);
        }
    }
    tell_and_await("hold the answers");
    submit_all();
    /* Now it is sent, and the answers do not come. */
    CHECK(RedLock_NextEvent(manager, 0, &event) == REDLOCK_NO_EVENT);
    tell_and_await("submitted");
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        look();
    }
    reap(pid);
    tell_and_await("the child has looked");
    for (int i = 0; i < CALLS; i++) {
        CHECK(RedLock_NextEvent(manager, 30000, &event) == REDLOCK_OK);
        EXPECT(REDLOCK_OK, event.status, event.lease);
        ++*(int *)event.user_data;
    }
    CHECK(RedLock_NextEvent(manager, 0, &event) == REDLOCK_NO_EVENT);
    for (int i = 0; i < CALLS; i++) {
        CHECK(told[i] == 1);
        CHECK(RedLockLease_IsHeld(leases[i]) == (i < 3));
        if (i < 3) {
            EXPECT(REDLOCK_OK, RedLock_Unlock(manager, leases[i]), leases[i]);
        }
        RedLockLease_Free(leases[i]);
    }
    free_when_all_have_heard(manager);
    return 0;
}

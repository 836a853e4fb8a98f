/* All functions, with servers in any state. The test controls the states, and checks that nothing
 * is printed. */
#include "guest.h"

static void all_calls(RedLock *rl, RedLockLease *lease) {
    bool locked;
    RedLock_Lock(rl, "r", TTL_MS, lease);
    RedLock_TryLock(rl, "r", TTL_MS, 5, lease);
    RedLock_ContinueLock(rl, "r", TTL_MS, lease);
    RedLock_Extend(rl, lease, TTL_MS);
    RedLock_Confirm(rl, lease, 1);
    RedLock_IsLocked(rl, "r", &locked);
    RedLock_Connect(rl, 20);
    RedLock_Unlock(rl, lease);
    RedLock_Unlock(rl, lease);
}

static void bad_calls(RedLock *rl, RedLockLease *lease) {
    RedLock_Lock(rl, "", 1, lease);
    RedLock_Lock(NULL, NULL, -1, lease);
    RedLock_Lock(rl, NULL, -1, NULL);
    RedLock_AddServerUrl(rl, "redis://", 7);
    RedLock_SetRetry(rl, 0, -1);
    RedLock_SetTimeouts(rl, 0, -1);
    RedLock_SetClockDriftFactor(rl, 2);
    RedLock_Connect(rl, -1);
    RedLock_Confirm(rl, lease, -1);
}

int main(int argc, char **argv) {
    no_longer_than(60);
    RedLock *rl = manager_of(argc - 1, argv + 1);
    RedLockLease *lease = new_lease();
    CHECK(RedLock_SetTimeouts(rl, 100, 20) == REDLOCK_OK);
    CHECK(RedLock_SetRetry(rl, 2, 1) == REDLOCK_OK);
    for (int i = 0; i < 3; i++) {
        bad_calls(rl, lease);
        all_calls(rl, lease);
    }
    tell_and_await("called");
    RedLockLease_Free(lease);
    lease = new_lease();
    for (int i = 0; i < 3; i++) {
        all_calls(rl, lease);
        bad_calls(rl, lease);
    }
    RedLock_Free(rl);
    RedLockLease_Free(lease);
    return 0;
}

/* Descriptors are released: by managers that are freed, by connections that break, and by servers
 * that cannot be reached. The test breaks the connections and the servers. */
#include "guest.h"

static int started_with;

static void many_managers(int count, char **urls) {
    for (int i = 0; i < 200; i++) {
        RedLock *rl = manager_of(count, urls);
        RedLockLease *lease = new_lease();
        if (i % 2) {
            EXPECT(REDLOCK_OK, RedLock_Lock(rl, "r", TTL_MS, lease), lease);
        }
        if (i % 4 == 3) {
            EXPECT(REDLOCK_OK, RedLock_Unlock(rl, lease), lease);
        } else if (i % 2) {
            /* Released through another manager. */
            RedLock *other = manager_of(count, urls);
            EXPECT(REDLOCK_OK, RedLock_Unlock(other, lease), lease);
            RedLock_Free(other);
        }
        RedLock_Free(rl);
        RedLockLease_Free(lease);
        CHECK(descriptors() == started_with);
    }
}

static void reconnects(RedLock *rl, int connected) {
    RedLockLease *lease = new_lease();
    for (int i = 0; i < 50; i++) {
        tell_and_await("break the connections");
        EXPECT(REDLOCK_OK, RedLock_TryLock(rl, "r", TTL_MS, 10000, lease), lease);
        EXPECT(REDLOCK_OK, RedLock_Unlock(rl, lease), lease);
        CHECK(descriptors() <= connected);
    }
    RedLockLease_Free(lease);
}

static void failures(RedLock *rl, int most) {
    RedLockLease *lease = new_lease();
    CHECK(RedLock_SetTimeouts(rl, 20, 5) == REDLOCK_OK);
    for (int i = 0; i < 30; i++) {
        EXPECT(REDLOCK_UNREACHABLE, RedLock_TryLock(rl, "r", TTL_MS, 0, lease), lease);
        CHECK(descriptors() <= most);
    }
    RedLockLease_Free(lease);
}

int main(int argc, char **argv) {
    no_longer_than(60);
    started_with = descriptors();
    many_managers(argc - 1, argv + 1);

    RedLock *rl = manager_of(argc - 1, argv + 1);
    CHECK(RedLock_SetRetry(rl, 3, 5) == REDLOCK_OK);
    connect_to_all(rl);
    int connected = descriptors();
    reconnects(rl, connected);
    /* A frozen server gets a second connection after a second, which a slow machine takes for the failures. */
    tell_and_await("freeze the servers");
    failures(rl, connected + argc - 1);
    tell_and_await("kill the servers");
    failures(rl, connected + argc - 1);
    RedLock_Free(rl);
    CHECK(descriptors() == started_with);
    return 0;
}

/* SIGPIPE ends this process, as it does by default. Connections that break during use do not raise
 * it. */
#include <poll.h>

#include "guest.h"

static bool is_called(void) {
    struct pollfd input = {STDIN_FILENO, POLLIN, 0};
    return poll(&input, 1, 0) == 1;
}

static bool is_outcome(RedLockStatus status) {
    return status >= REDLOCK_OK && status <= REDLOCK_LOST;
}

int main(int argc, char **argv) {
    no_longer_than(60);
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = SIG_DFL;
    CHECK(sigaction(SIGPIPE, &action, NULL) == 0);

    RedLock *rl = manager_of(argc - 1, argv + 1);
    CHECK(RedLock_SetRetry(rl, 1, 0) == REDLOCK_OK);
    CHECK(RedLock_SetRestartGuard(rl, REDLOCK_GUARD_OFF, 0, 0) == REDLOCK_OK);
    RedLockLease *lease = new_lease();
    EXPECT(REDLOCK_OK, RedLock_Lock(rl, "r", 10000, lease), lease);
    EXPECT(REDLOCK_OK, RedLock_Unlock(rl, lease), lease);
    tell("locking");
    while (!is_called()) {
        CHECK(is_outcome(RedLock_TryLock(rl, "r", 10000, 0, lease)));
        CHECK(is_outcome(RedLock_Extend(rl, lease, 10000)));
        CHECK(is_outcome(RedLock_Unlock(rl, lease)));
        if (RedLockLease_IsHeld(lease)) {
            continue;
        }
        RedLockLease_Free(lease);
        lease = new_lease();
    }
    await();
    /* All is well again, so a lock can be taken. The rest of an earlier one has to expire. */
    EXPECT(REDLOCK_OK, RedLock_TryLock(rl, "r", 10000, 15000, lease), lease);
    EXPECT(REDLOCK_OK, RedLock_Unlock(rl, lease), lease);
    RedLockLease_Free(lease);
    RedLock_Free(rl);
    return 0;
}

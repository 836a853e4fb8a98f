/* redlock.h includes everything that it needs, and its statuses are distinct. */
#include "redlock.h"

static int sign(int32_t status) {
    switch (status) {
    case REDLOCK_OK:
        return 0;
    case REDLOCK_TAKEN:
    case REDLOCK_UNREACHABLE:
    case REDLOCK_TOO_SLOW:
    case REDLOCK_LOST:
        return 1;
    case REDLOCK_INVALID_ARGUMENT:
    case REDLOCK_NO_SERVERS:
    case REDLOCK_FORKED:
    case REDLOCK_INTERNAL:
        return -1;
    default:
        return 2;
    }
}

int main(void) {
    RedLockStatus status = REDLOCK_TAKEN;
    RedLockLogger logger = 0;
    RedLock *rl = 0;
    RedLockLease *lease = 0;
    bool held = RedLockLease_IsHeld(lease);
    int64_t remaining_ms = RedLockLease_RemainingMs(lease);

    RedLock_SetLogger(rl, logger, 0, 0);
    RedLock_Free(rl);
    RedLockLease_Free(lease);
    return sign(status) == 1 && !held && remaining_ms == 0 ? 0 : 1;
}

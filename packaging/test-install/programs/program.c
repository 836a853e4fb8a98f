#include <redlock.h>
#include <stdio.h>

int main(void)
{
    RedLock *rl = RedLock_New();
    RedLockLease *lease = RedLockLease_New();
    RedLockStatus status = RedLock_AddServerUrl(rl, "redis://127.0.0.1:1", 0);

    if (status == REDLOCK_OK) {
        status = RedLock_TryLock(rl, "x", 1000, 0, lease);
    }
    printf("%s %s\n", RedLock_Version(), RedLockStatus_Name(status));
    RedLockLease_Free(lease);
    RedLock_Free(rl);
    return 0;
}

#include "manager.h"

#include <stdio.h>
#include <stdlib.h>

void manager_check(const char *what, RedLockStatus status, RedLock *rl, const RedLockLease *lease)
{
    if (status == REDLOCK_OK)
        return;
    const char *why = lease == NULL ? RedLock_ErrorMessage(rl) : RedLockLease_ErrorMessage(lease);
    fprintf(stderr, "%s: %s: %s\n", what, RedLockStatus_Name(status), why);
    exit(1);
}

RedLock *manager_new(int count, char **ports)
{
    RedLock *rl = RedLock_New();

    for (int i = 0; i < count; i++)
        manager_check("add server", RedLock_AddServerUrl(rl, "127.0.0.1", atoi(ports[i])), rl, NULL);
    return rl;
}

RedLock *manager_connect(int count, char **ports)
{
    RedLock *rl = manager_new(count, ports);

    manager_check("connect", RedLock_Connect(rl, 0), rl, NULL);
    return rl;
}

int manager_descriptor(RedLock *rl)
{
    int fd = RedLock_Descriptor(rl);

    if (fd < 0)
        manager_check("descriptor", REDLOCK_INTERNAL, rl, NULL);
    return fd;
}

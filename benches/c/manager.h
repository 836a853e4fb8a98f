/*
 * The library's manager for the programs of the bench: any fault ends the program.
 */
#ifndef MANAGER_H
#define MANAGER_H

#include "redlock.h"

/* A manager with these ports of this machine as its servers. It is not connected. */
RedLock *manager_new(int count, char **ports);

/* A manager that is connected to these ports of this machine. */
RedLock *manager_connect(int count, char **ports);

/* The descriptor for an event loop. */
int manager_descriptor(RedLock *rl);

/* Ends the program unless the call has succeeded. The call is one on the lease, or on the manager if lease is
 * NULL. */
void manager_check(const char *what, RedLockStatus status, RedLock *rl, const RedLockLease *lease);

#endif

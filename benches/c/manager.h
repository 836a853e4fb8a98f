/*
 * The library's manager as the programs of the bench need it: any fault ends the program.
 */
#ifndef MANAGER_H
#define MANAGER_H

#include "redlock.h"

/* One that has these ports of this machine for its servers, and is not connected. */
RedLock *manager_new(int count, char **ports);

/* One that is connected to these ports of this machine. */
RedLock *manager_connect(int count, char **ports);

/* The descriptor for an event loop. */
int manager_descriptor(RedLock *rl);

/* Ends the program unless the call of a lease, or of a manager if there is none, has succeeded. */
void manager_check(const char *what, RedLockStatus status, RedLock *rl, const RedLockLease *lease);

#endif

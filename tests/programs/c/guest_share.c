/* One lease that many threads use at once in every way causes no undefined behaviour: each call has
 * an outcome, and in the end nothing is left. */
#include <pthread.h>
#include <stdatomic.h>

#include "guest.h"

enum { THREADS = 8, ROUNDS = 150 };

static RedLock *manager;
static RedLockLease *lease;

static void outcome(RedLockStatus status) {
    CHECK(status >= REDLOCK_INVALID_ARGUMENT && status <= REDLOCK_LOST);
}

static void *use_it(void *argument) {
    int number = (int)(intptr_t)argument;
    char resource[32];
    for (int i = 0; i < ROUNDS; i++) {
        snprintf(resource, sizeof resource, "r-%d", (number + i) % 3);
        switch ((number * 5 + i) % 8) {
        case 0:
        case 1:
            outcome(RedLock_TryLock(manager, resource, TTL_MS, 0, lease));
            break;
        case 2:
            outcome(RedLock_ContinueLock(manager, resource, TTL_MS, lease));
            break;
        case 3:
            outcome(RedLock_Extend(manager, lease, TTL_MS));
            break;
        case 4:
            outcome(RedLock_Confirm(manager, lease, 1));
            break;
        case 5:
            outcome(RedLock_Lock(manager, resource, 0, lease));
            outcome(RedLock_Lock(NULL, resource, 0, lease));
            break;
        default:
            outcome(RedLock_Unlock(manager, lease));
        }
        CHECK(RedLockLease_RemainingMs(lease) <= TTL_MS);
        CHECK(RedLockLease_ValidityMs(lease) <= TTL_MS);
        (void)RedLockLease_IsHeld(lease);
        CHECK(RedLockLease_Token(lease) && RedLockLease_Resource(lease));
        CHECK(RedLockLease_ErrorMessage(lease));
    }
    return NULL;
}

int main(int argc, char **argv) {
    no_longer_than(60);
    manager = manager_of(argc - 1, argv + 1);
    CHECK(RedLock_SetRetry(manager, 2, 1) == REDLOCK_OK);
    lease = new_lease();
    pthread_t threads[THREADS];
    for (intptr_t i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, use_it, (void *)i) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    if (RedLockLease_IsHeld(lease)) {
        EXPECT(REDLOCK_OK, RedLock_Unlock(manager, lease), lease);
    }
    tell_and_await("used");
    RedLockLease_Free(lease);
    RedLock_Free(manager);
    return 0;
}

/* Threads that end while they hold a lock or are about to get one: in the ordinary way, and by
 * cancellation, at any moment of any call. The lock belongs to the lease, not to the thread. */
#include <pthread.h>
#include <stdatomic.h>

#include "guest.h"

enum { CANCELS = 300 };

static RedLock *manager;
static atomic_bool is_held;

static void *lock_and_end(void *lease) {
    EXPECT(REDLOCK_OK, RedLock_Lock(manager, "r", TTL_MS, lease), lease);
    return NULL;
}

static void *lock_and_sleep(void *lease) {
    EXPECT(REDLOCK_OK, RedLock_Lock(manager, "r", TTL_MS, lease), lease);
    atomic_store(&is_held, true);
    for (;;) {
        pause();
    }
    return NULL;
}

static void *wait_a_while(void *lease) {
    EXPECT(REDLOCK_TAKEN, RedLock_TryLock(manager, "r", TTL_MS, 200, lease), lease);
    for (;;) {
        pause();
    }
    return NULL;
}

/* Everything that sleeps, reads or writes, because threads are cancelled there. */
static void *use(void *lease) {
    for (;;) {
        bool locked;
        RedLock_Lock(manager, "used", TTL_MS, lease);
        RedLock_Extend(manager, lease, TTL_MS);
        RedLock_Confirm(manager, lease, 1);
        RedLock_IsLocked(manager, "used", &locked);
        RedLock_Unlock(manager, lease);
        RedLock_TryLock(manager, "r", TTL_MS, 3, lease);
        RedLock_Connect(manager, 10);
        pthread_testcancel();
    }
    return NULL;
}

static void is_cancelled(pthread_t thread) {
    void *result;
    CHECK(pthread_cancel(thread) == 0);
    CHECK(pthread_join(thread, &result) == 0);
    CHECK(result == PTHREAD_CANCELED);
}

static void the_lock_is_the_leases(void *(*run)(void *), bool is_to_be_cancelled) {
    pthread_t thread;
    RedLockLease *lease = new_lease();
    CHECK(pthread_create(&thread, NULL, run, lease) == 0);
    if (is_to_be_cancelled) {
        while (!atomic_load(&is_held)) {
            usleep(1000);
        }
        is_cancelled(thread);
    } else {
        CHECK(pthread_join(thread, NULL) == 0);
    }
    CHECK(RedLockLease_IsHeld(lease));
    EXPECT(REDLOCK_OK, RedLock_Extend(manager, lease, TTL_MS), lease);
    EXPECT(REDLOCK_OK, RedLock_Unlock(manager, lease), lease);
    RedLockLease_Free(lease);
}

static void a_call_is_finished_first(void) {
    RedLockLease *held = new_lease();
    RedLockLease *lease = new_lease();
    EXPECT(REDLOCK_OK, RedLock_Lock(manager, "r", TTL_MS, held), held);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, wait_a_while, lease) == 0);
    usleep(50 * 1000);
    is_cancelled(thread);
    EXPECT(REDLOCK_OK, RedLock_Unlock(manager, held), held);
    RedLockLease_Free(held);
    RedLockLease_Free(lease);
}

/* Each is cancelled at another place. */
static void at_any_moment(RedLockLease *held) {
    for (int i = 0; i < CANCELS; i++) {
        pthread_t threads[2];
        RedLockLease *leases[2] = {new_lease(), new_lease()};
        for (int k = 0; k < 2; k++) {
            CHECK(pthread_create(&threads[k], NULL, use, leases[k]) == 0);
        }
        usleep((useconds_t)(i * 37 % 3000));
        for (int k = 0; k < 2; k++) {
            is_cancelled(threads[k]);
            RedLock_Unlock(manager, leases[k]);
            RedLockLease_Free(leases[k]);
        }
        EXPECT(REDLOCK_OK, RedLock_Confirm(manager, held, 1), held);
    }
}

int main(int argc, char **argv) {
    no_longer_than(60);
    manager = manager_of(argc - 1, argv + 1);
    connect_to_all(manager);
    int before = descriptors();
    the_lock_is_the_leases(lock_and_end, false);
    the_lock_is_the_leases(lock_and_sleep, true);
    a_call_is_finished_first();

    CHECK(RedLock_SetRetry(manager, 2, 2) == REDLOCK_OK);
    RedLockLease *held = new_lease();
    EXPECT(REDLOCK_OK, RedLock_Lock(manager, "r", TTL_MS, held), held);
    at_any_moment(held);
    EXPECT(REDLOCK_OK, RedLock_Unlock(manager, held), held);
    RedLockLease_Free(held);
    CHECK(descriptors() == before);
    RedLock_Free(manager);
    return 0;
}

/* A process with many threads in the middle of locking forks. The child has a single thread and the
 * unfinished work of the others. It locks by itself all the same. */
#include <pthread.h>
#include <stdatomic.h>

#include "guest.h"

enum { THREADS = 16, FORKS = 15 };

static RedLock *manager;
static RedLockLease *leases[THREADS];
static atomic_int cycles[THREADS];
static atomic_bool stop;

static void *lock_and_unlock(void *argument) {
    int number = (int)(intptr_t)argument;
    char resource[32];
    snprintf(resource, sizeof resource, "thread-%d", number);
    RedLockLease *lease = leases[number];
    while (!atomic_load(&stop)) {
        EXPECT(REDLOCK_OK, RedLock_Lock(manager, resource, TTL_MS, lease), lease);
        EXPECT(REDLOCK_OK, RedLock_Unlock(manager, lease), lease);
        atomic_fetch_add(&cycles[number], 1);
    }
    return NULL;
}

/* Each thread has locked again since then, so a fork has stopped none of them. */
static void all_go_on(void) {
    for (int i = 0; i < THREADS; i++) {
        int before = atomic_load(&cycles[i]);
        while (atomic_load(&cycles[i]) == before) {
            usleep(200);
        }
    }
}

/* The lease of another thread may have been empty, held, or in use at the moment of the fork. */
static void is_not_ours(RedLockLease *lease) {
    CHECK(!RedLockLease_IsHeld(lease));
    CHECK(RedLockLease_RemainingMs(lease) == 0);
    CHECK(RedLockLease_ErrorMessage(lease) != NULL);
    RedLockStatus status = RedLock_Extend(manager, lease, TTL_MS);
    CHECK(status == REDLOCK_FORKED || status == REDLOCK_LOST);
    status = RedLock_Unlock(manager, lease);
    CHECK(status == REDLOCK_FORKED || status == REDLOCK_LOST);
    status = RedLock_Confirm(manager, lease, 0);
    CHECK(status == REDLOCK_FORKED || status == REDLOCK_LOST);
    status = RedLock_Lock(manager, "childs", TTL_MS, lease);
    CHECK(status == REDLOCK_FORKED || status == REDLOCK_OK);
    if (status == REDLOCK_OK) {
        EXPECT(REDLOCK_OK, RedLock_Unlock(manager, lease), lease);
    }
}

static void child(void) {
    no_longer_than(20);
    RedLockLease *lease = new_lease();
    for (int i = 0; i < 5; i++) {
        EXPECT(REDLOCK_OK, RedLock_Lock(manager, "child", TTL_MS, lease), lease);
        EXPECT(REDLOCK_OK, RedLock_Extend(manager, lease, TTL_MS), lease);
        EXPECT(REDLOCK_OK, RedLock_Unlock(manager, lease), lease);
    }
    for (int i = 0; i < THREADS; i++) {
        is_not_ours(leases[i]);
    }
    RedLockLease_Free(lease);
    free_when_all_have_heard(manager);
    _exit(0);
}

int main(int argc, char **argv) {
    no_longer_than(60);
    manager = manager_of(argc - 1, argv + 1);
    connect_to_all(manager);
    pthread_t threads[THREADS];
    for (intptr_t i = 0; i < THREADS; i++) {
        leases[i] = new_lease();
        CHECK(pthread_create(&threads[i], NULL, lock_and_unlock, (void *)i) == 0);
    }
    all_go_on();
    tell_and_await("all are locking");
    for (int i = 0; i < FORKS; i++) {
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            child();
        }
        all_go_on();
        reap(pid);
    }
    all_go_on();
    tell_and_await("all are locking still");
    atomic_store(&stop, true);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        RedLockLease_Free(leases[i]);
    }
    free_when_all_have_heard(manager);
    return 0;
}

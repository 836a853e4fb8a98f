/* A child that does not need the manager frees it, and the leases, whatever the parent's other
 * threads were doing with them. Nothing crashes, and no descriptor stays. */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>

#include "guest.h"

enum { THREADS = 8, FORKS = 500 };

static RedLock *manager;
static RedLockLease *leases[THREADS];
static atomic_uint calls;
static atomic_bool stop;

/* Most threads make calls that are refused, so their leases get new words all the time. */
static void *use_the_lease(void *argument) {
    int number = (int)(intptr_t)argument;
    char resource[32];
    snprintf(resource, sizeof resource, "thread-%d", number);
    RedLockLease *lease = leases[number];
    /* So that the forking thread interrupts at once, wherever this thread is. */
    setpriority(PRIO_PROCESS, 0, 19);
    while (!atomic_load(&stop)) {
        if (number % 4) {
            EXPECT(REDLOCK_INVALID_ARGUMENT, RedLock_Lock(manager, "", TTL_MS, lease), lease);
            EXPECT(REDLOCK_INVALID_ARGUMENT, RedLock_Lock(manager, resource, -1, lease), lease);
        } else {
            EXPECT(REDLOCK_OK, RedLock_Lock(manager, resource, TTL_MS, lease), lease);
            EXPECT(REDLOCK_OK, RedLock_Unlock(manager, lease), lease);
        }
        atomic_fetch_add(&calls, 1);
    }
    return NULL;
}

int main(int argc, char **argv) {
    no_longer_than(60);
    int before = descriptors();
    manager = manager_of(argc - 1, argv + 1);
    RedLockLease *own = new_lease();
    EXPECT(REDLOCK_OK, RedLock_Lock(manager, "own", TTL_MS, own), own);
    pthread_t threads[THREADS];
    for (intptr_t i = 0; i < THREADS; i++) {
        leases[i] = new_lease();
        CHECK(pthread_create(&threads[i], NULL, use_the_lease, (void *)i) == 0);
    }
    int forks = is_under_a_tool() ? FORKS / 10 : FORKS;
    for (int i = 0; i < forks; i++) {
        for (unsigned seen = atomic_load(&calls); atomic_load(&calls) - seen < THREADS;) {
            usleep(100);
        }
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            no_longer_than(20);
            for (int k = 0; k < THREADS; k++) {
                RedLockLease_Free(leases[k]);
            }
            RedLockLease_Free(own);
            RedLock_Free(manager);
            CHECK(descriptors() == before);
            _exit(0);
        }
        reap(pid);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        RedLockLease_Free(leases[i]);
    }
    EXPECT(REDLOCK_OK, RedLock_Unlock(manager, own), own);
    RedLockLease_Free(own);
    RedLock_Free(manager);
    return 0;
}

/* A process forks while its threads make the first lock calls of a manager. The child may go on
 * with that manager all the same, because no call in the child reports that it belonged to the
 * parent. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "guest.h"

enum { MANAGERS = 200, SERVERS = 64, THREADS = 8 };

static atomic_int ready;
static atomic_bool go;

/* The ports are closed, so a call ends at once. The more servers there are, the longer the first
 * call is busy with their list. */
static RedLock *new_manager(void) {
    RedLock *rl = RedLock_New();
    CHECK(rl);
    for (int port = 1; port <= SERVERS; port++) {
        CHECK(RedLock_AddServerUrl(rl, "127.0.0.1", port) == REDLOCK_OK);
    }
    return rl;
}

static RedLockStatus try_lock(RedLock *rl) {
    RedLockLease *lease = new_lease();
    RedLockStatus status = RedLock_TryLock(rl, "r", TTL_MS, 0, lease);
    RedLockLease_Free(lease);
    return status;
}

static void *lock_first(void *rl) {
    atomic_fetch_add(&ready, 1);
    while (!atomic_load(&go)) {
        sched_yield();
    }
    CHECK(try_lock(rl) == REDLOCK_UNREACHABLE);
    return NULL;
}

int main(void) {
    no_longer_than(60);
    for (int i = 0; i < MANAGERS; i++) {
        RedLock *rl = new_manager();
        pthread_t threads[THREADS];
        atomic_store(&ready, 0);
        atomic_store(&go, false);
        for (int k = 0; k < THREADS; k++) {
            CHECK(pthread_create(&threads[k], NULL, lock_first, rl) == 0);
        }
        while (atomic_load(&ready) < THREADS) {
            sched_yield();
        }
        atomic_store(&go, true);
        for (volatile int turn = 0; turn < i % 30 * 100; turn++) {
        }
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            no_longer_than(20);
            CHECK(try_lock(rl) == REDLOCK_UNREACHABLE);
            _exit(0);
        }
        reap(pid);
        for (int k = 0; k < THREADS; k++) {
            pthread_join(threads[k], NULL);
        }
        RedLock_Free(rl);
    }
    return 0;
}

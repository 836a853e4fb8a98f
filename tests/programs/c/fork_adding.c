/* A thread tries to add servers, although the list is closed, while the process forks. The children
 * lock all the same. */
#include <pthread.h>
#include <stdatomic.h>

#include "guest.h"

enum { FORKS = 200 };

static RedLock *manager;
static atomic_bool stop;

static void *add_again(void *url) {
    while (!atomic_load(&stop)) {
        CHECK(RedLock_AddServerUrl(manager, url, 0) == REDLOCK_INVALID_ARGUMENT);
    }
    return NULL;
}

int main(int argc, char **argv) {
    no_longer_than(60);
    manager = manager_of(argc - 1, argv + 1);
    RedLockLease *lease = new_lease();
    EXPECT(REDLOCK_OK, RedLock_Lock(manager, "r", TTL_MS, lease), lease);
    EXPECT(REDLOCK_OK, RedLock_Unlock(manager, lease), lease);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, add_again, argv[1]) == 0);
    for (int i = 0; i < FORKS; i++) {
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            no_longer_than(20);
            EXPECT(REDLOCK_OK, RedLock_Lock(manager, "r", TTL_MS, lease), lease);
            EXPECT(REDLOCK_OK, RedLock_Unlock(manager, lease), lease);
            _exit(0);
        }
        reap(pid);
    }
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    RedLockLease_Free(lease);
    RedLock_Free(manager);
    return 0;
}

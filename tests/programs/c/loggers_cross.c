/* Two threads, each with a manager and a lease. At the first line that it gets, each thread waits
 * for the other, and confirms the lease of the other with its own manager. One server does not
 * exist, so the first call of a manager logs a line. */
#include <pthread.h>

#include "guest.h"

static RedLock *managers[2];
static RedLockLease *leases[2];
static pthread_barrier_t both;
static bool was_told[2];

static void on_line(int32_t level, const char *line, void *data) {
    int mine = *(int *)data;
    CHECK(level > 0 && line[0]);
    if (!was_told[mine]) {
        was_told[mine] = true;
        pthread_barrier_wait(&both);
        EXPECT(REDLOCK_OK, RedLock_Confirm(managers[mine], leases[!mine], 0), leases[!mine]);
        EXPECT(REDLOCK_OK, RedLock_Confirm(managers[mine], leases[mine], 0), leases[mine]);
    }
}

/* Its extension is the first call of this manager. */
static void *extends(void *data) {
    int mine = *(int *)data;
    EXPECT(REDLOCK_OK, RedLock_Extend(managers[mine], leases[mine], TTL_MS), leases[mine]);
    CHECK(was_told[mine]);
    return NULL;
}

static RedLock *new_manager(int count, char **urls) {
    RedLock *rl = manager_of(count, urls);
    CHECK(RedLock_AddServerUrl(rl, "redis://127.0.0.1:1", 0) == REDLOCK_OK);
    return rl;
}

int main(int argc, char **argv) {
    static int names[] = {0, 1};
    no_longer_than(60);
    CHECK(argc > 1 && pthread_barrier_init(&both, NULL, 2) == 0);
    for (int i = 0; i < 2; i++) {
        RedLock *taker = new_manager(argc - 1, argv + 1);
        leases[i] = new_lease();
        EXPECT(REDLOCK_OK, RedLock_Lock(taker, i ? "one" : "other", TTL_MS, leases[i]), leases[i]);
        RedLock_Free(taker);
        managers[i] = new_manager(argc - 1, argv + 1);
        CHECK(RedLock_SetLogger(managers[i], on_line, &names[i], NULL) == REDLOCK_OK);
    }
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        CHECK(pthread_create(&threads[i], NULL, extends, &names[i]) == 0);
    }
    for (int i = 0; i < 2; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    /* Not before both are done, because each uses the lease of the other. */
    for (int i = 0; i < 2; i++) {
        EXPECT(REDLOCK_OK, RedLock_Unlock(managers[i], leases[i]), leases[i]);
        RedLockLease_Free(leases[i]);
        RedLock_Free(managers[i]);
    }
    return 0;
}

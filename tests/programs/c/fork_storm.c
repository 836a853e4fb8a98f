/* Hundreds of forks while threads use the library in every way. Whatever mutex one of them held at
 * that moment, no child ever hangs on it. */
#include <pthread.h>
#include <stdatomic.h>

#include "guest.h"

enum { FORKS = 400, AT_ONCE = 4 };

static RedLock *manager;
static char **servers;
static int server_count;
static atomic_bool stop;

static void *lock_and_unlock(void *resource) {
    RedLockLease *lease = new_lease();
    while (!atomic_load(&stop)) {
        EXPECT(REDLOCK_OK, RedLock_Lock(manager, resource, TTL_MS, lease), lease);
        EXPECT(REDLOCK_OK, RedLock_Extend(manager, lease, TTL_MS), lease);
        EXPECT(REDLOCK_OK, RedLock_Confirm(manager, lease, 1), lease);
        EXPECT(REDLOCK_OK, RedLock_Unlock(manager, lease), lease);
    }
    RedLockLease_Free(lease);
    return NULL;
}

static void *wait_in_vain(void *resource) {
    RedLockLease *lease = new_lease();
    while (!atomic_load(&stop)) {
        CHECK(RedLock_TryLock(manager, resource, TTL_MS, 10, lease) > REDLOCK_OK);
    }
    RedLockLease_Free(lease);
    return NULL;
}

static void *continue_for_ever(void *resource) {
    while (!atomic_load(&stop)) {
        RedLockLease *lease = new_lease();
        EXPECT(REDLOCK_OK, RedLock_ContinueLock(manager, resource, TTL_MS, lease), lease);
        RedLockLease_Free(lease);
    }
    return NULL;
}

static void ignore(int32_t level, const char *message, void *user_data) {
    (void)level;
    (void)message;
    (void)user_data;
}

static void *set_and_ask(void *resource) {
    while (!atomic_load(&stop)) {
        bool locked = false;
        CHECK(RedLock_SetRetry(manager, 3, 5) == REDLOCK_OK);
        CHECK(RedLock_SetLogger(manager, ignore, NULL, NULL) == REDLOCK_OK);
        CHECK(RedLock_SetClockDriftFactor(manager, -1) == REDLOCK_INVALID_ARGUMENT);
        CHECK(RedLock_ErrorMessage(manager) != NULL);
        CHECK(RedLock_IsLocked(manager, resource, &locked) == REDLOCK_OK);
        CHECK(RedLock_Connect(manager, 0) == REDLOCK_OK);
    }
    return NULL;
}

static void *come_and_go(void *resource) {
    (void)resource;
    while (!atomic_load(&stop)) {
        RedLock *rl = manager_of(server_count, servers);
        CHECK(RedLock_Connect(rl, 0) == REDLOCK_OK);
        RedLock_Free(rl);
    }
    return NULL;
}

static void child(int number) {
    /* Ends a child that hangs, and the parent detects that. */
    no_longer_than(20);
    char resource[32];
    snprintf(resource, sizeof resource, "child-%d", number);
    RedLockLease *lease = new_lease();
    EXPECT(REDLOCK_OK, RedLock_Lock(manager, resource, TTL_MS, lease), lease);
    EXPECT(REDLOCK_OK, RedLock_Unlock(manager, lease), lease);
    _exit(0);
}

int main(int argc, char **argv) {
    no_longer_than(120);
    server_count = argc - 1;
    servers = argv + 1;
    manager = manager_of(server_count, servers);
    CHECK(RedLock_SetRetry(manager, 3, 5) == REDLOCK_OK);
    RedLockLease *held = new_lease();
    EXPECT(REDLOCK_OK, RedLock_Lock(manager, "held", TTL_MS, held), held);

    struct {
        void *(*run)(void *);
        const char *resource;
        pthread_t thread;
    } threads[] = {
        {lock_and_unlock, "a", 0}, {lock_and_unlock, "b", 0},   {lock_and_unlock, "c", 0},
        {wait_in_vain, "held", 0}, {continue_for_ever, "d", 0}, {set_and_ask, "held", 0},
        {come_and_go, NULL, 0},
    };
    enum { THREADS = sizeof threads / sizeof *threads };
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i].thread, NULL, threads[i].run,
                             (void *)threads[i].resource) == 0);
    }
    pid_t children[FORKS];
    int forks = is_under_a_tool() ? FORKS / 10 : FORKS;
    for (int i = 0; i < forks; i++) {
        if (i >= AT_ONCE) {
            reap(children[i - AT_ONCE]);
        }
        children[i] = fork();
        CHECK(children[i] >= 0);
        if (children[i] == 0) {
            child(i);
        }
    }
    for (int i = forks - AT_ONCE; i < forks; i++) {
        reap(children[i]);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i].thread, NULL);
    }
    EXPECT(REDLOCK_OK, RedLock_Unlock(manager, held), held);
    RedLockLease_Free(held);
    RedLock_Free(manager);
    return 0;
}

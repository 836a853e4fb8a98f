/* A signal every millisecond, to the very thread that is in a call, with a handler without
 * SA_RESTART. No call fails because of it, none returns early, none waits longer. */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>

#include "guest.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

enum { CYCLES = 2000, THREADS = 3, MANAGERS = 60, PERIOD_NS = 1000000 };

static char **servers;
static int server_count;
static atomic_int signals;

static void count(int number) {
    (void)number;
    atomic_fetch_add(&signals, 1);
}

/* From now on the calling thread is interrupted all the time. */
static timer_t interrupt_this_thread(void) {
    struct sigevent event;
    memset(&event, 0, sizeof event);
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = SIGUSR1;
    event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
    timer_t timer;
    CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    struct itimerspec period = {{0, PERIOD_NS}, {0, PERIOD_NS}};
    CHECK(timer_settime(timer, 0, &period, NULL) == 0);
    return timer;
}

/* Connects, and looks up names. */
static void connects(void) {
    for (int i = 0; i < MANAGERS; i++) {
        RedLock *rl = manager_of(server_count, servers);
        RedLockLease *lease = new_lease();
        EXPECT(REDLOCK_OK, RedLock_Lock(rl, "connecting", TTL_MS, lease), lease);
        EXPECT(REDLOCK_OK, RedLock_Unlock(rl, lease), lease);
        CHECK(RedLock_Connect(rl, 0) == REDLOCK_OK);
        RedLockLease_Free(lease);
        RedLock_Free(rl);
    }
}

static void locks(RedLock *rl, const char *resource) {
    RedLockLease *lease = new_lease();
    for (int i = 0; i < CYCLES; i++) {
        EXPECT(REDLOCK_OK, RedLock_Lock(rl, resource, TTL_MS, lease), lease);
        EXPECT(REDLOCK_OK, RedLock_Extend(rl, lease, TTL_MS), lease);
        EXPECT(REDLOCK_OK, RedLock_Unlock(rl, lease), lease);
    }
    RedLockLease_Free(lease);
}

/* How long a call takes until it finds the resource taken. The bound above is that of a busy
 * machine. */
static void takes(RedLock *rl, int64_t wait_ms, int64_t least_ms) {
    RedLockLease *lease = new_lease();
    int64_t start = now_ms();
    if (wait_ms >= 0) {
        EXPECT(REDLOCK_TAKEN, RedLock_TryLock(rl, "held", TTL_MS, wait_ms, lease), lease);
    } else {
        EXPECT(REDLOCK_TAKEN, RedLock_Lock(rl, "held", TTL_MS, lease), lease);
    }
    int64_t took = now_ms() - start;
    CHECK(took >= least_ms);
    CHECK(took < least_ms + 3000);
    RedLockLease_Free(lease);
}

static void waits(RedLock *rl) {
    takes(rl, 0, 0);
    takes(rl, 1, 1);
    takes(rl, 300, 300);
    takes(rl, 301, 301);
    CHECK(RedLock_SetRetry(rl, 3, 200) == REDLOCK_OK);
    takes(rl, -1, 200);
    CHECK(RedLock_SetRetry(rl, 1, 200) == REDLOCK_OK);
    takes(rl, -1, 0);
    CHECK(RedLock_SetRetry(rl, 3, 20) == REDLOCK_OK);
}

static RedLock *shared;

/* Several threads on one manager, one driving and the others waiting for it. They lock their own
 * resources and one common resource. */
static void *one_of_many(void *argument) {
    char resource[32];
    snprintf(resource, sizeof resource, "thread-%d", (int)(intptr_t)argument);
    timer_t timer = interrupt_this_thread();
    locks(shared, resource);
    RedLockLease *lease = new_lease();
    for (int i = 0; i < 50; i++) {
        EXPECT(REDLOCK_OK, RedLock_TryLock(shared, "fought for", TTL_MS, -1, lease), lease);
        EXPECT(REDLOCK_OK, RedLock_Unlock(shared, lease), lease);
    }
    RedLockLease_Free(lease);
    timer_delete(timer);
    return NULL;
}

int main(int argc, char **argv) {
    no_longer_than(60);
    server_count = argc - 1;
    servers = argv + 1;
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = count;
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);

    shared = manager_of(server_count, servers);
    CHECK(RedLock_SetRetry(shared, 3, 20) == REDLOCK_OK);
    RedLockLease *held = new_lease();
    EXPECT(REDLOCK_OK, RedLock_Lock(shared, "held", TTL_MS, held), held);

    int64_t start = now_ms();
    timer_t timer = interrupt_this_thread();
    connects();
    locks(shared, "alone");
    waits(shared);
    CHECK(atomic_load(&signals) > (now_ms() - start) / 10);

    pthread_t threads[THREADS];
    for (intptr_t i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, one_of_many, (void *)i) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    timer_delete(timer);
    EXPECT(REDLOCK_OK, RedLock_Unlock(shared, held), held);
    RedLockLease_Free(held);
    RedLock_Free(shared);
    return 0;
}

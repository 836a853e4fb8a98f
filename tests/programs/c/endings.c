/* Ways to end while a lock is held. The first argument selects one. The test checks what happens to
 * the lock. */
#include <pthread.h>
#include <sys/resource.h>

#include "guest.h"

enum { HELD_MS = 5000 };

static RedLock *manager;
static RedLockLease *held;

static void *wait_for_the_lock(void *argument) {
    RedLock_TryLock(manager, "held", TTL_MS, -1, argument);
    return NULL;
}

static void *end_the_process(void *argument) {
    (void)argument;
    exit(0);
}

/* One thread waits for a lock, and another one for the end of that thread. */
static void begin_to_wait(void) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, wait_for_the_lock, new_lease()) == 0);
    CHECK(pthread_detach(thread) == 0);
}

static void end(const char *how) {
    if (strcmp(how, "exit") == 0) {
        exit(0);
    } else if (strcmp(how, "exit while others wait") == 0) {
        begin_to_wait();
        exit(0);
    } else if (strcmp(how, "exit from a thread") == 0) {
        pthread_t thread;
        begin_to_wait();
        CHECK(pthread_create(&thread, NULL, end_the_process, NULL) == 0);
        pthread_join(thread, NULL);
    } else if (strcmp(how, "_exit") == 0) {
        begin_to_wait();
        _exit(0);
    } else if (strcmp(how, "abort") == 0) {
        abort();
    } else if (strcmp(how, "kill") == 0) {
        begin_to_wait();
        raise(SIGKILL);
    } else if (strcmp(how, "free and return") == 0) {
        RedLockLease_Free(held);
        RedLock_Free(manager);
    } else {
        CHECK(strcmp(how, "return") == 0);
    }
}

int main(int argc, char **argv) {
    no_longer_than(60);
    /* A process that aborts leaves no core behind. */
    struct rlimit none = {0, 0};
    CHECK(setrlimit(RLIMIT_CORE, &none) == 0);
    CHECK(argc > 2);
    manager = manager_of(argc - 2, argv + 2);
    connect_to_all(manager);
    held = new_lease();
    EXPECT(REDLOCK_OK, RedLock_Lock(manager, "held", HELD_MS, held), held);
    tell_and_await("held");
    end(argv[1]);
    return 0;
}

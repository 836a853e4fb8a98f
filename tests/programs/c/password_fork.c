/* A process with a password callback forks, also within the callback, and its children lock. The
 * arguments: the password of the user `locker`, and the servers. */
#include <pthread.h>

#include "guest.h"

static const char *secret;
static RedLock *manager;
static pid_t asked_in;
static int asked;
static bool forks_when_asked;

static void lock_and_unlock(void) {
    RedLockLease *lease = new_lease();
    EXPECT(REDLOCK_OK, RedLock_TryLock(manager, "r", TTL_MS, 20000, lease), lease);
    EXPECT(REDLOCK_OK, RedLock_Unlock(manager, lease), lease);
    RedLockLease_Free(lease);
}

static void child_locks(void) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        no_longer_than(60);
        lock_and_unlock();
        CHECK(asked > 0 && asked_in == getpid());
        RedLock_Free(manager);
        _exit(0);
    }
    reap(child);
}

static bool answer(const char *server, char *password, size_t size, void *data) {
    CHECK(data == &asked && server[0] && size > strlen(secret));
    if (forks_when_asked) {
        forks_when_asked = false;
        asked = 0;
        child_locks();
    }
    asked++;
    asked_in = getpid();
    memcpy(password, secret, strlen(secret) + 1);
    return true;
}

static void *locks(void *nothing) {
    for (int i = 0; i < 200; i++) {
        lock_and_unlock();
    }
    return nothing;
}

int main(int argc, char **argv) {
    no_longer_than(120);
    CHECK(argc > 2);
    secret = argv[1];
    manager = manager_of(argc - 2, argv + 2);
    CHECK(RedLock_SetPasswordCallback(manager, "locker", answer, &asked, NULL) == REDLOCK_OK);

    /* Before the callback was ever called, within it, and after that. */
    child_locks();
    forks_when_asked = true;
    lock_and_unlock();
    asked = 0;
    child_locks();

    pthread_t others[3];
    for (int i = 0; i < 3; i++) {
        CHECK(pthread_create(&others[i], NULL, locks, NULL) == 0);
    }
    for (int i = 0; i < 10; i++) {
        child_locks();
    }
    for (int i = 0; i < 3; i++) {
        CHECK(pthread_join(others[i], NULL) == 0);
    }
    RedLock_Free(manager);
    return 0;
}

/* The library does not change the process's threads, signal handlers, mask and standard
 * descriptors, neither afterwards nor meanwhile. Descriptors that the library opens are closed on
 * exec. */
#include "guest.h"

static struct sigaction actions[NSIG];
static sigset_t mask;
static stack_t alternate;

static void remember_signals(void) {
    for (int i = 1; i < NSIG; i++) {
        memset(&actions[i], 0, sizeof actions[i]);
        sigaction(i, NULL, &actions[i]);
    }
    memset(&mask, 0, sizeof mask);
    CHECK(sigprocmask(SIG_SETMASK, NULL, &mask) == 0);
    CHECK(sigaltstack(NULL, &alternate) == 0);
}

static void signals_are_as_they_were(void) {
    for (int i = 1; i < NSIG; i++) {
        struct sigaction now;
        memset(&now, 0, sizeof now);
        sigaction(i, NULL, &now);
        CHECK(now.sa_handler == actions[i].sa_handler && now.sa_flags == actions[i].sa_flags);
    }
    sigset_t mask_now;
    memset(&mask_now, 0, sizeof mask_now);
    CHECK(sigprocmask(SIG_SETMASK, NULL, &mask_now) == 0);
    CHECK(memcmp(&mask_now, &mask, sizeof mask) == 0);
    stack_t alternate_now;
    CHECK(sigaltstack(NULL, &alternate_now) == 0);
    CHECK(alternate_now.ss_flags == alternate.ss_flags && alternate_now.ss_sp == alternate.ss_sp);
}

/* Among the first hundred, and there are fewer than that. */
static void all_new_descriptors_are_closed_on_exec(const bool *before) {
    int found = 0;
    for (int fd = 0; fd < 100; fd++) {
        int flags = fcntl(fd, F_GETFD);
        if (flags >= 0 && !before[fd]) {
            CHECK(flags & FD_CLOEXEC);
            found++;
        }
    }
    CHECK(found > 0);
}

static void good_guest(RedLock *rl) {
    RedLockLease *lease = new_lease();
    bool locked;
    CHECK(RedLock_Connect(rl, 0) == REDLOCK_OK);
    for (int i = 0; i < 100; i++) {
        EXPECT(REDLOCK_OK, RedLock_Lock(rl, "r", TTL_MS, lease), lease);
        EXPECT(REDLOCK_OK, RedLock_Extend(rl, lease, TTL_MS), lease);
        EXPECT(REDLOCK_OK, RedLock_ContinueLock(rl, "r", TTL_MS, lease), lease);
        EXPECT(REDLOCK_OK, RedLock_Confirm(rl, lease, 1), lease);
        CHECK(RedLock_IsLocked(rl, "r", &locked) == REDLOCK_OK && locked);
        EXPECT(REDLOCK_OK, RedLock_Unlock(rl, lease), lease);
        CHECK(threads() == 1);
    }
    RedLockLease_Free(lease);
}

int main(int argc, char **argv) {
    no_longer_than(60);
    int input_flags = fcntl(STDIN_FILENO, F_GETFL);
    bool open_before[100];
    for (int fd = 0; fd < 100; fd++) {
        open_before[fd] = fcntl(fd, F_GETFD) >= 0;
    }
    remember_signals();
    RedLock *rl = manager_of(argc - 1, argv + 1);
    signals_are_as_they_were();
    CHECK(threads() == 1);
    good_guest(rl);
    all_new_descriptors_are_closed_on_exec(open_before);
    signals_are_as_they_were();
    CHECK(fcntl(STDIN_FILENO, F_GETFL) == input_flags);
    CHECK(threads() == 1);
    RedLock_Free(rl);
    for (int fd = 0; fd < 100; fd++) {
        CHECK((fcntl(fd, F_GETFD) >= 0) == open_before[fd]);
    }
    signals_are_as_they_were();
    return 0;
}

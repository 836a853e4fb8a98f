/* A process that has reached its limits: it gets no more descriptors, processes, threads or files,
 * however many there are. Calls fail, or succeed. Afterwards all is as before. */
#include <sys/resource.h>

#include "guest.h"

static char **servers;
static int server_count;

static struct rlimit limit_to(int resource, rlim_t count) {
    struct rlimit before, now;
    CHECK(getrlimit(resource, &before) == 0);
    now = before;
    now.rlim_cur = count;
    CHECK(setrlimit(resource, &now) == 0);
    return before;
}

/* A limit is a descriptor number: this leaves none free below the highest in use. */
static void use_up_low_descriptors(void) {
    int highest = 0;
    for (int fd = 0; fd < 300; fd++) {
        if (fcntl(fd, F_GETFD) >= 0) {
            highest = fd;
        }
    }
    int fd;
    while ((fd = dup(STDIN_FILENO)) < highest) {
        CHECK(fd >= 0);
    }
    CHECK(close(fd) == 0);
}

/* The possible results of calls that get no descriptor. */
static bool is_failure(RedLockStatus status) {
    return status == REDLOCK_UNREACHABLE || status == REDLOCK_INTERNAL;
}

static void locks(RedLock *rl, RedLockLease *lease) {
    EXPECT(REDLOCK_OK, RedLock_TryLock(rl, "r", TTL_MS, 20000, lease), lease);
    EXPECT(REDLOCK_OK, RedLock_Extend(rl, lease, TTL_MS), lease);
    EXPECT(REDLOCK_OK, RedLock_Unlock(rl, lease), lease);
}

/* With this many spare descriptors, a new manager cannot get a quorum of connections. */
static void no_descriptors_for_a_new_manager(int spare) {
    int before = descriptors();
    RedLock *rl = manager_of(server_count, servers);
    CHECK(RedLock_SetRetry(rl, 2, 5) == REDLOCK_OK);
    RedLockLease *lease = new_lease();
    struct rlimit limit = limit_to(RLIMIT_NOFILE, (rlim_t)(before + spare));
    for (int i = 0; i < 5; i++) {
        bool locked;
        CHECK(is_failure(RedLock_Lock(rl, "r", TTL_MS, lease)));
        CHECK(RedLockLease_ErrorMessage(lease)[0]);
        CHECK(is_failure(RedLock_TryLock(rl, "r", TTL_MS, 0, lease)));
        CHECK(is_failure(RedLock_ContinueLock(rl, "r", TTL_MS, lease)));
        CHECK(is_failure(RedLock_IsLocked(rl, "r", &locked)));
        CHECK(is_failure(RedLock_Connect(rl, 100)));
        CHECK(!RedLockLease_IsHeld(lease));
    }
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    locks(rl, lease);
    RedLockLease_Free(lease);
    RedLock_Free(rl);
    CHECK(descriptors() == before);
}

/* A connected manager needs no more of them. */
static void no_descriptors_in_a_hold(void) {
    int before = descriptors();
    RedLock *rl = manager_of(server_count, servers);
    connect_to_all(rl);
    RedLockLease *lease = new_lease();
    EXPECT(REDLOCK_OK, RedLock_Lock(rl, "r", TTL_MS, lease), lease);
    struct rlimit limit = limit_to(RLIMIT_NOFILE, 3);
    EXPECT(REDLOCK_OK, RedLock_Extend(rl, lease, TTL_MS), lease);
    EXPECT(REDLOCK_OK, RedLock_Confirm(rl, lease, 1), lease);
    EXPECT(REDLOCK_OK, RedLock_Unlock(rl, lease), lease);
    locks(rl, lease);

    /* Once the connections are broken, no others can be made. */
    tell_and_await("break the connections");
    for (int i = 0; i < 5; i++) {
        CHECK(is_failure(RedLock_TryLock(rl, "r", TTL_MS, 0, lease)));
    }
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    locks(rl, lease);
    RedLockLease_Free(lease);
    RedLock_Free(rl);
    CHECK(descriptors() == before);
}

static void none_of_the_others_is_needed(void) {
    static const int resources[] = {RLIMIT_NPROC, RLIMIT_FSIZE, RLIMIT_MEMLOCK, RLIMIT_MSGQUEUE};
    for (size_t i = 0; i < sizeof resources / sizeof *resources; i++) {
        RedLock *rl = manager_of(server_count, servers);
        RedLockLease *lease = new_lease();
        struct rlimit limit = limit_to(resources[i], 0);
        locks(rl, lease);
        CHECK(setrlimit(resources[i], &limit) == 0);
        RedLockLease_Free(lease);
        RedLock_Free(rl);
    }
}

int main(int argc, char **argv) {
    no_longer_than(60);
    servers = argv + 1;
    server_count = argc - 1;
    use_up_low_descriptors();
    for (int spare = 0; spare < 4; spare++) {
        no_descriptors_for_a_new_manager(spare);
    }
    no_descriptors_in_a_hold();
    none_of_the_others_is_needed();
    return 0;
}

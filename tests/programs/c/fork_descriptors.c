/* A child that closed its inherited descriptors, as a daemon does, has its own files under the same
 * numbers. The library closes none of them. */
#include "guest.h"

static void child(RedLock *rl) {
    no_longer_than(20);
    int last = descriptors() + 3;
    for (int fd = 3; fd <= last; fd++) {
        close(fd);
    }
    int files[32];
    for (int i = 0; i < 32; i++) {
        files[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
        CHECK(files[i] >= 0);
    }
    RedLockLease *lease = new_lease();
    EXPECT(REDLOCK_OK, RedLock_Lock(rl, "childs", TTL_MS, lease), lease);
    EXPECT(REDLOCK_OK, RedLock_Unlock(rl, lease), lease);
    for (int i = 0; i < 32; i++) {
        char byte;
        CHECK(fcntl(files[i], F_GETFD) >= 0);
        CHECK(read(files[i], &byte, 1) == 0);
    }
    _exit(0);
}

int main(int argc, char **argv) {
    no_longer_than(60);
    RedLock *rl = manager_of(argc - 1, argv + 1);
    RedLockLease *lease = new_lease();
    EXPECT(REDLOCK_OK, RedLock_Lock(rl, "parents", TTL_MS, lease), lease);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        child(rl);
    }
    reap(pid);
    EXPECT(REDLOCK_OK, RedLock_Unlock(rl, lease), lease);
    RedLockLease_Free(lease);
    RedLock_Free(rl);
    return 0;
}

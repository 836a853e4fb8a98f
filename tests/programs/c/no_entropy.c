/* The system gives no random bytes. Then there is no lock, and no token that could be guessed.
 * Calls that need no token work. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "guest.h"

/* From now on these two system calls fail in this process, and no others do. */
static void deny(long first, long second, int error) {
    struct sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)first, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)second, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof program / sizeof *program, program};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0);
}

static void no_lock_is_had(RedLock *rl) {
    RedLockLease *lease = new_lease();
    for (int i = 0; i < 3; i++) {
        bool locked = true;
        EXPECT(REDLOCK_INTERNAL, RedLock_Lock(rl, "r", TTL_MS, lease), lease);
        EXPECT(REDLOCK_INTERNAL, RedLock_TryLock(rl, "r", TTL_MS, 100, lease), lease);
        EXPECT(REDLOCK_INTERNAL, RedLock_ContinueLock(rl, "r", TTL_MS, lease), lease);
        CHECK(RedLockLease_ErrorMessage(lease)[0]);
        CHECK(!RedLockLease_IsHeld(lease) && !RedLockLease_Token(lease)[0]);
        CHECK(RedLock_IsLocked(rl, "r", &locked) == REDLOCK_OK && !locked);
    }
    RedLockLease_Free(lease);
}

static void held_locks_are_kept(RedLock *rl, RedLockLease *held) {
    EXPECT(REDLOCK_OK, RedLock_Extend(rl, held, TTL_MS), held);
    EXPECT(REDLOCK_OK, RedLock_Confirm(rl, held, 1), held);
    EXPECT(REDLOCK_OK, RedLock_Unlock(rl, held), held);
}

/* Before it has drawn anything, in its own process. */
static void without_any(RedLock *rl, long first, long second, int error) {
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        no_longer_than(20);
        deny(first, second, error);
        no_lock_is_had(rl);
        _exit(0);
    }
    reap(pid);
}

int main(int argc, char **argv) {
    no_longer_than(60);
    RedLock *rl = manager_of(argc - 1, argv + 1);
    CHECK(RedLock_SetRetry(rl, 2, 5) == REDLOCK_OK);
    without_any(rl, SYS_getrandom, SYS_openat, EPERM);
    without_any(rl, SYS_getrandom, SYS_openat, ENOSYS);

    connect_to_all(rl);
    RedLockLease *held = new_lease();
    EXPECT(REDLOCK_OK, RedLock_Lock(rl, "held", TTL_MS, held), held);
    tell_and_await("held");
    deny(SYS_getrandom, SYS_openat, EPERM);
    no_lock_is_had(rl);
    held_locks_are_kept(rl, held);
    RedLockLease_Free(held);
    RedLock_Free(rl);
    return 0;
}

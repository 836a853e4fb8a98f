/* Servers that announce replies that would fill the memory. After the first look at them, this
 * process gets only a little more memory. A request for more fails, and that would end the process. */
#include <sys/resource.h>

#include "guest.h"

enum { MORE_KIB = 8 * 1024, ROUNDS = 5 };

/* A line of /proc/self/status, in KiB. */
static long status_kib(const char *name) {
    char line[256];
    long value = -1;
    FILE *status = fopen("/proc/self/status", "r");
    CHECK(status);
    while (fgets(line, sizeof line, status)) {
        if (strncmp(line, name, strlen(name)) == 0) {
            value = atol(line + strlen(name) + 1);
        }
    }
    fclose(status);
    CHECK(value > 0);
    return value;
}

static void call_everything(RedLock *rl, RedLockLease *lease) {
    bool locked;
    EXPECT(REDLOCK_UNREACHABLE, RedLock_TryLock(rl, "r", TTL_MS, 0, lease), lease);
    CHECK(!RedLockLease_IsHeld(lease));
    CHECK(RedLock_IsLocked(rl, "r", &locked) == REDLOCK_UNREACHABLE);
    CHECK(RedLock_Connect(rl, 300) <= REDLOCK_UNREACHABLE);
}

int main(int argc, char **argv) {
    no_longer_than(120);
    RedLock *rl = manager_of(argc - 1, argv + 1);
    CHECK(RedLock_SetTimeouts(rl, 300, 300) == REDLOCK_OK);
    CHECK(RedLock_SetRetry(rl, 1, 0) == REDLOCK_OK);
    RedLockLease *lease = new_lease();

    /* Tools that a program runs under use memory in their own way. */
    bool is_bare = getenv("REDLOCK_TEST_UNDER") == NULL;
    long before_kib = status_kib("VmHWM");
    if (is_bare) {
        rlim_t bytes = (rlim_t)(status_kib("VmSize") + 2 * MORE_KIB) * 1024;
        struct rlimit limit = {bytes, bytes};
        CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
    }
    for (int i = 0; i < ROUNDS; i++) {
        call_everything(rl, lease);
    }
    long more_kib = status_kib("VmHWM") - before_kib;
    if (is_bare && more_kib > MORE_KIB) {
        fprintf(stderr, "it took %ld KiB\n", more_kib);
        return 1;
    }
    RedLockLease_Free(lease);
    RedLock_Free(rl);
    return 0;
}

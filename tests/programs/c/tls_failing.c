/* Handshakes that fail, again and again, with peers of which most are no servers. Descriptors and
 * memory are released. */
#include <malloc.h>

#include "guest.h"

enum { ROUNDS = 40, WARM_UP = 10, SPARE = 16 * 1024 };

static size_t in_use(void) {
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

static void fail(RedLock *rl, RedLockLease *lease) {
    bool locked;
    EXPECT(REDLOCK_UNREACHABLE, RedLock_TryLock(rl, "r", TTL_MS, 0, lease), lease);
    CHECK(RedLock_IsLocked(rl, "r", &locked) == REDLOCK_UNREACHABLE);
    CHECK(RedLock_Connect(rl, 30) == REDLOCK_UNREACHABLE);
}

int main(int argc, char **argv) {
    no_longer_than(120);
    RedLockLease *lease = new_lease();
    int started_with = descriptors();
    size_t before = 0;
    for (int i = 0; i < ROUNDS; i++) {
        RedLock *rl = manager_of(argc - 1, argv + 1);
        CHECK(RedLock_SetTimeouts(rl, i % 4 ? 30 : 400, 50) == REDLOCK_OK);
        CHECK(RedLock_SetRetry(rl, 1, 0) == REDLOCK_OK);
        for (int j = 0; j < 3; j++) {
            fail(rl, lease);
            /* One per server, and those by which threads meet. */
            CHECK(descriptors() <= started_with + argc - 1 + 2);
        }
        RedLock_Free(rl);
        CHECK(descriptors() == started_with);
        if (i == WARM_UP) {
            before = in_use();
        }
    }
    CHECK(is_under_a_tool() || in_use() <= before + SPARE);
    RedLockLease_Free(lease);
    return 0;
}

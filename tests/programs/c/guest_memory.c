/* How much memory an idle manager keeps, once it has been used. */
#include <malloc.h>

#include "guest.h"

static size_t in_use(void) {
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

static void use(RedLock *rl, const char *resource, int cycles) {
    RedLockLease *lease = new_lease();
    for (int i = 0; i < cycles; i++) {
        EXPECT(REDLOCK_OK, RedLock_Lock(rl, resource, TTL_MS, lease), lease);
        EXPECT(REDLOCK_OK, RedLock_Extend(rl, lease, TTL_MS), lease);
        EXPECT(REDLOCK_OK, RedLock_Unlock(rl, lease), lease);
    }
    RedLockLease_Free(lease);
}

/* A call returns when a quorum has answered. Requests and answers of the other servers are kept
 * until they are complete. Later calls complete them. */
static size_t kept_when_all_was_heard(RedLock *rl, size_t before, size_t limit) {
    bool locked;
    size_t kept = limit + 1;
    for (int i = 0; i < 250 && (i < 3 || kept > limit); i++) {
        usleep(20000);
        CHECK(RedLock_IsLocked(rl, "r", &locked) == REDLOCK_OK);
        kept = in_use() - before;
    }
    return kept;
}

static void stays_small(RedLock *rl, size_t before, int servers, const char *when) {
    size_t limit = 64 * 1024 + (size_t)servers * 32 * 1024;
    size_t kept = kept_when_all_was_heard(rl, before, limit);
    if (kept > limit) {
        fprintf(stderr, "%s it keeps %zu bytes of at most %zu\n", when, kept, limit);
        exit(1);
    }
}

int main(int argc, char **argv) {
    no_longer_than(60);
    CHECK(argc > 2);
    int servers = argc - 2;
    /* Memory that the C library allocates for itself at its first use is not ours. */
    RedLock *first = manager_of(servers, argv + 2);
    use(first, "r", 1);
    RedLock_Free(first);

    size_t before = in_use();
    RedLock *rl = manager_of(servers, argv + 2);
    CHECK(RedLock_Connect(rl, 0) == REDLOCK_OK);
    stays_small(rl, before, servers, "connected");
    use(rl, "r", 500);
    stays_small(rl, before, servers, "after 500 locks");
    if (strcmp(argv[1], "long") == 0) {
        char *name = malloc(64 * 1024 + 1);
        memset(name, 'x', 64 * 1024);
        name[64 * 1024] = 0;
        use(rl, name, 20);
        free(name);
        stays_small(rl, before, servers, "after names of 64 KiB");
    } else {
        for (int i = 0; i < 500; i++) {
            char resource[32];
            snprintf(resource, sizeof resource, "resource-%d", i);
            use(rl, resource, 1);
        }
        stays_small(rl, before, servers, "after 500 resources");
    }
    RedLock_Free(rl);
    size_t after = in_use();
    if (after > before) {
        fprintf(stderr, "freed, it keeps %zu bytes\n", after - before);
        exit(1);
    }
    return 0;
}

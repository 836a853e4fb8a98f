/* Thousands of bad calls, with all combinations of bad and good arguments, while a lock is held.
 * Each is refused, none has an effect, and no memory and no descriptor is lost. */
#include <float.h>
#include <limits.h>
#include <malloc.h>
#include <math.h>

#include "guest.h"

/* A status that no call gives. */
#define NONE ((RedLockStatus)-100)
#define COUNT(array) (sizeof(array) / sizeof *(array))

static RedLock *manager, *bare;
static RedLockLease *held, *empty;
static char token[41];
static char *longest, *too_long;
static int calls;

/* The call was refused, and the lock is as it was. */
static void refused(RedLockStatus status, RedLockStatus otherwise) {
    calls++;
    CHECK(status == REDLOCK_INVALID_ARGUMENT || status == otherwise);
    CHECK(RedLockLease_IsHeld(held));
    CHECK(RedLockLease_RemainingMs(held) > 0);
    CHECK(strcmp(RedLockLease_Token(held), token) == 0);
    CHECK(strcmp(RedLockLease_Resource(held), "held") == 0);
    CHECK(!RedLockLease_IsHeld(empty));
    CHECK(RedLockLease_Token(empty)[0] == 0);
}

/* Good arguments come first. Every other choice is a bad call. */
static void bad_locks(void) {
    RedLock *managers[] = {manager, bare, NULL};
    const char *resources[] = {"other", "held", "\xff\xfe", "a\r\nDEL held\r\n", "%s%n%99999s", "{}{0}",
                               longest, "", too_long, NULL};
    const size_t good_resources = 7;
    const int64_t ttls[] = {TTL_MS, 0, -1, 1, 2, 3, INT64_MAX, INT64_MIN, 315360000001};
    const int64_t waits[] = {0, 1, -1, INT64_MAX, INT64_MIN};
    RedLockLease *leases[] = {empty, held, NULL};
    for (size_t m = 0; m < COUNT(managers); m++) {
        for (size_t r = 0; r < COUNT(resources); r++) {
            for (size_t t = 0; t < COUNT(ttls); t++) {
                for (size_t l = 0; l < COUNT(leases); l++) {
                    if (m + t + l == 0 && r < good_resources) {
                        continue;
                    }
                    RedLockStatus none = managers[m] == bare ? REDLOCK_NO_SERVERS : NONE;
                    RedLock *rl = managers[m];
                    const char *resource = resources[r];
                    refused(RedLock_Lock(rl, resource, ttls[t], leases[l]), none);
                    for (size_t w = 0; w < COUNT(waits); w++) {
                        refused(RedLock_TryLock(rl, resource, ttls[t], waits[w], leases[l]), none);
                    }
                    if (m == 0 && r == 1 && t == 0 && leases[l] == held) {
                        continue;
                    }
                    refused(RedLock_ContinueLock(rl, resource, ttls[t], leases[l]), none);
                }
            }
        }
    }
}

static void bad_keeping(void) {
    RedLock *managers[] = {manager, bare, NULL};
    const int64_t ttls[] = {TTL_MS, 0, -1, 1, 2, 3, INT64_MAX, INT64_MIN, 315360000001};
    const int64_t leasts[] = {0, -1, INT64_MIN};
    for (size_t m = 0; m < COUNT(managers); m++) {
        RedLockStatus none = managers[m] == bare ? REDLOCK_NO_SERVERS : REDLOCK_LOST;
        RedLockLease *leases[] = {empty, held, NULL};
        for (size_t l = 0; l < COUNT(leases); l++) {
            bool is_good = managers[m] == manager && leases[l] == held;
            for (size_t t = is_good; t < COUNT(ttls); t++) {
                refused(RedLock_Extend(managers[m], leases[l], ttls[t]), none);
            }
            for (size_t t = is_good; t < COUNT(leasts); t++) {
                refused(RedLock_Confirm(managers[m], leases[l], leasts[t]), none);
            }
            if (!is_good) {
                refused(RedLock_Unlock(managers[m], leases[l]), none);
            }
        }
    }
}

static void bad_settings(void) {
    RedLock *managers[] = {manager, NULL};
    const int counts[] = {1, 0, -1, INT_MIN};
    const int delays[] = {0, -1, INT_MIN};
    const int64_t connects[] = {1500, 0, -1, 86400001, INT64_MAX, INT64_MIN};
    const int64_t replies[] = {0, -1, 86400001, INT64_MAX, INT64_MIN};
    const double factors[] = {NAN, -NAN, INFINITY, -INFINITY, -1, -DBL_MIN, 1, 1 + DBL_EPSILON};
    for (size_t m = 0; m < COUNT(managers); m++) {
        for (size_t c = 0; c < COUNT(counts); c++) {
            for (size_t d = c == 0 && m == 0; d < COUNT(delays); d++) {
                refused(RedLock_SetRetry(managers[m], counts[c], delays[d]), NONE);
            }
        }
        for (size_t c = 0; c < COUNT(connects); c++) {
            for (size_t r = c == 0 && m == 0; r < COUNT(replies); r++) {
                refused(RedLock_SetTimeouts(managers[m], connects[c], replies[r]),
                        NONE);
            }
        }
        for (size_t f = 0; f < COUNT(factors); f++) {
            refused(RedLock_SetClockDriftFactor(managers[m], factors[f]), NONE);
        }
    }
    refused(RedLock_SetLogger(NULL, NULL, NULL, NULL), NONE);
    refused(RedLock_Connect(manager, -1), NONE);
    refused(RedLock_Connect(manager, INT64_MIN), NONE);
    refused(RedLock_Connect(NULL, 0), NONE);
    refused(RedLock_Connect(bare, 0), REDLOCK_NO_SERVERS);
}

static void bad_servers(void) {
    const char *places[] = {NULL, "", " ", "a b", "h:0", "redis://", "redis://h:x", "rediss://",
                            "http://h", "\xff", "redis://h/x", "unix://", "://", "h\r\n", "redis://%ff@h",
                            "redis://[::1", "redis://h:65536", "redis://h:-1", "redis://h/-1", "%s%n{}",
                            "unix://relative", "redis://u:p@", "redis+tls://h", "127.0.0.1:6379:1",
                            longest, too_long};
    const int ports[] = {0, 1, -1, 65535, 65536, INT_MAX, INT_MIN};
    RedLock *managers[] = {manager, bare, NULL};
    for (size_t m = 0; m < COUNT(managers); m++) {
        for (size_t i = 0; i < COUNT(places); i++) {
            for (size_t p = 0; p < COUNT(ports); p++) {
                refused(RedLock_AddServerUrl(managers[m], places[i], ports[p]), NONE);
            }
        }
        refused(RedLock_AddServerUrl(managers[m], "127.0.0.1", 65536), NONE);
        if (managers[m] != bare) {
            refused(RedLock_AddServerUrl(managers[m], "127.0.0.1", 1), NONE);
        }
    }
}

static void bad_questions(void) {
    RedLock *managers[] = {manager, bare, NULL};
    const char *resources[] = {"held", "", too_long, NULL};
    for (size_t m = 0; m < COUNT(managers); m++) {
        RedLockStatus none = managers[m] == bare ? REDLOCK_NO_SERVERS : NONE;
        for (size_t r = 0; r < COUNT(resources); r++) {
            bool locked = true;
            if (m + r > 0) {
                refused(RedLock_IsLocked(managers[m], resources[r], &locked), none);
            }
            refused(RedLock_IsLocked(managers[m], resources[r], NULL), none);
        }
    }
    for (int i = 0; i < 10; i++) {
        RedLock_Free(NULL);
        RedLockLease_Free(NULL);
        CHECK(!RedLockLease_IsHeld(NULL));
        CHECK(RedLockLease_RemainingMs(NULL) == 0 && RedLockLease_ValidityMs(NULL) == 0);
        CHECK(RedLockLease_Resource(NULL)[0] == 0 && RedLockLease_Token(NULL)[0] == 0);
        CHECK(RedLockLease_ErrorMessage(NULL) && RedLock_ErrorMessage(NULL));
        calls += 6;
    }
}

/* Freed handles, in a program that always sets them to NULL then, and a lease that was released. */
static void gone_handles(void) {
    for (int i = 0; i < 20; i++) {
        RedLock *rl = RedLock_New();
        RedLockLease *lease = RedLockLease_New();
        CHECK(rl && lease);
        refused(RedLock_Unlock(manager, lease), REDLOCK_LOST);
        refused(RedLock_Extend(manager, lease, TTL_MS), REDLOCK_LOST);
        refused(RedLock_Confirm(manager, lease, 0), REDLOCK_LOST);
        RedLock_Free(rl);
        rl = NULL;
        RedLockLease_Free(lease);
        lease = NULL;
        bool locked = true;
        refused(RedLock_Lock(rl, "other", TTL_MS, lease), NONE);
        refused(RedLock_Lock(manager, "other", TTL_MS, lease), NONE);
        refused(RedLock_TryLock(rl, "other", TTL_MS, -1, empty), NONE);
        refused(RedLock_ContinueLock(rl, "held", TTL_MS, held), NONE);
        refused(RedLock_Extend(rl, held, TTL_MS), NONE);
        refused(RedLock_Extend(manager, lease, TTL_MS), NONE);
        refused(RedLock_Unlock(rl, held), NONE);
        refused(RedLock_Unlock(manager, lease), NONE);
        refused(RedLock_Confirm(rl, held, 0), NONE);
        refused(RedLock_IsLocked(rl, "held", &locked), NONE);
        CHECK(!locked);
        refused(RedLock_AddServerUrl(rl, "127.0.0.1", 1), NONE);
        RedLock_Free(rl);
        RedLockLease_Free(lease);
        calls += 2;
    }
}

static void all_bad_calls(void) {
    bad_locks();
    gone_handles();
    bad_keeping();
    bad_settings();
    bad_servers();
    bad_questions();
}

int main(int argc, char **argv) {
    no_longer_than(60);
    longest = calloc(1, 65537);
    too_long = calloc(1, 65538);
    CHECK(longest && too_long);
    memset(longest, 'x', 65536);
    memset(too_long, 'x', 65537);
    bare = RedLock_New();
    manager = manager_of(argc - 1, argv + 1);
    connect_to_all(manager);
    held = new_lease();
    empty = new_lease();
    EXPECT(REDLOCK_OK, RedLock_Lock(manager, "held", TTL_MS, held), held);
    snprintf(token, sizeof token, "%s", RedLockLease_Token(held));

    tell_and_await("held");
    all_bad_calls();
    int opened = descriptors();
    size_t used = mallinfo2().uordblks;
    calls = 0;
    all_bad_calls();
    CHECK(descriptors() == opened);
    /* A message with a time may be longer than it was. A leak would be as large as thousands of calls. */
    CHECK(mallinfo2().uordblks <= used + 256);
    char words[32];
    snprintf(words, sizeof words, "refused %d", calls);
    tell_and_await(words);

    EXPECT(REDLOCK_OK, RedLock_Confirm(manager, held, 1), held);
    EXPECT(REDLOCK_OK, RedLock_Unlock(manager, held), held);
    RedLockLease_Free(held);
    RedLockLease_Free(empty);
    RedLock_Free(manager);
    RedLock_Free(bare);
    free(longest);
    free(too_long);
    return 0;
}

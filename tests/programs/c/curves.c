/* Builds a state of some size, and then does one piece of work beside it. The test counts what the
 * work costs: valgrind counts the instructions of `measured`, and the servers count their commands.
 * Arguments: the name of a curve, the size, and the servers. */
#include <malloc.h>

#include "guest.h"

/* How often a piece of work is repeated: so often that one answer more or less that comes alone
 * decides nothing. */
#define REPEATED 200

/* Logging in is more work, and competitors hold the lock for a while: fewer will do. */
#define FEWER 50

/* Long enough that thousands of locks are kept under valgrind on a busy machine, too: a renewal takes
 * a quarter of a millisecond of the processor there, and each lock is renewed every 12 s. */
#define KEPT_TTL_MS 48000

#define NAME_SIZE 32

static RedLock *rl;
static int size, servers;
static char **urls;

static RedLockAcquireOptions wanted(const char *resource) {
    RedLockAcquireOptions options = REDLOCK_ACQUIRE_OPTIONS_INIT;
    options.resource = resource;
    options.ttl_ms = TTL_MS;
    options.wait_ms = -1;
    return options;
}

/* Takes a lock and returns the lease that holds it. */
static RedLockLease *take(const RedLockAcquireOptions *options) {
    RedLockLease *lease = new_lease();
    EXPECT(REDLOCK_OK, RedLock_Acquire(rl, options, lease), lease);
    return lease;
}

static void cycle(RedLock *manager, const RedLockAcquireOptions *options, RedLockLease *lease) {
    EXPECT(REDLOCK_OK, RedLock_Acquire(manager, options, lease), lease);
    EXPECT(REDLOCK_OK, RedLock_Unlock(manager, lease), lease);
}

/* Takes and releases the same again and again. */
static int64_t cycles(const RedLockAcquireOptions *options) {
    RedLockLease *lease = new_lease();
    for (int i = 0; i < REPEATED; i++) {
        cycle(rl, options, lease);
    }
    RedLockLease_Free(lease);
    return REPEATED;
}

/* Takes and releases so many locks, each with a name that was not used before. */
static int64_t cycle_names(const char *kind, int count) {
    RedLockLease *lease = new_lease();
    for (int i = 0; i < count; i++) {
        char name[NAME_SIZE];
        snprintf(name, sizeof name, "%s-%d", kind, i);
        RedLockAcquireOptions options = wanted(name);
        cycle(rl, &options, lease);
    }
    RedLockLease_Free(lease);
    return count;
}

/* The lock that is taken beside all others. */
static int64_t one_more(void) {
    RedLockAcquireOptions options = wanted("one more");
    return cycles(&options);
}

static RedLockStats stats_of(RedLock *manager) {
    RedLockStats stats = REDLOCK_STATS_INIT;
    CHECK(RedLock_GetStats(manager, &stats) == REDLOCK_OK);
    return stats;
}

/* servers: there are more of them, and nothing else. */
static void no_state(void) {}

static int64_t use_servers(void) { return one_more() * servers; }

/* names: other names were used before. */
static void use_names(void) { cycle_names("before", size); }

static int64_t use_new_names(void) { return cycle_names("after", REPEATED); }

/* several: one lock has many names. */
static int64_t use_several(void) {
    char (*names)[NAME_SIZE] = calloc((size_t)size, sizeof *names);
    const char **resources = calloc((size_t)size, sizeof *resources);
    CHECK(names && resources);
    for (int i = 0; i < size; i++) {
        snprintf(names[i], sizeof names[i], "several-%d", i);
        resources[i] = names[i];
    }
    RedLockAcquireOptions options = wanted(NULL);
    options.resources = resources;
    options.resource_count = (size_t)size;
    int64_t done = cycles(&options);
    free(resources);
    free(names);
    return done * size;
}

/* permits: all permits of a semaphore but one are taken, and the last one is used. A request names
 * the key of each permit, so the work is counted by permit. */
static RedLockAcquireOptions permit(void) {
    RedLockAcquireOptions options = wanted("semaphore");
    options.permits = size;
    return options;
}

static void take_permits(void) {
    RedLockAcquireOptions options = permit();
    for (int i = 1; i < size; i++) {
        take(&options);
    }
}

static int64_t use_last_permit(void) {
    RedLockAcquireOptions options = permit();
    return cycles(&options) * size;
}

/* managers: others of this process are connected, too. A new one does all that a manager does. */
static void make_managers(void) {
    RedLockAcquireOptions options = wanted("another");
    RedLockLease *lease = new_lease();
    for (int i = 0; i < size; i++) {
        RedLock *manager = manager_of(servers, urls);
        connect_to_all(manager);
        cycle(manager, &options, lease);
    }
    RedLockLease_Free(lease);
}

static int64_t use_managers(void) {
    RedLockAcquireOptions options = wanted("another");
    RedLockLease *lease = new_lease();
    for (int i = 0; i < FEWER; i++) {
        RedLock *manager = manager_of(servers, urls);
        connect_to_all(manager);
        cycle(manager, &options, lease);
        RedLock_Free(manager);
    }
    RedLockLease_Free(lease);
    return FEWER;
}

/* held: other locks are held. */
static void hold_others(void) {
    for (int i = 0; i < size; i++) {
        char name[NAME_SIZE];
        snprintf(name, sizeof name, "held-%d", i);
        RedLockAcquireOptions options = wanted(name);
        take(&options);
    }
}

/* kept: locks are kept alive, and the work is to renew as many as there are. */
static void keep_others(void) {
    CHECK(RedLock_Descriptor(rl) >= 0);
    for (int i = 0; i < size; i++) {
        char name[NAME_SIZE];
        snprintf(name, sizeof name, "kept-%d", i);
        RedLockAcquireOptions options = wanted(name);
        options.ttl_ms = KEPT_TTL_MS;
        options.keep_alive = 1;
        take(&options);
    }
}

static int64_t renew(void) {
    uint64_t before = stats_of(rl).renewed, renewed = 0;
    while (renewed < (uint64_t)size) {
        RedLockEvent event = REDLOCK_EVENT_INIT;
        CHECK(RedLock_NextEvent(rl, 100, &event) == REDLOCK_NO_EVENT);
        renewed = stats_of(rl).renewed - before;
    }
    CHECK(stats_of(rl).kept == (uint64_t)size);
    return (int64_t)renewed;
}

/* shared: this manager has the lock as a reader often, and takes it once more. */
static RedLockAcquireOptions reader(void) {
    RedLockAcquireOptions options = wanted("shared");
    options.mode = REDLOCK_SHARED;
    return options;
}

static void read_often(void) {
    RedLockAcquireOptions options = reader();
    for (int i = 0; i < size; i++) {
        take(&options);
    }
}

static int64_t read_once_more(void) {
    RedLockAcquireOptions options = reader();
    return cycles(&options);
}

/* reconnects: the servers have closed all connections so often before, while a lock was held. */
static void reconnect(int count) {
    RedLockAcquireOptions options = wanted("between");
    RedLockLease *lease = new_lease();
    for (int i = 0; i < count; i++) {
        uint64_t before = stats_of(rl).connections;
        tell_and_await("hang up");
        while (stats_of(rl).connections < before + (uint64_t)servers) {
            usleep(2000);
            RedLock_Connect(rl, 0);
        }
        cycle(rl, &options, lease);
    }
    RedLockLease_Free(lease);
}

static void reconnect_before(void) {
    RedLockAcquireOptions options = wanted("held");
    take(&options);
    reconnect(size);
}

static int64_t reconnect_again(void) {
    reconnect(FEWER);
    return FEWER;
}

/* processes: so many want one lock, each with a manager of its own. They begin when all are
 * connected: otherwise the first has finished before the last one wants anything. */
static void contend_once(int ready, int begin) {
    RedLockAcquireOptions options = wanted("contended");
    char byte = 0;
    rl = manager_of(servers, urls);
    connect_to_all(rl);
    CHECK(write(ready, &byte, 1) == 1);
    CHECK(read(begin, &byte, 1) == 0);
    RedLockLease *lease = new_lease();
    for (int i = 0; i < FEWER; i++) {
        EXPECT(REDLOCK_OK, RedLock_Acquire(rl, &options, lease), lease);
        /* Otherwise there is nothing to wait for, and it is chance who comes first. */
        usleep(1000);
        EXPECT(REDLOCK_OK, RedLock_Unlock(rl, lease), lease);
    }
    RedLockLease_Free(lease);
    free_when_all_have_heard(rl);
    _exit(0);
}

static int64_t contend(void) {
    int ready[2], begin[2];
    CHECK(pipe(ready) == 0 && pipe(begin) == 0);
    for (int i = 0; i < size; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            close(begin[1]);
            contend_once(ready[1], begin[0]);
        }
    }
    char byte;
    for (int i = 0; i < size; i++) {
        CHECK(read(ready[0], &byte, 1) == 1);
    }
    close(begin[1]);
    for (int i = 0; i < size; i++) {
        reap(-1);
    }
    return (int64_t)size * FEWER;
}

static const struct curve {
    const char *name;
    void (*build)(void);
    int64_t (*work)(void);
} curves[] = {
    {"servers", no_state, use_servers},
    {"names", use_names, use_new_names},
    {"several", no_state, use_several},
    {"permits", take_permits, use_last_permit},
    {"processes", no_state, contend},
    {"managers", make_managers, use_managers},
    {"held", hold_others, one_more},
    {"kept", keep_others, renew},
    {"shared", read_often, read_once_more},
    {"reconnects", reconnect_before, reconnect_again},
};

static const struct curve *curve_of(const char *name) {
    for (size_t i = 0; i < sizeof curves / sizeof *curves; i++) {
        if (strcmp(curves[i].name, name) == 0) {
            return &curves[i];
        }
    }
    fprintf(stderr, "there is no curve %s\n", name);
    exit(1);
}

/* valgrind counts what happens in this function, and finds it by its name. Returns how many units
 * of work were done. */
static __attribute__((noinline)) int64_t measured(const struct curve *curve) {
    int64_t units = curve->work();
    CHECK(units > 0);
    return units;
}

int main(int argc, char **argv) {
    no_longer_than(120);
    CHECK(argc > 3);
    const struct curve *curve = curve_of(argv[1]);
    size = atoi(argv[2]);
    servers = argc - 3;
    urls = argv + 3;
    rl = manager_of(servers, urls);
    connect_to_all(rl);
    /* What the first of all does is no part of any curve. */
    one_more();
    curve->build();
    tell_and_await("begin");
    int64_t units = measured(curve);
    struct mallinfo2 info = mallinfo2();
    char counted[NAME_SIZE * 2];
    snprintf(counted, sizeof counted, "%lld %zu", (long long)units, info.uordblks + info.hblkhd);
    tell_and_await(counted);
    return 0;
}

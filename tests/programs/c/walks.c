/* Does one thing again and again. The test counts what it costs: valgrind counts instructions, and the
 * servers count their commands.
 * Arguments: the name of a walk, how often, and the servers. */
#include "guest.h"

static RedLock *rl, *other;
static RedLockLease *lease, *others;
static RedLockAcquireOptions options = REDLOCK_ACQUIRE_OPTIONS_INIT;

static void lock(void) { EXPECT(REDLOCK_OK, RedLock_Acquire(rl, &options, lease), lease); }

static void unlock(void) { EXPECT(REDLOCK_OK, RedLock_Unlock(rl, lease), lease); }

static void wait_for_event(int32_t kind) {
    RedLockEvent event = REDLOCK_EVENT_INIT;
    CHECK(RedLock_NextEvent(rl, -1, &event) == REDLOCK_OK);
    CHECK(event.kind == kind);
}

/* Another client has the lock. Ours waits in the queue of the servers, and its place is taken there
 * when it has asked each server twice. */
static void wait_in_line(void) {
    EXPECT(REDLOCK_OK, RedLock_Acquire(other, &options, others), others);
    RedLockAcquireOptions waiting = options;
    waiting.wait_ms = -1;
    CHECK(RedLock_SubmitAcquire(rl, &waiting, lease, NULL) == REDLOCK_OK);
    RedLockEvent event = REDLOCK_EVENT_INIT;
    CHECK(RedLock_NextEvent(rl, 200, &event) == REDLOCK_NO_EVENT);
    EXPECT(REDLOCK_OK, RedLock_Unlock(other, others), others);
}

static void be_woken(void) {
    wait_for_event(REDLOCK_EVENT_DONE);
    CHECK(RedLockLease_IsHeld(lease));
}

/* A kept lock, whose keys are deleted then. */
static void keep_and_lose(void) {
    lock();
    tell_and_await("forget");
}

static void notice_the_loss(void) {
    wait_for_event(REDLOCK_EVENT_LOST);
    CHECK(!RedLockLease_IsHeld(lease));
}

static void nothing(void) {}

static void release_what_is_left(void) { RedLock_Unlock(rl, lease); }

static const struct walk {
    const char *name;
    void (*before)(void);
    void (*walk)(void);
    void (*after)(void);
} walks[] = {
    {"lock", nothing, lock, unlock},
    {"unlock", lock, unlock, nothing},
    {"push", wait_in_line, be_woken, unlock},
    {"failing renewal", keep_and_lose, notice_the_loss, release_what_is_left},
    {"shared release", lock, unlock, nothing},
    {"fenced lock", nothing, lock, unlock},
};

static const struct walk *walk_of(const char *name) {
    for (size_t i = 0; i < sizeof walks / sizeof *walks; i++) {
        if (strcmp(walks[i].name, name) == 0) {
            return &walks[i];
        }
    }
    fprintf(stderr, "there is no walk %s\n", name);
    exit(1);
}

/* valgrind counts what happens in this function, and finds it by its name. */
static __attribute__((noinline)) void measured(const struct walk *walk) { walk->walk(); }

int main(int argc, char **argv) {
    no_longer_than(120);
    CHECK(argc > 3);
    const struct walk *walk = walk_of(argv[1]);
    rl = manager_of(argc - 3, argv + 3);
    other = manager_of(argc - 3, argv + 3);
    lease = new_lease();
    others = new_lease();
    options.resource = "walk";
    options.ttl_ms = TTL_MS;
    CHECK(RedLock_SetFencing(rl, strcmp(walk->name, "fenced lock") == 0) == REDLOCK_OK);
    options.mode = strcmp(walk->name, "shared release") == 0 ? REDLOCK_SHARED : REDLOCK_EXCLUSIVE;
    if (strcmp(walk->name, "failing renewal") == 0) {
        CHECK(RedLock_Descriptor(rl) >= 0);
        options.ttl_ms = 3000;
        options.keep_alive = 1;
    }
    connect_to_all(rl);
    connect_to_all(other);
    /* What is only done the first time is no part of a walk. */
    walk->before();
    walk->walk();
    walk->after();
    tell_and_await("begin");
    for (int i = 0; i < atoi(argv[2]); i++) {
        walk->before();
        measured(walk);
        walk->after();
    }
    tell_and_await("done");
    return 0;
}

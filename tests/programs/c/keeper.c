/* A process that keeps a lock, and obeys orders, one line each. The first argument selects the
 * driver: the library's own "thread", or this program, which asks for "events". The program reports
 * when the lock is kept, and when it was told that the lock is lost. The other arguments are the
 * servers. Before them, "taken" may say that the lock is taken as a shared one, or "made" that it
 * is downgraded. */
#include <poll.h>
#include <stdatomic.h>

#include "guest.h"

enum { KEPT_MS = 8000 };

static RedLock *manager;
static RedLockLease *lease;
static bool has_thread, is_taken_shared, is_made_shared;
/* How often it was told that the lock is lost. */
static atomic_int losses;

static void on_event(const RedLockEvent *event, void *user_data) {
    CHECK(user_data == &losses && event->kind == REDLOCK_EVENT_LOST);
    CHECK(event->lease == lease && event->status == REDLOCK_LOST);
    losses++;
}

/* Does the pending work for a moment. */
static void drive(void) {
    RedLockEvent event = REDLOCK_EVENT_INIT;
    if (has_thread) {
        CHECK(poll(NULL, 0, 10) == 0);
    } else if (RedLock_NextEvent(manager, 10, &event) == REDLOCK_OK) {
        on_event(&event, event.user_data);
    }
}

/* Drives until there is something to read. */
static void drive_until_readable(int fd) {
    struct pollfd watched = {.fd = fd, .events = POLLIN};
    while (poll(&watched, 1, 0) != 1) {
        drive();
    }
}

static bool is_kept(void) {
    bool locked = false;
    CHECK(RedLock_IsLocked(manager, "r", &locked) == REDLOCK_OK);
    return locked;
}

static void keep(void) {
    RedLockAcquireOptions options = REDLOCK_ACQUIRE_OPTIONS_INIT;
    options.resource = "r";
    options.ttl_ms = KEPT_MS;
    options.mode = is_taken_shared ? REDLOCK_SHARED : REDLOCK_EXCLUSIVE;
    EXPECT(REDLOCK_OK, RedLock_Acquire(manager, &options, lease), lease);
    CHECK(RedLock_Descriptor(manager) >= 0);
    EXPECT(REDLOCK_OK, RedLock_KeepAlive(manager, lease, (void *)&losses), lease);
    if (is_made_shared) {
        EXPECT(REDLOCK_OK, RedLock_Downgrade(manager, lease), lease);
    }
}

/* Drives until the lock was extended this many times. */
static void await_renewals(int count) {
    int64_t last = RedLockLease_RemainingMs(lease);
    while (count > 0) {
        drive();
        int64_t now = RedLockLease_RemainingMs(lease);
        CHECK(now > 0 && losses == 0);
        count -= now > last;
        last = now;
    }
}

/* Drives, and gets no event, until the lock is gone because its holder is. */
static void outlive_the_parent(int parent) {
    no_longer_than(60);
    CHECK(!RedLockLease_IsHeld(lease));
    EXPECT(REDLOCK_FORKED, RedLock_KeepAlive(manager, lease, NULL), lease);
    EXPECT(REDLOCK_FORKED, RedLock_SubmitUnlock(manager, lease, NULL), lease);
    if (has_thread) {
        CHECK(RedLock_SetBackgroundThread(manager, true) == REDLOCK_OK);
    }
    CHECK(is_kept());
    CHECK(write(parent, "k", 1) == 1);
    while (is_kept()) {
        drive();
    }
    CHECK(losses == 0);
    tell("the lock is gone");
    _exit(0);
}

static pid_t forked(void) {
    pid_t pid = fork();
    CHECK(pid >= 0);
    return pid;
}

static void fork_children(void) {
    pid_t pid = forked();
    if (pid == 0) {
        RedLockLease_Free(lease);
        RedLock_Free(manager);
        _exit(0);
    }
    reap(pid);
    pid = forked();
    if (pid == 0) {
        exit(0);
    }
    reap(pid);
    await_renewals(1);
    int ends[2];
    CHECK(pipe(ends) == 0);
    if (forked() == 0) {
        outlive_the_parent(ends[1]);
    }
    drive_until_readable(ends[0]);
    await_renewals(2);
    tell("the parent ends");
    _exit(0);
}

static void obey(const char *order, char **argv) {
    if (strcmp(order, "_exit") == 0) {
        _exit(0);
    } else if (strcmp(order, "exit") == 0) {
        exit(0);
    } else if (strcmp(order, "kill") == 0) {
        raise(SIGKILL);
    } else if (strcmp(order, "run another program") == 0) {
        execl(argv[0], argv[0], "another program", (char *)NULL);
        CHECK(false);
    } else if (strcmp(order, "fork") == 0) {
        fork_children();
    } else if (strcmp(order, "renew") == 0) {
        await_renewals(2);
        tell("renewed");
    } else if (strcmp(order, "await the loss") == 0) {
        while (losses == 0) {
            drive();
        }
        /* No further event comes, and the lock does not come back. */
        for (int i = 0; i < 50; i++) {
            drive();
            CHECK(losses == 1 && !RedLockLease_IsHeld(lease));
        }
        EXPECT(REDLOCK_LOST, RedLock_KeepAlive(manager, lease, NULL), lease);
        tell("lost");
    } else {
        CHECK(strcmp(order, "unlock") == 0);
        EXPECT(REDLOCK_OK, RedLock_Unlock(manager, lease), lease);
        tell("unlocked");
    }
}

static void read_line(char *line, size_t room) {
    size_t length = 0;
    while (length + 1 < room && read(STDIN_FILENO, line + length, 1) == 1 && line[length] != '\n') {
        length++;
    }
    line[length] = 0;
}

int main(int argc, char **argv) {
    char line[64];
    no_longer_than(120);
    if (strcmp(argv[1], "another program") == 0) {
        tell_and_await("another program");
        return 0;
    }
    has_thread = strcmp(argv[1], "thread") == 0;
    is_taken_shared = strcmp(argv[2], "taken") == 0;
    is_made_shared = strcmp(argv[2], "made") == 0;
    int first = is_taken_shared || is_made_shared ? 3 : 2;
    manager = manager_of(argc - first, argv + first);
    lease = new_lease();
    connect_to_all(manager);
    if (has_thread) {
        CHECK(RedLock_SetEventCallback(manager, on_event, (void *)&losses, NULL) == REDLOCK_OK);
        CHECK(RedLock_SetBackgroundThread(manager, true) == REDLOCK_OK);
    }
    keep();
    tell("kept");
    for (;;) {
        drive_until_readable(STDIN_FILENO);
        read_line(line, sizeof line);
        if (line[0] == 0) {
            return 0;
        }
        obey(line, argv);
    }
}

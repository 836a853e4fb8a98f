/* A client that obeys orders, one line each ("lock 300"), and reports the result: "STATUS, held or
 * not, the remaining time, until when it believed to hold the lock: the words". With "stop" in
 * front, it stops after the call and before it looks at the result, as if the system did not let it
 * run. The servers are the arguments. It locks `r`. */
#include "guest.h"

#define RESOURCE "r"

static RedLock *manager;
static RedLockLease *lease;

static void read_line(char *line, size_t room) {
    size_t length = 0;
    do {
        CHECK(length + 1 < room);
        ssize_t got = read(STDIN_FILENO, line + length, 1);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got == 0) {
            exit(0);
        }
        CHECK(got == 1);
        length++;
    } while (length == 0 || line[length - 1] != '\n');
    line[length - 1] = 0;
}

/* A slow logger: it is called within a call. */
static void stop_once(int32_t level, const char *line, void *data) {
    (void)level, (void)line, (void)data;
    CHECK(RedLock_SetLogger(manager, NULL, NULL, NULL) == REDLOCK_OK);
    raise(SIGSTOP);
}

static RedLockStatus obey(const char *verb, int64_t number, int64_t wait_ms) {
    if (strcmp(verb, "lock") == 0) {
        return RedLock_Lock(manager, RESOURCE, number, lease);
    }
    if (strcmp(verb, "try") == 0) {
        return RedLock_TryLock(manager, RESOURCE, number, wait_ms, lease);
    }
    if (strcmp(verb, "extend") == 0) {
        return RedLock_Extend(manager, lease, number);
    }
    if (strcmp(verb, "confirm") == 0) {
        return RedLock_Confirm(manager, lease, number);
    }
    if (strcmp(verb, "unlock") == 0) {
        return RedLock_Unlock(manager, lease);
    }
    if (strcmp(verb, "ask") == 0) {
        bool locked;
        return RedLock_IsLocked(manager, "another", &locked);
    }
    if (strcmp(verb, "timeout") == 0) {
        return RedLock_SetTimeouts(manager, number, number);
    }
    if (strcmp(verb, "alert") == 0) {
        return RedLock_SetLogger(manager, stop_once, NULL, NULL);
    }
    CHECK(strcmp(verb, "look") == 0);
    return REDLOCK_OK;
}

static int64_t boot_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The last moment at which the lock was still held, of several checks. The lease is asked after the
 * clock was read. */
static int64_t believed_until(void) {
    int64_t until = -1;
    for (int i = 0; i < 20; i++) {
        int64_t now = boot_ms();
        if (RedLockLease_IsHeld(lease)) {
            until = now;
        }
    }
    return until;
}

int main(int argc, char **argv) {
    manager = manager_of(argc - 1, argv + 1);
    lease = new_lease();
    CHECK(RedLock_SetRetry(manager, 1, 0) == REDLOCK_OK);
    connect_to_all(manager);
    tell("ready");
    for (;;) {
        char line[64], verb[16] = "", answer[5000];
        long long number = 0, wait_ms = 0;
        read_line(line, sizeof line);
        const char *order = strncmp(line, "stop ", 5) == 0 ? line + 5 : line;
        CHECK(sscanf(order, "%15s %lld %lld", verb, &number, &wait_ms) >= 1);
        RedLockStatus status = obey(verb, number, wait_ms);
        if (order != line) {
            raise(SIGSTOP);
        }
        int64_t until = believed_until();
        int length = snprintf(answer, sizeof answer, "%s %d %lld %lld: %s\n",
                              RedLockStatus_Name(status), RedLockLease_IsHeld(lease),
                              (long long)RedLockLease_RemainingMs(lease), (long long)until,
                              RedLockLease_ErrorMessage(lease));
        CHECK(write(STDIN_FILENO, answer, (size_t)length) == length);
    }
}

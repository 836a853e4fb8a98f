/* The guarantees for a logger: the thread that made the call, one line, no secret, and permission
 * to make any call. The test kills servers and connections in between. The password of the servers
 * is the first argument. */
#include <pthread.h>

#include "guest.h"

static pthread_t caller;
static const char *password;
static RedLock *manager;
static RedLockLease *in_use, *spare;
static int lines, depth;
static int user_data;

static bool holds_a_token(const char *text) {
    int digits = 0;
    for (; *text && digits < 20; text++) {
        digits = strchr("0123456789ABCDEF", *text) ? digits + 1 : 0;
    }
    return digits == 20;
}

static void check_line(int32_t level, const char *line, void *data) {
    lines++;
    CHECK(level == 1 || level == 2);
    CHECK(line && *line && !strchr(line, '\n'));
    CHECK(data == &user_data);
    CHECK(pthread_equal(pthread_self(), caller));
    CHECK(!strstr(line, password));
    CHECK(!holds_a_token(line));
}

static void call_back(int32_t level, const char *line, void *data) {
    check_line(level, line, data);
    /* Lines that these calls cause are logged later. */
    CHECK(++depth == 1);
    bool locked;
    CHECK(RedLock_ErrorMessage(manager) != NULL);
    CHECK(RedLock_SetRetry(manager, 3, 10) == REDLOCK_OK);
    CHECK(RedLock_SetRetry(manager, 0, 10) == REDLOCK_INVALID_ARGUMENT);
    RedLock_IsLocked(manager, "r", &locked);
    RedLock_Connect(manager, 10);
    if (RedLock_TryLock(manager, "by the logger", TTL_MS, 10, spare) == REDLOCK_OK) {
        RedLock_Unlock(manager, spare);
    }
    CHECK(RedLock_SetLogger(manager, check_line, data, NULL) == REDLOCK_OK);
    CHECK(RedLock_SetLogger(manager, call_back, data, NULL) == REDLOCK_OK);
    depth--;
}

/* The call is over, and any thread may use the lease. */
static void use_the_lease(int32_t level, const char *line, void *data) {
    check_line(level, line, data);
    CHECK(++depth == 1);
    CHECK(RedLockLease_RemainingMs(in_use) <= TTL_MS);
    CHECK(RedLockLease_Resource(in_use) != NULL);
    RedLockStatus status = RedLock_Confirm(manager, in_use, 0);
    CHECK(status == REDLOCK_OK || status == REDLOCK_LOST || status == REDLOCK_UNREACHABLE);
    depth--;
}

static void locks(int least_lines) {
    int until = lines + least_lines;
    do {
        caller = pthread_self();
        RedLockStatus status = RedLock_TryLock(manager, "r", TTL_MS, 0, in_use);
        CHECK(status == REDLOCK_OK || status == REDLOCK_UNREACHABLE || status == REDLOCK_TAKEN);
        if (status == REDLOCK_OK) {
            RedLock_Unlock(manager, in_use);
        }
        RedLockLease_Free(in_use);
        in_use = new_lease();
    } while (lines < until);
}

static void *lock_in_a_thread(void *argument) {
    (void)argument;
    locks(1);
    return NULL;
}

static void everything_happens(void) {
    locks(0);
    for (int i = 0; i < 5; i++) {
        tell_and_await("break the connections");
        locks(1);
    }
    tell_and_await("kill a server");
    locks(1);
    tell_and_await("start it again");
    locks(1);
    tell_and_await("break the connections");
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, lock_in_a_thread, NULL) == 0);
    pthread_join(thread, NULL);
}

int main(int argc, char **argv) {
    no_longer_than(20);
    CHECK(argc > 3);
    password = argv[1];
    manager = manager_of(argc - 3, argv + 3);
    CHECK(RedLock_SetRetry(manager, 3, 10) == REDLOCK_OK);
    in_use = new_lease();
    spare = new_lease();
    bool uses = strcmp(argv[2], "use the lease") == 0;
    RedLockLogger logger = uses ? use_the_lease : call_back;
    CHECK(RedLock_SetLogger(manager, logger, &user_data, NULL) == REDLOCK_OK);
    everything_happens();

    /* Silence again. */
    int heard = lines;
    CHECK(RedLock_SetLogger(manager, NULL, NULL, NULL) == REDLOCK_OK);
    tell_and_await("break the connections");
    locks(0);
    CHECK(lines == heard);
    RedLock_Free(manager);
    RedLockLease_Free(in_use);
    RedLockLease_Free(spare);
    return 0;
}

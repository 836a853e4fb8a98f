/* Freeing a manager at any moment: it waits for nothing, sends nothing, releases nothing, and does
 * no harm to a caller that still has a lease or is in a call. */
#include <pthread.h>
#include <stdatomic.h>

#include "guest.h"

/* The timeouts are a minute and a half, so a call that waits for a server takes far longer than
 * this. */
enum { AT_ONCE_MS = 5000 };

static char **servers;
static int server_count;

static void frees_at_once(RedLock *rl) {
    int64_t start = now_ms();
    RedLock_Free(rl);
    CHECK(now_ms() - start < AT_ONCE_MS);
}

static void locks_stay(void) {
    RedLock *rl = manager_of(server_count, servers);
    RedLockLease *lease = new_lease();
    EXPECT(REDLOCK_OK, RedLock_Lock(rl, "kept", TTL_MS, lease), lease);
    frees_at_once(rl);
    CHECK(RedLockLease_IsHeld(lease));
    CHECK(RedLockLease_RemainingMs(lease) > 0 && RedLockLease_ValidityMs(lease) > 0);
    CHECK(strlen(RedLockLease_Token(lease)) == 40);
    CHECK(strcmp(RedLockLease_Resource(lease), "kept") == 0);
    CHECK(RedLockLease_ErrorMessage(lease)[0] == 0);
    tell_and_await("freed with a lock held");

    rl = manager_of(server_count, servers);
    EXPECT(REDLOCK_OK, RedLock_Confirm(rl, lease, 1), lease);
    EXPECT(REDLOCK_OK, RedLock_Unlock(rl, lease), lease);
    frees_at_once(rl);
    RedLockLease_Free(lease);
}

static void *free_it(void *rl) {
    frees_at_once(rl);
    return NULL;
}

static void freed_by_another_thread(void) {
    RedLock *rl = manager_of(server_count, servers);
    RedLockLease *lease = new_lease();
    EXPECT(REDLOCK_OK, RedLock_Lock(rl, "r", TTL_MS, lease), lease);
    EXPECT(REDLOCK_OK, RedLock_Unlock(rl, lease), lease);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, free_it, rl) == 0);
    pthread_join(thread, NULL);
    CHECK(!RedLockLease_IsHeld(lease));
    RedLockLease_Free(lease);
}

static RedLock *freed_meanwhile, *stays;
static atomic_int about_to_call;

static void *wait_for_it(void *argument) {
    RedLockLease *lease = new_lease();
    (void)argument;
    atomic_fetch_add(&about_to_call, 1);
    EXPECT(REDLOCK_OK, RedLock_TryLock(freed_meanwhile, "fought for", TTL_MS, -1, lease), lease);
    CHECK(RedLockLease_IsHeld(lease));
    EXPECT(REDLOCK_OK, RedLock_Unlock(stays, lease), lease);
    RedLockLease_Free(lease);
    return NULL;
}

/* Whether a thread of this process sleeps. */
static bool is_asleep(const char *number) {
    char path[300], text[512] = "";
    snprintf(path, sizeof path, "/proc/self/task/%s/stat", number);
    int fd = open(path, O_RDONLY);
    CHECK(fd >= 0 && read(fd, text, sizeof text - 1) > 0);
    close(fd);
    const char *name_end = strrchr(text, ')');
    return name_end && name_end[2] == 'S';
}

/* Returns when this many threads are within the call that they announced. On the way there, none of
 * them sleeps. */
static void wait_until_within(int threads) {
    while (atomic_load(&about_to_call) < threads) {
        usleep(1000);
    }
    char own[16];
    snprintf(own, sizeof own, "%d", (int)getpid());
    DIR *tasks = opendir("/proc/self/task");
    CHECK(tasks);
    for (struct dirent *task = readdir(tasks); task; task = readdir(tasks)) {
        while (task->d_name[0] != '.' && strcmp(task->d_name, own) != 0 && !is_asleep(task->d_name)) {
            usleep(1000);
        }
    }
    closedir(tasks);
}

/* Threads wait in a call, one of them driving the others' sockets, while the manager is freed. Once
 * the calls are over, the manager is gone with everything that it had. */
static void freed_within_calls(void) {
    enum { THREADS = 4 };
    stays = manager_of(server_count, servers);
    RedLockLease *held = new_lease();
    EXPECT(REDLOCK_OK, RedLock_Lock(stays, "fought for", TTL_MS, held), held);
    int before = descriptors();

    freed_meanwhile = manager_of(server_count, servers);
    CHECK(RedLock_SetRetry(freed_meanwhile, 1, 10) == REDLOCK_OK);
    CHECK(RedLock_Connect(freed_meanwhile, 0) == REDLOCK_OK);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, wait_for_it, NULL) == 0);
    }
    wait_until_within(THREADS);
    frees_at_once(freed_meanwhile);
    EXPECT(REDLOCK_OK, RedLock_Unlock(stays, held), held);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    CHECK(descriptors() == before);
    RedLock_Free(stays);
    RedLockLease_Free(held);
}

/* Requests are on their way to servers that do not answer, and releases wait behind them. */
static void freed_with_replies_outstanding(void) {
    int before = descriptors();
    RedLock *rl = manager_of(server_count, servers);
    RedLockLease *lease = new_lease();
    RedLockLease *other = new_lease();
    CHECK(RedLock_SetRetry(rl, 1, 0) == REDLOCK_OK);
    EXPECT(REDLOCK_OK, RedLock_Lock(rl, "outstanding", TTL_MS, lease), lease);
    CHECK(RedLock_SetTimeouts(rl, 90000, 100) == REDLOCK_OK);
    tell_and_await("freeze the servers");
    EXPECT(REDLOCK_UNREACHABLE, RedLock_Lock(rl, "other", TTL_MS, other), other);
    EXPECT(REDLOCK_UNREACHABLE, RedLock_Unlock(rl, lease), lease);
    CHECK(RedLock_SetTimeouts(rl, 90000, 86400000) == REDLOCK_OK);
    frees_at_once(rl);
    CHECK(descriptors() == before);
    RedLockLease_Free(other);
    RedLockLease_Free(lease);

    /* A manager that has never been connected, and has to connect to frozen servers. */
    rl = manager_of(server_count, servers);
    CHECK(RedLock_Connect(rl, 50) == REDLOCK_UNREACHABLE);
    frees_at_once(rl);
    CHECK(descriptors() == before);
}

int main(int argc, char **argv) {
    no_longer_than(60);
    server_count = argc - 1;
    servers = argv + 1;
    int before = descriptors();
    RedLock_Free(RedLock_New());
    RedLock_Free(manager_of(server_count, servers));
    locks_stay();
    freed_by_another_thread();
    freed_within_calls();
    freed_with_replies_outstanding();
    CHECK(descriptors() == before);
    return 0;
}

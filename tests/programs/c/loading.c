/* A program that is not linked with the library. It loads and unloads the library again and again,
 * while threads that have used it live on. The first argument is its path. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>

#include "guest.h"

enum { ROUNDS = 1000, SETTLED = 100, MORE_KIB = 1024 };

static atomic_int used;
static const char *path;
static char **servers;
static int server_count;

/* The functions of the library that this program uses. */
typedef struct {
    void *handle;
    RedLock *(*new_manager)(void);
    void (*free_manager)(RedLock *);
    RedLockStatus (*add)(RedLock *, const char *, int);
    RedLockStatus (*lock)(RedLock *, const char *, int64_t, RedLockLease *);
    RedLockStatus (*unlock)(RedLock *, RedLockLease *);
    RedLockLease *(*new_lease)(void);
    void (*free_lease)(RedLockLease *);
} Library;

static void find(void *handle, const char *name, void *place) {
    void *symbol = dlsym(handle, name);
    CHECK(symbol);
    memcpy(place, &symbol, sizeof symbol);
}

static Library load(void) {
    Library it = {0};
    it.handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    CHECK(it.handle);
    find(it.handle, "RedLock_New", &it.new_manager);
    find(it.handle, "RedLock_Free", &it.free_manager);
    find(it.handle, "RedLock_AddServerUrl", &it.add);
    find(it.handle, "RedLock_Lock", &it.lock);
    find(it.handle, "RedLock_Unlock", &it.unlock);
    find(it.handle, "RedLockLease_New", &it.new_lease);
    find(it.handle, "RedLockLease_Free", &it.free_lease);
    return it;
}

static void load_and_use(bool locks) {
    Library library = load();
    RedLock *rl = library.new_manager();
    RedLockLease *lease = library.new_lease();
    CHECK(rl && lease);
    for (int i = 0; i < server_count; i++) {
        CHECK(library.add(rl, servers[i], 0) == REDLOCK_OK);
    }
    CHECK(library.lock(rl, "", 0, lease) == REDLOCK_INVALID_ARGUMENT);
    if (locks) {
        char resource[32];
        snprintf(resource, sizeof resource, "r-%p", (void *)pthread_self());
        CHECK(library.lock(rl, resource, TTL_MS, lease) == REDLOCK_OK);
        CHECK(library.unlock(rl, lease) == REDLOCK_OK);
    }
    library.free_lease(lease);
    library.free_manager(rl);
    CHECK(dlclose(library.handle) == 0);
}

/* Has used the library, and ends when that may be unloaded. */
static void *outlive(void *argument) {
    (void)argument;
    load_and_use(true);
    atomic_fetch_add(&used, 1);
    while (atomic_load(&used) >= 0) {
        usleep(1000);
    }
    return NULL;
}

static long size_kib(void) {
    long pages = 0, resident = 0;
    FILE *statm = fopen("/proc/self/statm", "r");
    CHECK(statm && fscanf(statm, "%ld %ld", &pages, &resident) == 2);
    fclose(statm);
    return pages * sysconf(_SC_PAGESIZE) / 1024;
}

int main(int argc, char **argv) {
    no_longer_than(120);
    CHECK(argc > 2);
    path = argv[1];
    servers = argv + 2;
    server_count = argc - 2;

    int before = descriptors();
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        CHECK(pthread_create(&threads[i], NULL, outlive, NULL) == 0);
    }
    while (atomic_load(&used) < 4) {
        usleep(1000);
    }
    long settled_kib = 0;
    for (int i = 0; i < ROUNDS; i++) {
        load_and_use(i % 10 == 0);
        if (i == SETTLED) {
            settled_kib = size_kib();
        }
    }
    long more_kib = size_kib() - settled_kib;
    if (more_kib > MORE_KIB && !getenv("REDLOCK_TEST_UNDER")) {
        fprintf(stderr, "%d rounds took %ld KiB\n", ROUNDS - SETTLED, more_kib);
        return 1;
    }
    CHECK(descriptors() == before);
    atomic_store(&used, -1);
    for (int i = 0; i < 4; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    load_and_use(true);
    return 0;
}

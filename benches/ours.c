/*
 * The library, through its C interface: the same cycle as the floor, or what a manager takes up
 * while it does nothing.
 *
 *     ours KEY WARM_MS RUN_MS PORT...
 *     ours --idle PORT...
 */
#define _GNU_SOURCE
#include "measure.h"
#include "redlock.h"

#include <dirent.h>
#include <fcntl.h>
#include <malloc.h>
#include <string.h>
#include <unistd.h>

/* Cycles after which the buffers of an idle manager have the size that use has given them. */
#define IDLE_CYCLES 1000

struct holder {
    RedLock *rl;
    RedLockLease *lease;
    const char *key;
};

/* What this process takes up, in bytes, and the threads it has. */
struct footprint {
    long heap;
    long resident;
    int threads;
};

static void fail(const char *what, RedLockStatus status, const char *why)
{
    fprintf(stderr, "ours: %s: %s: %s\n", what, RedLockStatus_Name(status), why);
    exit(1);
}

static bool lock(void *self)
{
    struct holder *h = self;
    return RedLock_Lock(h->rl, h->key, MEASURE_TTL_MS, h->lease) == REDLOCK_OK;
}

static bool unlock(void *self)
{
    struct holder *h = self;
    return RedLock_Unlock(h->rl, h->lease) == REDLOCK_OK;
}

static RedLock *connected(int count, char **ports)
{
    RedLock *rl = RedLock_New();
    RedLockStatus status;

    for (int i = 0; i < count; i++)
        if ((status = RedLock_AddServerUrl(rl, "127.0.0.1", atoi(ports[i]))) != REDLOCK_OK)
            fail("add server", status, RedLock_ErrorMessage(rl));
    if ((status = RedLock_Connect(rl, 0)) != REDLOCK_OK)
        fail("connect", status, RedLock_ErrorMessage(rl));
    return rl;
}

/* Private pages in memory, from the kernel, read without touching the heap. */
static long resident_bytes(void)
{
    char text[4096];
    int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    const char *line;

    close(fd);
    text[n < 0 ? 0 : n] = '\0';
    line = strstr(text, "RssAnon:");
    return line == NULL ? 0 : atol(line + strlen("RssAnon:")) * 1024;
}

static int count_threads(void)
{
    DIR *tasks = opendir("/proc/self/task");
    int count = 0;

    if (tasks == NULL)
        return 0;
    for (struct dirent *one; (one = readdir(tasks)) != NULL;)
        count += one->d_name[0] != '.';
    closedir(tasks);
    return count;
}

static struct footprint footprint(void)
{
    int threads = count_threads();
    struct mallinfo2 heap = mallinfo2();
    return (struct footprint){(long)(heap.uordblks + heap.hblkhd), resident_bytes(), threads};
}

static void print_growth(const char *when, struct footprint from, struct footprint to)
{
    printf("%s_heap=%ld %s_resident=%ld %s_threads=%d ", when, to.heap - from.heap, when,
           to.resident - from.resident, when, to.threads - from.threads);
}

static int idle(int count, char **ports)
{
    struct holder h = {.lease = RedLockLease_New(), .key = "bench:idle:0000"};
    struct footprint before = footprint(), fresh, used;

    h.rl = connected(count, ports);
    fresh = footprint();
    for (int i = 0; i < IDLE_CYCLES; i++)
        if (!lock(&h) || !unlock(&h))
            fail("cycle", REDLOCK_INTERNAL, RedLockLease_ErrorMessage(h.lease));
    used = footprint();

    print_growth("connected", before, fresh);
    print_growth("used", before, used);
    puts("");
    RedLockLease_Free(h.lease);
    RedLock_Free(h.rl);
    return 0;
}

static int cycle(const char *key, const char *warm_ms, const char *run_ms, int count, char **ports)
{
    struct holder h = {connected(count, ports), RedLockLease_New(), key};
    int result = measure_main(&(struct subject){lock, unlock, &h}, atoll(warm_ms), atoll(run_ms));

    RedLockLease_Free(h.lease);
    RedLock_Free(h.rl);
    return result;
}

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "--idle") == 0)
        return idle(argc - 2, argv + 2);
    if (argc > 4)
        return cycle(argv[1], argv[2], argv[3], argc - 4, argv + 4);
    fputs("ours KEY WARM_MS RUN_MS PORT... | ours --idle PORT...\n", stderr);
    return 2;
}

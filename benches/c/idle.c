/*
 * The needs of an idle manager of the library: memory and threads, right after connecting and after
 * use.
 *
 *     idle PORT...
 */
#define _GNU_SOURCE
#include "redlock.h"

#include <dirent.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TTL_MS 30000

/* After this many cycles, the buffers of an idle manager have the size that use gives them. */
#define CYCLES 1000

/* The memory of this process in bytes, and the number of its threads. */
struct footprint {
    long heap;
    long resident;
    int threads;
};

static void fail(const char *what, RedLockStatus status, const char *why)
{
    fprintf(stderr, "idle: %s: %s: %s\n", what, RedLockStatus_Name(status), why);
    exit(1);
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

static void use(RedLock *rl, RedLockLease *lease)
{
    RedLockStatus status = RedLock_Lock(rl, "bench:idle", TTL_MS, lease);

    if (status == REDLOCK_OK)
        status = RedLock_Unlock(rl, lease);
    if (status != REDLOCK_OK)
        fail("cycle", status, RedLockLease_ErrorMessage(lease));
}

/* The private resident pages according to the kernel, read without using the heap. */
static long resident_bytes(void)
{
    char text[4096];
    int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    const char *line;

    if (fd >= 0)
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

int main(int argc, char **argv)
{
    if (argc < 2) {
        fputs("idle PORT...\n", stderr);
        return 2;
    }
    RedLockLease *lease = RedLockLease_New();
    struct footprint before = footprint(), fresh, used;

    RedLock *rl = connected(argc - 1, argv + 1);
    fresh = footprint();
    for (int i = 0; i < CYCLES; i++)
        use(rl, lease);
    used = footprint();

    print_growth("connected", before, fresh);
    print_growth("used", before, used);
    puts("");
    RedLockLease_Free(lease);
    RedLock_Free(rl);
    return 0;
}

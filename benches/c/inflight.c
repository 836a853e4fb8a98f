/*
 * The memory of a submitted call while it waits. Makes LEASES leases, and submits CALLS calls with them. These wait
 * for RESOURCES resources, which another client holds.
 *
 *     inflight LEASES CALLS RESOURCES KEY PORT...
 *
 * Prints the memory of the process in bytes, after each call was submitted and refused by the servers: resident=
 * in private pages, heap= as counted by the allocator. Also prints waiting=, the number of calls that still wait.
 */
#define _GNU_SOURCE
#include "manager.h"
#include "measure.h"

#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The pause between two tries. It leaves time for the measurement. */
#define PAUSE_MS 20000

/* Long enough for all calls to ask the servers. */
#define SETTLE_MS 2000

/* The private resident pages according to the kernel, read without using the heap. */
static long resident_bytes(void)
{
    char text[4096];
    int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);

    if (fd >= 0)
        close(fd);
    text[n < 0 ? 0 : n] = '\0';
    const char *line = strstr(text, "RssAnon:");
    return line == NULL ? 0 : atol(line + strlen("RssAnon:")) * 1024;
}

static void submit(RedLock *rl, const char *key, long number, long resources, RedLockLease *lease)
{
    RedLockAcquireOptions options = REDLOCK_ACQUIRE_OPTIONS_INIT;
    char resource[128];

    snprintf(resource, sizeof resource, "%s:%ld", key, number % resources);
    options.resource = resource;
    options.ttl_ms = MEASURE_TTL_MS;
    options.wait_ms = -1;
    manager_check("submit", RedLock_SubmitAcquire(rl, &options, lease, NULL), rl, lease);
}

/* Does the pending work for a while, until all calls wait. Returns how many calls have ended. */
static long drive(RedLock *rl)
{
    struct pollfd ready = {.fd = manager_descriptor(rl), .events = POLLIN};
    int64_t end_ns = measure_now_ns() + SETTLE_MS * (int64_t)1000000;
    long ended = 0;

    while (measure_now_ns() < end_ns) {
        RedLockEvent event = REDLOCK_EVENT_INIT;
        poll(&ready, 1, SETTLE_MS / 10);
        while (RedLock_NextEvent(rl, 0, &event) == REDLOCK_OK)
            ended++;
    }
    return ended;
}

int main(int argc, char **argv)
{
    long leases = argc > 5 ? atol(argv[1]) : -1, calls = argc > 5 ? atol(argv[2]) : -1;

    if (leases < calls || calls < 0 || atol(argv[3]) < 1) {
        fputs("inflight LEASES CALLS RESOURCES KEY PORT...\n", stderr);
        return 2;
    }
    RedLock *rl = manager_connect(argc - 5, argv + 5);
    manager_check("set retry", RedLock_SetRetry(rl, 3, PAUSE_MS), rl, NULL);
    /* The leases end with the process, as the calls do. */
    for (long i = 0; i < leases; i++) {
        RedLockLease *lease = RedLockLease_New();
        if (i < calls)
            submit(rl, argv[4], i, atol(argv[3]), lease);
    }
    long ended = drive(rl);
    long resident = resident_bytes();
    struct mallinfo2 heap = mallinfo2();

    printf("resident=%ld heap=%zu waiting=%ld\n", resident, heap.uordblks + heap.hblkhd, calls - ended);
    fflush(stdout);
    _exit(0);
}

/*
 * Keeps LOCKS locks, in an event loop of one thread. The bench says when to print figures, and when to end.
 *
 *     kept LOCKS KEY TTL_MS SPREAD_MS PORT...
 *
 * The locks are taken evenly over SPREAD_MS, so that they are not all renewed at once. The exchange is line by
 * line. The program prints "ready" when all locks are kept. For each "figures" from the bench, it prints the
 * figures since the last line. At "end", it confirms all locks, counts those that are gone as lost, and prints
 * the last figures.
 */
#define _GNU_SOURCE
#include "manager.h"
#include "measure.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static RedLock *manager;
static struct pollfd watched[] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.events = POLLIN}};
static RedLockLease **leases;
static long count, done;
static int64_t ttl_ms;

/* LOST events; those that arrived with less than a tenth of the TTL left; the shortest remaining time of any. */
static long lost, late;
static int64_t least_ms;
static long refused; /* calls that failed */

static double cpu_before_us;
static int64_t since_ns;

/* Measures the remaining time when the program hears of the loss, not when the library found it out. */
static void note_lost(const RedLockEvent *event)
{
    int64_t left = RedLockLease_RemainingMs(event->lease);

    left = event->remaining_ms < left ? event->remaining_ms : left;
    lost++;
    late += left < ttl_ms / 10;
    least_ms = left < least_ms ? left : least_ms;
}

static void handle(const RedLockEvent *event)
{
    if (event->kind == REDLOCK_EVENT_LOST) {
        note_lost(event);
        return;
    }
    done++;
    refused += event->status != REDLOCK_OK;
}

/* Waits for the library or for the bench. Returns whether the bench has said something. */
static bool wait_ms(int ms)
{
    RedLockEvent event = REDLOCK_EVENT_INIT;

    if (poll(watched, 2, ms) < 0)
        measure_fail("poll");
    while (RedLock_NextEvent(manager, 0, &event) == REDLOCK_OK)
        handle(&event);
    return watched[0].revents != 0;
}

static void take(const char *key, int64_t spread_ms)
{
    int64_t start_ns = measure_now_ns(), last_ns = start_ns;
    char resource[128];

    for (long i = 0; i < count; i++) {
        RedLockAcquireOptions options = REDLOCK_ACQUIRE_OPTIONS_INIT;
        int64_t due_ns = start_ns + spread_ms * 1000000 / count * i;
        for (; last_ns < due_ns; last_ns = measure_now_ns())
            wait_ms((int)((due_ns - last_ns) / 1000000));
        snprintf(resource, sizeof resource, "%s:%ld", key, i);
        options.resource = resource;
        options.ttl_ms = ttl_ms;
        options.tries = 3;
        options.keep_alive = 1;
        leases[i] = RedLockLease_New();
        RedLockStatus status = RedLock_SubmitAcquire(manager, &options, leases[i], NULL);
        manager_check("acquire", status, manager, leases[i]);
    }
    while (done < count)
        wait_ms(-1);
}

static void print_figures(void)
{
    int64_t now_ns = measure_now_ns();
    double cpu_us = measure_cpu_us(RUSAGE_SELF), seconds = (double)(now_ns - since_ns) / 1e9;

    printf("busy_us=%.0f seconds=%.6f lost=%ld late=%ld refused=%ld", cpu_us - cpu_before_us, seconds, lost,
           late, refused);
    if (lost > 0)
        printf(" least_share=%.4f", (double)least_ms / (double)ttl_ms);
    puts("");
    fflush(stdout);
    cpu_before_us = cpu_us;
    since_ns = now_ns;
}

/* Shows whether a lock is gone although no event said so. */
static void confirm(void)
{
    done = 0;
    for (long i = 0; i < count; i++) {
        RedLockStatus status = RedLock_SubmitConfirm(manager, leases[i], 0, NULL);
        if (status != REDLOCK_OK) {
            done++;
            refused++;
        }
    }
    while (done < count)
        wait_ms(-1);
}

/* Reads a line byte by byte, because poll does not know what stdio has buffered, and a line may arrive in pieces.
 * The end of the input means "end". */
static bool told_to_end(void)
{
    char line[64];
    size_t length = 0;

    while (length < sizeof line - 1 && read(STDIN_FILENO, line + length, 1) == 1)
        if (line[length++] == '\n')
            break;
    line[length] = '\0';
    return strcmp(line, "figures\n") != 0;
}

int main(int argc, char **argv)
{
    if (argc < 6 || (count = atol(argv[1])) < 1 || (ttl_ms = atoll(argv[3])) < 4) {
        fputs("kept LOCKS KEY TTL_MS SPREAD_MS PORT...\n", stderr);
        return 2;
    }
    least_ms = ttl_ms;
    leases = calloc((size_t)count, sizeof *leases);
    if (leases == NULL)
        measure_fail("leases");
    manager = manager_connect(argc - 5, argv + 5);
    watched[1].fd = manager_descriptor(manager);
    take(argv[2], atoll(argv[4]));
    puts("ready");
    fflush(stdout);
    since_ns = measure_now_ns();
    cpu_before_us = measure_cpu_us(RUSAGE_SELF);
    for (;;) {
        if (!wait_ms(-1))
            continue;
        if (told_to_end())
            break;
        print_figures();
    }
    confirm();
    print_figures();
    return 0;
}

/* Moves the clocks of a process that it is preloaded into. The file that REDLOCK_TEST_CLOCK names
 * says by how much: a test writes there while the process runs. The clock that counts no suspend is
 * left as it is. So a step of the other clock looks like a machine that slept. */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SECOND INT64_C(1000000000)

/* All in nanoseconds. The time at which the wall clock stands, or 0 while it runs. */
struct dial {
    _Atomic int64_t wall_step, boot_step, wall_stands_at;
};

static struct dial *dial;

__attribute__((constructor)) static void find_the_dial(void) {
    const char *path = getenv("REDLOCK_TEST_CLOCK");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    void *page = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *dial, PROT_READ, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED) {
        _exit(97);
    }
    close(fd);
    dial = page;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int result = (int)syscall(SYS_clock_gettime, clock, now);
    int64_t shown = now->tv_sec * SECOND + now->tv_nsec;
    if (result == 0 && dial && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        int64_t stands_at = atomic_load(&dial->wall_stands_at);
        shown = stands_at ? stands_at : shown + atomic_load(&dial->wall_step);
    } else if (result == 0 && dial && clock == CLOCK_BOOTTIME) {
        shown += atomic_load(&dial->boot_step);
    } else {
        return result;
    }
    now->tv_sec = shown / SECOND;
    now->tv_nsec = shown % SECOND;
    return 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec time;
    (void)zone;
    int result = clock_gettime(CLOCK_REALTIME, &time);
    now->tv_sec = time.tv_sec;
    now->tv_usec = time.tv_nsec / 1000;
    return result;
}

time_t time(time_t *now) {
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    if (now) {
        *now = time.tv_sec;
    }
    return time.tv_sec;
}

/*
 * Sets the wall clock of a process that it is preloaded into: the file that DEMO_CLOCK names holds how many
 * milliseconds are added. Its other clocks stay as they are, as when somebody sets the clock of a machine.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const _Atomic int64_t *added_ms;

__attribute__((constructor)) static void find_the_file(void) {
    const char *path = getenv("DEMO_CLOCK");
    int fd = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    void *page = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *added_ms, PROT_READ, MAP_SHARED, fd, 0);
    if (page != MAP_FAILED) {
        added_ms = page;
    }
    if (fd >= 0) {
        close(fd);
    }
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int result = (int)syscall(SYS_clock_gettime, clock, now);
    if (result == 0 && added_ms != NULL && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        int64_t ms = atomic_load(added_ms);
        now->tv_sec += ms / 1000;
        now->tv_nsec += ms % 1000 * 1000000;
        if (now->tv_nsec >= 1000000000) {
            now->tv_nsec -= 1000000000;
            now->tv_sec++;
        }
    }
    return result;
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
    if (now != NULL) {
        *now = time.tv_sec;
    }
    return time.tv_sec;
}

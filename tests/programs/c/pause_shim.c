/* Stops the process that it is preloaded into, at the k-th moment of a call at which it may matter:
 * before and after each packet, each wait, and each clock reading. The file that REDLOCK_TEST_PAUSE
 * names gives the number of the moment, counted from now; 0: none. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static _Atomic int64_t *left;

__attribute__((constructor)) static void find_the_dial(void) {
    const char *path = getenv("REDLOCK_TEST_PAUSE");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    void *page = fd < 0 ? MAP_FAILED
                        : mmap(NULL, sizeof *left, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED) {
        _exit(97);
    }
    close(fd);
    left = page;
}

static void moment(void) {
    if (left && atomic_load(left) > 0 && atomic_fetch_sub(left, 1) == 1) {
        raise(SIGSTOP);
    }
}

/* The first call of each comes long before there is more than one thread. */
#define AROUND(type, name, parameters, arguments)               \
    type name parameters {                                      \
        static type(*next) parameters;                          \
        if (!next) {                                            \
            *(void **)&next = dlsym(RTLD_NEXT, #name);          \
        }                                                       \
        moment();                                               \
        type result = next arguments;                           \
        moment();                                               \
        return result;                                          \
    }

AROUND(ssize_t, send, (int fd, const void *bytes, size_t count, int flags),
       (fd, bytes, count, flags))
AROUND(ssize_t, recv, (int fd, void *bytes, size_t count, int flags), (fd, bytes, count, flags))
AROUND(int, ppoll,
       (struct pollfd *watched, nfds_t count, const struct timespec *limit, const sigset_t *mask),
       (watched, count, limit, mask))

int clock_gettime(clockid_t clock, struct timespec *now) {
    int result = (int)syscall(SYS_clock_gettime, clock, now);
    if (clock == CLOCK_BOOTTIME) {
        moment();
    }
    return result;
}

/* System calls of the library, made to fail. The functions below come before those of the C
 * library. They forward all calls that do not come from the library under test. */
#ifndef FAILING_SHIM_H
#define FAILING_SHIM_H

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* The effect on a call that is made to fail. */
enum effect {
    NO_MORE, /* ends a list */
    REFUSED, /* nothing is done */
    DONE,    /* it is done, and reports a failure */
    SHORT,   /* only one of many bytes is moved */
    ENDED,   /* nothing more comes */
};

struct outcome {
    enum effect effect;
    int error;
};

enum { WAYS_MAX = 7 };

struct call {
    const char *name;
    struct outcome outcomes[WAYS_MAX + 1];
};

enum call_number {
    SOCKET, SOCKETPAIR, CONNECT, SETSOCKOPT, GETSOCKOPT, FCNTL, IOCTL, SEND, RECV, READ, WRITE, POLL,
    GETRANDOM, MMAP, MUNMAP, MADVISE, FSTAT, CLOSE, OPEN, GETADDRINFO, SCHED_YIELD,
    EPOLL_CREATE, EPOLL_CTL, TIMERFD_CREATE, PTHREAD_CREATE, CALLS
};

/* All functions that the library calls and that can fail: clock_gettime cannot, nor can getpid and
 * gettid. */
static const struct call calls[CALLS] = {
    [SOCKET] = {"socket", {{REFUSED, EMFILE}, {REFUSED, ENFILE}, {REFUSED, ENOBUFS},
                           {REFUSED, EAFNOSUPPORT}}},
    [SOCKETPAIR] = {"socketpair", {{REFUSED, EMFILE}, {REFUSED, ENFILE}, {REFUSED, ENOMEM}}},
    /* After an interruption, connecting goes on. */
    [CONNECT] = {"connect", {{DONE, EINTR}, {REFUSED, EAGAIN}, {REFUSED, ECONNREFUSED},
                             {REFUSED, ENETUNREACH}, {REFUSED, EADDRNOTAVAIL}, {REFUSED, EACCES}}},
    [SETSOCKOPT] = {"setsockopt", {{REFUSED, ENOPROTOOPT}, {REFUSED, ENOMEM}, {REFUSED, EINVAL}}},
    [GETSOCKOPT] = {"getsockopt", {{REFUSED, ENOMEM}, {REFUSED, EINVAL}}},
    [FCNTL] = {"fcntl", {{REFUSED, EINVAL}, {REFUSED, EMFILE}}},
    [IOCTL] = {"ioctl", {{REFUSED, EINVAL}, {REFUSED, ENOTTY}}},
    [SEND] = {"send", {{REFUSED, EINTR}, {REFUSED, EAGAIN}, {REFUSED, ECONNRESET}, {REFUSED, EPIPE},
                       {REFUSED, ENOBUFS}, {REFUSED, ETIMEDOUT}, {SHORT, 0}}},
    [RECV] = {"recv", {{REFUSED, EINTR}, {REFUSED, EAGAIN}, {REFUSED, ECONNRESET},
                       {REFUSED, ETIMEDOUT}, {REFUSED, ENOMEM}, {SHORT, 0}, {ENDED, 0}}},
    [READ] = {"read", {{REFUSED, EINTR}, {REFUSED, EAGAIN}, {REFUSED, EIO}, {SHORT, 0}, {ENDED, 0}}},
    [WRITE] = {"write", {{REFUSED, EINTR}, {REFUSED, EAGAIN}, {REFUSED, EPIPE}}},
    [POLL] = {"poll", {{REFUSED, EINTR}, {REFUSED, EINVAL}, {REFUSED, ENOMEM}}},
    [GETRANDOM] = {"getrandom", {{REFUSED, EINTR}, {REFUSED, EAGAIN}, {REFUSED, ENOSYS},
                                 {REFUSED, EPERM}, {REFUSED, EIO}, {SHORT, 0}}},
    [MMAP] = {"mmap", {{REFUSED, ENOMEM}, {REFUSED, EPERM}}},
    [MUNMAP] = {"munmap", {{REFUSED, ENOMEM}}},
    [MADVISE] = {"madvise", {{REFUSED, EINVAL}, {REFUSED, ENOMEM}, {ENDED, 0}}},
    [FSTAT] = {"fstat", {{REFUSED, ENOMEM}, {REFUSED, EIO}}},
    /* Linux closes the descriptor, whatever the result is. */
    [CLOSE] = {"close", {{DONE, EINTR}, {DONE, EIO}}},
    [OPEN] = {"open", {{REFUSED, ENOENT}, {REFUSED, EACCES}, {REFUSED, EMFILE}, {REFUSED, EINTR}}},
    [GETADDRINFO] = {"getaddrinfo", {{REFUSED, EAI_AGAIN}, {REFUSED, EAI_NONAME}, {REFUSED, EAI_FAIL},
                                     {REFUSED, EAI_MEMORY}, {REFUSED, EAI_SYSTEM}}},
    [SCHED_YIELD] = {"sched_yield", {{REFUSED, ENOSYS}}},
    [EPOLL_CREATE] = {"epoll_create1", {{REFUSED, EMFILE}, {REFUSED, ENOMEM}}},
    [EPOLL_CTL] = {"epoll_ctl", {{REFUSED, ENOSPC}, {REFUSED, ENOMEM}}},
    [TIMERFD_CREATE] = {"timerfd_create", {{REFUSED, EMFILE}, {REFUSED, ENODEV}}},
    [PTHREAD_CREATE] = {"pthread_create", {{REFUSED, EAGAIN}, {REFUSED, EPERM}}},
};

/* Which calls fail. */
enum extent {
    THIS_ONE,
    THIS_AND_ITS_LIKE, /* with it, all later ones of the same function */
    THIS_AND_ALL_LATER,
};

/* The active fault, and statistics of the calls. The test's processes share it. */
struct fault {
    atomic_bool on;
    enum extent extent;
    int first;   /* the number of the first call that fails, from 1 on */
    int outcome; /* which of its outcomes */
    atomic_int made;
    atomic_int struck; /* that call, once it was made; else -1 */
    atomic_int strikes;
};

static struct fault *fault;
static uintptr_t library_begin, library_end;

/* The random bytes that the system gave to each thread. */
struct given {
    unsigned char bytes[1 << 14];
    atomic_size_t length;
};

enum { THREADS_MAX = 16 };

static struct given random_given[THREADS_MAX];
static atomic_int threads_given;
static _Thread_local struct given *given_here;

static inline int find_library(struct dl_phdr_info *module, size_t size, void *unused) {
    (void)size;
    (void)unused;
    if (!strstr(module->dlpi_name, "libredlock")) {
        return 0;
    }
    for (int i = 0; i < module->dlpi_phnum; i++) {
        if (module->dlpi_phdr[i].p_type == PT_LOAD && module->dlpi_phdr[i].p_flags & PF_X) {
            library_begin = module->dlpi_addr + module->dlpi_phdr[i].p_vaddr;
            library_end = library_begin + module->dlpi_phdr[i].p_memsz;
        }
    }
    return 1;
}

static inline void set_up_shim(void) {
    dl_iterate_phdr(find_library, NULL);
    fault = mmap(NULL, sizeof *fault, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!library_begin || fault == MAP_FAILED) {
        fprintf(stderr, "the library is not there, or no memory\n");
        exit(1);
    }
}

static inline int ways_of(int call) {
    int count = 0;
    while (calls[call].outcomes[count].effect != NO_MORE) {
        count++;
    }
    return count;
}

/* How the call must fail if this is its caller, or NULL. */
static inline const struct outcome *strike(enum call_number call, void *caller) {
    uintptr_t from = (uintptr_t)caller;
    if (!fault || !atomic_load(&fault->on) || from < library_begin || from >= library_end) {
        return NULL;
    }
    int number = atomic_fetch_add(&fault->made, 1) + 1;
    if (number == fault->first) {
        atomic_store(&fault->struck, (int)call);
    } else if (number < fault->first || fault->extent == THIS_ONE ||
               (fault->extent == THIS_AND_ITS_LIKE && (int)call != atomic_load(&fault->struck))) {
        return NULL;
    }
    int strikes = atomic_fetch_add(&fault->strikes, 1);
    const struct outcome *it = &calls[call].outcomes[fault->outcome % ways_of((int)call)];
    /* Signals do not interrupt every call: a caller that repeats the call succeeds some time. */
    return it->error == EINTR && strikes % 2 ? NULL : it;
}

/* Whether the fault is harmless, and must have no effect. */
static inline bool is_harmless(void) {
    int call = atomic_load(&fault->struck);
    if (call < 0 || fault->extent != THIS_ONE) {
        return false;
    }
    const struct outcome *it = &calls[call].outcomes[fault->outcome];
    bool moves_bytes = call == SEND || call == RECV || call == READ || call == WRITE;
    return it->effect == SHORT || it->error == EINTR || (it->error == EAGAIN && moves_bytes);
}

static inline void *next_function(const char *name) {
    void *function = dlsym(RTLD_NEXT, name);
    if (!function) {
        abort();
    }
    return function;
}

/* Such as `REAL(close)(fd)`. POSIX requires the cast from a pointer to data. */
#define REAL(name) (*(__typeof__(&name) *)&(void *){next_function(#name)})
#define STRIKE(call) strike(call, __builtin_return_address(0))

/* The result of a call that does nothing. */
static inline int failed(const struct outcome *it) {
    if (it->effect == ENDED) {
        return 0;
    }
    errno = it->error;
    return -1;
}

#define FAILING(type, name, call, parameters, arguments) \
    type name parameters {                               \
        const struct outcome *it = STRIKE(call);         \
        if (!it) {                                       \
            return REAL(name) arguments;                 \
        }                                                \
        if (it->effect == DONE) {                        \
            REAL(name) arguments;                        \
        }                                                \
        return failed(it);                               \
    }

/* A function that moves bytes. */
#define FAILING_TO_MOVE(name, call, parameters, arguments) \
    ssize_t name parameters {                              \
        const struct outcome *it = STRIKE(call);           \
        if (it && it->effect != SHORT) {                   \
            return failed(it);                             \
        }                                                  \
        if (it && count > 1) {                             \
            count = 1;                                     \
        }                                                  \
        return note_random(call, bytes, REAL(name) arguments); \
    }

/* A token may come in pieces, but all pieces go to one thread. */
static inline ssize_t note_random(enum call_number call, const void *bytes, ssize_t count) {
    if ((call != GETRANDOM && call != READ) || count <= 0) {
        return count;
    }
    if (!given_here) {
        int number = atomic_fetch_add(&threads_given, 1);
        if (number >= THREADS_MAX) {
            abort();
        }
        given_here = &random_given[number];
    }
    size_t begin = atomic_load(&given_here->length);
    if (begin + (size_t)count > sizeof given_here->bytes) {
        abort();
    }
    memcpy(given_here->bytes + begin, bytes, (size_t)count);
    atomic_store(&given_here->length, begin + (size_t)count);
    return count;
}

static inline bool was_given(const void *bytes, size_t count) {
    for (int i = 0; i < THREADS_MAX; i++) {
        size_t length = atomic_load(&random_given[i].length);
        if (memmem(random_given[i].bytes, length, bytes, count)) {
            return true;
        }
    }
    return false;
}

#ifdef __GLIBC__
#define ADDRESS __CONST_SOCKADDR_ARG /* a union, so that addresses of any kind may be passed */
#else
#define ADDRESS const struct sockaddr *
#endif

FAILING(int, socket, SOCKET, (int domain, int type, int protocol), (domain, type, protocol))
FAILING(int, socketpair, SOCKETPAIR, (int domain, int type, int protocol, int pair[2]),
        (domain, type, protocol, pair))
FAILING(int, connect, CONNECT, (int fd, ADDRESS address, socklen_t length), (fd, address, length))
FAILING(int, setsockopt, SETSOCKOPT,
        (int fd, int level, int name, const void *value, socklen_t length),
        (fd, level, name, value, length))
FAILING(int, getsockopt, GETSOCKOPT, (int fd, int level, int name, void *value, socklen_t *length),
        (fd, level, name, value, length))
FAILING(int, poll, POLL, (struct pollfd *watched, nfds_t count, int timeout),
        (watched, count, timeout))
FAILING(int, ppoll, POLL,
        (struct pollfd *watched, nfds_t count, const struct timespec *timeout, const sigset_t *mask),
        (watched, count, timeout, mask))
FAILING(int, munmap, MUNMAP, (void *address, size_t length), (address, length))
FAILING(int, madvise, MADVISE, (void *address, size_t length, int advice),
        (address, length, advice))
FAILING(int, fstat, FSTAT, (int fd, struct stat *status), (fd, status))
FAILING(int, close, CLOSE, (int fd), (fd))
FAILING(int, sched_yield, SCHED_YIELD, (void), ())
FAILING(int, epoll_create1, EPOLL_CREATE, (int flags), (flags))
FAILING(int, epoll_ctl, EPOLL_CTL, (int epoll, int operation, int fd, struct epoll_event *event),
        (epoll, operation, fd, event))
FAILING(int, timerfd_create, TIMERFD_CREATE, (int clock, int flags), (clock, flags))

FAILING_TO_MOVE(send, SEND, (int fd, const void *bytes, size_t count, int flags),
                (fd, bytes, count, flags))
FAILING_TO_MOVE(recv, RECV, (int fd, void *bytes, size_t count, int flags),
                (fd, bytes, count, flags))
FAILING_TO_MOVE(read, READ, (int fd, void *bytes, size_t count), (fd, bytes, count))
FAILING_TO_MOVE(write, WRITE, (int fd, const void *bytes, size_t count), (fd, bytes, count))
FAILING_TO_MOVE(getrandom, GETRANDOM, (void *bytes, size_t count, unsigned flags),
                (bytes, count, flags))

void *mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset) {
    const struct outcome *it = STRIKE(MMAP);
    if (it) {
        failed(it);
        return MAP_FAILED;
    }
    return REAL(mmap)(address, length, protection, flags, fd, offset);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *),
                   void *argument) {
    const struct outcome *it = STRIKE(PTHREAD_CREATE);
    return it ? it->error : REAL(pthread_create)(thread, attributes, body, argument);
}

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **found) {
    const struct outcome *it = STRIKE(GETADDRINFO);
    if (it) {
        errno = EMFILE;
        return it->error;
    }
    return REAL(getaddrinfo)(name, service, hints, found);
}

/* The argument after the two is a pointer, a number or nothing: all fit into a pointer. */
#define FAILING_WITH_AN_ARGUMENT(name, call, first, second)       \
    int name(first one, second two, ...) {                        \
        va_list rest;                                             \
        va_start(rest, two);                                      \
        void *three = va_arg(rest, void *);                       \
        va_end(rest);                                             \
        const struct outcome *it = STRIKE(call);                  \
        return it ? failed(it) : REAL(name)(one, two, three);     \
    }

FAILING_WITH_AN_ARGUMENT(fcntl, FCNTL, int, int)
FAILING_WITH_AN_ARGUMENT(ioctl, IOCTL, int, unsigned long)
FAILING_WITH_AN_ARGUMENT(open, OPEN, const char *, int)

/* With 64-bit offsets, which Rust requests, these have their own names. */
#ifdef __GLIBC__
FAILING(int, fstat64, FSTAT, (int fd, struct stat64 *status), (fd, status))
FAILING_WITH_AN_ARGUMENT(open64, OPEN, const char *, int)

void *mmap64(void *address, size_t length, int protection, int flags, int fd, off64_t offset) {
    const struct outcome *it = STRIKE(MMAP);
    if (it) {
        failed(it);
        return MAP_FAILED;
    }
    return REAL(mmap64)(address, length, protection, flags, fd, offset);
}
#endif

#endif

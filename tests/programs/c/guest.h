/* Common code of the programs that test the library as a guest in their process. */
#ifndef GUEST_H
#define GUEST_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "redlock.h"

#define TTL_MS 600000

/* Fails with the words of the lease unless the status is the expected one. */
#define EXPECT(expected, call, lease)                                                    \
    do {                                                                                 \
        RedLockStatus status_ = (call);                                                  \
        if (status_ != (expected)) {                                                     \
            fprintf(stderr, "%s:%d: %s gave %s: %s\n", __FILE__, __LINE__, #call,        \
                    RedLockStatus_Name(status_), RedLockLease_ErrorMessage(lease));      \
            exit(1);                                                                     \
        }                                                                                \
    } while (0)

#if defined __has_feature
#define IS_SANITIZED __has_feature(address_sanitizer)
#elif defined __SANITIZE_ADDRESS__
#define IS_SANITIZED 1
#else
#define IS_SANITIZED 0
#endif

/* Whether everything takes many times as long as usual. */
static inline bool is_under_a_tool(void) { return IS_SANITIZED || getenv("REDLOCK_TEST_UNDER"); }

/* Ends a program that hangs: by default the signal ends the process. The seconds are those of an
 * idle machine. On a busy one, many processes take turns at each step from client to server and
 * back. */
static inline void no_longer_than(unsigned seconds) {
    alarm(seconds * (is_under_a_tool() ? 10 : 8));
}

/* A manager of the servers that are named as URLs. It is patient, because a busy machine is not the
 * subject here. If the servers have TLS, the environment names the trusted authority. */
static inline RedLock *manager_of(int count, char **urls) {
    RedLock *rl = RedLock_New();
    CHECK(rl);
    CHECK(RedLock_SetTimeouts(rl, 20000, 20000) == REDLOCK_OK);
    const char *authority = getenv("REDLOCK_TEST_TLS_CA");
    if (authority) {
        CHECK(RedLock_SetTlsCa(rl, authority) == REDLOCK_OK);
    }
    for (int i = 0; i < count; i++) {
        CHECK(RedLock_AddServerUrl(rl, urls[i], 0) == REDLOCK_OK);
    }
    return rl;
}

/* Connects to all servers, because a lock only needs a quorum. */
static inline void connect_to_all(RedLock *rl) {
    do {
        CHECK(RedLock_Connect(rl, 0) == REDLOCK_OK);
    } while (RedLock_ErrorMessage(rl)[0]);
}

static inline RedLockLease *new_lease(void) {
    RedLockLease *lease = RedLockLease_New();
    CHECK(lease);
    return lease;
}

/* A server that lags behind when a manager is freed may not get the last releases. The header says
 * so, and on a busy machine it happens here. So the manager is freed when all servers have answered
 * all requests: with a reply timeout of 1 ms, RedLock_Connect names each server that owes an answer
 * for longer than that. */
static inline void free_when_all_have_heard(RedLock *freed) {
    connect_to_all(freed);
    CHECK(RedLock_SetTimeouts(freed, 20000, 1) == REDLOCK_OK);
    do {
        usleep(2000);
    } while (RedLock_Connect(freed, 0) != REDLOCK_OK || RedLock_ErrorMessage(freed)[0]);
    RedLock_Free(freed);
}

/* Sends the test a word, over the socket that is our standard input. */
static inline void tell(const char *word) {
    char line[64];
    int length = snprintf(line, sizeof line, "%s\n", word);
    CHECK(write(STDIN_FILENO, line, (size_t)length) == length);
}

/* Waits until the test says something. */
static inline void await(void) {
    char byte = 0;
    while (byte != '\n') {
        ssize_t got = read(STDIN_FILENO, &byte, 1);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        CHECK(got == 1);
    }
}

static inline void tell_and_await(const char *word) {
    tell(word);
    await();
}

static inline int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The number of descriptors. Descriptors beyond the first few hundred are not in use here, except
 * by tools that a program runs under. */
static inline int descriptors(void) {
    int count = 0;
    for (int fd = 0; fd < 300; fd++) {
        count += fcntl(fd, F_GETFD) >= 0;
    }
    return count;
}

static inline int threads(void) {
    DIR *tasks = opendir("/proc/self/task");
    CHECK(tasks);
    int count = 0;
    while (readdir(tasks)) {
        count++;
    }
    closedir(tasks);
    /* Without . and .. */
    return count - 2;
}

/* Waits for a child that must end well. */
static inline void reap(pid_t child) {
    int how;
    while (waitpid(child, &how, 0) < 0) {
        CHECK(errno == EINTR);
    }
    if (WIFSIGNALED(how)) {
        fprintf(stderr, "a child was ended by signal %d\n", WTERMSIG(how));
    }
    CHECK(WIFEXITED(how) && WEXITSTATUS(how) == 0);
}

#endif

#define _GNU_SOURCE
#include "journal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../../../programs/c/check.h"

int64_t now(void) {
    struct timespec time;
    CHECK(clock_gettime(CLOCK_BOOTTIME, &time) == 0);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

void journal_open(struct journal *journal, const char *directory, const char *name,
                  const char *parent) {
    char path[4096];
    CHECK(snprintf(path, sizeof path, "%s/%s.log", directory, name) < (int)sizeof path);
    CHECK(snprintf(journal->name, sizeof journal->name, "%s", name) < NAME_SIZE);
    journal->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    CHECK(journal->fd >= 0);
    if (parent) {
        say(journal, 0, now(), "begin pid=%d parent=%s", (int)getpid(), parent);
    } else {
        say(journal, 0, now(), "begin pid=%d", (int)getpid());
    }
}

void say(const struct journal *journal, int thread, int64_t time, const char *format, ...) {
    char line[512];
    int length = snprintf(line, sizeof line, "%lld %s:%d ", (long long)time, journal->name, thread);
    va_list arguments;
    va_start(arguments, format);
    length += vsnprintf(line + length, sizeof line - (size_t)length, format, arguments);
    va_end(arguments);
    CHECK(length < (int)sizeof line - 1);
    line[length++] = '\n';
    /* One write, because threads share the file, and lines must not be mixed. */
    CHECK(write(journal->fd, line, (size_t)length) == length);
}

/* FNV-1a. A reader of the log cannot release a lock with it. */
void hash_token(const char *token, char hash[HASH_SIZE]) {
    uint64_t sum = 0xcbf29ce484222325;
    for (const char *at = token; *at; at++) {
        sum = (sum ^ (unsigned char)*at) * 0x100000001b3;
    }
    hash[0] = 0;
    if (*token) {
        snprintf(hash, HASH_SIZE, "%016llx", (unsigned long long)sum);
    }
}

static int entries(const char *path) {
    DIR *directory = opendir(path);
    CHECK(directory);
    int count = 0;
    while (readdir(directory)) {
        count++;
    }
    closedir(directory);
    /* Without . and .. */
    return count - 2;
}

static long resident_kb(void) {
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    CHECK(file);
    CHECK(fscanf(file, "%*d %ld", &pages) == 1);
    fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

void say_sample(const struct journal *journal) {
    /* Without the descriptor by which they are counted. */
    int fds = entries("/proc/self/fd") - 1;
    int threads = entries("/proc/self/task");
    say(journal, 0, now(), "sample fds=%d threads=%d rss_kb=%ld", fds, threads, resident_kb());
}

/* Output for the viewer: lines that begin with a time, and Ctrl-C. */
#define _DEFAULT_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common.h"

enum { LINE_WIDTH = 80, INDENT = 13 };

static int64_t started_ms;
static volatile sig_atomic_t signal_number;

static int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void clock_start(void) {
    started_ms = now_ms();
}

int64_t clock_ms(void) {
    return now_ms() - started_ms;
}

static void write_all(int fd, const char *text, size_t length) {
    while (length > 0) {
        ssize_t written = write(fd, text, length);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written < 0) {
            return; /* the reader is gone: SIGPIPE was caught and ends the demo */
        }
        text += written;
        length -= (size_t)written;
    }
}

/* The length of the next part to keep together: a clause, with the comma or colon and the space after it. */
static size_t clause(const char *text) {
    size_t length = 0;
    while (text[length] != '\0') {
        length++;
        if (length > 1 && text[length - 1] == ' ' && strchr(",:", text[length - 2]) != NULL) {
            break;
        }
    }
    return length;
}

/* Breaks a long text between clauses and indents the rest, so that the columns stay readable. */
static size_t wrap(char *out, size_t room, size_t column, const char *text) {
    size_t used = 0;
    size_t length;
    while ((length = clause(text)) > 0 && used + INDENT + length < room) {
        if (used > 0 && column + length > LINE_WIDTH) {
            out[used - 1] = '\n'; /* instead of the space */
            memset(out + used, ' ', INDENT);
            used += INDENT;
            column = INDENT;
        }
        memcpy(out + used, text, length);
        used += length;
        column += length;
        text += length;
    }
    out[used++] = '\n';
    return used;
}

void say(const char *who, const char *format, ...) {
    char text[4096];
    char line[6144];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);

    /* One write for each line, so that the lines of several processes do not mix. */
    int64_t ms = clock_ms();
    int head = snprintf(line, sizeof line, "%3d.%02d s  %-3s", (int)(ms / 1000),
                        (int)(ms % 1000 / 10), who);
    size_t length = (size_t)head;
    length += wrap(line + length, sizeof line - length, length, text);
    write_all(STDOUT_FILENO, line, length);
}

void complain(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("demo: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
}

static void note_signal(int number) {
    signal_number = number;
}

/* SIGPIPE is included, because a reader may go away: `make demo | head`. */
void catch_signals(void) {
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = note_signal;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        sigaction(signals[i], &action, NULL);
    }
}

int caught_signal(void) {
    return signal_number;
}

/* After a signal, the demo ends as the signal would have ended it, so that the caller sees it. */
int end_of_demo(bool good) {
    int number = caught_signal();
    if (number != 0) {
        complain("interrupted; everything is ended and nothing is left behind");
        signal(number, SIG_DFL);
        raise(number);
    }
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* In small steps, because a signal may come between the check for it and the sleep. */
bool sleep_ms(int64_t ms) {
    int64_t end = now_ms() + ms;
    while (caught_signal() == 0) {
        int64_t left = end - now_ms();
        if (left <= 0) {
            return true;
        }
        struct timespec step = {0, (long)(left < 10 ? left : 10) * 1000000};
        nanosleep(&step, NULL);
    }
    return false;
}

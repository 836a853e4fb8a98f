/* The log of a process: a line for each event, complete or not at all. tests/support/history/mod.rs
 * describes the lines. */
#ifndef JOURNAL_H
#define JOURNAL_H

#include <stdint.h>

enum { NAME_SIZE = 32, HASH_SIZE = 17 };

struct journal {
    int fd;
    char name[NAME_SIZE];
};

/* CLOCK_BOOTTIME in nanoseconds. */
int64_t now(void);

/* Opens DIRECTORY/NAME.log and writes its first line. */
void journal_open(struct journal *journal, const char *directory, const char *name,
                  const char *parent);

/* Adds a line. The line is in the file when this returns, and survives the death of the process. */
void say(const struct journal *journal, int thread, int64_t time, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The form of a token in logs: 16 hexadecimal digits. Empty for an empty token. */
void hash_token(const char *token, char hash[HASH_SIZE]);

/* The resources that the process uses. */
void say_sample(const struct journal *journal);

#endif

/*
 * The Redis protocol as far as the floor needs it: commands that are encoded in advance, and replies of one line
 * each.
 */
#ifndef WIRE_H
#define WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WIRE_SERVERS_MAX 64

struct command {
    char bytes[1024];
    size_t length;
    uint64_t lines;  /* of the replies that a server sends for it; the first one is the vote */
    uint64_t note;   /* which of these lines is the server's note, from 1; 0 if none */
    const char *yes; /* how a vote in favour begins */
};

/* From now on, commands are those of the library: an acquire also asks when the key ends and for the server's note, and
 * this script releases and wakes a waiter. Otherwise a command does only what its name says. */
void wire_send_the_same(const char *script);

/* The note of a server, as it was read first. */
struct note {
    char text[256];
    size_t length;
};

/* Ends the program if the server's note has changed. */
void wire_check_note(struct note *note, const char *line, size_t length);

/* A connection that no longer blocks and has the script loaded. Ends the program if the connection fails. */
int wire_connect(const char *port, char digest[41]);

/* 40 digits that no other worker has. They are not secret here, as real tokens must be. */
struct token {
    char digits[41];
};

struct token wire_token(void);

/* SET key token NX PX ttl; and the script that deletes the key if it contains the token. */
struct command wire_acquire(const char *key, const struct token *token);

/* The same as one of several acquires in one write, which share a reading of the server's note and its time. */
struct command wire_acquire_of_several(const char *key, const struct token *token);
struct command wire_reading(void);
struct command wire_release(const char *key, const struct token *token, const char *digest);

#endif

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
    uint64_t replies; /* that a server sends for it; the first one is the vote */
    const char *yes;  /* how a vote in favour begins */
};

/* A connection that no longer blocks and has the script loaded. Ends the program if the connection fails. */
int wire_connect(const char *port, char digest[41]);

/* 40 digits that no other worker has. They are not secret here, as real tokens must be. */
struct token {
    char digits[41];
};

struct token wire_token(void);

/* SET key token NX PX ttl; and the script that deletes the key if it contains the token. */
struct command wire_acquire(const char *key, const struct token *token);
struct command wire_release(const char *key, const struct token *token, const char *digest);

#endif

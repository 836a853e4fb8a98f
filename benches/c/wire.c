#define _GNU_SOURCE
#include "wire.h"
#include "measure.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SCRIPT                                                                                     \
    "if redis.call('GET',KEYS[1])==ARGV[1] then return redis.call('DEL',KEYS[1]) else return 0 end"

/* The library's script, if commands are those of the library. */
static const char *same;

void wire_send_the_same(const char *script)
{
    same = script;
}

static void add(struct command *c, int count, const char *const *words)
{
    size_t at = c->length, room = sizeof c->bytes;

    at += (size_t)snprintf(c->bytes + at, room - at, "*%d\r\n", count);
    for (int i = 0; i < count && at < room; i++)
        at += (size_t)snprintf(c->bytes + at, room - at, "$%zu\r\n%s\r\n", strlen(words[i]), words[i]);
    if (at >= room) {
        errno = E2BIG;
        measure_fail("encode");
    }
    c->length = at;
    c->lines++;
}

/* Its reply has two lines: the length, and the note. */
static void add_reading(struct command *c)
{
    add(c, 4, (const char *[]){"GETRANGE", "redlock:guard", "0", "255"});
    c->note = ++c->lines;
}

void wire_check_note(struct note *note, const char *line, size_t length)
{
    if (note->length == 0 && length < sizeof note->text) {
        memcpy(note->text, line, length);
        note->length = length;
    }
    if (length != note->length || memcmp(note->text, line, length) != 0) {
        errno = EPROTO;
        measure_fail("another note");
    }
}

static int dial(const char *port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) != 0)
        measure_fail("connect");
    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0)
        measure_fail("TCP_NODELAY");
    return fd;
}

/* Loads the script while the socket still blocks, and returns its digest: "$40\r\n<digest>\r\n". */
static void load_script(int fd, char digest[41])
{
    struct command load = {.length = 0};
    char reply[47];

    add(&load, 3, (const char *[]){"SCRIPT", "LOAD", same == NULL ? SCRIPT : same});
    if (send(fd, load.bytes, load.length, MSG_NOSIGNAL) != (ssize_t)load.length)
        measure_fail("send");
    if (recv(fd, reply, sizeof reply, MSG_WAITALL) != (ssize_t)sizeof reply || reply[0] != '$')
        measure_fail("SCRIPT LOAD");
    memcpy(digest, reply + 5, 40);
    digest[40] = '\0';
}

int wire_connect(const char *port, char digest[41])
{
    int fd = dial(port);

    load_script(fd, digest);
    if (fcntl(fd, F_SETFL, O_NONBLOCK) != 0)
        measure_fail("O_NONBLOCK");
    return fd;
}

struct token wire_token(void)
{
    static int made;
    struct token token;

    snprintf(token.digits, sizeof token.digits, "%020d%020d", getpid(), made++);
    return token;
}

static struct command set(const char *key, const struct token *token)
{
    struct command c = {.yes = "+OK"};
    char ttl[16];

    snprintf(ttl, sizeof ttl, "%d", MEASURE_TTL_MS);
    add(&c, 6, (const char *[]){"SET", key, token->digits, "PX", ttl, "NX"});
    return c;
}

struct command wire_acquire(const char *key, const struct token *token)
{
    struct command c = set(key, token);

    if (same != NULL) {
        add(&c, 2, (const char *[]){"PEXPIRETIME", key});
        add_reading(&c);
    }
    return c;
}

struct command wire_acquire_of_several(const char *key, const struct token *token)
{
    return set(key, token);
}

/* The reply to TIME has five lines: the number of strings, and two for each. */
struct command wire_reading(void)
{
    struct command c = {.yes = ""};

    if (same != NULL) {
        add_reading(&c);
        add(&c, 1, (const char *[]){"TIME"});
        c.lines += 4;
    }
    return c;
}

struct command wire_release(const char *key, const struct token *token, const char *digest)
{
    struct command c = {.yes = ":1"};
    char queue[160];

    snprintf(queue, sizeof queue, "%s:w", key);
    if (same == NULL)
        add(&c, 5, (const char *[]){"EVALSHA", digest, "1", key, token->digits});
    else
        add(&c, 6, (const char *[]){"EVALSHA", digest, "2", key, queue, token->digits});
    return c;
}

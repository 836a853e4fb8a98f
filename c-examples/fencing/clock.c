/*
 * Servers whose clocks can be set. A demo cannot set the clock of the machine. So preload/set_clock.c, built
 * beside the program, sits between a server and the clock, and adds the number in a file.
 */
#define _DEFAULT_SOURCE
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fencing.h"

enum { PATH_SIZE = 512, HOUR_MS = 3600000, PATIENCE_MS = 20000 };

static char library[PATH_SIZE];
static char folder[PATH_SIZE];

bool clock_can_be_set(const char *program, const char *directory) {
    snprintf(folder, sizeof folder, "%s", directory);
    char *path = realpath(program, NULL);
    if (path != NULL) {
        int length = snprintf(library, sizeof library, "%s-set_clock.so", path);
        if (length >= (int)sizeof library || access(library, R_OK) != 0) {
            library[0] = '\0';
        }
    }
    free(path);
    return library[0] != '\0';
}

static void path_for(const struct server *server, char path[PATH_SIZE + 32]) {
    snprintf(path, PATH_SIZE + 32, "%s/clock-%d", folder, server->port);
}

/* The server process reads the number at any moment. */
static bool write_clock(const struct server *server, int64_t added_ms) {
    char path[PATH_SIZE + 32];
    path_for(server, path);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
        return false;
    }
    bool has_room = ftruncate(fd, sizeof(int64_t)) == 0;
    void *page = mmap(NULL, sizeof(int64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (page == MAP_FAILED || !has_room) {
        return false;
    }
    atomic_store((_Atomic int64_t *)page, added_ms);
    munmap(page, sizeof(int64_t));
    return true;
}

void clock_prepare(const struct server *server) {
    char path[PATH_SIZE + 32];
    path_for(server, path);
    if (write_clock(server, 0)) {
        setenv("LD_PRELOAD", library, 1);
        setenv("DEMO_CLOCK", path, 1);
    }
}

bool clock_set_forward(struct server *server) {
    int64_t before = server_clock_ms(server);
    if (before == 0 || !write_clock(server, HOUR_MS)) {
        return false;
    }
    say(">>", "the clock of server :%d is set forward by an hour", server->port);
    for (int64_t end = clock_ms() + PATIENCE_MS; clock_ms() < end && sleep_ms(2);) {
        if (server_clock_ms(server) - before >= HOUR_MS) {
            return true;
        }
    }
    complain("the clock of server :%d does not heed it", server->port);
    return false;
}

void clock_forget(const struct server *server) {
    char path[PATH_SIZE + 32];
    path_for(server, path);
    unlink(path);
}

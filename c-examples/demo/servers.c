/*
 * The demo's own servers: redis-server or valkey-server processes on free ports of 127.0.0.1. They keep nothing
 * on disk except their log, and nodes what they know of their cluster, in a directory that is removed at the end.
 */
#define _DEFAULT_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "common.h"

#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0
#endif

enum {
    STARTS = 5,
    START_MS = 10000,
    BUS = 10000,              /* a node has a second port, which is so much greater than the first one */
    GREATEST = 65535 - BUS,   /* so its first one is this at most */
    DRAWS = 200,
};

static char directory[256];

/* If the demo is killed with SIGKILL, its children end with it (where the system can do that). */
void die_with_parent(pid_t parent) {
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    if (getppid() != parent) {
        _exit(1);
    }
}

void workers_end(const pid_t workers[], int count) {
    for (int i = 0; i < count; i++) {
        if (workers[i] == 0) {
            continue;
        }
        kill(workers[i], SIGKILL);
        while (waitpid(workers[i], NULL, 0) < 0 && errno == EINTR) {
            continue;
        }
    }
}

static struct sockaddr_in loopback(int port) {
    struct sockaddr_in address;
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons((uint16_t)port);
    return address;
}

static bool make_directory(void) {
    const char *base = getenv("TMPDIR");
    if (base == NULL || *base == '\0') {
        base = "/tmp";
    }
    int length = snprintf(directory, sizeof directory, "%s/redlock-demo-XXXXXX", base);
    if (length < 0 || (size_t)length >= sizeof directory || mkdtemp(directory) == NULL) {
        complain("cannot make a directory in %s: %s", base, strerror(errno));
        directory[0] = '\0';
        return false;
    }
    return true;
}

static void log_path(const struct server *server, char *path, size_t size) {
    snprintf(path, size, "%s/%d.log", directory, server->port);
}

static void show_log(const struct server *server) {
    char path[300];
    char line[512];
    log_path(server, path, sizeof path);
    FILE *log = fopen(path, "r");
    while (log != NULL && fgets(line, sizeof line, log) != NULL) {
        fprintf(stderr, "  | %s", line);
    }
    if (log != NULL) {
        fclose(log);
    }
}

/* Whatever the servers have written. A node that was killed may leave a file that it was about to rename. */
static void empty_directory(void) {
    char path[600];
    DIR *opened = opendir(directory);
    const struct dirent *entry;
    while (opened != NULL && (entry = readdir(opened)) != NULL) {
        if (entry->d_name[0] != '.') {
            snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
            unlink(path);
        }
    }
    if (opened != NULL) {
        closedir(opened);
    }
}

static void let_port_go(struct server *server) {
    if (server->held >= 0) {
        close(server->held);
    }
    server->held = -1;
}

/* Binds the server's port, or any free port if it has none yet, so that no other program takes it. */
static bool hold(struct server *server) {
    int on = 1;
    struct sockaddr_in address = loopback(server->port);
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) != 0
        || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0
        || bind(fd, (struct sockaddr *)&address, sizeof address) != 0
        || getsockname(fd, (struct sockaddr *)&address, &length) != 0) {
        complain("cannot have port %d of 127.0.0.1: %s", server->port, strerror(errno));
        if (fd >= 0) {
            close(fd);
        }
        return false;
    }
    server->port = ntohs(address.sin_port);
    server->held = fd;
    return true;
}

/* The port of a node must leave room for the second one. */
static bool hold_port(struct server *server) {
    int given = server->port;
    for (int draw = 0; draw < DRAWS; draw++) {
        server->port = given;
        if (!hold(server) || !server->is_node || server->port <= GREATEST) {
            return server->held >= 0;
        }
        let_port_go(server);
    }
    complain("no free port is %d at most", GREATEST);
    return false;
}

/* What it knows of its cluster is in a file, which has its port for a name. A copy comes over the network alone. */
static void add_node_arguments(char *arguments[], char *port) {
    static char *const options[] = {
        "--cluster-enabled", "yes", "--cluster-node-timeout", "1000", "--cluster-require-full-coverage", "no",
        "--repl-diskless-sync", "yes", "--repl-diskless-sync-delay", "0",
        "--repl-diskless-load", "on-empty-db", "--cluster-config-file",
    };
    size_t end = 1;
    while (arguments[end] != NULL) {
        end++;
    }
    memcpy(&arguments[end], options, sizeof options);
    arguments[end + sizeof options / sizeof options[0]] = port;
}

/* In the child: never returns. */
static void become_server(const struct server *server, pid_t parent) {
    char port[16];
    char path[300];
    snprintf(port, sizeof port, "%d", server->port);
    log_path(server, path, sizeof path);

    die_with_parent(parent);
    setpgid(0, 0); /* Ctrl-C is for the demo, which then ends its servers */
    int log = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    int nothing = open("/dev/null", O_RDONLY);
    if (log < 0 || nothing < 0 || dup2(nothing, 0) < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0) {
        _exit(126);
    }

    if (server->prepare != NULL) {
        server->prepare(server);
    }
    char *arguments[40] = {NULL, "--port", port, "--bind", "127.0.0.1", "--save", "",
                           "--appendonly", "no", "--daemonize", "no", "--dir", directory};
    if (server->is_node) {
        add_node_arguments(arguments, port);
    }
    const char *chosen = getenv("REDIS_SERVER");
    const char *programs[] = {"redis-server", "valkey-server"};
    size_t count = 2;
    if (chosen != NULL && *chosen != '\0') {
        programs[0] = chosen;
        count = 1;
    }
    for (size_t i = 0; i < count; i++) {
        arguments[0] = (char *)programs[i];
        execvp(programs[i], arguments);
    }
    dprintf(2, "%s cannot be run: %s (is it installed?)\n", programs[0], strerror(errno));
    _exit(127);
}

static bool spawn(struct server *server) {
    pid_t parent = getpid();
    let_port_go(server);
    server->pid = fork();
    if (server->pid == 0) {
        become_server(server, parent);
    }
    if (server->pid < 0) {
        complain("fork: %s", strerror(errno));
        server->pid = 0;
    }
    return server->pid > 0;
}

static int dial(const struct server *server) {
    struct sockaddr_in address = loopback(server->port);
    struct timeval patience = {1, 0};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0) {
        return -1;
    }
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* Sends a command, with the line break at its end, to the process that listens on the port. */
FILE *server_ask(const struct server *server, const char *line) {
    ssize_t length = (ssize_t)strlen(line);
    int fd = dial(server);
    FILE *answer = NULL;
    if (fd >= 0 && send(fd, line, (size_t)length, MSG_NOSIGNAL) == length) {
        answer = fdopen(fd, "r");
    }
    if (fd >= 0 && answer == NULL) {
        close(fd);
    }
    return answer;
}

/* Asks the process that listens on the port for a number: 0 if none answers. */
static int64_t ask_for(const struct server *server, const char *key) {
    char line[1024];
    int64_t number = 0;
    FILE *answer = server_ask(server, "INFO server\r\n");
    while (answer != NULL && number == 0 && fgets(line, sizeof line, answer) != NULL) {
        if (strncmp(line, key, strlen(key)) == 0) {
            number = strtoll(line + strlen(key), NULL, 10);
        }
    }
    if (answer != NULL) {
        fclose(answer);
    }
    return number;
}

static pid_t who_answers(const struct server *server) {
    return (pid_t)ask_for(server, "process_id:");
}

int64_t server_clock_ms(const struct server *server) {
    return ask_for(server, "server_time_usec:") / 1000;
}

static bool ended(struct server *server) {
    if (server->pid != 0 && waitpid(server->pid, NULL, WNOHANG) != server->pid) {
        return false;
    }
    server->pid = 0;
    return true;
}

/* Another process on the port would answer as well, so this checks that the answer comes from this server. */
static bool wait_until_it_answers(struct server *server) {
    for (int64_t end = clock_ms() + START_MS; clock_ms() < end;) {
        if (who_answers(server) == server->pid) {
            return true;
        }
        if (ended(server) || !sleep_ms(10)) {
            return false;
        }
    }
    return false;
}

static void end_process(struct server *server) {
    if (server->pid == 0) {
        return;
    }
    kill(server->pid, SIGKILL); /* also ends a frozen server */
    while (waitpid(server->pid, NULL, 0) < 0 && errno == EINTR) {
        continue;
    }
    server->pid = 0;
}

static bool start(struct server *server) {
    if (!spawn(server)) {
        return false;
    }
    if (wait_until_it_answers(server)) {
        return true;
    }
    end_process(server);
    return false;
}

static bool report_failed_start(const struct server *server) {
    if (caught_signal() == 0) {
        complain("the server on port %d did not start; its log:", server->port);
        show_log(server);
    }
    return false;
}

/* Another program may take a port between the moment when it is freed and the server's start: then try another
 * port. */
static bool start_on_free_port(struct server *server) {
    for (int tries = 1; caught_signal() == 0; tries++) {
        server->port = 0;
        if (!hold_port(server)) {
            return false;
        }
        if (start(server)) {
            return true;
        }
        if (tries == STARTS) {
            break;
        }
    }
    return report_failed_start(server);
}

bool servers_open(struct server servers[], int count) {
    for (int i = 0; i < count; i++) {
        servers[i] = (struct server){.held = -1, .is_node = servers[i].is_node, .prepare = servers[i].prepare};
    }
    if (!make_directory()) {
        return false;
    }
    for (int i = 0; i < count; i++) {
        if (!start_on_free_port(&servers[i])) {
            return false;
        }
    }
    return true;
}

bool server_kill(struct server *server) {
    end_process(server);
    return hold_port(server);
}

bool server_restart(struct server *server) {
    return start(server) || report_failed_start(server);
}

void server_freeze(const struct server *server) {
    kill(server->pid, SIGSTOP);
}

void server_thaw(const struct server *server) {
    kill(server->pid, SIGCONT);
}

bool servers_all_alive(struct server servers[], int count) {
    for (int i = 0; i < count; i++) {
        if (servers[i].pid == 0 || !ended(&servers[i])) {
            continue;
        }
        complain("the server on port %d ended by itself; its log:", servers[i].port);
        show_log(&servers[i]);
        return false;
    }
    return true;
}

void servers_close(struct server servers[], int count) {
    for (int i = 0; i < count; i++) {
        end_process(&servers[i]);
        let_port_go(&servers[i]);
    }
    if (directory[0] != '\0') {
        empty_directory();
        if (rmdir(directory) != 0) {
            complain("cannot remove %s: %s", directory, strerror(errno));
        }
    }
    directory[0] = '\0';
}

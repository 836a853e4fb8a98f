/*
 * The account in a PostgreSQL of the demo's own, if PostgreSQL is installed: in a directory that is removed at
 * the end, on a unix socket in that directory and on no port. The statements go through psql.
 */
#define _XOPEN_SOURCE 700
#define _DEFAULT_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <grp.h>
#include <inttypes.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "fencing.h"

enum { PATH_SIZE = 512, START_MS = 60000, END_MS = 10000 };

/* Where systems put programs that users do not call. */
static const char *const places[] = {
    "/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/libexec/postgresql*", "/usr/lib/postgresql*/bin",
    "/usr/local/pgsql/bin", "/opt/homebrew/opt/postgresql*/bin", "/usr/local/opt/postgresql*/bin",
    "/usr/local/bin", "/usr/bin",
};

static char binaries[PATH_SIZE];
static char home[PATH_SIZE];   /* contains everything: the data, the socket, the log */
static pid_t making;           /* initdb, 0 if it does not run */
static pid_t server;           /* 0 if it does not run */

static void path_of(const char *folder, const char *name, char path[PATH_SIZE + 32]) {
    snprintf(path, PATH_SIZE + 32, "%s/%s", folder, name);
}

static bool has_all(const char *folder) {
    static const char *const programs[] = {"initdb", "postgres", "psql"};
    char path[PATH_SIZE + 32];
    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) {
        path_of(folder, programs[i], path);
        if (access(path, X_OK) != 0) {
            return false;
        }
    }
    return strlen(folder) < sizeof binaries;
}

bool postgres_is_installed(void) {
    for (size_t i = 0; i < sizeof places / sizeof places[0] && binaries[0] == '\0'; i++) {
        glob_t found;
        if (glob(places[i], 0, NULL, &found) == 0) {
            for (size_t j = 0; j < found.gl_pathc && binaries[0] == '\0'; j++) {
                if (has_all(found.gl_pathv[j])) {
                    strcpy(binaries, found.gl_pathv[j]);
                }
            }
            globfree(&found);
        }
    }
    return binaries[0] != '\0';
}

/* PostgreSQL refuses to run as root. */
static struct passwd *somebody(void) {
    return geteuid() == 0 ? getpwnam("nobody") : NULL;
}

static bool become_somebody(void) {
    const struct passwd *user = somebody();
    if (geteuid() != 0) {
        return true;
    }
    return user != NULL && setgroups(0, NULL) == 0 && setgid(user->pw_gid) == 0 && setuid(user->pw_uid) == 0;
}

/* In the child: never returns. The process ends with the demo, even if the demo is killed with SIGKILL. */
static void become(const char *program, char *arguments[], pid_t parent, int end_signal) {
    char path[PATH_SIZE + 32];
    setpgid(0, 0); /* Ctrl-C is for the demo, which then ends this process */
    path_of(home, "log", path);
    int log = open(path, O_WRONLY | O_CREAT | O_APPEND, 0666);
    int nothing = open("/dev/null", O_RDONLY);
    if (log < 0 || nothing < 0 || dup2(nothing, 0) < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0
        || !become_somebody() || chdir(home) != 0) {
        _exit(126);
    }
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, end_signal); /* after the change of the user, which resets it */
#else
    (void)end_signal;
#endif
    if (getppid() != parent) {
        _exit(1);
    }
    signal(SIGPIPE, SIG_DFL);
    path_of(binaries, program, path);
    arguments[0] = path;
    execv(path, arguments);
    _exit(127);
}

static pid_t start(const char *program, char *arguments[], int end_signal) {
    pid_t parent = getpid();
    pid_t child = fork();
    if (child == 0) {
        become(program, arguments, parent, end_signal);
    }
    if (child < 0) {
        complain("fork: %s", strerror(errno));
        return 0;
    }
    return child;
}

void postgres_begin(const char *directory) {
    char data[PATH_SIZE + 32];
    snprintf(home, sizeof home, "%s/postgres", directory);
    path_of(home, "data", data);
    if (mkdir(home, 0755) != 0) {
        complain("cannot make %s: %s", home, strerror(errno));
        home[0] = '\0';
        return;
    }
    if (somebody() != NULL && chown(home, somebody()->pw_uid, somebody()->pw_gid) != 0) {
        complain("cannot give %s away: %s", home, strerror(errno));
        return;
    }
    char *arguments[] = {NULL, "-D", data, "-U", "demo", "-A", "trust", "-E", "UTF8", "--no-locale",
                         "--no-sync", NULL};
#ifdef __linux__
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* to wait also for the processes that initdb has started, see postgres_end */
#endif
    making = start("initdb", arguments, SIGKILL);
}

static void show_log(void) {
    char path[PATH_SIZE + 32];
    char line[512];
    path_of(home, "log", path);
    FILE *log = fopen(path, "r");
    while (log != NULL && fgets(line, sizeof line, log) != NULL) {
        fprintf(stderr, "  | %s", line);
    }
    if (log != NULL) {
        fclose(log);
    }
}

/* Whether a child ended by itself with success, within the limit. */
static bool ended_well(pid_t child) {
    int status = 0;
    for (int64_t end = clock_ms() + START_MS; waitpid(child, &status, WNOHANG) == 0;) {
        if (clock_ms() > end || !sleep_ms(5)) {
            kill(child, SIGKILL);
            waitpid(child, &status, 0);
            return false;
        }
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* In the child: never returns. PGHOST and similar variables are not for this server. */
static void become_psql(const struct values *values, int in, int out, bool is_quiet) {
    char path[PATH_SIZE + 32];
    char id[32], balance[64], token[64];
    snprintf(id, sizeof id, "id=%" PRId64, values->id);
    snprintf(balance, sizeof balance, "balance=%" PRId64, values->balance);
    snprintf(token, sizeof token, "token=%" PRId64, values->token);
    unsetenv("PGOPTIONS");
    unsetenv("PGSERVICE");
    int nothing = open("/dev/null", O_WRONLY);
    if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || (is_quiet && dup2(nothing, 2) < 0)) {
        _exit(126);
    }
    close(in);
    close(out);
    path_of(binaries, "psql", path);
    execl(path, path, "-X", "-A", "-t", "-h", home, "-p", "5432", "-U", "demo", "-d", "postgres",
          "-v", "ON_ERROR_STOP=1", "-v", id, "-v", balance, "-v", token, "-f", "-", (char *)NULL);
    _exit(127);
}

/* Lets psql run a statement, in which :id, :balance and :token stand for values. */
static bool psql(const char *sql, const struct values *values, bool is_quiet, char *said, size_t size) {
    pid_t parent = getpid();
    int in[2], out[2];
    size_t length = 0;
    ssize_t got = 0;
    /* The statement is in the pipe before psql starts, so that a psql that ends early breaks no pipe. */
    if (pipe(in) != 0 || pipe(out) != 0 || write(in[1], sql, strlen(sql)) < 0) {
        complain("pipe: %s", strerror(errno));
        return false;
    }
    pid_t child = fork();
    if (child == 0) {
        die_with_parent(parent);
        close(in[1]);
        close(out[0]);
        become_psql(values, in[0], out[1], is_quiet);
    }
    close(in[0]);
    close(out[1]);
    close(in[1]);
    do {
        got = read(out[0], said + length, size - 1 - length);
        length += got > 0 ? (size_t)got : 0;
    } while ((got > 0 && length < size - 1) || (got < 0 && errno == EINTR));
    said[length] = '\0';
    close(out[0]);
    return child > 0 && ended_well(child);
}

static bool answers(void) {
    const struct values nothing = {0};
    char said[64];
    return psql("SELECT 1", &nothing, true, said, sizeof said);
}

static int run(const char *sql, const struct values *values) {
    char said[256];
    int changed = 0;
    if (!psql(sql, values, false, said, sizeof said)) {
        complain("PostgreSQL has not done this: %s", sql);
        return FAILED;
    }
    return sscanf(said, "UPDATE %d", &changed) == 1 || sscanf(said, "INSERT 0 %d", &changed) == 1 ? changed : 0;
}

static bool read_balance(const struct values *values, int64_t *balance) {
    char said[256];
    return psql(READ_SQL, values, false, said, sizeof said) && sscanf(said, "%" SCNd64, balance) == 1;
}

const struct store postgres = {"PostgreSQL", run, read_balance};

bool postgres_is_ready(void) {
    char data[PATH_SIZE + 32];
    const struct values nothing = {0};
    bool is_made = making != 0 && ended_well(making);
    making = 0;
    path_of(home, "data", data);
    char *arguments[] = {NULL, "-D", data, "-k", home, "-p", "5432", "-c", "listen_addresses=",
                         "-c", "fsync=off", "-c", "shared_buffers=4MB", "-c", "max_connections=10", NULL};
    if (is_made) {
        server = start("postgres", arguments, SIGQUIT);
    }
    for (int64_t end = clock_ms() + START_MS; server != 0 && clock_ms() < end && sleep_ms(5);) {
        if (answers()) {
            return run(CREATE_SQL, &nothing) != FAILED;
        }
        if (waitpid(server, NULL, WNOHANG) == server) {
            server = 0;
        }
    }
    if (caught_signal() == 0) {
        complain("PostgreSQL in %s does not start; its log:", binaries);
        show_log();
    }
    return false;
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *where) {
    (void)status;
    (void)kind;
    (void)where;
    return remove(path);
}

/* At once (SIGQUIT), because the data is not needed. The server's own processes end before it does. */
static void end_server(void) {
    kill(server, SIGQUIT);
    for (int64_t end = clock_ms() + END_MS; waitpid(server, NULL, WNOHANG) == 0;) {
        struct timespec step = {0, 5000000};
        if (clock_ms() > end) {
            kill(server, SIGKILL);
        }
        nanosleep(&step, NULL);
    }
    server = 0;
}

/* Processes that initdb has started may still write for a moment. */
static void remove_home(void) {
    for (int64_t end = clock_ms() + END_MS; nftw(home, remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0;) {
        struct timespec step = {0, 5000000};
        if (clock_ms() > end) {
            complain("cannot remove %s: %s", home, strerror(errno));
            break;
        }
        nanosleep(&step, NULL);
    }
    home[0] = '\0';
}

void postgres_end(void) {
    if (making != 0) {
        kill(-making, SIGKILL);
        kill(making, SIGKILL); /* it may not yet have its own group */
        while (waitpid(making, NULL, 0) < 0 && errno == EINTR) {
            continue;
        }
        while (waitpid(-making, NULL, 0) > 0 || errno == EINTR) {
            continue;
        }
        making = 0;
    }
    if (server != 0) {
        end_server();
    }
    if (home[0] != '\0') {
        remove_home();
    }
}

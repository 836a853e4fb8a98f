/*
 * `make demo-fencing`: what can go wrong with locks that expire by themselves, shown with and without the
 * protection against it. It starts its own servers and databases and leaves nothing behind. It fails if the
 * events that it describes did not happen.
 *
 * worker.c shows how a program uses a fencing token, and fencing.h contains the statements; this file runs the
 * story around them.
 */
#define _DEFAULT_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <redlock.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fencing.h"

enum {
    FROZEN_TTL_MS = 2000,  /* the lock whose holder sleeps for longer */
    HELD_TTL_MS = 20000,   /* the locks that must not expire within their scene */
    SCENE_MS = 60000,      /* an event that takes longer does not happen any more */
    BALANCE = 100,
    WORKERS = 2,
};

/* A part of the library's message about a server whose clock was set forward. */
#define CLOCK_WORDS "clock jumped forward"

/* Three servers for each scene in which servers come to harm. Those of the scenes with the guard are used
 * before, in scene 1, because new servers have nothing to forget. */
static struct server all_servers[4 * SERVERS];
static struct server *const guarded = all_servers;
static struct server *const unguarded = all_servers + SERVERS;
static struct server *const guarded_clocks = all_servers + 2 * SERVERS;
static struct server *const unguarded_clocks = all_servers + 3 * SERVERS;
static int server_count = 2 * SERVERS; /* more if clocks can be set */

static bool has_clocks(void) {
    return server_count > 2 * SERVERS;
}

static struct place *places;      /* WORKERS of them */
static pid_t workers[WORKERS];    /* 0: the worker does not run */
static char directory[256];

/* --- Workers --- */

static bool start_worker(int i, int (*task)(const struct orders *, struct place *), const struct orders *orders) {
    pid_t parent = getpid();
    memset(&places[i], 0, sizeof places[i]);
    workers[i] = fork();
    if (workers[i] == 0) {
        die_with_parent(parent);
        /* Ctrl-C reaches all processes of the demo; the first process handles it for the others. */
        signal(SIGINT, SIG_IGN);
        signal(SIGQUIT, SIG_IGN);
        signal(SIGHUP, SIG_IGN);
        signal(SIGTERM, SIG_DFL);
        signal(SIGPIPE, SIG_DFL);
        _exit(task(orders, &places[i]));
    }
    if (workers[i] < 0) {
        complain("fork: %s", strerror(errno));
        workers[i] = 0;
    }
    return workers[i] > 0;
}

/* Waits until the worker has stopped itself, or until it has ended. */
static bool wait_for(int i, bool is_stopped) {
    int status = 0;
    for (int64_t end = clock_ms() + SCENE_MS; waitpid(workers[i], &status, WNOHANG | WUNTRACED) == 0;) {
        if (clock_ms() > end) {
            complain("%c does not come on", 'A' + i);
            return false;
        }
        if (!sleep_ms(5) || !servers_all_alive(all_servers, server_count)) {
            return false;
        }
    }
    if (!WIFSTOPPED(status)) {
        workers[i] = 0;
    }
    bool is_good = is_stopped ? WIFSTOPPED(status) : WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (!is_good && caught_signal() == 0) {
        complain("%c has wait status %d", 'A' + i, status);
    }
    return is_good;
}

static bool wait_until(const atomic_bool *flag) {
    for (int64_t end = clock_ms() + SCENE_MS; !atomic_load(flag);) {
        if (clock_ms() > end || !sleep_ms(5) || !servers_all_alive(all_servers, server_count)) {
            return false;
        }
    }
    return true;
}

static bool verdict(const char *what, bool good) {
    if (!good && caught_signal() == 0) {
        complain("this should not be: %s", what);
    }
    return good;
}

static void headline(const char *text) {
    printf("\n%s\n", text);
    fflush(stdout);
}

static void result(const char *text) {
    printf("     => %s\n", text);
    fflush(stdout);
}

/* --- A holder is frozen past the end of its lock, another takes over, the first one wakes and writes --- */

static bool frozen_holder(const struct server *servers, const struct store *store, bool has_token) {
    static int64_t account;
    struct values row = {.id = ++account, .balance = BALANCE};
    char resource[32];
    char words[128];
    int64_t balance = 0;
    snprintf(resource, sizeof resource, "account:%" PRId64, row.id);
    struct orders a = {.name = "A", .resource = resource, .servers = servers, .guard = REDLOCK_GUARD_ON,
                       .ttl_ms = FROZEN_TTL_MS, .store = store, .has_token = has_token, .account = row.id,
                       .amount = 10, .freezes = true};
    struct orders b = a;
    b.name = "B";
    b.amount = 500;
    b.freezes = false;

    if (store->run(INSERT_SQL, &row) == FAILED || !start_worker(0, deposit, &a) || !wait_for(0, true)) {
        return false;
    }
    say(">>", "A is frozen (SIGSTOP), and its lock ends after %d ms", FROZEN_TTL_MS);
    if (!start_worker(1, deposit, &b) || !wait_for(1, false)) {
        return false;
    }
    say(">>", "A goes on (SIGCONT)");
    kill(workers[0], SIGCONT);
    if (!wait_for(0, false) || !store->read(&row, &balance)) {
        return false;
    }
    if (has_token) {
        snprintf(words, sizeof words, "the balance is %" PRId64 ": nothing is lost", balance);
        result(words);
        return verdict("the database took a late write", atomic_load(&places[0].was_refused))
            && verdict("an amount was lost", balance == BALANCE + a.amount + b.amount);
    }
    snprintf(words, sizeof words, "the balance is %" PRId64 ": the %" PRId64 " of B are LOST", balance, b.amount);
    result(words);
    return verdict("nothing was lost without tokens", balance == BALANCE + a.amount);
}

/* --- A server forgets that it has granted a lock --- */

static bool forget_all(struct server *server) {
    say(">>", "server :%d is killed, and started again without its data", server->port);
    return server_kill(server) && server_restart(server);
}

/*
 * A takes its lock on the servers 0 and 1, because the last server does not answer. Then the last server
 * answers again, server 1 loses its memory, and B tries to take the lock. In the scenes that set a clock, B was
 * connected before, because a client that connects later does not know the earlier clock. Returns false if the
 * scene could not be played. Otherwise `had` tells which workers had the lock.
 */
static bool play_amnesia(struct server *servers, int guard, bool (*harm)(struct server *), bool had[WORKERS]) {
    struct orders a = {.name = "A", .resource = "job", .servers = servers, .guard = guard, .ttl_ms = HELD_TTL_MS};
    struct orders b = a;
    b.name = "B";
    b.waits = harm == clock_set_forward;
    if (b.waits) {
        if (!start_worker(1, hold, &b) || !wait_until(&places[1].is_connected)) {
            return false;
        }
        say(b.name, "is connected to all servers");
    }
    say(">>", "server :%d does not answer (SIGSTOP)", servers[2].port);
    server_freeze(&servers[2]);
    if (!start_worker(0, hold, &a) || !wait_until(&places[0].is_tried)) {
        return false;
    }
    say(">>", "server :%d answers again (SIGCONT)", servers[2].port);
    server_thaw(&servers[2]);
    if (!harm(&servers[1]) || (!b.waits && !start_worker(1, hold, &b))) {
        return false;
    }
    atomic_store(&places[1].may_try, true);
    if (!wait_until(&places[1].is_tried)) {
        return false;
    }
    /* B is asked first: a lock that A still holds after that, A has held since before B came. */
    for (int i = WORKERS - 1; i >= 0; i--) {
        atomic_store(&places[i].may_end, true);
        if (!wait_for(i, false)) {
            return false;
        }
        had[i] = atomic_load(&places[i].was_had) && (i > 0 || atomic_load(&places[i].was_kept));
    }
    return true;
}

static bool amnesia_without_guard(struct server *servers, bool (*harm)(struct server *)) {
    bool had[WORKERS] = {false, false};
    if (!play_amnesia(servers, REDLOCK_GUARD_OFF, harm, had)) {
        return false;
    }
    result(had[0] && had[1] ? "A and B hold the lock AT THE SAME TIME" : "one holder");
    return verdict("there were no two holders without the guard", had[0] && had[1]);
}

/* `reason` is the library's message why the server at fault has no vote. */
static bool amnesia_with_guard(struct server *servers, bool (*harm)(struct server *), const char *reason) {
    bool had[WORKERS] = {false, false};
    if (!play_amnesia(servers, REDLOCK_GUARD_ON, harm, had)) {
        return false;
    }
    result(had[1] ? "A and B hold the lock at the same time" : "one holder");
    return verdict("A did not hold the lock", had[0]) && verdict("there were two holders", !had[1])
        && verdict("B was refused for another reason", strstr(places[1].words, reason) != NULL);
}

/* --- The story --- */

static bool make_places(void) {
    size_t size = WORKERS * sizeof *places;
    void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) {
        complain("no shared memory: %s", strerror(errno));
        return false;
    }
    places = page;
    return true;
}

/* Other users may pass through it, because PostgreSQL does not run as root. */
static bool make_directory(void) {
    const char *base = getenv("TMPDIR");
    if (base == NULL || *base == '\0') {
        base = "/tmp";
    }
    int length = snprintf(directory, sizeof directory, "%s/redlock-fencing-XXXXXX", base);
    if (length < 0 || (size_t)length >= sizeof directory || mkdtemp(directory) == NULL
        || chmod(directory, 0711) != 0) {
        complain("cannot make a directory in %s: %s", base, strerror(errno));
        directory[0] = '\0';
        return false;
    }
    return true;
}

static bool prepare(const char *program) {
    if (!make_directory() || !make_places() || !sqlite_open(directory)) {
        return false;
    }
    if (clock_can_be_set(program, directory)) {
        server_count = 4 * SERVERS;
        for (int i = 2 * SERVERS; i < server_count; i++) {
            all_servers[i].prepare = clock_prepare;
        }
    }
    return servers_open(all_servers, server_count);
}

static void introduce(bool has_postgres) {
    printf("redlock %s: what can go wrong with locks that end by themselves, and what stops it.\n"
           "A and B add 10 and 500 to the balance of an account, which is %d: each reads it, adds, and writes it,\n"
           "under a lock on %d servers. The account is a row in SQLite%s.\n",
           RedLock_Version(), BALANCE, SERVERS,
           has_postgres ? ", and then in PostgreSQL" : "; PostgreSQL is not installed here and left out");
    fflush(stdout);
}

static bool play_postgres(void) {
    headline("1c. The same with fencing tokens in PostgreSQL, by the same SQL");
    if (!postgres_is_ready()) {
        result("left out: PostgreSQL is installed here, but does not start");
        return caught_signal() == 0;
    }
    return frozen_holder(guarded, &postgres, true);
}

static bool play_clocks(void) {
    headline("3a. A server's clock is set forward. Without the guard (REDLOCK_GUARD_OFF)");
    if (!has_clocks()) {
        result("left out: it needs the library set_clock.so beside this program");
        return true;
    }
    if (!amnesia_without_guard(unguarded_clocks, clock_set_forward)) {
        return false;
    }
    headline("3b. The same with the guard (REDLOCK_GUARD_ON, the default)");
    return amnesia_with_guard(guarded_clocks, clock_set_forward, CLOCK_WORDS);
}

static bool play(bool has_postgres) {
    headline("1a. A holder is frozen past the end of its lock. Without fencing tokens");
    if (!frozen_holder(guarded, &sqlite, false)) {
        return false;
    }
    headline("1b. The same with fencing tokens: UPDATE ... WHERE fence <= :token");
    if (!frozen_holder(has_clocks() ? guarded_clocks : guarded, &sqlite, true)) {
        return false;
    }
    if (has_postgres && !play_postgres()) {
        return false;
    }
    headline("2a. A server that granted a lock restarts empty. Without the restart guard (REDLOCK_GUARD_OFF)");
    if (!amnesia_without_guard(unguarded, forget_all)) {
        return false;
    }
    headline("2b. The same with the restart guard (REDLOCK_GUARD_ON, the default)");
    return amnesia_with_guard(guarded, forget_all, "lost its data") && play_clocks();
}

static void clean_up(void) {
    workers_end(workers, WORKERS);
    postgres_end();
    servers_close(all_servers, server_count);
    if (directory[0] != '\0') {
        for (int i = 2 * SERVERS; i < server_count; i++) {
            clock_forget(&all_servers[i]);
        }
        sqlite_close();
        if (rmdir(directory) != 0) {
            complain("cannot remove %s: %s", directory, strerror(errno));
        }
    }
}

int main(int argc, char *argv[]) {
    catch_signals();
    clock_start();
    bool good = argc > 0 && prepare(argv[0]);
    bool has_postgres = good && postgres_is_installed();
    if (good) {
        introduce(has_postgres);
        clock_start();
        if (has_postgres) {
            postgres_begin(directory);
        }
        good = play(has_postgres);
    }
    if (good) {
        printf("\nAll of this took %.1f seconds, and happened as it is told.\n", (double)clock_ms() / 1000);
    }
    clean_up();
    return end_of_demo(good);
}

/*
 * A process that locks in every way in which programs do, and logs what it saw.
 *
 * Usage: worker NAME DIRECTORY BOARD SLOT SEED THREADS RESOURCES steady|mortal URL...
 *
 * It works until the board orders it to rest, then idles until the board orders it to end. A steady
 * worker is never killed. It also takes locks with a long TTL, and always releases them.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../programs/c/check.h"
#include "actor.h"

enum { THREADS_MAX = 16, LONG_TTL_MS = 600000, SAMPLE_MS = 500, NS_PER_MS = 1000000 };

static const char *directory;
static struct journal journal;
static struct board *board;
static RedLock *manager;
static int slot, resources;
static bool steady;
static atomic_int children;

static bool is_working(void) {
    return atomic_load(&board->orders) == WORK;
}

static void map_board(const char *path) {
    int fd = open(path, O_RDWR | O_CLOEXEC);
    CHECK(fd >= 0);
    board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(board != MAP_FAILED);
    close(fd);
}

static struct actor new_actor(int thread, uint64_t seed) {
    struct actor actor = {
        .journal = &journal,
        .manager = manager,
        .board = board,
        .writing = &board->slots[slot].writing,
        .thread = thread,
        .dice = seed * 0x9e3779b97f4a7c15 + (uint64_t)thread,
        .lease = RedLockLease_New(),
    };
    CHECK(actor.lease);
    return actor;
}

/* Mostly short, and now and then longer than many faults. */
static int64_t some_ttl(struct actor *actor) {
    return roll(actor, 8) == 0 ? 1000 + roll(actor, 1500) : 250 + roll(actor, 350);
}

/* Threads of a process share a lock that one of them continues, so only one thread continues locks. */
static bool acquire(struct actor *actor) {
    int number = roll(actor, resources);
    int64_t ttl_ms = some_ttl(actor);
    switch (roll(actor, actor->thread == 0 ? 6 : 4)) {
    case 0:
        return lock(actor, number, ttl_ms);
    case 1:
        return try_lock(actor, number, ttl_ms, 0);
    case 2:
        return try_lock(actor, number, ttl_ms, 1 + roll(actor, 60));
    case 3:
        return try_lock(actor, number, ttl_ms, 100 + roll(actor, 900));
    default:
        return continue_lock(actor, number, ttl_ms);
    }
}

static void hold(struct actor *actor) {
    for (int steps = 1 + roll(actor, 4); steps > 0; steps--) {
        switch (roll(actor, 8)) {
        case 0:
            extend(actor, some_ttl(actor));
            break;
        case 1:
            confirm(actor, roll(actor, 3) == 0 ? 100 : 0);
            break;
        case 2:
            look(actor);
            break;
        case 3:
            if (actor->thread == 0 && RedLockLease_IsHeld(actor->lease)) {
                continue_lock(actor, actor->number, some_ttl(actor));
            }
            break;
        default:
            count_up(actor, roll(actor, 3) == 0 ? roll(actor, 60) : roll(actor, 5));
        }
        if (!*actor->token) {
            return;
        }
    }
}

/* Stays beyond the deadline. Its calls must be refused then, and it must not write. */
static void overstay(struct actor *actor) {
    pause_ms(RedLockLease_RemainingMs(actor->lease) + roll(actor, roll(actor, 2) ? 5 : 50));
    look(actor);
    count_up(actor, 0);
    if (roll(actor, 2)) {
        extend(actor, some_ttl(actor));
    } else {
        confirm(actor, 0);
    }
    look(actor);
    unlock(actor);
}

/* Keeps the lock for much longer than its TTL, as long as extensions succeed. */
static void keep_alive(struct actor *actor) {
    int64_t end = now() + (500 + roll(actor, 2500)) * (int64_t)NS_PER_MS;
    while (now() < end && extend(actor, some_ttl(actor) * (1 + roll(actor, 3)) / 2) != REDLOCK_LOST) {
        count_up(actor, roll(actor, 5));
        pause_ms(RedLockLease_RemainingMs(actor->lease) * (1 + roll(actor, 3)) / 4);
    }
}

static void let_go(struct actor *actor) {
    if (!*actor->token) {
        return;
    }
    int dice = roll(actor, 100);
    if (dice < 4) {
        overstay(actor);
    } else if (dice < 7) {
        give_up(actor);
    } else {
        unlock(actor);
        if (dice < 15) {
            look(actor);
            unlock(actor);
        }
    }
}

static void cycle(struct actor *actor) {
    /* If a release did not reach enough servers, the lease still has its token. Then a new lease is
     * used. */
    if (*RedLockLease_Token(actor->lease)) {
        give_up(actor);
    }
    if (acquire(actor)) {
        if (roll(actor, 30) == 0) {
            keep_alive(actor);
        } else {
            hold(actor);
        }
    }
    let_go(actor);
    pause_ms(roll(actor, 25));
}

/* Locks with a long TTL are never given up, so the library left behind any remaining key of them. */
static void cycle_alone(struct actor *actor) {
    if (*RedLockLease_Token(actor->lease)) {
        give_up(actor);
    }
    if (try_lock(actor, -1, LONG_TTL_MS, roll(actor, 100))) {
        if (roll(actor, 3) == 0) {
            extend(actor, LONG_TTL_MS);
        }
        unlock(actor);
    }
}

/* A child may go on with the manager, but has no share in its parent's locks. */
static void be_child(struct actor *parent, int number, pid_t of) {
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != of) {
        _exit(0);
    }
    char name[NAME_SIZE + 16], parents[NAME_SIZE];
    strcpy(parents, journal.name);
    snprintf(name, sizeof name, "%sc%d", parents, number);
    close(journal.fd);
    journal_open(&journal, directory, name, parents);
    /* It is never stopped, so nothing needs to know when it writes. */
    static _Atomic uint64_t writing;
    parent->writing = &writing;
    memset(parent->continued, 0, sizeof parent->continued);
    if (*parent->token) {
        look(parent);
        extend(parent, 1000);
        confirm(parent, 0);
        unlock(parent);
    }
    struct actor actor = new_actor(parent->thread, parent->dice);
    actor.writing = &writing;
    for (int cycles = roll(&actor, 4); cycles > 0; cycles--) {
        cycle(&actor);
    }
    say(&journal, 0, now(), "end");
    _exit(0);
}

static void fork_child(struct actor *actor) {
    bool has_lock = roll(actor, 2) && acquire(actor);
    pid_t parent = getpid();
    int number = atomic_fetch_add(&children, 1);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        be_child(actor, number, parent);
    }
    if (has_lock) {
        hold(actor);
    }
    int how;
    while (waitpid(child, &how, 0) < 0) {
        CHECK(errno == EINTR);
    }
    CHECK(WIFEXITED(how) && WEXITSTATUS(how) == 0);
    let_go(actor);
}

static void *act(void *arguments) {
    struct actor *actor = arguments;
    int64_t sampled = now();
    while (is_working()) {
        if (actor->thread == 0 && now() - sampled > SAMPLE_MS * (int64_t)NS_PER_MS) {
            sampled = now();
            say_sample(&journal);
        }
        int dice = roll(actor, 100);
        if (dice < 1) {
            fork_child(actor);
        } else if (dice < 20 && steady) {
            cycle_alone(actor);
        } else {
            cycle(actor);
        }
    }
    RedLockLease_Free(actor->lease);
    atomic_fetch_add(&board->slots[slot].resting, 1);
    return NULL;
}

int main(int argc, char **argv) {
    CHECK(argc > 9);
    directory = argv[2];
    map_board(argv[3]);
    slot = atoi(argv[4]);
    uint64_t seed = strtoull(argv[5], NULL, 10);
    int threads = atoi(argv[6]);
    resources = atoi(argv[7]);
    steady = strcmp(argv[8], "steady") == 0;
    CHECK(slot < SLOTS_MAX && resources <= RESOURCES_MAX && threads <= THREADS_MAX);
    journal_open(&journal, directory, argv[1], NULL);

    manager = RedLock_New();
    CHECK(manager);
    actor_settings(manager);
    for (int i = 9; i < argc; i++) {
        CHECK(RedLock_AddServerUrl(manager, argv[i], 0) == REDLOCK_OK);
    }
    struct actor actors[THREADS_MAX];
    pthread_t ids[THREADS_MAX];
    for (int i = 0; i < threads; i++) {
        actors[i] = new_actor(i, seed);
    }
    for (int i = 1; i < threads; i++) {
        CHECK(pthread_create(&ids[i], NULL, act, &actors[i]) == 0);
    }
    act(&actors[0]);
    for (int i = 1; i < threads; i++) {
        CHECK(pthread_join(ids[i], NULL) == 0);
    }
    while (atomic_load(&board->orders) != END) {
        pause_ms(5);
    }
    RedLock_Free(manager);
    say(&journal, 0, now(), "end");
    return 0;
}

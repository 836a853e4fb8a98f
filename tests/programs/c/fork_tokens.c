/* Parent and children, forked at one point, and their threads, draw different tokens. */
#include <pthread.h>

#include "guest.h"

enum { TOKEN_SIZE = 41, ROUNDS = 20, CHILDREN = 16, THREADS = 4, EACH = 40 };
enum { TOKENS = 2 * ROUNDS + 1 + (CHILDREN + 1) * THREADS * EACH };

static char tokens[TOKENS][TOKEN_SIZE];
static int channel[2];
static RedLock *manager;

static void take(RedLock *rl, const char *resource, char token[TOKEN_SIZE]) {
    RedLockLease *lease = new_lease();
    EXPECT(REDLOCK_OK, RedLock_Lock(rl, resource, TTL_MS, lease), lease);
    CHECK(strlen(RedLockLease_Token(lease)) == TOKEN_SIZE - 1);
    memcpy(token, RedLockLease_Token(lease), TOKEN_SIZE);
    EXPECT(REDLOCK_OK, RedLock_Unlock(rl, lease), lease);
    RedLockLease_Free(lease);
}

/* One child after the other, in step with its parent. Returns how many tokens there are. */
static int in_turn(void) {
    int count = 0;
    take(manager, "parents", tokens[count++]);
    for (int i = 0; i < ROUNDS; i++) {
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            no_longer_than(20);
            char token[TOKEN_SIZE];
            take(manager, "childs", token);
            CHECK(write(channel[1], token, TOKEN_SIZE) == TOKEN_SIZE);
            _exit(0);
        }
        take(manager, "parents", tokens[count++]);
        CHECK(read(channel[0], tokens[count++], TOKEN_SIZE) == TOKEN_SIZE);
        reap(pid);
    }
    return count;
}

static void *draw(void *argument) {
    char resource[32], token[TOKEN_SIZE];
    snprintf(resource, sizeof resource, "%d-%d", (int)getpid(), (int)(intptr_t)argument);
    for (int i = 0; i < EACH; i++) {
        take(manager, resource, token);
        CHECK(write(channel[1], token, TOKEN_SIZE) == TOKEN_SIZE);
    }
    return NULL;
}

static void draw_in_threads(void) {
    pthread_t threads[THREADS];
    for (intptr_t i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, draw, (void *)i) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
}

static void read_whole(char token[TOKEN_SIZE]) {
    for (size_t got = 0; got < TOKEN_SIZE;) {
        ssize_t count = read(channel[0], token + got, TOKEN_SIZE - got);
        CHECK(count > 0);
        got += (size_t)count;
    }
}

static void *draw_here(void *argument) {
    draw_in_threads();
    return argument;
}

/* All at once, each in several threads, the parent among them. */
static int at_once(int count) {
    pid_t children[CHILDREN];
    for (int i = 0; i < CHILDREN; i++) {
        children[i] = fork();
        CHECK(children[i] >= 0);
        if (children[i] == 0) {
            no_longer_than(60);
            draw_in_threads();
            _exit(0);
        }
    }
    pthread_t here;
    CHECK(pthread_create(&here, NULL, draw_here, NULL) == 0);
    while (count < TOKENS) {
        read_whole(tokens[count++]);
    }
    CHECK(pthread_join(here, NULL) == 0);
    for (int i = 0; i < CHILDREN; i++) {
        reap(children[i]);
    }
    return count;
}

static int compare(const void *a, const void *b) {
    return memcmp(a, b, TOKEN_SIZE);
}

int main(int argc, char **argv) {
    no_longer_than(100);
    manager = manager_of(argc - 1, argv + 1);
    CHECK(pipe(channel) == 0);
    int count = at_once(in_turn());
    CHECK(count == TOKENS);
    qsort(tokens, TOKENS, TOKEN_SIZE, compare);
    for (int i = 0; i + 1 < TOKENS; i++) {
        CHECK(compare(tokens[i], tokens[i + 1]) != 0);
    }
    RedLock_Free(manager);
    return 0;
}

/* Parent and child, forked at one point, draw different tokens. */
#include "guest.h"

enum { TOKEN_SIZE = 41, CHILDREN = 20 };

static void take(RedLock *rl, const char *resource, char token[TOKEN_SIZE]) {
    RedLockLease *lease = new_lease();
    EXPECT(REDLOCK_OK, RedLock_Lock(rl, resource, TTL_MS, lease), lease);
    CHECK(strlen(RedLockLease_Token(lease)) == TOKEN_SIZE - 1);
    memcpy(token, RedLockLease_Token(lease), TOKEN_SIZE);
    EXPECT(REDLOCK_OK, RedLock_Unlock(rl, lease), lease);
    RedLockLease_Free(lease);
}

static int compare(const void *a, const void *b) {
    return memcmp(a, b, TOKEN_SIZE);
}

int main(int argc, char **argv) {
    no_longer_than(60);
    RedLock *rl = manager_of(argc - 1, argv + 1);
    char tokens[2 * CHILDREN + 1][TOKEN_SIZE];
    int channel[2];
    CHECK(pipe(channel) == 0);
    take(rl, "parents", tokens[0]);
    for (int i = 0; i < CHILDREN; i++) {
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            no_longer_than(20);
            char token[TOKEN_SIZE];
            take(rl, "childs", token);
            CHECK(write(channel[1], token, TOKEN_SIZE) == TOKEN_SIZE);
            _exit(0);
        }
        take(rl, "parents", tokens[2 * i + 1]);
        CHECK(read(channel[0], tokens[2 * i + 2], TOKEN_SIZE) == TOKEN_SIZE);
        reap(pid);
    }
    qsort(tokens, 2 * CHILDREN + 1, TOKEN_SIZE, compare);
    for (int i = 0; i < 2 * CHILDREN; i++) {
        CHECK(compare(tokens[i], tokens[i + 1]) != 0);
    }
    RedLock_Free(rl);
    return 0;
}

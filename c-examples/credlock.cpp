/*
 * A program as written for the hiredis-based CRedLock: a lock for one job, and a lock that is kept over many
 * rounds by ContinueLock.
 *
 *     credlock [host:port ...]
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "redlock-cpp/redlock.h"

static bool add_server(CRedLock *dlm, const char *server) {
    const char *colon = strrchr(server, ':');
    if (colon == NULL) {
        return dlm->AddServerUrl(server, 6379);
    }
    return strstr(server, "://") != NULL
               ? dlm->AddServerUrl(server, 0)
               : dlm->AddServerUrl(string(server, colon).c_str(), atoi(colon + 1));
}

static bool do_one_job(CRedLock *dlm) {
    CLock my_lock;
    if (!dlm->Lock("foo", 10000, my_lock)) {
        fprintf(stderr, "foo was not locked\n");
        return false;
    }
    printf("locked %s for %d ms\n", my_lock.m_resource, my_lock.m_validityTime);
    // do resource job
    return dlm->Unlock(my_lock);
}

// A new CLock each round: the CRedLock remembers that it holds the lock, and renews it.
static bool keep_for_rounds(CRedLock *dlm, int rounds) {
    for (int round = 1; round <= rounds; round++) {
        CLock my_lock;
        if (!dlm->ContinueLock("bar", 2000, my_lock)) {
            fprintf(stderr, "%s was not ours in round %d\n", my_lock.m_resource, round);
            return false;
        }
        printf("round %d: %s is ours for %d ms\n", round, my_lock.m_resource,
               my_lock.m_validityTime);
        // do resource job
        usleep(300 * 1000);
        if (round == rounds) {
            return dlm->Unlock(my_lock);
        }
    }
    return true;
}

int main(int argc, char **argv) {
    CRedLock *dlm = new CRedLock();
    bool done = true;
    if (argc < 2) {
        dlm->AddServerUrl("127.0.0.1", 6379);
        dlm->AddServerUrl("127.0.0.1", 6380);
        dlm->AddServerUrl("127.0.0.1", 6381);
    }
    for (int i = 1; i < argc; i++) {
        if (!add_server(dlm, argv[i])) {
            fprintf(stderr, "%s is no server\n", argv[i]);
            done = false;
        }
    }
    dlm->SetRetry(3, 200);

    done = done && do_one_job(dlm) && keep_for_rounds(dlm, 6);
    delete dlm;
    return done ? 0 : 1;
}

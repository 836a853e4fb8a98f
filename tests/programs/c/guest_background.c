/* Managers that have a background thread, or had one before, are freed: the memory of their threads
 * is released. A thread that is neither joined nor detached would keep its stack mapped for ever. */
#include "guest.h"

#define MANAGERS 2000

/* The number of mappings. */
static int mappings(void) {
    FILE *maps = fopen("/proc/self/maps", "r");
    CHECK(maps);
    int lines = 0;
    for (int byte = getc(maps); byte != EOF; byte = getc(maps)) {
        lines += byte == '\n';
    }
    fclose(maps);
    return lines;
}

/* The thread begins with the first call that asks servers. */
static void start_thread(RedLock *rl) {
    RedLockEvent event = REDLOCK_EVENT_INIT;
    CHECK(RedLock_SetBackgroundThread(rl, true) == REDLOCK_OK);
    CHECK(RedLock_NextEvent(rl, 0, &event) == REDLOCK_NO_EVENT);
    CHECK(threads() == 2);
}

/* Waits for a thread that ends by itself. */
static void await_no_thread(void) {
    while (threads() > 1) {
        usleep(100);
    }
}

int main(int argc, char **argv) {
    no_longer_than(60);
    int warm = 0;
    for (int i = 0; i < MANAGERS; i++) {
        RedLock *rl = manager_of(argc - 1, argv + 1);
        start_thread(rl);
        CHECK(RedLock_SetBackgroundThread(rl, false) == REDLOCK_OK);
        await_no_thread();
        start_thread(rl);
        RedLock_Free(rl);
        await_no_thread();
        if (i == MANAGERS / 20) {
            warm = mappings();
        }
    }
    /* A stack and its guard for each would be thousands. */
    CHECK(mappings() < warm + MANAGERS / 10);
    return 0;
}

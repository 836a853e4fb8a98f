/* The process that it is preloaded into, and all its forks, see one and the same pid, as does the
 * first process of each PID namespace. If REDLOCK_TEST_SAME_PID is "no page", the system also has
 * no pages that are emptied in a child. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static int has_page = 1;

__attribute__((constructor)) static void look(void) {
    const char *how = getenv("REDLOCK_TEST_SAME_PID");
    has_page = !how || strcmp(how, "no page") != 0;
}

pid_t getpid(void) { return 4242; }

int madvise(void *start, size_t length, int advice) {
    if (advice == MADV_WIPEONFORK && !has_page) {
        errno = EINVAL;
        return -1;
    }
    return (int)syscall(SYS_madvise, start, length, advice);
}

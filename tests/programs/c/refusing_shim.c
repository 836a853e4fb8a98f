/* Refuses calls of `redlock`, as some systems do. REDLOCK_TEST_REFUSED says which: "waitid", "kill" (SIGKILL to a
 * program that has become another user), "subreaper", "cgroup" (making a control group), and "entry" (of a process
 * into that group). The program that `redlock` runs is left alone. */
#define _GNU_SOURCE

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static bool is_refused(const char *call) {
    const char *refused = getenv("REDLOCK_TEST_REFUSED");
    return refused && strstr(refused, call) && strcmp(program_invocation_short_name, "redlock") == 0;
}

static int refuse(int error) {
    errno = error;
    return -1;
}

int waitid(idtype_t type, id_t id, siginfo_t *info, int options) {
    static int (*real)(idtype_t, id_t, siginfo_t *, int);
    *(void **)&real = dlsym(RTLD_NEXT, "waitid");
    return is_refused("waitid") ? refuse(EPERM) : real(type, id, info, options);
}

int kill(pid_t process, int number) {
    static int (*real)(pid_t, int);
    *(void **)&real = dlsym(RTLD_NEXT, "kill");
    bool is_kill = number == SIGKILL || number == 0;
    return is_kill && is_refused("kill") ? refuse(EPERM) : real(process, number);
}

int killpg(pid_t group, int number) {
    return kill(-group, number);
}

int prctl(int option, ...) {
    static int (*real)(int, ...);
    *(void **)&real = dlsym(RTLD_NEXT, "prctl");
    va_list list;
    va_start(list, option);
    unsigned long second = va_arg(list, unsigned long);
    va_end(list);
    bool is_it = option == PR_SET_CHILD_SUBREAPER;
    return is_it && is_refused("subreaper") ? refuse(EINVAL) : real(option, second, 0UL, 0UL, 0UL);
}

int mkdir(const char *path, mode_t mode) {
    static int (*real)(const char *, mode_t);
    *(void **)&real = dlsym(RTLD_NEXT, "mkdir");
    bool is_it = strstr(path, "/redlock-") != NULL;
    return is_it && is_refused("cgroup") ? refuse(EACCES) : real(path, mode);
}

/* A process enters a control group by writing "0". */
ssize_t write(int descriptor, const void *bytes, size_t size) {
    static ssize_t (*real)(int, const void *, size_t);
    *(void **)&real = dlsym(RTLD_NEXT, "write");
    bool is_it = size == 1 && *(const char *)bytes == '0';
    return is_it && is_refused("entry") ? refuse(EACCES) : real(descriptor, bytes, size);
}

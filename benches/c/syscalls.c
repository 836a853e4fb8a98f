/*
 * Counts the system calls that a program and its children make from start to end.
 *
 *     syscalls PROGRAM ARGUMENT...      prints calls=N once it has ended
 *
 * Tracing slows the program down, so it may find other things ready than it would without tracing. Two runs of
 * different length tell the cost of one cycle.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#define OPTIONS                                                                                    \
    (PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK          \
     | PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC)

static void fail(const char *what)
{
    fprintf(stderr, "syscalls: %s: %s\n", what, strerror(errno));
    exit(1);
}

static pid_t start(char **argv)
{
    pid_t child = fork();

    if (child < 0)
        fail("fork");
    if (child > 0)
        return child;
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
        fail("trace");
    raise(SIGSTOP);
    execvp(argv[0], argv);
    fail(argv[0]);
    return -1;
}

/* The signal to pass to a stopped process with its next step. The process gets its own signals, but not those
 * that stand for events of the tracing. */
static int signal_of(int status)
{
    int number = WSTOPSIG(status);
    int event = status >> 16;

    if (event != 0 || number == (SIGTRAP | 0x80) || number == SIGTRAP || number == SIGSTOP)
        return 0;
    return number;
}

/* Each system call stops a process twice, at its beginning and at its end. */
static long count_stops(pid_t first, int *result)
{
    long stops = 0;
    int status;
    pid_t who;

    while ((who = waitpid(-1, &status, __WALL)) > 0) {
        if (WIFSTOPPED(status)) {
            stops += WSTOPSIG(status) == (SIGTRAP | 0x80);
            ptrace(PTRACE_SYSCALL, who, NULL, (void *)(long)signal_of(status));
        } else if (who == first) {
            *result = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
        }
    }
    return stops;
}

int main(int argc, char **argv)
{
    int status, result = 1;

    if (argc < 2) {
        fputs("syscalls PROGRAM ARGUMENT...\n", stderr);
        return 2;
    }
    pid_t child = start(argv + 1);
    if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status))
        fail("the program did not start");
    if (ptrace(PTRACE_SETOPTIONS, child, NULL, (void *)(long)OPTIONS) != 0)
        fail("PTRACE_SETOPTIONS");
    ptrace(PTRACE_SYSCALL, child, NULL, NULL);
    long stops = count_stops(child, &result);
    printf("calls=%ld\n", stops / 2);
    return result;
}

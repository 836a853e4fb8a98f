#define _GNU_SOURCE
#include "crew.h"
#include "measure.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void note_death(int number)
{
    (void)number;
    _exit(1);
}

void crew_start(void (*work)(int number), int number)
{
    pid_t parent = getpid(), child;

    signal(SIGCHLD, note_death);
    child = fork();
    if (child < 0)
        measure_fail("fork");
    if (child > 0)
        return;
    signal(SIGCHLD, SIG_DFL);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
        _exit(1);
    work(number);
    _exit(0);
}

void crew_dismiss(void)
{
    signal(SIGCHLD, SIG_DFL);
}

void crew_wait(void)
{
    while (wait(NULL) > 0)
        continue;
}

void crew_line(pthread_barrier_t *line, int count)
{
    pthread_barrierattr_t shared;

    pthread_barrierattr_init(&shared);
    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(line, &shared, (unsigned)count);
    pthread_barrierattr_destroy(&shared);
}

/* Passes an unreadable file, its argument, to the library, and prints the resulting words. Root may
 * read every file, and then this process becomes another user first. */
#include "guest.h"

int main(int argc, char **argv) {
    CHECK(argc == 2);
    if (geteuid() == 0) {
        CHECK(setuid(65534) == 0);
    }
    RedLock *rl = RedLock_New();
    CHECK(rl);
    CHECK(RedLock_SetTlsCa(rl, argv[1]) == REDLOCK_INVALID_ARGUMENT);
    char line[5000];
    int length = snprintf(line, sizeof line, "%s\n", RedLock_ErrorMessage(rl));
    CHECK(write(STDIN_FILENO, line, (size_t)length) == length);
    CHECK(RedLock_SetTlsCertificate(rl, argv[1], argv[1]) == REDLOCK_INVALID_ARGUMENT);
    CHECK(strstr(RedLock_ErrorMessage(rl), "certificate_file") && !strstr(RedLock_ErrorMessage(rl), argv[1]));
    RedLock_Free(rl);
    return 0;
}

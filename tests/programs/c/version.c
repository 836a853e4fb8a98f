/* The header and the running library have the same version. */
#include <string.h>

#include "check.h"
#include "redlock.h"

int main(void) {
    char expected[64];
    snprintf(expected, sizeof expected, "%d.%d.%d", REDLOCK_VERSION_MAJOR, REDLOCK_VERSION_MINOR,
             REDLOCK_VERSION_PATCH);
    CHECK(strcmp(RedLock_Version(), expected) == 0);
    return 0;
}

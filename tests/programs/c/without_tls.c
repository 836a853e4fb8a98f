/* A library without TLS: requests for TLS are refused in words that say why, and everything else
 * works as usual. */
#include "guest.h"

static RedLock *manager;

static void is_refused(RedLockStatus status) {
    CHECK(status == REDLOCK_INVALID_ARGUMENT);
    CHECK(strstr(RedLock_ErrorMessage(manager), "build"));
    CHECK(strstr(RedLock_ErrorMessage(manager), "TLS"));
}

int main(int argc, char **argv) {
    no_longer_than(60);
    manager = manager_of(argc - 1, argv + 1);
    is_refused(RedLock_AddServerUrl(manager, "rediss://127.0.0.1:6379", 0));
    is_refused(RedLock_AddServerUrl(manager, "valkeys://:password@127.0.0.1:6379", 0));
    CHECK(!strstr(RedLock_ErrorMessage(manager), "password"));
    is_refused(RedLock_SetTlsCa(manager, "/etc/ssl/certs/ca-certificates.crt"));
    is_refused(RedLock_SetTlsCa(manager, NULL));
    is_refused(RedLock_SetTlsCertificate(manager, "certificate.pem", "key.pem"));
    is_refused(RedLock_SetTlsCertificate(manager, NULL, NULL));
    is_refused(RedLock_SetTlsServerName(manager, "redis.example"));
    is_refused(RedLock_SetTlsServerName(manager, NULL));
    is_refused(RedLock_SetTlsInsecureSkipVerify(manager, true));
    is_refused(RedLock_SetTlsInsecureSkipVerify(manager, false));

    RedLockLease *lease = new_lease();
    EXPECT(REDLOCK_OK, RedLock_Lock(manager, "r", TTL_MS, lease), lease);
    EXPECT(REDLOCK_OK, RedLock_Unlock(manager, lease), lease);
    RedLockLease_Free(lease);
    RedLock_Free(manager);
    return 0;
}

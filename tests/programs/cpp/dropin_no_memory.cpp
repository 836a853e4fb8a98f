// The behaviour of redlock-cpp/redlock.h if the system gives no memory for the strings of a CLock,
// against the servers given as host:port.
#include <stdlib.h>

#include "servers.hpp"

#include <iostream>

static int mallocs_left = 0;

static void *scarce_malloc(size_t size) {
    return mallocs_left-- > 0 ? malloc(size) : NULL;
}

#define malloc(size) scarce_malloc(size)
#include "redlock-cpp/redlock.h"
#undef malloc

static void add_all(CRedLock &dlm, const Servers &servers) {
    for (size_t i = 0; i < servers.count(); i++) {
        CHECK(dlm.AddServerUrl(servers.host(i), servers.port(i)));
    }
}

static void check_members(const CLock &lock) {
    CHECK(lock.m_resource != NULL && lock.m_val != NULL);
    CHECK(strlen(lock.m_resource) + strlen(lock.m_val) < 1000);
}

int main(int argc, char **argv) {
    const Servers servers(argc - 1, argv + 1);
    const string name = fresh_name("memory");
    CRedLock dlm;
    add_all(dlm, servers);
    CLock lock;

    // Either of the two strings may be the one without memory.
    for (int enough_for = 0; enough_for < 2; enough_for++) {
        mallocs_left = enough_for;
        CHECK(!dlm.Lock(name.c_str(), 20000, lock));
        check_members(lock);
        CHECK(servers.all_come_to_lack(name));
    }
    mallocs_left = 2;
    CHECK(dlm.ContinueLock(name.c_str(), 20000, lock));
    const string token = lock.m_val;

    // An existing lock is left alone.
    mallocs_left = 0;
    CHECK(!dlm.ContinueLock(name.c_str(), 20000, lock));
    check_members(lock);
    CHECK(servers.most_have(name, token));
    mallocs_left = 2;
    CHECK(dlm.ContinueLock(name.c_str(), 20000, lock) && lock.m_val == token);
    CHECK(dlm.Unlock(lock) && servers.all_come_to_lack(name));
    return 0;
}

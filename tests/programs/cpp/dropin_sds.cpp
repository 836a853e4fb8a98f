// The strings of a CLock in a program that includes an sds.h: that of hiredis, or the one of before
// 2015 (SDS: HIREDIS, OLD), before the drop-in header or after it (-DLATER). Given host:port ....
#include <stddef.h>

#define NONE 0
#define HIREDIS 1
#define OLD 2

#ifdef LATER
#include "redlock-cpp/redlock.h"
#endif

#if SDS == HIREDIS
extern "C" {
#include <hiredis/sds.h>
}
#elif SDS == OLD
// The old sds.h, as the hiredis-based library brought it along.
#define __SDS_H
typedef char *sds;
struct sdshdr {
    int len;
    int free;
};
static inline size_t sdslen(const sds s) {
    return static_cast<size_t>(reinterpret_cast<const sdshdr *>(s)[-1].len);
}
static inline size_t sdsavail(const sds s) {
    return static_cast<size_t>(reinterpret_cast<const sdshdr *>(s)[-1].free);
}
#endif

#include "redlock-cpp/redlock.h"

#include "servers.hpp"

#if SDS == NONE
static inline size_t sdslen(const sds s) { return strlen(s); }
static inline size_t sdsavail(const sds) { return 0; }
#endif

namespace {

const int ttl = 20000;

// If the old kind is found later, it is right only about short strings, and not about the remaining
// room.
#if SDS == OLD && defined(LATER)
const size_t longest = 255;
const bool tells_room = false;
#else
const size_t longest = 100000;
const bool tells_room = true;
#endif

void check(const sds text) {
    CHECK(strlen(text) > longest || sdslen(text) == strlen(text));
    CHECK(!tells_room || sdsavail(text) == 0);
}

void names_of_every_length(CRedLock &dlm) {
    const size_t lengths[] = {0, 1, 31, 32, 127, 128, 255, 256, 32768, 65535, 65536, 65537, 100000};
    CLock lock;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        const string name(lengths[i], 'n');
        // No TTL: nothing is locked, and the name is shown.
        CHECK(!dlm.Lock(name.c_str(), 0, lock));
        CHECK(lock.m_resource == name);
        check(lock.m_resource);
        check(lock.m_val);
    }
}

void tokens(CRedLock &dlm) {
    const string name = fresh_name("sds");
    CLock lock;
    CHECK(dlm.Lock(name.c_str(), ttl, lock));
    CHECK(sdslen(lock.m_val) == 40 && sdslen(lock.m_resource) == name.size());
    check(lock.m_val);
#if SDS == HIREDIS
    const sds copy = sdsdup(lock.m_val);
    CHECK(sdslen(copy) == 40 && sdscmp(copy, lock.m_val) == 0);
    const sds both = sdscatsds(sdsnew("token: "), lock.m_val);
    CHECK(sdslen(both) == 47);
    sdsfree(copy);
    sdsfree(both);
#endif
    CHECK(dlm.Unlock(lock));
    check(lock.m_val);
#if __cplusplus >= 201103L
    CLock moved(std::move(lock));
    CHECK(sdslen(moved.m_val) == 40);
    check(moved.m_resource);
#endif
}

} // namespace

int main(int argc, char **argv) {
    const Servers servers(argc - 1, argv + 1);
    CRedLock dlm;
    for (size_t i = 0; i < servers.count(); i++) {
        CHECK(dlm.AddServerUrl(servers.host(i), servers.port(i)));
    }
    dlm.SetRetry(1, 0);
    names_of_every_length(dlm);
    tokens(dlm);
    return 0;
}

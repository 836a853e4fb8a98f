// The behaviour of redlock.hpp if a memory request of the program is denied: the first, the second
// and so on until there is none left, alone or with all later ones. Against the servers given as
// host:port.
#include <cstdlib>
#include <mutex>
#include <new>

#include "redlock.h"
#include "servers.hpp"

namespace {

int requests = 0;
int first_denied = 0; // 0: none
bool all_later = false;

bool is_denied() {
    requests++;
    return first_denied > 0 &&
           (requests == first_denied || (all_later && requests > first_denied));
}

RedLock *scarce_manager() { return is_denied() ? nullptr : RedLock_New(); }
RedLockLease *scarce_lease() { return is_denied() ? nullptr : RedLockLease_New(); }

} // namespace

// Not inlined. Otherwise compilers see malloc and free where they expect other names.
#define OUT_OF_LINE __attribute__((noinline))

OUT_OF_LINE void *operator new(std::size_t size) {
    void *memory = is_denied() ? nullptr : std::malloc(size);
    if (memory == nullptr) {
        throw std::bad_alloc();
    }
    return memory;
}
OUT_OF_LINE void operator delete(void *memory) noexcept { std::free(memory); }
OUT_OF_LINE void operator delete(void *memory, std::size_t) noexcept { std::free(memory); }

#define RedLock_New scarce_manager
#define RedLockLease_New scarce_lease
#include "redlock.hpp"

using redlock::Lease;
using redlock::Manager;
using redlock::Mutex;
using std::chrono::seconds;

namespace {

const seconds ttl(600);

void use_leases(Manager &manager, const std::string &name) {
    Lease lease = manager.lock(name, ttl);
    CHECK(lease.held() && lease.token().size() == 40 && lease.resource() == name);
    CHECK(lease.extend(ttl) && lease.confirm());
    CHECK(manager.is_locked(name));
    Lease moved = std::move(lease);
    CHECK(moved.release() == redlock::Status::Ok);
    // The destructor releases this lock.
    CHECK(manager.try_lock(name, ttl, seconds(20)));
}

// A mutex whose lock failed is not locked, and can be locked the next time.
void use_mutex(Manager &manager, const Servers &servers, const std::string &name) {
    Mutex mutex(manager, name, ttl);
    try {
        const std::lock_guard<Mutex> guard(mutex);
        CHECK(mutex.held() && mutex.extend() && mutex.confirm());
    } catch (const std::bad_alloc &) {
        first_denied = 0;
        CHECK(!mutex.held() && servers.all_come_to_lack(name));
    }
    std::unique_lock<Mutex> guard(mutex, std::defer_lock);
    try {
        CHECK(guard.try_lock_for(seconds(20)));
    } catch (const std::bad_alloc &) {
        first_denied = 0;
        CHECK(!mutex.held() && servers.all_come_to_lack(name));
        CHECK(guard.try_lock_for(seconds(20)));
    }
}

void converse(const Servers &servers, const ClosedPort &closed, const std::string &name) {
    Manager manager;
    for (size_t i = 0; i < servers.count(); i++) {
        manager.add_server(servers.host(i), servers.port(i));
    }
    // One server is down, so there are words to keep after each success, too.
    manager.add_server("127.0.0.1", closed.port());
    manager.set_timeouts(seconds(20), seconds(20));
    std::string heard;
    manager.set_logger([&heard, name](int, const char *line) { heard += name + line; });
    manager.connect();
    use_leases(manager, name);
    use_mutex(manager, servers, name);
}

// Returns how many requests there were.
int converse_denied(const Servers &servers, const ClosedPort &closed, int first, bool later) {
    const std::string name = fresh_name("no-memory");
    requests = 0;
    all_later = later;
    first_denied = first;
    try {
        converse(servers, closed, name);
    } catch (const std::bad_alloc &) {
        first_denied = 0;
    }
    const int made = requests;
    first_denied = 0;
    CHECK(servers.all_come_to_lack(name));
    return made;
}

} // namespace

int main(int argc, char **argv) {
    const Servers servers(argc - 1, argv + 1);
    const ClosedPort closed;
    for (const bool later : {false, true}) {
        int first = 1;
        while (converse_denied(servers, closed, first, later) >= first) {
            first++;
        }
        CHECK(first > 10);
    }
    return 0;
}

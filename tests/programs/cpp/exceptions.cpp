// An exception that leaves the scope of a guard releases the lock, and leaves no key on any of the
// servers given as host:port.
#include <future>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <type_traits>

#include "redlock.hpp"
#include "servers.hpp"

using redlock::Lease;
using redlock::Manager;
using redlock::Mutex;
using redlock::Status;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

const seconds ttl(600);

struct OutOfPaper : std::runtime_error {
    OutOfPaper() : std::runtime_error("out of paper") {}
};

Manager manager_of(const Servers &servers) {
    Manager manager;
    for (size_t i = 0; i < servers.count(); i++) {
        manager.add_server(servers.host(i), servers.port(i));
    }
    return manager;
}

// Throws while some frame above holds the lock.
[[noreturn]] void print(int depth) {
    const std::string page(100, 'x'); // something else to be unwound
    if (depth == 0) {
        throw OutOfPaper();
    }
    print(depth - 1);
}

// Whether the call throws it after the lock was taken.
template <class Call>
bool runs_out(const Call &call) {
    try {
        call();
    } catch (const OutOfPaper &) {
        return true;
    }
    return false;
}

void lock_guard(Manager &manager, const std::string &name) {
    Mutex mutex(manager, name, ttl);
    CHECK(runs_out([&] {
        std::lock_guard<Mutex> guard(mutex);
        CHECK(mutex.held());
        print(5);
    }));
    CHECK(!mutex.held() && mutex.last_unlock_status() == Status::Ok);
}

void unique_lock(Manager &manager, const std::string &name) {
    Mutex mutex(manager, name, ttl);
    CHECK(runs_out([&] {
        std::unique_lock<Mutex> outer;
        std::unique_lock<Mutex> guard(mutex, seconds(10));
        CHECK(guard.owns_lock());
        outer = std::move(guard);
        print(0);
    }));
    CHECK(mutex.last_unlock_status() == Status::Ok);
    // A guard that was unlocked, or never locked, has nothing to release.
    CHECK(runs_out([&] {
        std::unique_lock<Mutex> guard(mutex);
        guard.unlock();
        print(0);
    }));
    CHECK(runs_out([&] {
        std::unique_lock<Mutex> guard(mutex, std::defer_lock);
        print(0);
    }));
    CHECK(mutex.last_unlock_status() == Status::Ok);
}

void several_at_once(Manager &manager, const std::string &name, const std::string &other_name) {
    Mutex mutex(manager, name, ttl);
    Mutex other(manager, other_name, ttl);
    CHECK(runs_out([&] {
        std::lock(mutex, other);
        std::lock_guard<Mutex> guard(mutex, std::adopt_lock);
        std::lock_guard<Mutex> other_guard(other, std::adopt_lock);
        print(1);
    }));
    CHECK(!mutex.held() && !other.held());
#if __cplusplus >= 201703L
    CHECK(runs_out([&] {
        std::scoped_lock both(mutex, other);
        CHECK(mutex.held() && other.held());
        print(1);
    }));
    CHECK(!mutex.held() && !other.held());
#endif
}

// The second lock fails with an exception of the library, so the first lock is released.
void a_lock_that_throws(Manager &manager, const std::string &name) {
    Mutex mutex(manager, name, ttl);
    Mutex bad(manager, "x", milliseconds(0));
    bool thrown = false;
    try {
        std::lock_guard<Mutex> guard(mutex);
        std::lock_guard<Mutex> never(bad);
    } catch (const redlock::Error &error) {
        thrown = error.status() == Status::InvalidArgument;
    }
    CHECK(thrown && !mutex.held() && !bad.held());
    // std::lock releases the locks that it took.
    thrown = false;
    try {
        std::lock(mutex, bad);
    } catch (const redlock::Error &) {
        thrown = true;
    }
    CHECK(thrown && !mutex.held());
}

struct Report {
    Lease lease;
    Report(Manager &manager, const std::string &name) : lease(manager.lock(name, ttl)) {
        CHECK(lease.held());
        print(2); // the constructor fails: its members go, and with them the lock
    }
};

void leases(Manager &manager, const std::string &name) {
    CHECK(runs_out([&] { Report report(manager, name); }));
    CHECK(runs_out([&] {
        std::vector<Lease> kept;
        kept.push_back(manager.try_lock(name, ttl, seconds(10)));
        CHECK(kept.back().held());
        print(0);
    }));
    CHECK(runs_out([&] {
        const auto shared = std::make_shared<Lease>(manager.lock(name, ttl));
        const auto again = shared;
        print(0);
    }));
}

// An exception that is thrown and caught during the unwinding of another one.
struct Diary {
    Mutex &mutex;
    ~Diary() {
        CHECK(runs_out([this] {
            std::lock_guard<Mutex> guard(mutex);
            print(3);
        }));
    }
};

void while_another_is_on_its_way(Manager &manager, const std::string &name) {
    Mutex mutex(manager, name, ttl);
    CHECK(runs_out([&] {
        Diary diary{mutex};
        print(0);
    }));
    CHECK(!mutex.held() && mutex.last_unlock_status() == Status::Ok);
}

void through_a_thread(Manager &manager, const std::string &name) {
    Mutex mutex(manager, name, ttl);
    std::future<void> work = std::async(std::launch::async, [&] {
        std::lock_guard<Mutex> guard(mutex);
        print(4);
    });
    CHECK(runs_out([&] { work.get(); }));
    CHECK(!mutex.held());
    CHECK(mutex.try_lock());
    mutex.unlock();
}

// The logger throws at each line, also at the one that tells it so. The calls do what they do without it.
void out_of_a_logger(const Servers &servers, const std::string &name) {
    Manager manager = manager_of(servers);
    std::string told;
    manager.set_tracing(redlock::Trace::Events).set_logger([&](int level, const char *line) {
        told += std::to_string(level) + ' ' + line + '\n';
        level == 3 ? throw OutOfPaper() : throw 7;
    });
    {
        Mutex mutex(manager, name, ttl);
        const std::lock_guard<Mutex> guard(mutex);
        CHECK(mutex.held());
        CHECK(told.find("3 event=acquired") == 0);
        CHECK(told.find("\n1 the logger failed: out of paper\n") != std::string::npos);
        CHECK(!manager.try_lock(name, ttl));
    }
    CHECK(told.find("3 event=released") != std::string::npos);
    manager.set_logger(redlock::Logger());
}

} // namespace

int main(int argc, char **argv) {
    const Servers servers(argc - 1, argv + 1);
    Manager manager = manager_of(servers);
    const std::string name = fresh_name("guarded");
    const std::string other = fresh_name("other");
    const auto nothing_stays = [&] {
        CHECK(servers.all_come_to_lack(name) && servers.all_come_to_lack(other));
    };
    lock_guard(manager, name), nothing_stays();
    unique_lock(manager, name), nothing_stays();
    several_at_once(manager, name, other), nothing_stays();
    a_lock_that_throws(manager, name), nothing_stays();
    leases(manager, name), nothing_stays();
    while_another_is_on_its_way(manager, name), nothing_stays();
    through_a_thread(manager, name), nothing_stays();
    out_of_a_logger(servers, name), nothing_stays();
    return 0;
}

// Kept locks, and calls that a stop ends, against the servers given as host:port.
#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "redlock.hpp"
#include "servers.hpp"

using redlock::Lease;
using redlock::Manager;
using redlock::Mutex;
using redlock::Status;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

// Long enough for a busy machine, on which a process may get no processor for seconds.
const seconds ttl(8);

Manager manager_of(const Servers &servers) {
    Manager manager;
    for (size_t i = 0; i < servers.count(); i++) {
        manager.add_server(servers.host(i), servers.port(i));
    }
    return manager;
}

// Without any call of this program meanwhile.
template <class Lock>
void wait_until_renewed(const Lock &lock) {
    milliseconds last = lock.remaining();
    for (milliseconds now = last; now <= last; now = lock.remaining()) {
        CHECK(lock.held() && !lock.lost());
        last = now;
        std::this_thread::sleep_for(milliseconds(20));
    }
}

void a_lease_is_kept_until_it_is_released(const Servers &servers) {
    Manager manager = manager_of(servers);
    Lease lease = manager.lock("kept", ttl);
    CHECK(lease.keep_alive());
    wait_until_renewed(lease);
    Lease moved = std::move(lease);
    wait_until_renewed(moved);
    CHECK(moved.release() == Status::Ok && !moved.held());
    CHECK(!moved.keep_alive() && moved.status() == Status::Lost);
    Lease empty;
    CHECK(!empty.keep_alive() && !empty.lost());
}

void a_mutex_is_kept_while_it_is_locked(const Servers &servers) {
    Manager manager = manager_of(servers);
    Mutex mutex(manager, "kept-mutex", ttl, redlock::KeepAlive());
    for (int round = 0; round < 2; round++) {
        const std::lock_guard<Mutex> guard(mutex);
        wait_until_renewed(mutex);
    }
    CHECK(mutex.last_unlock_status() == Status::Ok && !mutex.held());
}

void a_lock_that_is_lost_is_told(const Servers &servers) {
    Manager manager = manager_of(servers);
    Lease lease = manager.lock("lost", ttl);
    CHECK(lease.keep_alive());
    for (size_t i = 0; i < servers.count(); i++) {
        servers.ask(i, "DEL lost");
    }
    while (!lease.lost()) {
        std::this_thread::sleep_for(milliseconds(20));
    }
    CHECK(!lease.held());
}

// The mutex is used again: its next lock is not lost.
void the_next_lock_is_not_lost(const Servers &servers) {
    Manager manager = manager_of(servers);
    Mutex mutex(manager, "lost-mutex", ttl, redlock::KeepAlive());
    mutex.lock();
    for (size_t i = 0; i < servers.count(); i++) {
        servers.ask(i, "DEL lost-mutex");
    }
    while (!mutex.lost()) {
        std::this_thread::sleep_for(milliseconds(20));
    }
    mutex.unlock();
    CHECK(mutex.last_unlock_status() == Status::Lost);
    mutex.lock();
    CHECK(!mutex.lost() && mutex.held());
    mutex.unlock();
    CHECK(mutex.last_unlock_status() == Status::Ok);
}

// The first of many leases is still watched when there are many, and when the thread had been stopped.
void each_of_many_is_watched(const Servers &servers) {
    Manager manager = manager_of(servers);
    CHECK(manager.lock("many", ttl).keep_alive());
    manager.set_background_thread(false);
    std::vector<Lease> leases;
    for (int i = 0; i < 200; i++) {
        leases.push_back(manager.lock("many" + std::to_string(i), ttl));
        CHECK(leases.back().keep_alive());
    }
    for (size_t i = 0; i < servers.count(); i++) {
        servers.ask(i, "DEL many0");
    }
    while (!leases.front().lost()) {
        std::this_thread::sleep_for(milliseconds(20));
    }
    CHECK(!leases.back().lost());
}

// The program makes no call while a server loses its user, and so ends its connections.
void the_logger_is_told_while_a_lock_is_only_kept(const Servers &servers) {
    const std::string user = fresh_name("user");
    for (size_t i = 0; i < servers.count(); i++) {
        CHECK(servers.ask(i, "ACL SETUSER " + user + " on >sesame ~* &* +@all") == "OK");
    }
    Manager manager = manager_of(servers);
    std::atomic<bool> is_told(false);
    const std::string lost = std::string(servers.host(0)) + ":" + std::to_string(servers.port(0));
    manager.set_credentials(user, "sesame").set_logger([&](int level, const char *line) {
        if (level == 1 && std::string(line).find(lost) == 0) {
            is_told = true;
        }
    });
    Lease lease = manager.lock(fresh_name("only-kept"), ttl); // told with a renewal, at the latest
    CHECK(lease.keep_alive());
    while (!manager.servers()[0].connected) {
        std::this_thread::sleep_for(milliseconds(5));
    }
    servers.ask(0, "ACL DELUSER " + user);
    while (!is_told) {
        std::this_thread::sleep_for(milliseconds(5));
    }
    manager.set_logger(redlock::Logger());
    CHECK(lease.release() == Status::Ok);
    for (size_t i = 1; i < servers.count(); i++) {
        servers.ask(i, "ACL DELUSER " + user);
    }
}

#ifdef __cpp_lib_jthread
void a_stop_ends_a_wait(const Servers &servers) {
    Manager manager = manager_of(servers);
    Lease held = manager.lock("stopped", seconds(60));
    std::stop_source before;
    before.request_stop();
    for (const bool is_before : {true, false}) {
        std::stop_source during;
        std::jthread stopper([&] {
            std::this_thread::sleep_for(milliseconds(50));
            during.request_stop();
        });
        const std::stop_token token = (is_before ? before : during).get_token();
        Lease lease = manager.try_lock("stopped", seconds(60), milliseconds(-1), token);
        CHECK(!lease && lease.status() == Status::Cancelled);
    }
    CHECK(held.held() && held.release() == Status::Ok);
    std::stop_source never;
    Lease lease = manager.try_lock("stopped", seconds(60), milliseconds(-1), never.get_token());
    CHECK(lease);
}
#endif

} // namespace

int main(int argc, char **argv) {
    const Servers servers(argc - 1, argv + 1);
    a_lease_is_kept_until_it_is_released(servers);
    a_mutex_is_kept_while_it_is_locked(servers);
    a_lock_that_is_lost_is_told(servers);
    the_next_lock_is_not_lost(servers);
    each_of_many_is_watched(servers);
    the_logger_is_told_while_a_lock_is_only_kept(servers);
#ifdef __cpp_lib_jthread
    a_stop_ends_a_wait(servers);
#endif
    return 0;
}

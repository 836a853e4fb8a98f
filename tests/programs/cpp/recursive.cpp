// RecursiveMutex, and leases that are retained, against the servers given as host:port.
#include <sys/wait.h>

#include <atomic>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

#include "redlock.hpp"
#include "servers.hpp"

using redlock::Lease;
using redlock::Manager;
using redlock::Mutex;
using redlock::RecursiveMutex;
using redlock::Status;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

static_assert(!std::is_move_constructible<RecursiveMutex>::value, "it stays where it is");
static_assert(noexcept(std::declval<RecursiveMutex &>().unlock()), "guards unlock in destructors");

const seconds ttl(20);

Manager manager_of(const Servers &servers) {
    Manager manager;
    for (size_t i = 0; i < servers.count(); i++) {
        manager.add_server(servers.host(i), servers.port(i));
    }
    return manager;
}

template <class Call>
Status thrown_by(const Call &call) {
    try {
        call();
    } catch (const redlock::Error &error) {
        return error.status();
    }
    return Status::Ok;
}

// A recursive function, as in real code.
int depth_first(RecursiveMutex &mutex, int depth) {
    const std::lock_guard<RecursiveMutex> guard(mutex);
    CHECK(mutex.held());
    return depth == 0 ? mutex.levels() : depth_first(mutex, depth - 1);
}

void its_owner_locks_it_again(const Servers &servers) {
    Manager manager = manager_of(servers);
    const std::string name = fresh_name("again");
    RecursiveMutex mutex(manager, name, ttl);
    CHECK(mutex.resource() == name && mutex.ttl() == ttl && mutex.levels() == 0);
    CHECK(depth_first(mutex, 4) == 5);
    CHECK(mutex.last_unlock_status() == Status::Ok && mutex.levels() == 0);
    CHECK(servers.all_come_to_lack(name));
    {
        std::unique_lock<RecursiveMutex> outer(mutex);
        {
            std::unique_lock<RecursiveMutex> inner(mutex, std::try_to_lock);
            CHECK(inner.owns_lock() && mutex.levels() == 2);
            std::unique_lock<RecursiveMutex> third(mutex, std::defer_lock);
            CHECK(third.try_lock_for(seconds(1)) && mutex.levels() == 3);
        }
        // The inner ones have released nothing.
        CHECK(mutex.levels() == 1 && mutex.held() && !servers.most_lack(name));
        Manager other = manager_of(servers);
        CHECK(!other.try_lock(name, ttl));
    }
    CHECK(servers.all_come_to_lack(name));
    CHECK(mutex.last_unlock_status() == Status::Ok);
}

void others_wait_for_its_owner(const Servers &servers) {
    Manager manager = manager_of(servers);
    RecursiveMutex mutex(manager, fresh_name("others"), ttl);
    mutex.lock();
    mutex.lock();
    std::thread([&] {
        CHECK(!mutex.try_lock() && mutex.status() == Status::Taken);
        // Only the owner may unlock it.
        mutex.unlock();
        CHECK(mutex.last_unlock_status() == Status::InvalidArgument);
    }).join();
    CHECK(mutex.held() && mutex.levels() == 2);
    mutex.unlock();
    CHECK(mutex.last_unlock_status() == Status::Ok);
    std::thread([&] { CHECK(!mutex.try_lock()); }).join();
    mutex.unlock();
    std::thread([&] {
        CHECK(mutex.try_lock() && mutex.levels() == 1);
        mutex.unlock();
    }).join();
    mutex.unlock();
    CHECK(mutex.last_unlock_status() == Status::InvalidArgument);
}

// Threads that share one mutex, and lock it twice each. A counter without its own mutex is right
// all the same.
void threads_have_it_one_after_the_other(const Servers &servers) {
    Manager manager = manager_of(servers);
    RecursiveMutex mutex(manager, fresh_name("threads"), ttl);
    int count = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++) {
        threads.emplace_back([&] {
            for (int round = 0; round < 25; round++) {
                const std::lock_guard<RecursiveMutex> outer(mutex);
                const int before = count;
                const std::lock_guard<RecursiveMutex> inner(mutex);
                std::this_thread::yield();
                count = before + 1;
            }
        });
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
    CHECK(count == 100);
}

void an_inner_level_lasts_as_long_as_it_needs(const Servers &servers) {
    Manager manager = manager_of(servers);
    RecursiveMutex mutex(manager, fresh_name("lasts"), ttl);
    mutex.lock();
    CHECK(mutex.extend(2 * ttl));
    const milliseconds longer = mutex.remaining();
    mutex.lock(); // more is left than it needs: no server is asked
    CHECK(mutex.remaining() <= longer && mutex.levels() == 2);
    CHECK(manager.stats().extend.ok == 1);
    mutex.unlock();
    mutex.unlock();
    mutex.lock();
    std::this_thread::sleep_for(milliseconds(50));
    const milliseconds before = mutex.remaining();
    mutex.lock(); // less is left: it is extended
    CHECK(mutex.remaining() > before && mutex.levels() == 2);
    mutex.unlock();
    mutex.unlock();
    CHECK(mutex.last_unlock_status() == Status::Ok);
}

void a_lost_lock_is_reported_at_every_level(const Servers &servers) {
    Manager manager = manager_of(servers);
    const std::string name = fresh_name("lost");
    RecursiveMutex mutex(manager, name, ttl);
    mutex.lock();
    mutex.lock();
    mutex.lock();
    servers.remove(name);
    CHECK(!mutex.try_lock() && mutex.status() == Status::Lost);
    CHECK(thrown_by([&] { mutex.lock(); }) == Status::Lost);
    CHECK(!mutex.message().empty());
    for (int level = 0; level < 3; level++) {
        mutex.unlock();
        CHECK(mutex.last_unlock_status() == Status::Lost);
    }
    // It can be taken again, from the beginning.
    mutex.lock();
    CHECK(mutex.levels() == 1);
    mutex.unlock();
    CHECK(mutex.last_unlock_status() == Status::Ok);
}

void one_that_is_kept_is_not_extended_at_inner_levels(const Servers &servers) {
    Manager manager = manager_of(servers);
    const std::string name = fresh_name("kept");
    RecursiveMutex mutex(manager, name, ttl, redlock::KeepAlive());
    mutex.lock();
    std::this_thread::sleep_for(milliseconds(50));
    const milliseconds before = mutex.remaining();
    mutex.lock();
    CHECK(mutex.remaining() <= before && !mutex.lost());
    mutex.unlock();
    mutex.unlock();
    CHECK(servers.all_come_to_lack(name));
}

void a_lease_is_released_at_all_its_levels(const Servers &servers) {
    Manager manager = manager_of(servers);
    const std::string name = fresh_name("lease");
    {
        Lease lease = manager.lock(name, ttl);
        CHECK(lease.levels() == 1 && lease.retain() && lease.retain() && lease.levels() == 3);
        CHECK(thrown_by([&] { (void)lease.detach(); }) == Status::InvalidArgument);
        CHECK(lease.release() == Status::Ok && lease.held() && lease.levels() == 2);
        Lease moved = std::move(lease);
        CHECK(moved.levels() == 2 && lease.levels() == 0);
    }
    CHECK(servers.all_come_to_lack(name));
    Lease empty;
    CHECK(!empty.retain() && empty.status() == Status::Lost && empty.levels() == 0);
    CHECK(empty.release() == Status::Lost);
}

void a_child_holds_nothing(const Servers &servers) {
    Manager manager = manager_of(servers);
    const std::string name = fresh_name("child");
    RecursiveMutex mutex(manager, name, ttl);
    mutex.lock();
    mutex.lock();
    const pid_t child = fork();
    if (child == 0) {
        CHECK(!mutex.held() && mutex.levels() == 0);
        CHECK(thrown_by([&] { mutex.lock(); }) == Status::Forked);
        mutex.unlock();
        CHECK(mutex.last_unlock_status() == Status::Forked);
        _exit(0);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(mutex.held() && mutex.levels() == 2);
    mutex.unlock();
    mutex.unlock();
    CHECK(mutex.last_unlock_status() == Status::Ok);
}

} // namespace

int main(int argc, char **argv) {
    const Servers servers(argc - 1, argv + 1);
    its_owner_locks_it_again(servers);
    others_wait_for_its_owner(servers);
    threads_have_it_one_after_the_other(servers);
    an_inner_level_lasts_as_long_as_it_needs(servers);
    a_lost_lock_is_reported_at_every_level(servers);
    one_that_is_kept_is_not_extended_at_inner_levels(servers);
    a_lease_is_released_at_all_its_levels(servers);
    a_child_holds_nothing(servers);
    return 0;
}

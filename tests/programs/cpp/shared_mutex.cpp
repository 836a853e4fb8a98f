// The guarantees of redlock::SharedMutex and shared leases, against the servers given as host:port.
#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

#if __cplusplus >= 201402L
#include <shared_mutex>
#endif

#include "redlock.hpp"
#include "servers.hpp"

using redlock::Lease;
using redlock::Manager;
using redlock::SharedMutex;
using redlock::Status;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

static_assert(!std::is_move_constructible<SharedMutex>::value, "it stays where it is");
static_assert(noexcept(std::declval<SharedMutex &>().unlock_shared()), "guards unlock in destructors");

const seconds ttl(20);

Manager manager_of(const Servers &servers) {
    Manager manager;
    for (size_t i = 0; i < servers.count(); i++) {
        manager.add_server(servers.host(i), servers.port(i));
    }
    return manager;
}

void guards_of_the_standard_fit(const Servers &servers) {
    Manager manager = manager_of(servers);
    const std::string name = fresh_name("shared");
    SharedMutex mutex(manager, name, ttl), other(manager, name, ttl);
#if __cplusplus >= 201402L
    {
        std::shared_lock<SharedMutex> reader(mutex);
        std::shared_lock<SharedMutex> beside(other, std::try_to_lock);
        CHECK(reader.owns_lock() && beside.owns_lock());
        CHECK(mutex.held_shared() && mutex.remaining_shared() > seconds(10));
        std::unique_lock<SharedMutex> writer(other, std::defer_lock);
        CHECK(!writer.try_lock() && other.status() == Status::Taken);
        std::shared_lock<SharedMutex> moved(std::move(reader));
        CHECK(moved.owns_lock() && mutex.readers() == 1);
    }
#else
    mutex.lock_shared();
    CHECK(other.try_lock_shared());
    CHECK(!other.try_lock() && other.status() == Status::Taken);
    mutex.unlock_shared();
    other.unlock_shared();
#endif
    CHECK(mutex.readers() == 0 && other.readers() == 0);
    CHECK(mutex.last_unlock_status() == Status::Ok);
    {
        std::unique_lock<SharedMutex> writer(mutex);
        CHECK(mutex.held() && !other.try_lock_shared());
        CHECK(other.status() == Status::Taken && !other.message().empty());
        CHECK(!other.try_lock_shared_for(milliseconds(5)));
        CHECK(!other.try_lock_shared_until(std::chrono::steady_clock::now()));
    }
    CHECK(other.try_lock_shared_for(seconds(5)));
    other.unlock_shared();
    other.unlock_shared();
    CHECK(other.last_unlock_status() == Status::Lost);
}

void threads_read_together_and_write_alone(const Servers &servers) {
    Manager manager = manager_of(servers);
    SharedMutex mutex(manager, fresh_name("threads"), ttl);
    std::atomic<int> readers(0), writers(0), met(0);
    std::vector<std::thread> threads;
    for (int number = 0; number < 6; number++) {
        threads.emplace_back([&, number] {
            for (int round = 0; round < 20; round++) {
                if (number < 2) {
                    std::lock_guard<SharedMutex> guard(mutex);
                    CHECK(writers.fetch_add(1) == 0 && readers.load() == 0);
                    writers.fetch_sub(1);
                } else {
                    mutex.lock_shared();
                    if (readers.fetch_add(1) > 0) {
                        met.fetch_add(1);
                    }
                    CHECK(writers.load() == 0);
                    std::this_thread::yield();
                    readers.fetch_sub(1);
                    mutex.unlock_shared();
                }
            }
        });
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
    CHECK(mutex.readers() == 0);
}

void a_writer_becomes_a_reader(const Servers &servers) {
    Manager manager = manager_of(servers);
    const std::string name = fresh_name("downgrade");
    SharedMutex mutex(manager, name, ttl);
    mutex.lock();
    CHECK(!manager.try_lock_shared(name, ttl));
    CHECK(mutex.downgrade() && mutex.readers() == 1 && !mutex.held());
    {
        Lease beside = manager.lock_shared(name, ttl);
        CHECK(beside.held() && beside.shared() && beside.confirm() && beside.extend(ttl));
        CHECK(manager.inspect(name).readers == 2 && manager.inspect(name).mode == REDLOCK_SHARED);
        CHECK(!manager.try_lock(name, ttl));
        bool thrown = false;
        try {
            (void)manager.lock_shared(name, milliseconds(1));
        } catch (const redlock::Error &error) {
            thrown = error.status() == Status::InvalidArgument;
        }
        CHECK(thrown);
    }
    mutex.unlock_shared();
    CHECK(mutex.last_unlock_status() == Status::Ok);
    Lease lease = manager.lock(name, ttl);
    CHECK(!lease.shared() && lease.downgrade() && lease.shared());
    const std::string ticket = lease.detach();
    Lease adopted = manager.adopt(ticket);
    CHECK(adopted.shared() && adopted.release() == Status::Ok);
    CHECK(!adopted.downgrade() && adopted.status() == Status::Lost);
    CHECK(!Lease().shared() && !Lease().downgrade());
}

// A thread releases the lock that it has taken, and not that of another thread, which is newer.
void each_thread_has_its_own(const Servers &servers) {
    Manager manager = manager_of(servers);
    SharedMutex mutex(manager, fresh_name("own"), ttl);
    mutex.lock_shared();
    std::this_thread::sleep_for(milliseconds(100));
    std::atomic<std::int64_t> mine(0), others(0); // what was left, until the other thread looked, too
    std::atomic<bool> is_over(false);
    std::thread other([&] {
        mutex.lock_shared();
        while (!is_over) {
            if (others == 0 && mine != 0) {
                others = mutex.remaining_shared().count();
            }
            std::this_thread::yield();
        }
        mutex.unlock_shared();
    });
    while (mutex.readers() < 2) {
        std::this_thread::yield();
    }
    // More is left of the other's, although it is looked at later. On a busy machine that takes some looks.
    while (others <= mine) {
        others = mine = 0;
        mine = mutex.remaining_shared().count();
        while (others == 0) {
            std::this_thread::yield();
        }
    }
    mutex.unlock_shared();
    is_over = true;
    other.join();
    CHECK(mutex.readers() == 0 && mutex.last_unlock_status() == Status::Ok);
}

// A thread that waits in the object for the writer's turn gets it when the reader leaves.
void a_waiting_writer_follows_one_that_became_a_reader(const Servers &servers) {
    Manager manager = manager_of(servers);
    SharedMutex mutex(manager, fresh_name("follows"), ttl);
    mutex.lock();
    std::atomic<bool> begins(false);
    std::thread writer([&] {
        begins = true;
        const std::lock_guard<SharedMutex> guard(mutex);
        CHECK(mutex.held());
    });
    while (!begins) {
        std::this_thread::yield();
    }
    std::this_thread::sleep_for(milliseconds(50)); // it waits by now, or comes later, which is right as well
    CHECK(mutex.downgrade());
    mutex.unlock_shared();
    writer.join();
}

void one_that_is_kept_is_kept_shared(const Servers &servers) {
    Manager manager = manager_of(servers);
    SharedMutex mutex(manager, fresh_name("kept"), milliseconds(600), redlock::KeepAlive{});
    mutex.lock_shared();
    std::this_thread::sleep_for(milliseconds(1200));
    CHECK(mutex.held_shared());
    mutex.unlock_shared();
    CHECK(mutex.last_unlock_status() == Status::Ok);
}

} // namespace

int main(int argc, char **argv) {
    const Servers servers(argc - 1, argv + 1);
    guards_of_the_standard_fit(servers);
    threads_read_together_and_write_alone(servers);
    a_writer_becomes_a_reader(servers);
    each_thread_has_its_own(servers);
    a_waiting_writer_follows_one_that_became_a_reader(servers);
    one_that_is_kept_is_kept_shared(servers);
    return 0;
}

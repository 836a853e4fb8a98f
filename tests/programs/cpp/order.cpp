// Threads get a lock in the order in which they came, and all of them get it equally often. Against the servers
// given as host:port.
#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "redlock.h"
#include "servers.hpp"

namespace {

std::atomic<std::int64_t> wait_ms(-2); // of the last RedLock_TryLock

RedLockStatus noted_try_lock(RedLock *rl, const char *resource, std::int64_t ttl, std::int64_t wait,
                             RedLockLease *lease) {
    wait_ms = wait;
    return RedLock_TryLock(rl, resource, ttl, wait, lease);
}

} // namespace

#define RedLock_TryLock noted_try_lock

// The number of threads that wait in an object is nobody else's business.
#ifdef __clang__
#pragma clang diagnostic ignored "-Wkeyword-macro"
#endif
#define private public
#include "redlock.hpp"
#undef private

using redlock::Lease;
using redlock::Manager;
using redlock::Mutex;
using redlock::RecursiveMutex;
using redlock::Semaphore;
using redlock::SharedMutex;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

const seconds ttl(600);
const std::size_t waiters = 40;
const std::size_t rounds = 3;

Manager manager_of(const Servers &servers) {
    Manager manager;
    for (size_t i = 0; i < servers.count(); i++) {
        manager.add_server(servers.host(i), servers.port(i));
    }
    manager.set_timeouts(seconds(20), seconds(20));
    return manager;
}

// One way to lock. `hold` locks, makes the call, and unlocks.
struct Way {
    std::function<void(const std::function<void()> &)> hold;
    std::function<bool(std::size_t)> has_waiting; // whether so many threads wait
};

// Each holder unlocks when all others wait, and then waits behind them. So the turns go round in the order
// of the first arrival.
void turns_go_round(const Way &way) {
    std::vector<std::size_t> turns; // guarded by the lock
    turns.reserve(waiters * rounds);
    std::vector<std::thread> threads;
    const auto wait_for = [&](std::size_t count) {
        while (!way.has_waiting(count)) {
            std::this_thread::sleep_for(milliseconds(1));
        }
    };
    way.hold([&] {
        for (std::size_t i = 0; i < waiters; i++) {
            threads.emplace_back([&, i] {
                for (std::size_t round = 0; round < rounds; round++) {
                    way.hold([&] {
                        CHECK(turns.size() % waiters == i);
                        turns.push_back(i);
                        wait_for((std::min)(waiters * rounds - turns.size(), waiters - 1));
                    });
                }
            });
            wait_for(i + 1);
        }
    });
    for (std::thread &thread : threads) {
        thread.join();
    }
    CHECK(turns.size() == waiters * rounds);
}

template <class Lockable>
std::function<void(const std::function<void()> &)> guarded(Lockable &mutex) {
    return [&mutex](const std::function<void()> &call) {
        const std::lock_guard<Lockable> guard(mutex);
        call();
    };
}

void through_a_manager(const Servers &servers) {
    Manager manager = manager_of(servers);
    const std::string name = fresh_name("order");
    Semaphore semaphore(manager, fresh_name("order"), 1, ttl);
    const auto has_waiting = [&](std::size_t count) { return manager.stats().waiting == count; };
    turns_go_round({[&](const std::function<void()> &call) {
                        const Lease lease = manager.try_lock(name, ttl, milliseconds(-1));
                        CHECK(lease);
                        call();
                    },
                    has_waiting});
    turns_go_round({[&](const std::function<void()> &call) {
                        Mutex mutex(manager, name, ttl);
                        guarded(mutex)(call);
                    },
                    has_waiting});
    turns_go_round({[&](const std::function<void()> &call) {
                        semaphore.acquire();
                        call();
                        CHECK(semaphore.release() == redlock::Status::Ok);
                    },
                    has_waiting});
}

std::size_t waiting_in(Mutex &mutex) {
    const std::lock_guard<std::mutex> here(mutex.state_);
    std::size_t count = 0;
    for (const redlock::detail::Line::Place *it = mutex.line_.first_; it != nullptr; it = it->next) {
        count++;
    }
    return count;
}

// The threads wait in the object, before the servers are asked.
void through_one_object(const Servers &servers) {
    Manager manager = manager_of(servers);
    Mutex mutex(manager, fresh_name("order"), ttl);
    turns_go_round({guarded(mutex), [&](std::size_t count) { return waiting_in(mutex) == count; }});
    SharedMutex shared(manager, fresh_name("order"), ttl);
    turns_go_round({guarded(shared), [&](std::size_t count) { return waiting_in(shared) == count; }});
    RecursiveMutex recursive(manager, fresh_name("order"), ttl);
    const auto has_waiting = [&](std::size_t count) { return waiting_in(recursive.mutex_) == count; };
    turns_go_round({guarded(recursive), has_waiting});

    // Threads that give up leave the line, wherever they are in it.
    const std::lock_guard<Mutex> guard(mutex);
    std::vector<std::thread> threads;
    std::atomic<std::size_t> gone(0);
    for (const bool stays : {false, true, false, true, false}) {
        threads.emplace_back([&mutex, &gone, stays] {
            if (stays) {
                CHECK(mutex.try_lock_for(seconds(600)));
                mutex.unlock();
            } else {
                CHECK(!mutex.try_lock_for(milliseconds(300)));
                gone++;
            }
        });
        while (waiting_in(mutex) + gone < threads.size()) {
            std::this_thread::sleep_for(milliseconds(1));
        }
    }
    while (waiting_in(mutex) != 2) {
        std::this_thread::sleep_for(milliseconds(1));
    }
    mutex.unlock();
    for (std::thread &thread : threads) {
        thread.join();
    }
    mutex.lock();
}

// The time that a thread waits for others in its program is a part of the time that it may wait.
void the_wait_in_the_object_counts(const Servers &servers) {
    Manager manager = manager_of(servers);
    Mutex mutex(manager, fresh_name("waits"), ttl);
    const milliseconds longest = ttl;
    mutex.lock();
    CHECK(wait_ms == -1);
    std::thread other([&] {
        CHECK(mutex.try_lock_for(longest));
        mutex.unlock();
    });
    while (waiting_in(mutex) == 0) {
        std::this_thread::sleep_for(milliseconds(1));
    }
    std::this_thread::sleep_for(milliseconds(20));
    mutex.unlock();
    other.join();
    CHECK(wait_ms > 0 && wait_ms <= longest.count() - 19);
    CHECK(mutex.try_lock() && wait_ms == 0);
    mutex.unlock();
}

void the_oldest_permit_is_released_first(const Servers &servers) {
    Manager manager = manager_of(servers);
    Semaphore semaphore(manager, fresh_name("oldest"), 3, ttl);
    std::vector<std::string> tokens;
    for (int i = 0; i < 3; i++) {
        semaphore.acquire();
        tokens.push_back(semaphore.held_.back().token());
    }
    for (const std::string &token : tokens) {
        CHECK(semaphore.held_.front().token() == token);
        CHECK(semaphore.release() == redlock::Status::Ok);
    }
}

} // namespace

int main(int argc, char **argv) {
    const Servers servers(argc - 1, argv + 1);
    through_a_manager(servers);
    through_one_object(servers);
    the_wait_in_the_object_counts(servers);
    the_oldest_permit_is_released_first(servers);
    return 0;
}

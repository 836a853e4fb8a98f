// What slips of a program lead to, against the servers given as host:port.
#include <atomic>
#include <future>
#include <mutex>
#include <thread>

#include "redlock.h"
#include "servers.hpp"

namespace {

// The results of the calls that keep a lock alive.
RedLockStatus keeping = REDLOCK_OK;
RedLockStatus driving = REDLOCK_OK;

RedLockStatus keep_alive_or_not(RedLock *rl, RedLockLease *lease, void *user_data) {
    return keeping == REDLOCK_OK ? RedLock_KeepAlive(rl, lease, user_data) : keeping;
}

RedLockStatus set_background_thread_or_not(RedLock *rl, bool background) {
    return driving == REDLOCK_OK ? RedLock_SetBackgroundThread(rl, background) : driving;
}

// Calls of RedLock_Unlock, which may be held up.
std::atomic<int> unlocking(0);
std::atomic<bool> is_held_up(false);

RedLockStatus unlock_or_wait(RedLock *rl, RedLockLease *lease) {
    unlocking++;
    while (is_held_up) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return RedLock_Unlock(rl, lease);
}

} // namespace

#define RedLock_Unlock unlock_or_wait
#define RedLock_KeepAlive keep_alive_or_not
#define RedLock_SetBackgroundThread set_background_thread_or_not
#include "redlock.hpp"

using redlock::KeepAlive;
using redlock::Lease;
using redlock::Manager;
using redlock::Mutex;
using redlock::RecursiveMutex;
using redlock::Semaphore;
using redlock::SharedMutex;
using redlock::Status;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

const seconds ttl(600);

Manager manager_of(const Servers &servers) {
    Manager manager;
    for (size_t i = 0; i < servers.count(); i++) {
        manager.add_server(servers.host(i), servers.port(i));
    }
    manager.set_timeouts(seconds(20), seconds(20));
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

// A Manager that was moved from refuses each call that throws, and has nothing to report.
void a_manager_that_was_moved_from_refuses() {
    Manager manager;
    const Manager elsewhere(std::move(manager));
    const auto refuses = [](Status status) { return status == Status::InvalidArgument; };
    CHECK(refuses(thrown_by([&] { manager.add_server("redis://127.0.0.1"); })));
    CHECK(refuses(thrown_by([&] { manager.add_server("127.0.0.1", 6379); })));
    CHECK(refuses(thrown_by([&] { manager.set_retry(1, ttl); })));
    CHECK(refuses(thrown_by([&] { manager.set_timeouts(ttl, ttl); })));
    CHECK(refuses(thrown_by([&] { manager.set_clock_drift_factor(0.1); })));
    CHECK(refuses(thrown_by([&] { manager.set_restart_guard(redlock::RestartGuard::On); })));
    CHECK(refuses(thrown_by([&] { manager.set_failover_guard(true); })));
    CHECK(refuses(thrown_by([&] { manager.set_fencing(true); })));
    CHECK(refuses(thrown_by([&] { manager.set_waking(true); })));
    CHECK(refuses(thrown_by([&] { manager.set_logger([](int, const char *) {}); })));
    CHECK(refuses(thrown_by([&] { manager.set_credentials("", ""); })));
    CHECK(refuses(thrown_by([&] { manager.set_credentials_from_env("", "PATH"); })));
    CHECK(refuses(thrown_by([&] {
        manager.set_password_callback([](const std::string &) { return std::string(); });
    })));
    CHECK(refuses(thrown_by([&] { manager.set_tls_ca(""); })));
    CHECK(refuses(thrown_by([&] { manager.set_tls_certificate("", ""); })));
    CHECK(refuses(thrown_by([&] { manager.set_tls_server_name(""); })));
    CHECK(refuses(thrown_by([&] { manager.set_tls_insecure_skip_verify(false); })));
    CHECK(refuses(thrown_by([&] { manager.set_background_thread(true); })));
    CHECK(refuses(thrown_by([&] { manager.set_tracing(redlock::Trace::Events); })));
    CHECK(refuses(thrown_by([&] { manager.connect(); })));
    CHECK(refuses(thrown_by([&] { (void)manager.lock("x", ttl); })));
    CHECK(refuses(thrown_by([&] { (void)manager.try_lock("x", ttl); })));
    CHECK(refuses(thrown_by([&] { (void)manager.lock_shared("x", ttl); })));
    CHECK(refuses(thrown_by([&] { (void)manager.try_lock_shared("x", ttl); })));
    CHECK(refuses(thrown_by([&] { (void)manager.lock_all({"x", "y"}, ttl); })));
    CHECK(refuses(thrown_by([&] { (void)manager.try_lock_all({"x", "y"}, ttl); })));
    CHECK(refuses(thrown_by([&] { (void)manager.adopt("ticket"); })));
    CHECK(refuses(thrown_by([&] { (void)manager.is_locked("x"); })));
    CHECK(refuses(thrown_by([&] { (void)manager.inspect("x"); })));
    CHECK(refuses(thrown_by([&] { (void)manager.servers(); })));
    CHECK(refuses(thrown_by([&] { (void)manager.stats(); })));
    CHECK(manager.stats_text().empty() && manager.native_handle() == nullptr);
    (void)manager.message();

    Mutex mutex(manager, "x", ttl), kept(manager, "x", ttl, KeepAlive());
    RecursiveMutex recursive(manager, "x", ttl);
    SharedMutex shared(manager, "x", ttl, KeepAlive());
    Semaphore semaphore(manager, "x", 2, ttl, KeepAlive());
    CHECK(refuses(thrown_by([&] { mutex.lock(); })));
    CHECK(refuses(thrown_by([&] { kept.lock(); })));
    CHECK(refuses(thrown_by([&] { recursive.lock(); })));
    CHECK(refuses(thrown_by([&] { shared.lock(); })));
    CHECK(refuses(thrown_by([&] { shared.lock_shared(); })));
    CHECK(refuses(thrown_by([&] { (void)shared.downgrade(); })));
    CHECK(refuses(thrown_by([&] { semaphore.acquire(); })));
    CHECK(refuses(thrown_by([&] { (void)semaphore.taken(); })));
    mutex.unlock();
    shared.unlock_shared();
    CHECK(mutex.last_unlock_status() == Status::Lost && shared.last_unlock_status() == Status::Lost);
    CHECK(semaphore.release() == Status::Lost);
}

// A lock that is left behind keeps others out, and one that cannot be left behind is still held.
void a_lock_is_left_behind_or_still_held(const Servers &servers) {
    Manager manager = manager_of(servers);
    const std::string name = fresh_name("left");
    Lease lease = manager.lock(name, ttl);
    CHECK(lease.release_after(2 * ttl) == Status::InvalidArgument && lease.held());
    CHECK(lease.release_after(ttl) == Status::Ok && !lease.held());
    CHECK(!manager.try_lock(name, ttl));
    CHECK(lease.release_after(ttl) == Status::Lost);
}

// A thread that waits in lock() has nothing yet that another could unlock.
void an_unlock_by_a_thread_without_the_lock_does_nothing(const Servers &servers) {
    Manager manager = manager_of(servers), rival = manager_of(servers);
    const std::string name = fresh_name("without");
    Lease theirs = rival.lock(name, ttl);
    Mutex mutex(manager, name, ttl);
    std::promise<void> done;
    std::thread waiter([&] {
        const std::lock_guard<Mutex> guard(mutex);
        CHECK(mutex.held());
        done.get_future().wait();
        CHECK(mutex.held());
    });
    while (manager.stats().waiting == 0) {
        std::this_thread::sleep_for(milliseconds(1));
    }
    const auto unlocked = std::async(std::launch::async, [&] { mutex.unlock(); });
    CHECK(unlocked.wait_for(seconds(20)) == std::future_status::ready);
    CHECK(mutex.last_unlock_status() == Status::Lost);
    CHECK(theirs.release() == Status::Ok);
    while (!mutex.held()) {
        std::this_thread::sleep_for(milliseconds(1));
    }
    done.set_value();
    waiter.join();
    CHECK(mutex.last_unlock_status() == Status::Ok);
}

// Of two threads that unlock a mutex, one releases it. The other could release what a third has locked by then.
void a_lock_is_released_once(const Servers &servers) {
    Manager manager = manager_of(servers);
    Mutex mutex(manager, fresh_name("once"), ttl);
    mutex.lock();
    const int before = unlocking;
    is_held_up = true;
    std::thread first([&] { mutex.unlock(); });
    while (unlocking == before) {
        std::this_thread::sleep_for(milliseconds(1));
    }
    const auto second = std::async(std::launch::async, [&] { mutex.unlock(); });
    CHECK(second.wait_for(seconds(20)) == std::future_status::ready);
    CHECK(mutex.last_unlock_status() == Status::Lost && unlocking == before + 1);
    std::thread third([&] {
        const std::lock_guard<Mutex> guard(mutex);
        CHECK(mutex.held());
    });
    is_held_up = false;
    first.join();
    third.join();
    CHECK(mutex.last_unlock_status() == Status::Ok && unlocking == before + 2);
}

template <class Lockable>
void is_not_locked(const Servers &servers, Lockable &mutex, Status why, const char *words) {
    CHECK(thrown_by([&] { mutex.lock(); }) == why);
    CHECK(mutex.status() == why && mutex.message().find(words) != std::string::npos);
    CHECK(servers.all_come_to_lack(mutex.resource()));
    const Status tried = thrown_by([&] { CHECK(!mutex.try_lock()); });
    CHECK(tried == (why == Status::Lost ? Status::Ok : why) && mutex.status() == why);
    CHECK(!mutex.held() && servers.all_come_to_lack(mutex.resource()));
    mutex.unlock();
    CHECK(mutex.last_unlock_status() != Status::Ok);
}

// The lock ends before it is kept alive, or the system gives no thread for that. Each call says so, and
// nothing stays locked.
void a_lock_that_cannot_be_kept_is_not_locked(const Servers &servers) {
    for (const bool is_lost : {true, false}) {
        Manager manager = manager_of(servers);
        (is_lost ? keeping : driving) = is_lost ? REDLOCK_LOST : REDLOCK_INTERNAL;
        const Status why = is_lost ? Status::Lost : Status::Internal;
        const char *words = is_lost ? "" : "the lock could not be kept alive";
        const std::string name = fresh_name("unkept");
        Mutex mutex(manager, name, ttl, KeepAlive());
        is_not_locked(servers, mutex, why, words);
        RecursiveMutex recursive(manager, name, ttl, KeepAlive());
        is_not_locked(servers, recursive, why, words);
        SharedMutex shared(manager, name, ttl, KeepAlive());
        is_not_locked(servers, shared, why, words);
        CHECK(thrown_by([&] { shared.lock_shared(); }) == why);
        CHECK(shared.status() == why && shared.readers() == 0);
        const std::vector<std::string> names = {name, name + "2"};
        Mutex several(manager, {name, name + "2"}, ttl, KeepAlive()), listed(manager, names, ttl, KeepAlive());
        is_not_locked(servers, several, why, words);
        is_not_locked(servers, listed, why, words);
        RecursiveMutex again(manager, {name, name + "2"}, ttl, KeepAlive());
        RecursiveMutex listed_again(manager, names, ttl, KeepAlive());
        is_not_locked(servers, again, why, words);
        is_not_locked(servers, listed_again, why, words);
        Semaphore semaphore(manager, name, 2, ttl, KeepAlive());
        CHECK(thrown_by([&] { semaphore.acquire(); }) == why && semaphore.status() == why);
        CHECK(thrown_by([&] { CHECK(!semaphore.try_acquire()); }) == (is_lost ? Status::Ok : why));
        CHECK(thrown_by([&] { CHECK(semaphore.permit().status() == why); }) == (is_lost ? Status::Ok : why));
        CHECK(semaphore.release() == Status::Lost && semaphore.taken() == 0);
        Lease lease = manager.lock(fresh_name("unkept"), ttl);
        CHECK(thrown_by([&] { CHECK(!lease.keep_alive()); }) == (is_lost ? Status::Ok : why));
        CHECK(lease.status() == why && lease.release() == Status::Ok);
        keeping = driving = REDLOCK_OK;
        mutex.lock();
        CHECK(mutex.held() && !mutex.lost() && mutex.status() == Status::Ok);
        mutex.unlock();
        CHECK(mutex.last_unlock_status() == Status::Ok);
    }
}

// Two texts in braces are two resources. As one std::string they would be undefined behaviour.
void braces_hold_several_resources(const Servers &servers) {
    Manager manager = manager_of(servers);
    const auto are_locked = [&](const std::string &a, const std::string &b) {
        return manager.is_locked(a) && manager.is_locked(b);
    };
    {
        const Lease lease = manager.lock({"braces:a", "braces:b"}, ttl);
        CHECK(lease.resources().size() == 2 && are_locked("braces:a", "braces:b"));
    }
    {
        const Lease lease = manager.try_lock({"braces:a", "braces:b", "braces:c"}, ttl, seconds(20));
        CHECK(lease.held() && lease.resources().size() == 3 && are_locked("braces:b", "braces:c"));
        CHECK(!manager.try_lock({"braces:c", "braces:d"}, ttl));
    }
    const auto locks_both = [&](RecursiveMutex &mutex) {
        const std::lock_guard<RecursiveMutex> outer(mutex), inner(mutex);
        CHECK(mutex.held() && mutex.resources().size() == 2 && mutex.levels() == 2);
        CHECK(are_locked("braces:a", "braces:b"));
    };
    RecursiveMutex several(manager, {"braces:a", "braces:b"}, ttl);
    locks_both(several);
    RecursiveMutex kept(manager, {"braces:a", "braces:b"}, ttl, KeepAlive());
    locks_both(kept);
    const std::vector<std::string> names = {"braces:a", "braces:b"};
    RecursiveMutex listed(manager, names, ttl), listed_kept(manager, names, ttl, KeepAlive());
    locks_both(listed);
    locks_both(listed_kept);
    const std::string one = "braces:one";
    CHECK(manager.lock({one}, ttl).resource() == one);
    CHECK(manager.lock(one, ttl).resource() == one);
    CHECK(thrown_by([&] { (void)manager.lock({}, ttl); }) == Status::InvalidArgument);
    CHECK((Manager{{"redis://127.0.0.1:1", "redis://127.0.0.1:2"}}.servers().size() == 2));
    CHECK((Manager{"redis://127.0.0.1:1", "redis://127.0.0.1:2"}.servers().size() == 2));
    CHECK((Manager({"redis://127.0.0.1:1", "redis://127.0.0.1:2"}).servers().size() == 2));
}

} // namespace

int main(int argc, char **argv) {
    const Servers servers(argc - 1, argv + 1);
    a_manager_that_was_moved_from_refuses();
    a_lock_is_left_behind_or_still_held(servers);
    an_unlock_by_a_thread_without_the_lock_does_nothing(servers);
    a_lock_is_released_once(servers);
    a_lock_that_cannot_be_kept_is_not_locked(servers);
    braces_hold_several_resources(servers);
    return 0;
}

// The guarantees of redlock.hpp, against the servers given as host:port.
#include <sys/wait.h>

#include <atomic>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
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

static_assert(!std::is_copy_constructible<Manager>::value, "a Manager is not copied");
static_assert(!std::is_copy_constructible<Lease>::value, "a Lease is not copied");
static_assert(std::is_nothrow_move_constructible<Lease>::value, "a Lease is moved");
static_assert(std::is_nothrow_move_assignable<Lease>::value, "a Lease is moved");
static_assert(!std::is_move_constructible<Mutex>::value, "a Mutex stays where it is");
static_assert(std::is_nothrow_destructible<Lease>::value, "no destructor throws");
static_assert(noexcept(std::declval<Mutex &>().unlock()), "guards unlock in destructors");

const seconds ttl(20);

Manager manager_of(const Servers &servers) {
    Manager manager;
    for (size_t i = 0; i < servers.count(); i++) {
        manager.add_server(servers.host(i), servers.port(i));
    }
    return manager;
}

// The status of the Error that the call must throw.
template <class Call>
Status thrown_by(const Call &call) {
    try {
        call();
    } catch (const redlock::Error &error) {
        const std::string what = error.what();
        CHECK(what.find(redlock::name(error.status())) == 0);
        CHECK(what.size() > std::string(redlock::name(error.status())).size());
        return error.status();
    }
    const bool an_error_was_thrown = false;
    CHECK(an_error_was_thrown);
    return Status::Ok;
}

void what_happens_is_counted(const Servers &servers) {
    Manager manager = manager_of(servers);
    const std::string name = fresh_name("counted");
    CHECK(manager.stats().acquire.ok == 0);
    int told = 0;
    manager.set_tracing(redlock::Trace::Resources).set_logger([&](int level, const char *line) {
        told += level == 3 && std::string(line).find("resource=\"" + name + "\"") != std::string::npos;
    });
    {
        const Lease lease = manager.lock(name, ttl);
        Manager rival = manager_of(servers);
        CHECK(!rival.try_lock(name, ttl) && rival.stats().acquire.taken == 1);
    }
    const RedLockStats stats = manager.stats();
    CHECK(stats.acquire.ok == 1 && stats.release.ok == 1 && stats.attempts == 1 && stats.waits == 0);
    CHECK(stats.acquire_time.count == 1 && stats.acquire_time.sum_us > 0);
    CHECK(stats.bounds_us[0] == 25 && stats.requests >= 2 * servers.quorum());
    CHECK(told == 2);
    const std::string text = manager.stats_text();
    CHECK(text.find("\nredlock_lock_acquisitions_total{outcome=\"ok\"} 1\n") != std::string::npos);
    CHECK(text.find('\0') == std::string::npos && text.back() == '\n');
    CHECK(thrown_by([&] { manager.set_tracing(static_cast<redlock::Trace>(9)); }) ==
          Status::InvalidArgument);
}

void lock_guard_holds_and_releases(const Servers &servers) {
    Manager manager = manager_of(servers);
    const std::string name = fresh_name("guard");
    Mutex mutex(manager, name, ttl);
    {
        std::lock_guard<Mutex> guard(mutex);
        CHECK(mutex.held());
        CHECK(mutex.remaining() > seconds(10) && mutex.remaining() < ttl);
        CHECK(manager.is_locked(name));
        CHECK(servers.having(name, "") < servers.quorum());
        CHECK(mutex.extend(seconds(60)) && mutex.remaining() > seconds(40));
        CHECK(mutex.extend() && mutex.confirm(seconds(40)));
    }
    CHECK(mutex.last_unlock_status() == Status::Ok);
    CHECK(!mutex.held() && mutex.remaining() == milliseconds(0));
    CHECK(servers.all_come_to_lack(name));
    CHECK(!manager.is_locked(name));
}

void a_lock_is_looked_at(const Servers &servers) {
    Manager manager = manager_of(servers);
    const std::string name = fresh_name("looked");
    CHECK(!manager.inspect(name).locked && manager.inspect(name).remaining_ms == 0);
    const Lease lease = manager_of(servers).lock(name, seconds(60));
    const RedLockInfo info = manager.inspect(name);
    CHECK(info.locked && info.mode == REDLOCK_EXCLUSIVE && info.readers == 0);
    CHECK(info.remaining_ms > 30000 && info.remaining_ms <= 60000);
    CHECK(thrown_by([&] { return manager.inspect(""); }) == Status::InvalidArgument);
    CHECK(thrown_by([&] { return manager.inspect(std::string("a\0b", 3)); }) ==
          Status::InvalidArgument);
}

void a_lock_changes_hands(const Servers &servers) {
    Manager manager = manager_of(servers), other = manager_of(servers);
    const std::string name = fresh_name("handed");
    std::string ticket;
    {
        Lease giver = manager.lock(name, ttl);
        const std::string token = giver.token();
        ticket = giver.detach();
        CHECK(!giver.held() && giver.remaining() == milliseconds(0));
        CHECK(!giver.extend(ttl) && giver.status() == Status::Lost);
        CHECK(ticket.find(token) != std::string::npos && ticket.find('\0') == std::string::npos);
        CHECK(thrown_by([&] { return giver.detach(); }) == Status::Lost);
        CHECK(giver.release() == Status::Lost);
    }
    CHECK(manager.is_locked(name));
    {
        Lease taker = other.adopt(ticket);
        CHECK(taker.held() && taker.resource() == name);
        CHECK(taker.remaining() > seconds(10) && taker.remaining() < ttl);
        CHECK(taker.extend(ttl) && taker.confirm(seconds(10)));
        CHECK(!manager.try_lock(name, ttl));
    }
    // A server that the taker is still connecting to is released when the taker makes another call.
    CHECK(servers.most_lack(name));
    CHECK(thrown_by([&] { return other.adopt(ticket); }) == Status::Lost);
    CHECK(thrown_by([&] { return other.adopt("no ticket"); }) == Status::InvalidArgument);
    CHECK(thrown_by([&] { return other.adopt(std::string("a\0b", 3)); }) ==
          Status::InvalidArgument);
    CHECK(thrown_by([&] { return Lease().detach(); }) == Status::Lost);
}

void a_lock_is_extended_by_more_than_is_left(const Servers &servers) {
    Manager manager = manager_of(servers);
    for (const double drift : {0.01, 0.2, 0.0}) {
        manager.set_clock_drift_factor(drift);
        Lease lease = manager.lock(fresh_name("more"), seconds(100));
        for (int i = 1; i <= 20; i++) {
            const milliseconds before = lease.remaining();
            CHECK(lease.extend_by(seconds(50)));
            // It was valid until then, and is valid for as much longer, except for some
            // milliseconds of rounding.
            CHECK(lease.validity() > before && lease.validity() <= before + milliseconds(50010));
        }
        CHECK(lease.remaining() > seconds(60));
        CHECK(thrown_by([&] { return lease.extend_by(milliseconds(0)); }) ==
              Status::InvalidArgument);
        CHECK(thrown_by([&] { return lease.extend_by((milliseconds::max)()); }) ==
              Status::InvalidArgument);
        CHECK(lease.held() && lease.release() == Status::Ok);
        CHECK(!lease.extend_by(seconds(1)) && lease.status() == Status::Lost);
    }
    CHECK(!Lease().extend_by(seconds(1)));
}

void what_is_known_of_each_server_is_told(const Servers &servers) {
    Manager manager = manager_of(servers);
    for (const RedLockServerInfo &it : manager.servers()) {
        CHECK(!it.connected && !it.votes && std::string(it.words) == "not tried yet");
    }
    manager.connect();
    std::size_t voters = 0;
    for (const RedLockServerInfo &it : manager.servers()) {
        CHECK(it.size == sizeof it && it.name[0] != 0 && it.connected == it.votes);
        CHECK((it.words[0] == 0) == (it.votes != 0));
        if (it.votes) {
            voters++;
            CHECK(std::string(it.role) == "primary" && std::string(it.run_id).size() == 40);
        }
    }
    CHECK(voters >= servers.quorum());
}

void an_exception_through_a_guard_releases(const Servers &servers) {
    Manager manager = manager_of(servers);
    const std::string name = fresh_name("exception");
    Mutex mutex(manager, name, ttl);
    bool caught = false;
    try {
        std::lock_guard<Mutex> guard(mutex);
        throw 7;
    } catch (int) {
        caught = true;
    }
    CHECK(caught && !mutex.held());
    CHECK(servers.all_come_to_lack(name));
}

void unique_lock_in_all_its_forms(const Servers &servers) {
    Manager manager = manager_of(servers);
    const std::string name = fresh_name("unique");
    Mutex mutex(manager, name, ttl);
    Mutex rival(manager, name, ttl);

    std::unique_lock<Mutex> guard(mutex, std::defer_lock);
    CHECK(!guard.owns_lock() && !mutex.held());
    CHECK(guard.try_lock() && mutex.held());
    CHECK(mutex.status() == Status::Ok && mutex.message().empty());

    std::unique_lock<Mutex> taken(rival, std::try_to_lock);
    CHECK(!taken.owns_lock() && !rival.held());
    CHECK(rival.status() == Status::Taken && !rival.message().empty());

    std::unique_lock<Mutex> moved(std::move(guard));
    CHECK(moved.owns_lock() && mutex.held());
    moved.unlock();
    CHECK(!mutex.held() && mutex.last_unlock_status() == Status::Ok);

    std::unique_lock<Mutex> timed(rival, seconds(5));
    CHECK(timed.owns_lock() && rival.held() && rival.message().empty());
}

void two_mutexes_are_locked_together(const Servers &servers) {
    Manager manager = manager_of(servers);
    Mutex one(manager, fresh_name("one"), ttl);
    Mutex other(manager, fresh_name("other"), ttl);
    {
        std::lock(one, other);
        std::lock_guard<Mutex> first(one, std::adopt_lock);
        std::lock_guard<Mutex> second(other, std::adopt_lock);
        CHECK(one.held() && other.held());
    }
#if __cplusplus >= 201703L
    {
        std::scoped_lock both(one, other);
        CHECK(one.held() && other.held());
    }
#endif
    CHECK(!one.held() && !other.held());
}

// A time that is less than the library can count is no reason not to wait.
void a_wait_is_rounded_up() {
    using redlock::detail::to_wait;
    CHECK(to_wait(std::chrono::nanoseconds(1)) == milliseconds(1));
    CHECK(to_wait(std::chrono::microseconds(2000)) == milliseconds(2));
    CHECK(to_wait(std::chrono::microseconds(2001)) == milliseconds(3));
    CHECK(to_wait(std::chrono::duration<double>(0.0015)) == milliseconds(2));
    CHECK(to_wait(seconds(-1)) == milliseconds(0) && to_wait(seconds(0)) == milliseconds(0));
    CHECK(to_wait(std::chrono::hours::max()) == std::chrono::hours(10 * 365 * 24));
}

void try_lock_for_waits_no_longer_than_told(const Servers &servers) {
    Manager manager = manager_of(servers);
    manager.set_retry(1, milliseconds(20));
    const std::string name = fresh_name("for");
    Lease holder = manager.lock(name, ttl);
    Mutex mutex(manager, name, ttl);

    const auto start = std::chrono::steady_clock::now();
    CHECK(!mutex.try_lock_for(milliseconds(200)));
    const auto spent = std::chrono::steady_clock::now() - start;
    CHECK(spent >= milliseconds(150) && spent < seconds(10));
    CHECK(mutex.status() == Status::Taken);

    // Not for ever, although a negative time means that to the C function.
    CHECK(!mutex.try_lock_for(milliseconds(-1)));
    CHECK(!mutex.try_lock_for(std::chrono::duration<double>(0.00001)));
    CHECK(!mutex.try_lock_until(std::chrono::system_clock::now() + milliseconds(1)));
    // A time long ago means one attempt, however long it takes.
    CHECK(!mutex.try_lock_until(std::chrono::steady_clock::time_point::min()));
    CHECK(!mutex.try_lock_until(std::chrono::system_clock::time_point::min()));

    std::future<bool> waiting = std::async(std::launch::async, [&] {
        const bool had = mutex.try_lock_for(std::chrono::hours::max());
        mutex.unlock();
        return had;
    });
    CHECK(holder.release() == Status::Ok);
    CHECK(waiting.get());
}

// Threads that share the Mutex wait for its owner, not for the servers.
void threads_share_one_mutex(const Servers &servers) {
    Manager manager = manager_of(servers);
    Mutex mutex(manager, fresh_name("shared"), ttl);
    {
        std::lock_guard<Mutex> guard(mutex);
        auto other = [&] { return mutex.try_lock() || mutex.try_lock_for(milliseconds(50)); };
        CHECK(!std::async(std::launch::async, other).get());
        CHECK(mutex.status() == Status::Taken && mutex.held());
    }

    std::atomic<int> inside(0);
    int counted = 0; // guarded by the mutex
    std::vector<std::thread> threads;
    for (int i = 0; i < 10; i++) {
        threads.emplace_back([&] {
            for (int round = 0; round < 10; round++) {
                std::lock_guard<Mutex> guard(mutex);
                CHECK(inside.fetch_add(1) == 0);
                counted++;
                inside.fetch_sub(1);
            }
        });
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
    CHECK(counted == 100);
}

void threads_with_a_mutex_each_exclude_each_other(const Servers &servers) {
    Manager manager = manager_of(servers);
    manager.set_retry(1, milliseconds(5));
    const std::string name = fresh_name("each");
    std::atomic<int> inside(0);
    std::atomic<int> counted(0);
    std::vector<std::thread> threads;
    for (int i = 0; i < 10; i++) {
        threads.emplace_back([&] {
            Mutex mutex(manager, name, ttl);
            for (int round = 0; round < 5; round++) {
                std::lock_guard<Mutex> guard(mutex);
                CHECK(inside.fetch_add(1) == 0);
                counted.fetch_add(1);
                inside.fetch_sub(1);
            }
        });
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
    CHECK(counted == 50);
}

// std::mutex forbids this, and a lease allows it: the object owns the lock, not the thread.
void another_thread_may_unlock(const Servers &servers) {
    Manager manager = manager_of(servers);
    Mutex mutex(manager, fresh_name("handed over"), ttl);
    std::unique_lock<Mutex> guard(mutex);
    std::thread([&] { std::unique_lock<Mutex> mine(std::move(guard)); }).join();
    CHECK(mutex.last_unlock_status() == Status::Ok);
    CHECK(mutex.try_lock());
    mutex.unlock();
}

void an_unlock_tells_what_it_found(const Servers &servers) {
    Manager manager = manager_of(servers);
    const std::string name = fresh_name("lost");
    Mutex mutex(manager, name, ttl);
    CHECK(mutex.last_unlock_status() == Status::Ok);
    mutex.unlock();
    CHECK(mutex.last_unlock_status() == Status::Lost);

    mutex.lock();
    CHECK(servers.having(name, "") < servers.quorum());
    servers.remove(name);
    CHECK(!mutex.confirm());
    CHECK(!mutex.extend());
    mutex.unlock();
    CHECK(mutex.last_unlock_status() == Status::Lost);
    CHECK(!mutex.last_unlock_message().empty());
    mutex.lock();
    mutex.unlock();
    CHECK(mutex.last_unlock_status() == Status::Ok && mutex.last_unlock_message().empty());
}

void a_lock_that_ends_in_a_guard_has_words(const Servers &servers) {
    Manager manager = manager_of(servers);
    const std::string name = fresh_name("ended");
    Mutex mutex(manager, name, ttl);
    {
        std::lock_guard<Mutex> guard(mutex);
        servers.remove(name);
    }
    CHECK(mutex.last_unlock_status() == Status::Lost);
    CHECK(!mutex.last_unlock_message().empty());
}

void a_lease_is_a_guard_and_moves(const Servers &servers) {
    Manager manager = manager_of(servers);
    const std::string name = fresh_name("lease");
    const std::string second_name = fresh_name("second");
    {
        Lease lease = manager.lock(name, ttl);
        CHECK(lease && lease.held() && lease.resource() == name);
        CHECK(lease.validity() > seconds(10) && lease.remaining() <= lease.validity());
        CHECK(lease.status() == Status::Ok && lease.message().empty());
        const std::string token = lease.token();
        CHECK(token.size() == 40 && servers.most_have(name, token));

        Lease moved(std::move(lease));
        CHECK(!lease.held() && moved.token() == token); // NOLINT: what a moved-from lease says
        CHECK(lease.status() == Status::Lost);
        CHECK(lease.token().empty() && lease.release() == Status::Lost);

        moved = manager.lock(second_name, ttl);
        CHECK(moved.resource() == second_name);
        CHECK(servers.all_come_to_lack(name));
        Lease &itself = moved;
        moved = std::move(itself);
        CHECK(moved.held());
    }
    CHECK(servers.all_come_to_lack(second_name));
}

void a_lease_is_kept_confirmed_and_released(const Servers &servers) {
    Manager manager = manager_of(servers);
    const std::string name = fresh_name("kept");
    Lease lease = manager.lock(name, ttl);
    const std::string token = lease.token();
    CHECK(lease.extend(seconds(60)) && lease.token() == token);
    CHECK(lease.confirm(seconds(50)) && !lease.confirm(seconds(90)));
    CHECK(lease.status() == Status::TooShort && !lease.message().empty());
    CHECK(lease.held());

    Lease rival = manager.try_lock(name, ttl);
    CHECK(!rival && rival.status() == Status::Taken && !rival.message().empty());
    CHECK(thrown_by([&] { return manager.lock(name, ttl); }) == Status::Taken);

    CHECK(lease.release() == Status::Ok && lease.release() == Status::Lost);
    CHECK(!lease && lease.remaining() == milliseconds(0));
    CHECK(!lease.extend(ttl) && lease.status() == Status::Lost);
    CHECK(manager.try_lock(name, ttl, seconds(1)).held());

    Lease empty;
    CHECK(!empty && !empty.extend(ttl) && !empty.confirm() && empty.release() == Status::Lost);
    CHECK(empty.token().empty() && empty.resource().empty() && !empty.message().empty());
}

void a_lease_outlives_its_manager(const Servers &servers) {
    const std::string name = fresh_name("outlives");
    Lease lease;
    {
        Manager manager = manager_of(servers);
        Manager moved(std::move(manager));
        lease = moved.lock(name, ttl);
        CHECK(thrown_by([&] { manager.set_retry(1, ttl); }) == Status::InvalidArgument);
    }
    CHECK(lease.extend(ttl) && lease.release() == Status::Ok);
    CHECK(servers.all_come_to_lack(name));
}

void faults_of_a_call_are_thrown(const Servers &servers) {
    Manager none;
    Mutex homeless(none, "x", ttl);
    CHECK(thrown_by([&] { homeless.lock(); }) == Status::NoServers);
    CHECK(thrown_by([&] { return homeless.try_lock(); }) == Status::NoServers);
    CHECK(thrown_by([&] { return none.lock("x", ttl); }) == Status::NoServers);
    CHECK(thrown_by([&] { none.connect(); }) == Status::NoServers);

    Manager manager = manager_of(servers);
    const auto invalid = Status::InvalidArgument;
    CHECK(thrown_by([&] { manager.add_server(servers.host(0), servers.port(0)); }) == invalid);
    CHECK(thrown_by([&] { manager.add_server("nonsense://"); }) == invalid);
    CHECK(thrown_by([&] { manager.add_server("127.0.0.1", 65536); }) == invalid);
    CHECK(thrown_by([&] { manager.add_server(std::string("127.0.0.1\0x", 11), 1); }) == invalid);
    CHECK(thrown_by([&] { manager.set_retry(0, ttl); }) == invalid);
    CHECK(thrown_by([&] { manager.set_retry(1, milliseconds(-1)); }) == invalid);
    CHECK(thrown_by([&] { manager.set_retry(1, milliseconds::max()); }) == invalid);
    CHECK(thrown_by([&] { manager.set_clock_drift_factor(1); }) == invalid);
    CHECK(thrown_by([&] { manager.set_timeouts(milliseconds(0), ttl); }) == invalid);
    CHECK(thrown_by([&] { return manager.lock("", ttl); }) == invalid);
    CHECK(thrown_by([&] { return manager.try_lock("x", milliseconds(0)); }) == invalid);
    CHECK(thrown_by([&] { return manager.lock(std::string("a\0b", 3), ttl); }) == invalid);
    CHECK(thrown_by([&] { Mutex bad(manager, std::string("a\0b", 3), ttl); }) == invalid);
    Mutex brief(manager, "x", milliseconds(1));
    CHECK(thrown_by([&] { brief.lock(); }) == invalid);
    CHECK(brief.status() == invalid && !brief.message().empty());
    CHECK(thrown_by([&] { brief.lock(); }) == invalid);
    CHECK(!redlock::is_retriable(invalid) && redlock::is_retriable(Status::Taken));
}

void every_restart_guard_lets_lock(const Servers &servers) {
    using redlock::RestartGuard;
    for (const RestartGuard mode :
         {RestartGuard::On, RestartGuard::Strict, RestartGuard::Off, RestartGuard::Durable}) {
        Manager manager = manager_of(servers);
        manager.set_restart_guard(mode);
        manager.set_restart_guard(mode, seconds(60), std::chrono::minutes(5));
        CHECK(manager.lock(fresh_name("guarded"), ttl).held());
    }
    const auto refused_for = [](const std::string &name, RestartGuard mode, milliseconds longest_ttl,
                                milliseconds cap) {
        Manager manager;
        const auto set = [&] { manager.set_restart_guard(mode, longest_ttl, cap); };
        CHECK(thrown_by(set) == Status::InvalidArgument);
        return manager.message().find(name + " is ") != std::string::npos;
    };
    const milliseconds none(0), negative(-1);
    CHECK(refused_for("mode", static_cast<RestartGuard>(4), none, none));
    CHECK(refused_for("longest_ttl", RestartGuard::On, negative, none));
    CHECK(refused_for("cap", RestartGuard::On, none, milliseconds::max()));
}

void fencing_tokens_grow(const Servers &servers) {
    Manager plain = manager_of(servers), manager = manager_of(servers);
    const std::string name = fresh_name("fenced");
    CHECK(plain.lock(name, ttl).fencing_token() == 0 && Lease().fencing_token() == 0);
    manager.set_fencing(true);
    Lease first = manager.lock(name, ttl);
    const std::int64_t token = first.fencing_token();
    CHECK(token > 0);
    CHECK(first.extend(seconds(60)) && first.fencing_token() == token);
    CHECK(first.release() == Status::Ok && first.fencing_token() == 0);
    Mutex mutex(manager, name, ttl);
    CHECK(mutex.fencing_token() == 0);
    mutex.lock();
    CHECK(mutex.fencing_token() > token);
    mutex.unlock();
    manager.set_fencing(false);
    CHECK(manager.lock(name, ttl).fencing_token() == 0);
}

void unreachable_servers_are_no_fault_of_the_call() {
    ClosedPort closed;
    Manager manager;
    manager.add_server("127.0.0.1", closed.port()).set_retry(1, milliseconds(0));
    int told = 0;
    manager.set_logger([&](int level, const char *message) {
        CHECK(level == 1 || level == 2);
        CHECK(message[0] != '\0');
        told++;
        throw 7;
    });
    Mutex mutex(manager, "x", ttl);
    CHECK(!mutex.try_lock());
    CHECK(mutex.status() == Status::Unreachable && !mutex.message().empty());
    CHECK(!mutex.try_lock_for(milliseconds(20)));
    CHECK(thrown_by([&] { return manager.lock("x", ttl); }) == Status::Unreachable);
    CHECK(thrown_by([&] { manager.connect(milliseconds(50)); }) == Status::Unreachable);
    CHECK(thrown_by([&] { return manager.is_locked("x"); }) == Status::Unreachable);
    CHECK(thrown_by([&] { return manager.inspect("x"); }) == Status::Unreachable);
    CHECK(told > 0);
    manager.set_logger(redlock::Logger());
}

void callbacks_are_destroyed_when_nobody_can_use_them() {
    ClosedPort closed;
    std::weak_ptr<int> first, second, asked, also_asked;
    {
        Manager manager;
        manager.add_server("127.0.0.1", closed.port());
        const auto logger_with = [&](std::weak_ptr<int> &seen) {
            const std::shared_ptr<int> kept = std::make_shared<int>(7);
            seen = kept;
            manager.set_logger([kept](int, const char *) { CHECK(*kept == 7); });
        };
        const auto callback_with = [&](std::weak_ptr<int> &seen) {
            const std::shared_ptr<int> kept = std::make_shared<int>(7);
            seen = kept;
            manager.set_password_callback([kept](const std::string &) {
                CHECK(*kept == 7);
                return std::string("p");
            });
        };
        logger_with(first);
        callback_with(asked);
        CHECK(thrown_by([&] { manager.connect(milliseconds(50)); }) == Status::Unreachable);
        CHECK(!first.expired() && !asked.expired());
        logger_with(second);
        callback_with(also_asked);
        CHECK(first.expired() && !second.expired());
        CHECK(asked.expired() && !also_asked.expired());
        // A callback for an invalid user.
        std::weak_ptr<int> refused;
        CHECK(thrown_by([&] {
            const std::shared_ptr<int> kept = std::make_shared<int>(7);
            refused = kept;
            manager.set_password_callback(std::string("a\0b", 3), [kept](const std::string &) {
                return std::string();
            });
        }) == Status::InvalidArgument);
        CHECK(refused.expired() && !also_asked.expired());
    }
    CHECK(second.expired() && also_asked.expired());
}

void several_are_locked_at_once(const Servers &servers) {
    Manager manager = manager_of(servers);
    const std::string a = fresh_name("several"), b = fresh_name("several");
    Lease lease = manager.lock_all({a, b}, ttl);
    CHECK(lease.held() && lease.resource() == a);
    CHECK(lease.resources() == std::vector<std::string>({a, b}));
    CHECK(servers.most_have(a, lease.token()) && servers.most_have(b, lease.token()));
    CHECK(thrown_by([&] { (void)manager.lock(b, ttl).held(); }) == Status::Taken);
    const Lease other = manager.try_lock_all({fresh_name("several"), b}, ttl);
    CHECK(!other && other.status() == Status::Taken);
    CHECK(other.message().find("resource 2 of 2 held") != std::string::npos);
    CHECK(lease.extend(2 * ttl) && lease.confirm(ttl));
    const std::string ticket = lease.detach();
    Lease adopted = manager.adopt(ticket);
    CHECK(adopted.resources() == std::vector<std::string>({a, b}));
    CHECK(adopted.release() == Status::Ok);
    CHECK(thrown_by([&] { return manager.lock_all({}, ttl); }) == Status::InvalidArgument);
    CHECK(thrown_by([&] { return manager.lock_all({a, a}, ttl); }) == Status::InvalidArgument);
    CHECK(thrown_by([&] { return manager.lock_all({a, std::string("x\0y", 3)}, ttl); }) ==
          Status::InvalidArgument);

    Mutex both(manager, {b, a}, ttl), one(manager, a, ttl);
    {
        const std::lock_guard<Mutex> guard(both);
        CHECK(both.held() && both.resource() == b && both.resources().size() == 2);
        CHECK(!one.try_lock() && one.status() == Status::Taken);
    }
    CHECK(both.last_unlock_status() == Status::Ok);
    CHECK(one.try_lock() && !both.try_lock() && both.status() == Status::Taken);
    one.unlock();
    Mutex kept(manager, {a, b}, ttl, redlock::KeepAlive());
    CHECK(kept.try_lock() && !kept.lost());
    kept.unlock();
    CHECK(thrown_by([&] { Mutex none(manager, std::vector<std::string>(), ttl); }) ==
          Status::InvalidArgument);
}

// Both processes return from here, so the child runs the destructors of the objects that it
// inherited.
void a_child_leaves_the_locks_of_its_parent_alone(const Servers &servers) {
    Manager manager = manager_of(servers);
    const std::string name = fresh_name("fork");
    const std::string mutex_name = fresh_name("fork");
    Mutex mutex(manager, mutex_name, ttl);
    std::unique_lock<Mutex> guard(mutex);
    Lease lease = manager.lock(name, ttl);
    const std::string token = lease.token();

    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CHECK(!lease.held() && lease.release() == Status::Forked);
        guard.unlock();
        CHECK(mutex.last_unlock_status() == Status::Forked);
        CHECK(!manager.try_lock(name, ttl));
        CHECK(manager.try_lock(fresh_name("child"), ttl).held());
        Mutex again(manager, mutex_name, ttl);
        CHECK(!again.try_lock() && again.status() == Status::Taken);
        return;
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(servers.most_have(name, token));
    CHECK(mutex.held() && mutex.confirm());
    CHECK(lease.confirm() && lease.release() == Status::Ok);
}

} // namespace

int main(int argc, char **argv) {
    const Servers servers(argc - 1, argv + 1);
    what_happens_is_counted(servers);
    lock_guard_holds_and_releases(servers);
    a_lock_is_looked_at(servers);
    a_lock_is_extended_by_more_than_is_left(servers);
    a_lock_changes_hands(servers);
    what_is_known_of_each_server_is_told(servers);
    an_exception_through_a_guard_releases(servers);
    unique_lock_in_all_its_forms(servers);
    two_mutexes_are_locked_together(servers);
    a_wait_is_rounded_up();
    try_lock_for_waits_no_longer_than_told(servers);
    threads_share_one_mutex(servers);
    threads_with_a_mutex_each_exclude_each_other(servers);
    another_thread_may_unlock(servers);
    an_unlock_tells_what_it_found(servers);
    a_lock_that_ends_in_a_guard_has_words(servers);
    a_lease_is_a_guard_and_moves(servers);
    a_lease_is_kept_confirmed_and_released(servers);
    a_lease_outlives_its_manager(servers);
    faults_of_a_call_are_thrown(servers);
    every_restart_guard_lets_lock(servers);
    fencing_tokens_grow(servers);
    several_are_locked_at_once(servers);
    unreachable_servers_are_no_fault_of_the_call();
    callbacks_are_destroyed_when_nobody_can_use_them();
    a_child_leaves_the_locks_of_its_parent_alone(servers);
    return 0;
}

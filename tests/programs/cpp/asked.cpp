// What redlock.hpp passes to the C library, against the servers given as host:port.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#if __cplusplus >= 202002L
#include <stop_token>
#endif

#include "redlock.h"
#include "servers.hpp"

namespace {

// The arguments of the last call of each kind.
RedLockAcquireOptions acquired;
std::int64_t connect_ms, reply_ms, connecting_ms, longest_ms, cap_ms, least_ms, extend_ms;
int guard, tries, delay_ms;
bool failover, fencing, waking, skips;

RedLockStatus noted_acquire(RedLock *rl, const RedLockAcquireOptions *options, RedLockLease *lease) {
    acquired = *options;
    return RedLock_Acquire(rl, options, lease);
}
RedLockStatus noted_timeouts(RedLock *rl, std::int64_t connect, std::int64_t reply) {
    connect_ms = connect;
    reply_ms = reply;
    return RedLock_SetTimeouts(rl, connect, reply);
}
RedLockStatus noted_connect(RedLock *rl, std::int64_t timeout) {
    connecting_ms = timeout;
    return RedLock_Connect(rl, timeout);
}
RedLockStatus noted_guard(RedLock *rl, std::int32_t mode, std::int64_t longest, std::int64_t cap) {
    guard = mode;
    longest_ms = longest;
    cap_ms = cap;
    return RedLock_SetRestartGuard(rl, mode, longest, cap);
}
RedLockStatus noted_retry(RedLock *rl, int count, int delay) {
    tries = count;
    delay_ms = delay;
    return RedLock_SetRetry(rl, count, delay);
}
RedLockStatus noted_failover(RedLock *rl, bool enabled) {
    failover = enabled;
    return RedLock_SetFailoverGuard(rl, enabled);
}
RedLockStatus noted_fencing(RedLock *rl, bool enabled) {
    fencing = enabled;
    return RedLock_SetFencing(rl, enabled);
}
RedLockStatus noted_waking(RedLock *rl, bool enabled) {
    waking = enabled;
    return RedLock_SetWaking(rl, enabled);
}
RedLockStatus noted_skip(RedLock *rl, bool skip) {
    skips = skip;
    return RedLock_SetTlsInsecureSkipVerify(rl, skip);
}
RedLockPasswordCallback password_callback;
void *password_data;

RedLockStatus noted_callback(RedLock *rl, const char *user, RedLockPasswordCallback callback, void *user_data,
                             RedLockDestroy destroy) {
    password_callback = callback;
    password_data = user_data;
    return RedLock_SetPasswordCallback(rl, user, callback, user_data, destroy);
}
// Calls of RedLock_Cancel, and of RedLock_TryLock, which may wait for one of them before it begins.
std::atomic<int> cancels(0);
std::atomic<bool> is_late(false), is_in_it(false);

inline RedLockStatus noted_cancel(RedLock *rl, RedLockLease *lease) {
    cancels++;
    return RedLock_Cancel(rl, lease);
}
RedLockStatus noted_try_lock(RedLock *rl, const char *resource, std::int64_t time, std::int64_t wait,
                             RedLockLease *lease) {
    is_in_it = true;
    const int before = cancels;
    while (is_late && cancels == before) {
        std::this_thread::yield();
    }
    return RedLock_TryLock(rl, resource, time, wait, lease);
}
RedLockStatus noted_confirm(RedLock *rl, RedLockLease *lease, std::int64_t least) {
    least_ms = least;
    return RedLock_Confirm(rl, lease, least);
}
RedLockStatus noted_extend(RedLock *rl, RedLockLease *lease, std::int64_t ttl) {
    extend_ms = ttl;
    return RedLock_Extend(rl, lease, ttl);
}

} // namespace

#define RedLock_Acquire noted_acquire
#define RedLock_SetTimeouts noted_timeouts
#define RedLock_Connect noted_connect
#define RedLock_SetRestartGuard noted_guard
#define RedLock_SetRetry noted_retry
#define RedLock_SetFailoverGuard noted_failover
#define RedLock_SetFencing noted_fencing
#define RedLock_SetWaking noted_waking
#define RedLock_SetTlsInsecureSkipVerify noted_skip
#define RedLock_SetPasswordCallback noted_callback
#define RedLock_Confirm noted_confirm
#define RedLock_Cancel noted_cancel
#define RedLock_TryLock noted_try_lock
#define RedLock_Extend noted_extend
#include "redlock.hpp"

using redlock::Lease;
using redlock::Manager;
using redlock::Mutex;
using redlock::RestartGuard;
using redlock::Semaphore;
using redlock::SharedMutex;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

const milliseconds ttl(600001);

Manager manager_of(const Servers &servers) {
    Manager manager;
    for (size_t i = 0; i < servers.count(); i++) {
        manager.add_server(servers.host(i), servers.port(i));
    }
    manager.set_timeouts(milliseconds(20001), milliseconds(20002));
    return manager;
}

void settings_arrive(const Servers &servers) {
    Manager manager = manager_of(servers);
    CHECK(connect_ms == 20001 && reply_ms == 20002);
    manager.set_restart_guard(RestartGuard::Strict, milliseconds(6001), milliseconds(6002));
    CHECK(guard == REDLOCK_GUARD_STRICT && longest_ms == 6001 && cap_ms == 6002);
    manager.set_restart_guard(RestartGuard::Off);
    CHECK(guard == REDLOCK_GUARD_OFF && longest_ms == 0 && cap_ms == 0);
    manager.set_retry(7, milliseconds(INT_MAX));
    CHECK(tries == 7 && delay_ms == INT_MAX);
    const milliseconds too_long(static_cast<std::int64_t>(INT_MAX) + 1);
    for (const milliseconds &delay : {too_long, milliseconds(INT64_C(1) << 32)}) {
        bool thrown = false;
        try {
            manager.set_retry(7, delay);
        } catch (const redlock::Error &error) {
            thrown = error.status() == redlock::Status::InvalidArgument;
        }
        CHECK(thrown && delay_ms == INT_MAX);
    }
    for (const bool is_on : {true, false}) {
        manager.set_fencing(is_on).set_waking(is_on).set_tls_insecure_skip_verify(is_on);
        manager.set_failover_guard(is_on);
        CHECK(fencing == is_on && waking == is_on && skips == is_on && failover == is_on);
    }
    manager.connect(milliseconds(20003));
    CHECK(connecting_ms == 20003);
    manager.connect();
    CHECK(connecting_ms == 0);
}

// It fits with its NUL, or is not given. Nothing beyond it is written.
void a_password_is_put_where_it_fits(const Servers &servers) {
    Manager manager = manager_of(servers);
    manager.set_password_callback([](const std::string &server) { return server + "!"; });
    char room[8];
    for (std::size_t size = 1; size < sizeof room; size++) {
        std::memset(room, '#', sizeof room);
        CHECK(password_callback("abcd", room, size, password_data) == (size >= 6));
        CHECK(size < 6 || std::memcmp(room, "abcd!", 6) == 0);
        CHECK(room[(std::max)(size, std::size_t(6))] == '#');
    }
}

// Whether the last lock was asked for in this way, and under this name.
bool was_asked(const std::string &name, int count, std::int64_t wait, std::int32_t mode, std::int32_t permits) {
    const bool is_named = acquired.resources != nullptr || name == acquired.resource;
    return is_named && acquired.ttl_ms == ttl.count() && acquired.tries == count &&
           acquired.wait_ms == wait && acquired.mode == mode && acquired.permits == permits;
}

void ways_to_lock_arrive(const Servers &servers) {
    Manager manager = manager_of(servers);
    const std::string name = fresh_name("asked");
    const milliseconds wait(5003);
    const auto exclusive = REDLOCK_EXCLUSIVE, shared = REDLOCK_SHARED;
    for (const int count : {3, 7, 1}) {
        if (count != 3) {
            manager.set_retry(count, milliseconds(1));
        }
        CHECK(manager.lock_shared(name, ttl) && was_asked(name, count, 0, shared, 0));
        CHECK(manager.lock_all({name, name + "2"}, ttl) && was_asked(name, count, 0, exclusive, 0));
        CHECK(manager.lock({name, name + "2"}, ttl) && was_asked(name, count, 0, exclusive, 0));
        CHECK(acquired.resource_count == 2);
    }
    CHECK(manager.try_lock_shared(name, ttl) && was_asked(name, 0, 0, shared, 0));
    CHECK(manager.try_lock_shared(name, ttl, wait) && was_asked(name, 0, 5003, shared, 0));
    CHECK(manager.try_lock_all({name}, ttl) && was_asked(name, 0, 0, exclusive, 0));
    CHECK(manager.try_lock_all({name}, ttl, wait) && was_asked(name, 0, 5003, exclusive, 0));
    CHECK(manager.try_lock({name, name + "2"}, ttl, wait) && was_asked(name, 0, 5003, exclusive, 0));
    SharedMutex mutex(manager, name, ttl);
    mutex.lock_shared();
    CHECK(was_asked(name, 0, -1, shared, 0));
    CHECK(mutex.try_lock_shared() && was_asked(name, 0, 0, shared, 0));
    CHECK(mutex.try_lock_shared_for(wait) && was_asked(name, 0, 5003, shared, 0));
    CHECK(mutex.try_lock_shared_until(std::chrono::steady_clock::now() + wait));
    CHECK(acquired.wait_ms > 0 && acquired.wait_ms <= 5003);
    for (int i = 0; i < 4; i++) {
        mutex.unlock_shared();
    }
    Mutex several(manager, {name, name + "2"}, ttl);
    several.lock();
    CHECK(was_asked(name, 0, -1, exclusive, 0) && acquired.resource_count == 2);
    several.unlock();
    Semaphore semaphore(manager, fresh_name("asked"), 9, ttl);
    semaphore.acquire();
    CHECK(was_asked(semaphore.resource(), 0, -1, exclusive, 9));
    CHECK(semaphore.try_acquire() && was_asked(semaphore.resource(), 0, 0, exclusive, 9));
    CHECK(semaphore.try_acquire_for(wait) && was_asked(semaphore.resource(), 0, 5003, exclusive, 9));
    CHECK(semaphore.permit(wait) && was_asked(semaphore.resource(), 0, 5003, exclusive, 9));
    for (int i = 0; i < 3; i++) {
        CHECK(semaphore.release() == redlock::Status::Ok);
    }
}

void calls_of_a_holder_arrive(const Servers &servers) {
    Manager manager = manager_of(servers);
    Mutex mutex(manager, fresh_name("asked"), ttl);
    mutex.lock();
    CHECK(mutex.extend() && extend_ms == ttl.count());
    CHECK(mutex.extend(milliseconds(700007)) && extend_ms == 700007);
    CHECK(mutex.confirm(milliseconds(1009)) && least_ms == 1009);
    CHECK(mutex.confirm() && least_ms == 0);
    mutex.unlock();
    Lease lease = manager.lock(fresh_name("asked"), ttl);
    CHECK(lease.extend(milliseconds(700007)) && extend_ms == 700007);
    CHECK(lease.confirm(milliseconds(1009)) && least_ms == 1009);
    CHECK(lease.confirm() && least_ms == 0);
}

#ifdef __cpp_lib_jthread
// The stop is requested before the library knows of the call.
void a_stop_is_not_missed(const Servers &servers) {
    Manager manager = manager_of(servers);
    const std::string name = fresh_name("stopped");
    const Lease held = manager.lock(name, ttl);
    std::stop_source stop;
    is_late = true;
    is_in_it = false;
    std::jthread stopper([&] {
        while (!is_in_it) {
            std::this_thread::yield();
        }
        stop.request_stop();
    });
    const Lease lease = manager.try_lock(name, ttl, milliseconds(-1), stop.get_token());
    CHECK(!lease && lease.status() == redlock::Status::Cancelled);
    is_late = false;
}
#endif

} // namespace

int main(int argc, char **argv) {
    const Servers servers(argc - 1, argv + 1);
    settings_arrive(servers);
    a_password_is_put_where_it_fits(servers);
    ways_to_lock_arrive(servers);
    calls_of_a_holder_arrive(servers);
#ifdef __cpp_lib_jthread
    a_stop_is_not_missed(servers);
#endif
    return 0;
}

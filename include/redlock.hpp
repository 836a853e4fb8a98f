/*
 * redlock for C++11 and later: the C interface of redlock.h as values that clean up after
 * themselves. Header only; link with -lredlock.
 *
 *     redlock::Manager servers{"redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"};
 *     redlock::Mutex mutex(servers, "invoice:42", std::chrono::seconds(10));
 *     {
 *         std::lock_guard<redlock::Mutex> guard(mutex);
 *         send_invoice(42);
 *     }
 *
 * Two ways to hold a lock:
 *  - redlock::Mutex is for std::lock_guard, std::unique_lock and std::scoped_lock.
 *  - redlock::Lease, which Manager::lock and Manager::try_lock return, is its own guard.
 * A lock that several may have at the same time is redlock::SharedMutex, for std::shared_lock as well, or a Lease
 * of Manager::lock_shared and Manager::try_lock_shared.
 *
 * Conventions:
 *  - A lock in Redis is a lease: it ends by itself when its TTL is over, also while a guard is
 *    still in scope. Work that may take longer extends it, and asks confirm() before a step that
 *    cannot be undone.
 *  - Times are std::chrono durations; the library counts in milliseconds.
 *  - A function named for a question or a try returns false on an ordinary outcome (a positive
 *    status, such as Status::Taken); any other throws redlock::Error when what it is named for
 *    did not happen. A fault of the call (a negative status) always throws.
 *  - Destructors, unlock() and release() never throw.
 *  - Names are byte strings; one with a NUL in it is refused, since C would see its beginning only.
 *
 * A program without exceptions uses redlock.h.
 */
#ifndef REDLOCK_HPP
#define REDLOCK_HPP

#if !defined(__cpp_exceptions) && !defined(__EXCEPTIONS) && !defined(_CPPUNWIND)
#error "redlock.hpp needs exceptions; redlock.h does not"
#endif

#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#if __cplusplus >= 202002L
#include <stop_token>
#endif

#include "redlock.h"

#if __cplusplus >= 201703L
#define REDLOCK_HPP_NODISCARD [[nodiscard]]
#else
#define REDLOCK_HPP_NODISCARD
#endif

namespace redlock {

/** The outcomes of redlock.h, each with the value of its REDLOCK_... name. A library newer than
 * this header may answer others: treat them like their sign says. */
enum class Status : std::int32_t {
    Ok = REDLOCK_OK,
    Taken = REDLOCK_TAKEN,
    Unreachable = REDLOCK_UNREACHABLE,
    TooSlow = REDLOCK_TOO_SLOW,
    Lost = REDLOCK_LOST,
    Cancelled = REDLOCK_CANCELLED,
    TooShort = REDLOCK_TOO_SHORT,
    InvalidArgument = REDLOCK_INVALID_ARGUMENT,
    NoServers = REDLOCK_NO_SERVERS,
    Forked = REDLOCK_FORKED,
    Internal = REDLOCK_INTERNAL
};

/** Its name in redlock.h, such as "REDLOCK_TAKEN". The string lives for ever. */
inline const char *name(Status status) noexcept {
    return RedLockStatus_Name(static_cast<std::int32_t>(status));
}

/** What is done against servers that lose their memory, as in a restart without their data. */
enum class RestartGuard : std::int32_t {
    /** They have no vote until the locks that they may have forgotten have ended. The default. */
    On = REDLOCK_GUARD_ON,
    /** The same, and servers that seem to be new have no vote at first either. */
    Strict = REDLOCK_GUARD_STRICT,
    /** Every server that can be reached has a vote. */
    Off = REDLOCK_GUARD_OFF,
    /** The same, because the program vouches that no server ever forgets what it granted. */
    Durable = REDLOCK_GUARD_DURABLE
};

/** What a logger is told of locks. */
enum class Trace : std::int32_t {
    /** Nothing. The default. */
    Off = REDLOCK_TRACE_OFF,
    /** What becomes of them, without names. */
    Events = REDLOCK_TRACE_EVENTS,
    /** The same with the names of the resources. */
    Resources = REDLOCK_TRACE_RESOURCES
};

/** Whether the same call may succeed a little later without anything being changed. */
inline bool is_retriable(Status status) noexcept {
    return RedLockStatus_IsRetriable(static_cast<std::int32_t>(status));
}

/** What the functions below throw. what() is the name of the status and the library's own words,
 * which name the servers and count the votes; they hold no token and no password. */
class Error : public std::runtime_error {
public:
    Error(Status status, const std::string &words)
        : std::runtime_error(words.empty() ? name(status) : name(status) + (": " + words)),
          status_(status) {}

    Status status() const noexcept { return status_; }

private:
    Status status_;
};

/** What a Manager may be told to call: level 1 for a fault of a server, 2 for one mended or of note
 * only, 3 for an event of a lock (Manager::set_tracing), and one line of words. See Manager::set_logger. */
using Logger = std::function<void(int level, const char *message)>;

/** What a Manager may be told to ask for the password to a server, which it is given as messages name
 * it, such as "10.0.0.7:6379". An empty answer, or an exception, says that there is none now. See
 * Manager::set_password_callback. */
using PasswordCallback = std::function<std::string(const std::string &server)>;

namespace detail {

using Milliseconds = std::chrono::milliseconds;

inline bool is_fault(Status status) noexcept { return static_cast<std::int32_t>(status) < 0; }

inline Status status_of(RedLockStatus status) noexcept { return static_cast<Status>(status); }

// C would silently lock, or connect to, what comes before the NUL.
inline const std::string &without_nul(const std::string &text, const char *what) {
    if (text.find('\0') != std::string::npos) {
        throw Error(Status::InvalidArgument, std::string(what) + " holds a NUL");
    }
    return text;
}

// Several resources as C takes them.
class Names {
public:
    explicit Names(const std::vector<std::string> &names) {
        if (names.empty()) {
            throw Error(Status::InvalidArgument, "there is no resource to be locked");
        }
        for (const std::string &name : names) {
            texts_.push_back(without_nul(name, "a resource").c_str());
        }
    }

    // Valid as long as the names are. `tries` 0: as `wait` says.
    RedLockAcquireOptions options(Milliseconds ttl, Milliseconds wait, int tries) const noexcept {
        RedLockAcquireOptions options = REDLOCK_ACQUIRE_OPTIONS_INIT;
        options.resources = texts_.data();
        options.resource_count = texts_.size();
        options.ttl_ms = ttl.count();
        options.wait_ms = wait.count();
        options.tries = tries;
        return options;
    }

private:
    std::vector<const char *> texts_;
};

// What is not given is NULL for C.
inline const char *or_null(const std::string &text) noexcept {
    return text.empty() ? nullptr : text.c_str();
}

// A time to wait, in whole milliseconds: rounded up, never negative (which would mean for ever),
// and at most ten years, so that no clock overflows.
template <class Rep, class Period>
Milliseconds to_wait(const std::chrono::duration<Rep, Period> &wait) {
    using Precise = std::chrono::duration<double, std::milli>;
    const Milliseconds longest(std::int64_t{315360000000});
    const Precise precise(wait);
    if (!(precise > Precise::zero())) {
        return Milliseconds::zero();
    }
    if (precise > Precise(longest)) {
        return longest;
    }
    const Milliseconds whole = std::chrono::duration_cast<Milliseconds>(precise);
    return Precise(whole) < precise ? whole + Milliseconds(1) : whole;
}

// Which locks are kept, by their leases, and what is set when one cannot be. Used by the library's thread.
class Watches {
public:
    void add(RedLockLease *lease, const std::shared_ptr<std::atomic<bool>> &lost) {
        const std::lock_guard<std::mutex> here(mutex_);
        if (watched_.size() >= clean_at_) {
            clean();
        }
        watched_[lease] = lost;
    }

    void tell(RedLockLease *lease) {
        const std::lock_guard<std::mutex> here(mutex_);
        const auto found = watched_.find(lease);
        if (found != watched_.end()) {
            if (const std::shared_ptr<std::atomic<bool>> lost = found->second.lock()) {
                lost->store(true, std::memory_order_release);
            }
            watched_.erase(found);
        }
    }

private:
    // Forgets those that are gone, before there are too many.
    void clean() {
        for (auto it = watched_.begin(); it != watched_.end();) {
            it = it->second.expired() ? watched_.erase(it) : std::next(it);
        }
        clean_at_ = 2 * watched_.size() + 64;
    }

    std::mutex mutex_;
    std::unordered_map<RedLockLease *, std::weak_ptr<std::atomic<bool>>> watched_;
    std::size_t clean_at_ = 64;
};

// The C manager. Shared by the Manager and every Lease and
// Mutex made with it, so that none of them has to outlive another.
class Engine {
public:
    Engine() : rl_(RedLock_New()) {
        if (rl_ == nullptr) {
            throw std::bad_alloc();
        }
    }
    Engine(const Engine &) = delete;
    Engine &operator=(const Engine &) = delete;
    ~Engine() { RedLock_Free(rl_); }

    RedLock *get() const noexcept { return rl_; }

    void note_drift(double factor) noexcept { drift_.store(factor); }

    void note_tries(int tries) noexcept { tries_.store(tries); }
    int tries() const noexcept { return tries_.load(); }

    // The TTL that a lock has to be given to be valid for so long, with what is allowed for drift, 2 ms for the
    // precision of expiry, and a rounding.
    Milliseconds ttl_for(Milliseconds validity) const noexcept {
        const double ttl = static_cast<double>(validity.count() + 3) / (1.0 - drift_.load());
        // More than any TTL may be is more than this, and refused.
        return Milliseconds(ttl < 1e15 ? static_cast<std::int64_t>(ttl) + 1 : 1000000000000000);
    }

    // The library gives each logger back when no call can use it any more.
    Status set_logger(Logger logger) {
        if (!logger) {
            return status_of(RedLock_SetLogger(rl_, nullptr, nullptr));
        }
        std::unique_ptr<Logger> kept(new Logger(std::move(logger)));
        return status_of(RedLock_SetLoggerWithDestroy(rl_, &Engine::tell, kept.release(),
                                                      &Engine::destroy<Logger>));
    }

    Status set_password_callback(const char *user, PasswordCallback callback) {
        if (!callback) {
            return status_of(RedLock_SetPasswordCallback(rl_, user, nullptr, nullptr));
        }
        std::unique_ptr<PasswordCallback> kept(new PasswordCallback(std::move(callback)));
        return status_of(RedLock_SetPasswordCallbackWithDestroy(
            rl_, user, &Engine::ask, kept.release(), &Engine::destroy<PasswordCallback>));
    }

    // Has `lost` set when the lock of the lease cannot be kept. Keeping takes somebody who drives: the
    // library's thread.
    Status watch(RedLockLease *lease, const std::shared_ptr<std::atomic<bool>> &lost) {
        {
            const std::lock_guard<std::mutex> here(mutex_);
            if (!watches_) {
                auto watches = std::make_shared<Watches>();
                std::unique_ptr<std::shared_ptr<Watches>> kept(new std::shared_ptr<Watches>(watches));
                const RedLockStatus status =
                    RedLock_SetEventCallback(rl_, &Engine::note, kept.release(),
                                             &Engine::destroy<std::shared_ptr<Watches>>);
                if (status != REDLOCK_OK) {
                    return status_of(status);
                }
                watches_ = std::move(watches);
            }
        }
        watches_->add(lease, lost);
        return status_of(RedLock_SetBackgroundThread(rl_, true));
    }

private:
    static void note(const RedLockEvent *event, void *watches) {
        if (event->kind == REDLOCK_EVENT_LOST) {
            (*static_cast<std::shared_ptr<Watches> *>(watches))->tell(event->lease);
        }
    }

    static void tell(std::int32_t level, const char *message, void *logger) {
        try {
            (*static_cast<Logger *>(logger))(static_cast<int>(level), message);
        } catch (...) {
            // C frames lie above: nothing may be thrown through them.
        }
    }

    static bool ask(const char *server, char *password, std::size_t size, void *callback) {
        try {
            const std::string answer = (*static_cast<PasswordCallback *>(callback))(server);
            if (answer.empty() || answer.size() >= size || answer.find('\0') != std::string::npos) {
                return false;
            }
            password[answer.copy(password, size - 1)] = '\0';
            return true;
        } catch (...) {
            return false;
        }
    }

    template <class Callback>
    static void destroy(void *callback) {
        delete static_cast<Callback *>(callback);
    }

    RedLock *rl_;
    std::atomic<double> drift_{0.01};
    std::atomic<int> tries_{3};
    std::mutex mutex_; // guards what follows
    std::shared_ptr<Watches> watches_;
};

using EnginePtr = std::shared_ptr<Engine>;

#ifdef __cpp_lib_jthread
// Makes a call on the lease, and cancels it when a stop is requested. A call that has not begun cannot be
// cancelled, so that is tried until the call is over.
template <class Call>
RedLockStatus until_stopped(RedLock *rl, RedLockLease *lease, const std::stop_token &token,
                            const Call &call) {
    std::atomic<bool> over{false};
    bool stopped_before = false;
    const std::thread::id here = std::this_thread::get_id();
    const std::stop_callback stop(token, [&] {
        if (std::this_thread::get_id() == here) {
            stopped_before = true; // it was requested before this began
            return;
        }
        while (!over.load()) {
            RedLock_Cancel(rl, lease);
            std::this_thread::sleep_for(Milliseconds(1));
        }
    });
    if (stopped_before) {
        return REDLOCK_CANCELLED;
    }
    struct Over {
        std::atomic<bool> &over;
        ~Over() { over.store(true); }
    } ends{over};
    return call();
}
#endif

inline RedLock *native(const EnginePtr &engine) noexcept {
    return engine ? engine->get() : nullptr;
}

} // namespace detail

/** One lock, held or not, and the guard of it: its destructor releases what it holds. Move-only.
 *
 * A Lease may outlive its Manager. It may be used by any thread, by one at a time. After fork the
 * child's copy holds nothing: its destructor there leaves the parent's lock alone. */
class Lease {
public:
    /** Holds nothing. */
    Lease() noexcept {}

    Lease(Lease &&other) noexcept
        : engine_(std::move(other.engine_)), handle_(std::move(other.handle_)),
          status_(other.status_), armed_(other.armed_), lost_(std::move(other.lost_)) {
        other.forget();
    }

    /** Releases first what this lease holds. */
    Lease &operator=(Lease &&other) noexcept {
        if (this != &other) {
            release_if_armed();
            engine_ = std::move(other.engine_);
            handle_ = std::move(other.handle_);
            status_ = other.status_;
            armed_ = other.armed_;
            lost_ = std::move(other.lost_);
            other.forget();
        }
        return *this;
    }

    Lease(const Lease &) = delete;
    Lease &operator=(const Lease &) = delete;

    /** Releases. One round trip if it holds a lock; how that went is lost, so who wants to know
     * calls release(). */
    ~Lease() { release_if_armed(); }

    /** Whether the lock is held and valid now, by this machine's clock. No I/O. */
    bool held() const noexcept { return RedLockLease_IsHeld(handle_.get()); }
    explicit operator bool() const noexcept { return held(); }

    /** How long it is valid from now on; zero when it is not held. No I/O. */
    std::chrono::milliseconds remaining() const noexcept {
        return std::chrono::milliseconds(RedLockLease_RemainingMs(handle_.get()));
    }

    /** How long it was valid when it was granted or last extended; does not count down. No I/O. */
    std::chrono::milliseconds validity() const noexcept {
        return std::chrono::milliseconds(RedLockLease_ValidityMs(handle_.get()));
    }

    /** What was locked, or asked for; the first of several; empty for a lease that was never used. */
    std::string resource() const { return RedLockLease_Resource(handle_.get()); }

    /** All of them, in the order in which they were given. */
    std::vector<std::string> resources() const {
        std::vector<std::string> names;
        for (std::size_t i = 0; i < RedLockLease_ResourceCount(handle_.get()); i++) {
            names.push_back(RedLockLease_ResourceAt(handle_.get(), i));
        }
        return names;
    }

    /** The secret that stands on the servers as the value of the key; empty if nothing is held. Who
     * knows it can release the lock. */
    std::string token() const { return RedLockLease_Token(handle_.get()); }

    /** The number to hand to what the lock protects with each write, so that it can refuse one that is
     * less than the greatest it has seen; see Manager::set_fencing. It stays the same when the lock is
     * extended, and when it has expired or was lost, until it is released. Above 0 and below 2^53; 0 if
     * the lock has none. No I/O. */
    std::int64_t fencing_token() const noexcept { return RedLockLease_FencingToken(handle_.get()); }

    /** The status of the last call that asked the servers, and the library's words for it: which
     * server answered what. After Status::Ok they name the servers that could not take part, and are
     * empty if all could. */
    Status status() const noexcept { return status_; }
    std::string message() const {
        return handle_ ? RedLockLease_ErrorMessage(handle_.get()) : "nothing was ever locked";
    }

    /** Gives the lock a new TTL, counted from now, under the same token. One round, no retries. A
     * TTL shorter than what is left shortens nothing, and is a success.
     *
     * Returns false if that failed: status() is Status::Lost when the lock is gone, or
     * Status::Unreachable when too few servers answered; then what was valid stays valid until its
     * old end, see remaining(). Throws Error for a fault of the call. */
    REDLOCK_HPP_NODISCARD bool extend(std::chrono::milliseconds ttl) {
        return settle(handle_ ? RedLock_Extend(native(), handle_.get(), ttl.count())
                              : REDLOCK_LOST);
    }

    /** The same for so much longer than it is valid now: by what is left of it and `more`, which is more than
     * zero. Returns and throws like extend. */
    REDLOCK_HPP_NODISCARD bool extend_by(std::chrono::milliseconds more) {
        if (more <= std::chrono::milliseconds::zero()) {
            status_ = Status::InvalidArgument;
            throw Error(status_, "there is nothing to extend the lock by");
        }
        if (!engine_ || !held()) {
            // The library says why.
            return extend(more);
        }
        const std::chrono::milliseconds left = remaining();
        const std::chrono::milliseconds most((std::numeric_limits<std::int64_t>::max)() / 4);
        return extend(engine_->ttl_for(left + (std::min)(more, most)));
    }

    /** Keeps the lock until it is released: it is extended in the background. That takes a thread, the only one
     * that the library ever starts: this asks for it (Manager::set_background_thread). When it cannot be kept, lost() is true,
     * while at least a tenth of the TTL is left. A lock that is released, or whose lease is gone, is kept no
     * more.
     *
     * Returns false if it is not held. Throws Error for a fault of the call. */
    REDLOCK_HPP_NODISCARD bool keep_alive() {
        if (!handle_) {
            status_ = Status::Lost;
            return false;
        }
        watch();
        return settle(RedLock_KeepAlive(native(), handle_.get(), nullptr));
    }

    /** Whether a lock that is kept cannot be kept any longer: stop within remaining(). Set by another
     * thread, and never unset before the next keep_alive(). No I/O. */
    bool lost() const noexcept { return lost_ && lost_->load(std::memory_order_acquire); }

    /** Whether others may have the lock at the same time. No I/O. */
    bool shared() const noexcept { return RedLockLease_Mode(handle_.get()) == REDLOCK_SHARED; }

    /** Makes a shared lock of an exclusive one: this goes on as a reader, and nobody can have had it alone in between. There
     * is no way back.
     *
     * Returns false if that failed: status() is Status::Lost when the lock is gone, or Status::Unreachable when
     * too few servers answered; then it is held still, and if shared() says so, as a shared lock: calling again is allowed.
     * Throws Error for a fault of the call. */
    REDLOCK_HPP_NODISCARD bool downgrade() {
        return settle(handle_ ? RedLock_Downgrade(native(), handle_.get()) : REDLOCK_LOST);
    }

    /** Asks the servers whether the lock is still this one's on a quorum, for at least that long.
     * For the moment before a step that cannot be undone. Changes nothing.
     *
     * Returns false if it is not (Status::Lost), or not for that long (Status::TooShort), or too few servers
     * answered (Status::Unreachable). Throws Error for a fault of the call. */
    REDLOCK_HPP_NODISCARD bool
    confirm(std::chrono::milliseconds least = std::chrono::milliseconds::zero()) {
        return settle(handle_ ? RedLock_Confirm(native(), handle_.get(), least.count())
                              : REDLOCK_LOST);
    }

    /** Gives the lock away, and returns a ticket, by which another process, or another Manager, takes it over with
     * Manager::adopt. This lease holds nothing then, and releases nothing. The ticket is as secret as the token. No I/O. See
     * RedLock_Detach. Throws Error, Status::Lost if nothing is held. */
    REDLOCK_HPP_NODISCARD std::string detach() {
        if (!handle_) {
            status_ = Status::Lost;
            throw Error(status_, message());
        }
        // What there has to be room for is there before the lock is given away.
        std::size_t size = RedLockLease_ResourceSize(handle_.get());
        for (const std::string &name : resources()) {
            size += name.size() + 2;
        }
        std::string ticket(REDLOCK_TICKET_SIZE(size), '\0');
        if (!settle(RedLock_Detach(native(), handle_.get(), &ticket[0], ticket.size()))) {
            throw Error(status_, message());
        }
        armed_ = false;
        ticket.resize(ticket.find('\0'));
        return ticket;
    }

    /** Adds a level to a lock that is held: one more release() is needed until it is released. For code that calls
     * code that is handed the same Lease. The destructor leaves all levels. No I/O. See RedLock_Retain, and
     * RecursiveMutex for locks that a thread takes again.
     *
     * Returns false if it is not held (Status::Lost). Throws Error for a fault of the call. */
    REDLOCK_HPP_NODISCARD bool retain() {
        return settle(handle_ ? RedLock_Retain(handle_.get()) : REDLOCK_LOST);
    }

    /** How many release() it takes: 1 without retain(); 0 if it holds nothing. No I/O. */
    int levels() const noexcept { return RedLockLease_Levels(handle_.get()); }

    /** Releases now rather than in the destructor, and tells how it went: Status::Ok; Status::Lost
     * when there was nothing left to release, so others may have held it meanwhile;
     * Status::Unreachable when too few servers could be told: calling again is allowed, else the
     * lock ends with its TTL; a negative status for a fault of the call. Never throws. After retain() it
     * leaves one level, and asks nobody. */
    Status release() noexcept {
        armed_ = armed_ && levels() > 1;
        status_ = handle_ ? detail::status_of(RedLock_Unlock(native(), handle_.get()))
                          : Status::Lost;
        return status_;
    }

    /** For functions of redlock.h that have no counterpart here. NULL for a lease that was never
     * used; it stays this object's. */
    RedLockLease *native_handle() noexcept { return handle_.get(); }

private:
    friend class Manager;
    friend class Mutex;
    friend class RecursiveMutex;
    friend class SharedMutex;
    friend class Semaphore;

    struct Free {
        void operator()(RedLockLease *lease) const noexcept { RedLockLease_Free(lease); }
    };

    explicit Lease(detail::EnginePtr engine)
        : engine_(std::move(engine)), handle_(RedLockLease_New()) {
        if (!handle_) {
            throw std::bad_alloc();
        }
    }

    // `call` is one of the C calls that take a lock.
    template <class Call>
    Status take(const Call &call) {
        status_ = detail::status_of(call(native(), handle_.get()));
        armed_ = status_ == Status::Ok;
        return status_;
    }

    // Shared; `tries` counts if it is more than 0, else `wait`.
    Status take_shared(const std::string &resource, std::chrono::milliseconds ttl, int tries,
                       std::chrono::milliseconds wait) {
        RedLockAcquireOptions options = REDLOCK_ACQUIRE_OPTIONS_INIT;
        options.resource = resource.c_str();
        options.ttl_ms = ttl.count();
        options.tries = tries;
        options.wait_ms = wait.count();
        options.mode = REDLOCK_SHARED;
        return take([&](RedLock *rl, RedLockLease *handle) {
            return RedLock_Acquire(rl, &options, handle);
        });
    }

    bool settle(RedLockStatus status) {
        status_ = detail::status_of(status);
        if (detail::is_fault(status_)) {
            throw Error(status_, message());
        }
        return status_ == Status::Ok;
    }

    // A lock that has expired is released as well: its keys may stand a little longer than it is
    // valid. One that was released is not asked about twice.
    void release_if_armed() noexcept {
        while (armed_ && !detail::is_fault(release())) {
        }
    }

    void forget() noexcept {
        armed_ = false;
        status_ = Status::Lost;
    }

    // From now on lost() is true when the library says that the lock cannot be kept.
    void watch() {
        lost_ = std::make_shared<std::atomic<bool>>(false);
        const Status status = engine_->watch(handle_.get(), lost_);
        if (detail::is_fault(status)) {
            throw Error(status, "the lock cannot be kept");
        }
    }

    RedLock *native() const noexcept { return detail::native(engine_); }

    detail::EnginePtr engine_;
    std::unique_ptr<RedLockLease, Free> handle_;
    Status status_ = Status::Lost;
    bool armed_ = false;
    std::shared_ptr<std::atomic<bool>> lost_;
};

/** The servers and the settings. Move-only. Any number of threads may lock through one Manager at
 * once, and they share its connections; make the settings before the first lock.
 *
 * The connections are closed when the Manager and every Lease and Mutex made with it are gone. */
class Manager {
public:
    /** Without servers and with the default settings. */
    Manager() : engine_(std::make_shared<detail::Engine>()) {}

    /** With the servers at these URLs, as by add_server(url). */
    Manager(std::initializer_list<std::string> urls) : Manager() {
        for (const std::string &url : urls) {
            add_server(url);
        }
    }

    Manager(Manager &&) noexcept = default;
    Manager &operator=(Manager &&) noexcept = default;
    Manager(const Manager &) = delete;
    Manager &operator=(const Manager &) = delete;

    /** Adds a server: a host name or an address and a port (1 to 65535), or a URL, of which
     * redlock.h (RedLock_AddServerUrl) names the forms. The quorum is more than half of the
     * servers added, also of those that are down. No I/O.
     *
     * Throws Error with Status::InvalidArgument if it is malformed, was added before, or a lock
     * was asked for already. */
    Manager &add_server(const std::string &host, int port) {
        const char *text = detail::without_nul(host, "the host").c_str();
        return settle(RedLock_AddServerUrl(native(), text, port));
    }
    Manager &add_server(const std::string &url) {
        const char *text = detail::without_nul(url, "the URL").c_str();
        return settle(RedLock_AddServerUrl(native(), text, 0));
    }

    /** How often lock() tries in all (at least 1; default 3), and the mean pause between two tries
     * of any call that waits (default 200 ms). Throws Error if out of range. */
    Manager &set_retry(int tries, std::chrono::milliseconds delay) {
        if (delay.count() < INT_MIN || delay.count() > INT_MAX) {
            throw Error(Status::InvalidArgument, "the delay between two tries is too long");
        }
        settle(RedLock_SetRetry(native(), tries, static_cast<int>(delay.count())));
        engine_->note_tries(tries);
        return *this;
    }

    /** How long a server is waited for: to connect (default 1500 ms), and for a reply (default
     * zero: a twentieth of the TTL, at least 25 and at most 500 ms). Throws Error if out of
     * range. */
    Manager &set_timeouts(std::chrono::milliseconds connect, std::chrono::milliseconds reply) {
        return settle(RedLock_SetTimeouts(native(), connect.count(), reply.count()));
    }

    /** How much faster a server's clock may run than this machine's: at least 0, less than 1;
     * default 0.01. Throws Error if out of range. */
    Manager &set_clock_drift_factor(double factor) {
        settle(RedLock_SetClockDriftFactor(native(), factor));
        engine_->note_drift(factor);
        return *this;
    }

    /** What is done against servers that lose their memory; redlock.h (RedLock_SetRestartGuard) says
     * how. `longest_ttl` is the longest TTL that any client uses on these servers; zero, the default:
     * what is noted on them. `cap` is for how long a server is left without a vote at most; zero, the
     * default: ten minutes. It holds for connections made later. Throws Error if out of range. */
    Manager &
    set_restart_guard(RestartGuard mode,
                      std::chrono::milliseconds longest_ttl = std::chrono::milliseconds::zero(),
                      std::chrono::milliseconds cap = std::chrono::milliseconds::zero()) {
        return settle(RedLock_SetRestartGuard(native(), static_cast<std::int32_t>(mode),
                                              longest_ttl.count(), cap.count()));
    }

    /** Whether locks that are taken from now on have a fencing token: a number that is greater than those
     * of all locks of the same resource before, see Lease::fencing_token. Default: they have none. All
     * who lock the resource must set this. redlock.h (RedLock_SetFencing) says what it takes. */
    Manager &set_fencing(bool enabled) { return settle(RedLock_SetFencing(native(), enabled)); }
    /** Whether calls that wait are told when another process releases the lock, and releases tell those who
     * wait. Default: true; if not, they ask now and then. Set it before the first lock. */
    Manager &set_waking(bool enabled) { return settle(RedLock_SetWaking(native(), enabled)); }

    /** A function to be told of servers that are lost, refuse or come back; an empty one for
     * silence, the default. It is called at the end of calls to this library, on the thread that
     * made the call, with nothing held, and by one thread at a time. What it throws is dropped. It
     * may be replaced at any time, and is destroyed when no call can use it any more; in a forked
     * child, what the parent has set is not. */
    Manager &set_logger(Logger logger) {
        return settle(engine_ ? engine_->set_logger(std::move(logger))
                              : Status::InvalidArgument);
    }

    /** The user and the password for servers whose URLs name none; no user is the default user, no
     * password is for a user that needs none, and neither is no log-in, the default. Nothing needs to
     * be escaped here. Throws Error if one of them is of no use. */
    Manager &set_credentials(const std::string &user, const std::string &password) {
        detail::without_nul(user, "the user");
        detail::without_nul(password, "the password");
        return settle(RedLock_SetCredentials(native(), detail::or_null(user),
                                             detail::or_null(password)));
    }

    /** As set_credentials, with what these variables of the environment hold now; no name for the
     * user's is the default user. Throws Error if one is not set, or empty. */
    Manager &set_credentials_from_env(const std::string &user_variable,
                                      const std::string &password_variable) {
        detail::without_nul(user_variable, "the name of a variable");
        detail::without_nul(password_variable, "the name of a variable");
        return settle(RedLock_SetCredentialsFromEnv(native(), detail::or_null(user_variable),
                                                    detail::or_null(password_variable)));
    }

    /** A function to be asked for the password of each server whose URL names none: when it is first
     * connected to, and again when it did not accept the last answer. It is called on the thread
     * whose call connects, from several threads at once for several servers, so it should be quick;
     * and it must not use this Manager. What it throws says that there is no password now, and it is
     * asked again a second later at the earliest. An empty one: nobody is asked.
     *
     * It may be replaced at any time, and is destroyed as a logger is. Throws Error if the user is of
     * no use; none is the default user. */
    Manager &set_password_callback(const std::string &user, PasswordCallback callback) {
        detail::without_nul(user, "the user");
        return settle(engine_ ? engine_->set_password_callback(detail::or_null(user),
                                                               std::move(callback))
                              : Status::InvalidArgument);
    }
    Manager &set_password_callback(PasswordCallback callback) {
        return set_password_callback(std::string(), std::move(callback));
    }

    /** Whom rediss:// servers have to be signed by: the authorities in this PEM file alone, which is
     * read now; no name: those whom the system trusts, the default. This and the other settings for
     * TLS are for connections made later. They throw Error if a file is of no use, or if the library
     * was built without TLS. */
    Manager &set_tls_ca(const std::string &ca_file) {
        detail::without_nul(ca_file, "the name of a file");
        return settle(RedLock_SetTlsCa(native(), detail::or_null(ca_file)));
    }

    /** What to show to rediss:// servers that want to know who we are: a PEM file with our
     * certificate, followed by those that lead up to one that they trust, and one with its key, not
     * encrypted. Both are read now. No names: nothing, the default. */
    Manager &set_tls_certificate(const std::string &certificate_file, const std::string &key_file) {
        detail::without_nul(certificate_file, "the name of a file");
        detail::without_nul(key_file, "the name of a file");
        return settle(RedLock_SetTlsCertificate(native(), detail::or_null(certificate_file),
                                                detail::or_null(key_file)));
    }

    /** The name that the certificates of rediss:// servers have to be for, where that is not the host
     * in their URLs; empty: it is, the default. */
    Manager &set_tls_server_name(const std::string &name) {
        detail::without_nul(name, "the name of the servers");
        return settle(RedLock_SetTlsServerName(native(), detail::or_null(name)));
    }

    /** Whether rediss:// servers are believed to be who they say they are, without any proof. Then
     * whoever is on the way to them can read all, and answer in their place: for trying things out
     * only. */
    Manager &set_tls_insecure_skip_verify(bool skip) {
        return settle(RedLock_SetTlsInsecureSkipVerify(native(), skip));
    }

    /** Whether the manager has a thread of its own, which keeps locks while no other thread is in a call
     * (Lease::keep_alive). Without it, the default, no thread is ever started. With false this waits until
     * the thread has ended. */
    Manager &set_background_thread(bool background) {
        return settle(RedLock_SetBackgroundThread(native(), background));
    }

    /** Connects now rather than at the first lock. Optional. Waits at most `timeout`, or, at zero,
     * as long as connecting may take. Returns when a quorum is up; message() then names the
     * servers that are not. Throws Error, Status::Unreachable when there is no quorum. */
    void connect(std::chrono::milliseconds timeout = std::chrono::milliseconds::zero()) {
        settle(RedLock_Connect(native(), timeout.count()));
    }

    /** Takes a lock, trying as often as set_retry says. `resource` is the name of the key on the
     * servers, 1 to 65536 bytes; `ttl` is how long the lock lasts unless it is extended or
     * released, at least 4 ms with the default drift.
     *
     * Returns a lease that holds it. Throws Error if it was not had, Status::Taken included;
     * nothing stays locked then. */
    REDLOCK_HPP_NODISCARD Lease lock(const std::string &resource, std::chrono::milliseconds ttl) {
        const char *text = detail::without_nul(resource, "the resource").c_str();
        Lease lease(engine_);
        const Status status = lease.take([&](RedLock *rl, RedLockLease *handle) {
            return RedLock_Lock(rl, text, ttl.count(), handle);
        });
        if (status != Status::Ok) {
            throw Error(status, lease.message());
        }
        return lease;
    }

    /** Takes a lock, trying for a time rather than a number of times. `wait` zero: one attempt.
     * More: until so long has passed. Less: until it is had.
     *
     * Returns a lease, which is true if it holds the lock; else its status() and message() tell
     * why not. Throws Error for a fault of the call. */
    REDLOCK_HPP_NODISCARD Lease
    try_lock(const std::string &resource, std::chrono::milliseconds ttl,
             std::chrono::milliseconds wait = std::chrono::milliseconds::zero()) {
        const char *text = detail::without_nul(resource, "the resource").c_str();
        Lease lease(engine_);
        const Status status = lease.take([&](RedLock *rl, RedLockLease *handle) {
            return RedLock_TryLock(rl, text, ttl.count(), wait.count(), handle);
        });
        if (detail::is_fault(status)) {
            throw Error(status, lease.message());
        }
        return lease;
    }

#ifdef __cpp_lib_jthread
    /** The same until a stop is requested: then status() is Status::Cancelled, and nothing stays locked. Who
     * requests it waits until this call has ended, which is soon. */
    REDLOCK_HPP_NODISCARD Lease try_lock(const std::string &resource, std::chrono::milliseconds ttl,
                                         std::chrono::milliseconds wait,
                                         const std::stop_token &token) {
        const char *text = detail::without_nul(resource, "the resource").c_str();
        Lease lease(engine_);
        const Status status = lease.take([&](RedLock *rl, RedLockLease *handle) {
            return detail::until_stopped(rl, handle, token, [&] {
                return RedLock_TryLock(rl, text, ttl.count(), wait.count(), handle);
            });
        });
        if (detail::is_fault(status)) {
            throw Error(status, lease.message());
        }
        return lease;
    }
#endif

    /** As lock, but shared: others may have it at the same time that want it so, too, and nobody can have it alone. See
     * REDLOCK_SHARED. */
    REDLOCK_HPP_NODISCARD Lease lock_shared(const std::string &resource,
                                            std::chrono::milliseconds ttl) {
        detail::without_nul(resource, "the resource");
        Lease lease(engine_);
        const Status status =
            lease.take_shared(resource, ttl, engine_->tries(), std::chrono::milliseconds::zero());
        if (status != Status::Ok) {
            throw Error(status, lease.message());
        }
        return lease;
    }

    /** Takes several resources at once, all of them or none, as one lock: servers.lock_all({"a", "b"}, ttl). It has one
     * token, is extended and lost as a whole, and keeps out whoever wants one of them. 1 to 128 names in any order, each different,
     * 65536 bytes in all. Returns and throws like lock. */
    REDLOCK_HPP_NODISCARD Lease lock_all(const std::vector<std::string> &resources,
                                         std::chrono::milliseconds ttl) {
        const detail::Names names(resources);
        Lease lease(engine_);
        const Status status = lease.take([&](RedLock *rl, RedLockLease *handle) {
            const RedLockAcquireOptions options =
                names.options(ttl, detail::Milliseconds::zero(), engine_ ? engine_->tries() : 1);
            return RedLock_Acquire(rl, &options, handle);
        });
        if (status != Status::Ok) {
            throw Error(status, lease.message());
        }
        return lease;
    }

    /** As try_lock, but shared. */
    REDLOCK_HPP_NODISCARD Lease
    try_lock_shared(const std::string &resource, std::chrono::milliseconds ttl,
                    std::chrono::milliseconds wait = std::chrono::milliseconds::zero()) {
        detail::without_nul(resource, "the resource");
        Lease lease(engine_);
        const Status status = lease.take_shared(resource, ttl, 0, wait);
        if (detail::is_fault(status)) {
            throw Error(status, lease.message());
        }
        return lease;
    }

    /** The same for a time, as try_lock does. The words tell which resource was in the way, by its number. */
    REDLOCK_HPP_NODISCARD Lease
    try_lock_all(const std::vector<std::string> &resources, std::chrono::milliseconds ttl,
                 std::chrono::milliseconds wait = std::chrono::milliseconds::zero()) {
        const detail::Names names(resources);
        Lease lease(engine_);
        const Status status = lease.take([&](RedLock *rl, RedLockLease *handle) {
            const RedLockAcquireOptions options = names.options(ttl, wait, 0);
            return RedLock_Acquire(rl, &options, handle);
        });
        if (detail::is_fault(status)) {
            throw Error(status, lease.message());
        }
        return lease;
    }

    /** Takes over a lock that was given away with Lease::detach, in this process or another: the servers are asked
     * whether it is there. Adopt a ticket once: see RedLock_Adopt. Returns a lease that holds it. Throws Error: Status::Lost if
     * it has ended; Status::Unreachable if too few servers answered, and it may be tried again. */
    REDLOCK_HPP_NODISCARD Lease adopt(const std::string &ticket) {
        const char *text = detail::without_nul(ticket, "the ticket").c_str();
        Lease lease(engine_);
        const Status status = lease.take(
            [&](RedLock *rl, RedLockLease *handle) { return RedLock_Adopt(rl, text, handle); });
        if (status != Status::Ok) {
            throw Error(status, lease.message());
        }
        return lease;
    }

    /** Whether anybody holds a resource, on a quorum. The answer may be out of date when it
     * arrives: to take a lock, take it. Throws Error, Status::Unreachable included. */
    REDLOCK_HPP_NODISCARD bool is_locked(const std::string &resource) {
        const char *text = detail::without_nul(resource, "the resource").c_str();
        bool locked = false;
        settle(RedLock_IsLocked(native(), text, &locked));
        return locked;
    }

    /** The same, with how long it is held still; see RedLock_Inspect and RedLockInfo. It finds the locks of any
     * client, and changes nothing. Throws Error, Status::Unreachable included. */
    REDLOCK_HPP_NODISCARD RedLockInfo inspect(const std::string &resource) {
        detail::without_nul(resource, "the resource");
        RedLockInfo info = REDLOCK_INFO_INIT;
        const Status status =
            detail::status_of(RedLock_Inspect(native(), resource.c_str(), 0, &info));
        if (status != Status::Ok) {
            throw Error(status, info.words);
        }
        return info;
    }

    /** What is known of each server, in the order in which they were added: whether it is connected and votes, and if not
     * why not, and what it said of itself. Nobody is asked, and nothing is waited for. See RedLock_Servers. */
    std::vector<RedLockServerInfo> servers() {
        std::size_t count = 0;
        settle(RedLock_Servers(native(), nullptr, &count));
        const RedLockServerInfo first = REDLOCK_SERVER_INFO_INIT;
        std::vector<RedLockServerInfo> infos(count + 1, first);
        std::size_t room = infos.size();
        settle(RedLock_Servers(native(), infos.data(), &room));
        // Another thread may add some meanwhile.
        infos.resize((std::min)(room, infos.size()));
        return infos;
    }

    /** What was counted since the Manager was made: see RedLockStats. Nobody is asked, and nothing is waited for. */
    RedLockStats stats() {
        RedLockStats stats = REDLOCK_STATS_INIT;
        settle(RedLock_GetStats(native(), &stats));
        return stats;
    }

    /** The same, and what is known of each server, as Prometheus reads it; content type "text/plain; version=0.0.4". */
    std::string stats_text() {
        std::string text;
        for (;;) {
            const std::size_t size =
                RedLock_StatsText(native(), text.empty() ? nullptr : &text[0], text.size());
            if (size < text.size() || size == 0) {
                text.resize(size);
                return text;
            }
            text.resize(size + 1);
        }
    }

    /** Whether the logger is told what becomes of locks, at level 3: one line for each event, as key=value. No name of a
     * resource is in it unless that is asked for. Default: it is not. See RedLock_SetTracing. */
    Manager &set_tracing(Trace trace) {
        return settle(RedLock_SetTracing(native(), static_cast<std::int32_t>(trace)));
    }

    /** The words for the last call on this Manager that returned no lease; empty if there is
     * nothing to say. */
    std::string message() const { return RedLock_ErrorMessage(native()); }

    /** For functions of redlock.h that have no counterpart here. It stays this object's. */
    RedLock *native_handle() noexcept { return native(); }

private:
    friend class Mutex;
    friend class SharedMutex;
    friend class Semaphore;

    Manager &settle(Status status) {
        if (status != Status::Ok) {
            throw Error(status, message());
        }
        return *this;
    }
    Manager &settle(RedLockStatus status) { return settle(detail::status_of(status)); }

    RedLock *native() const noexcept { return detail::native(engine_); }

    detail::EnginePtr engine_;
};

/** Asks for a Mutex that is kept while it is locked. */
struct KeepAlive {};
#if __cplusplus >= 201703L
inline constexpr KeepAlive keep_alive{};
#endif

/** One resource, or several, as a mutex that all programs with the same servers share. Neither copied nor moved,
 * like std::mutex; not recursive: that is RecursiveMutex. It may outlive its Manager.
 *
 * Threads may share one Mutex: it has one owner at a time, and the others wait for it here before
 * they ask the servers. Unlike std::mutex it may be unlocked by another thread than the one that
 * locked it.
 *
 * The lock lasts for the TTL given, and ends then even if its owner is still at work: extend() in
 * time, and look at last_unlock_status() where it matters whether the lock held to the end. After
 * fork, make a new Mutex in the child. */
class Mutex {
public:
    /** `resource` and `ttl` as for Manager::lock; they are checked by the first lock. No I/O. */
    Mutex(Manager &manager, std::string resource, std::chrono::milliseconds ttl)
        : lease_(manager.engine_), resources_(1, std::move(resource)), ttl_(ttl) {
        detail::without_nul(resources_[0], "the resource");
    }

    /** Several resources, all or none, as for Manager::lock_all: Mutex(manager, {"a", "b"}, 10s). */
    Mutex(Manager &manager, std::vector<std::string> resources, std::chrono::milliseconds ttl)
        : lease_(manager.engine_), resources_(std::move(resources)), ttl_(ttl) {
        detail::Names checked(resources_);
    }
    Mutex(Manager &manager, std::initializer_list<std::string> resources,
          std::chrono::milliseconds ttl)
        : Mutex(manager, std::vector<std::string>(resources), ttl) {}

    /** One that is kept while it is locked, as by Lease::keep_alive: Mutex(manager, "job", 10s, keep_alive). */
    Mutex(Manager &manager, std::string resource, std::chrono::milliseconds ttl, KeepAlive)
        : Mutex(manager, std::move(resource), ttl) {
        keeps_ = true;
    }

    Mutex(Manager &manager, std::vector<std::string> resources, std::chrono::milliseconds ttl,
          KeepAlive)
        : Mutex(manager, std::move(resources), ttl) {
        keeps_ = true;
    }
    Mutex(Manager &manager, std::initializer_list<std::string> resources,
          std::chrono::milliseconds ttl, KeepAlive)
        : Mutex(manager, std::vector<std::string>(resources), ttl) {
        keeps_ = true;
    }

    Mutex(const Mutex &) = delete;
    Mutex &operator=(const Mutex &) = delete;

    /** Releases what is still held. */
    ~Mutex() {}

    /** Waits until it is had, also while too few servers answer. Throws Error for a fault of the
     * call only. */
    void lock() {
        std::unique_lock<std::mutex> here(state_);
        vacated_.wait(here, [this] { return !owned_; });
        owned_ = true;
        here.unlock();
        if (!take(std::chrono::milliseconds(-1))) {
            throw Error(status(), message());
        }
    }

    /** Makes one attempt. Returns false if it was not had: status() and message() tell why.
     * Throws Error for a fault of the call. */
    REDLOCK_HPP_NODISCARD bool try_lock() { return try_lock_within(detail::Milliseconds::zero()); }

    /** Tries until so long has passed; a time that is not positive is one attempt. Returns and
     * throws like try_lock. */
    template <class Rep, class Period>
    REDLOCK_HPP_NODISCARD bool try_lock_for(const std::chrono::duration<Rep, Period> &wait) {
        return try_lock_within(detail::to_wait(wait));
    }

    /** Tries until that time of `Clock`, as it looks now: a step of the clock made later is not
     * noticed. Returns and throws like try_lock. */
    template <class Clock, class Duration>
    REDLOCK_HPP_NODISCARD bool
    try_lock_until(const std::chrono::time_point<Clock, Duration> &time) {
        // As floating point: the difference of two whole numbers may overflow.
        using Precise = std::chrono::duration<double, std::milli>;
        const Precise now(Clock::now().time_since_epoch());
        return try_lock_for(Precise(time.time_since_epoch()) - now);
    }

    /** Releases. Never throws, for guards call it in their destructors; how it went is in
     * last_unlock_status(). */
    void unlock() noexcept {
        bool owned = false;
        {
            std::lock_guard<std::mutex> here(state_);
            owned = owned_;
        }
        last_unlock_status_ = owned ? lease_.release() : Status::Lost;
        if (owned) {
            vacate();
        }
    }

    /** How the last unlock() went: Status::Ok; Status::Lost when the lock had ended before, so that
     * somebody else may have held it meanwhile, or was not held; Status::Unreachable when too few
     * servers could be told: it ends with its TTL; a negative status for a fault of the call.
     * Status::Ok before the first unlock(). */
    Status last_unlock_status() const noexcept { return last_unlock_status_; }

    /** Why the last attempt to lock failed, whichever thread made it. After a success Status::Ok, and
     * the words name the servers that could not take part; empty if all could. */
    Status status() const {
        std::lock_guard<std::mutex> here(state_);
        return status_;
    }
    std::string message() const {
        std::lock_guard<std::mutex> here(state_);
        return message_;
    }

    /** For the owner: as the members of Lease with these names. extend() without a time gives it
     * the TTL of this Mutex once more. */
    bool held() const noexcept { return lease_.held(); }
    std::chrono::milliseconds remaining() const noexcept { return lease_.remaining(); }
    bool lost() const noexcept { return lease_.lost(); }
    std::int64_t fencing_token() const noexcept { return lease_.fencing_token(); }
    REDLOCK_HPP_NODISCARD bool extend() { return lease_.extend(ttl_); }
    REDLOCK_HPP_NODISCARD bool extend(std::chrono::milliseconds ttl) { return lease_.extend(ttl); }
    REDLOCK_HPP_NODISCARD bool extend_by(std::chrono::milliseconds more) {
        return lease_.extend_by(more);
    }
    REDLOCK_HPP_NODISCARD bool
    confirm(std::chrono::milliseconds least = std::chrono::milliseconds::zero()) {
        return lease_.confirm(least);
    }

    /** What it locks; the first of several. */
    const std::string &resource() const noexcept { return resources_.front(); }
    const std::vector<std::string> &resources() const noexcept { return resources_; }
    std::chrono::milliseconds ttl() const noexcept { return ttl_; }

private:
    friend class RecursiveMutex;
    friend class SharedMutex;

    bool try_lock_within(std::chrono::milliseconds wait) {
        const auto start = std::chrono::steady_clock::now();
        if (!own_within(wait)) {
            return false;
        }
        const auto spent = std::chrono::steady_clock::now() - start;
        return take(detail::to_wait(wait - spent));
    }

    bool own_within(std::chrono::milliseconds wait) {
        std::unique_lock<std::mutex> here(state_);
        if (!vacated_.wait_for(here, wait, [this] { return !owned_; })) {
            status_ = Status::Taken;
            message_ = "another thread holds this Mutex";
            return false;
        }
        owned_ = true;
        return true;
    }

    // Asks the servers, as the owner; unless they grant, gives the ownership up again. That goes for a
    // lock, too, if there is no memory for the words that came with it.
    bool take(std::chrono::milliseconds wait) {
        Vacate unless_granted(this);
        const Status status = lease_.take([&](RedLock *rl, RedLockLease *handle) {
            return ask(rl, wait, handle);
        });
        std::string words = lease_.message();
        std::lock_guard<std::mutex> here(state_);
        status_ = status;
        message_.swap(words);
        if (detail::is_fault(status)) {
            throw Error(status, message_);
        }
        if (status == Status::Ok) {
            if (keeps_ && !lease_.keep_alive()) {
                return false;
            }
            unless_granted.owner = nullptr;
        }
        return status == Status::Ok;
    }

    RedLockStatus ask(RedLock *rl, std::chrono::milliseconds wait, RedLockLease *handle) const {
        if (resources_.size() == 1) {
            return RedLock_TryLock(rl, resources_[0].c_str(), ttl_.count(), wait.count(), handle);
        }
        const detail::Names names(resources_);
        const RedLockAcquireOptions options = names.options(ttl_, wait, 0);
        return RedLock_Acquire(rl, &options, handle);
    }

    void vacate() noexcept {
        std::lock_guard<std::mutex> here(state_);
        owned_ = false;
        vacated_.notify_one();
    }

    struct Vacate {
        explicit Vacate(Mutex *mutex) noexcept : owner(mutex) {}
        ~Vacate() {
            if (owner != nullptr) {
                owner->lease_.release_if_armed();
                owner->vacate();
            }
        }
        Vacate(const Vacate &) = delete;
        Vacate &operator=(const Vacate &) = delete;
        Mutex *owner;
    };

    Lease lease_;
    const std::vector<std::string> resources_;
    const std::chrono::milliseconds ttl_;
    bool keeps_ = false;
    std::atomic<Status> last_unlock_status_{Status::Ok};

    mutable std::mutex state_; // guards what follows; never held while the servers are asked
    std::condition_variable vacated_;
    bool owned_ = false;
    Status status_ = Status::Ok;
    std::string message_;
};

/** As Mutex, and its owner may lock it again: it takes as many unlock() as lock(), and only the last one asks servers.
 * The owner is the thread that locked it, as with std::recursive_mutex: no other can unlock it. It may outlive its Manager.
 *
 * An inner lock() of a lock that is valid for less than the TTL extends it, one round trip; one that is kept is not
 * extended, since it is anyway. A lock that is lost is not taken anew at an inner level: lock() throws Error with
 * Status::Lost, try_lock() returns false, and each unlock() leaves Status::Lost in last_unlock_status(). */
class RecursiveMutex {
public:
    /** As the constructors of Mutex. */
    RecursiveMutex(Manager &manager, std::string resource, std::chrono::milliseconds ttl)
        : mutex_(manager, std::move(resource), ttl) {}
    RecursiveMutex(Manager &manager, std::string resource, std::chrono::milliseconds ttl, KeepAlive)
        : mutex_(manager, std::move(resource), ttl, KeepAlive()) {}

    RecursiveMutex(const RecursiveMutex &) = delete;
    RecursiveMutex &operator=(const RecursiveMutex &) = delete;

    /** Releases what is still held, at all levels. */
    ~RecursiveMutex() {}

    /** Waits until it is had, also while too few servers answer. Throws Error for a fault of the call, and, at an
     * inner level, if the lock is lost. */
    void lock() {
        if (!is_mine()) {
            mutex_.lock();
            own();
        } else if (!enter_within(detail::to_wait(std::chrono::hours(24 * 365 * 10)))) {
            throw Error(status(), message());
        }
    }

    /** Makes one attempt. Returns false if it was not had: status() and message() tell why. Throws Error for a fault
     * of the call. */
    REDLOCK_HPP_NODISCARD bool try_lock() { return try_lock_within(detail::Milliseconds::zero()); }

    /** As those of Mutex. */
    template <class Rep, class Period>
    REDLOCK_HPP_NODISCARD bool try_lock_for(const std::chrono::duration<Rep, Period> &wait) {
        return try_lock_within(detail::to_wait(wait));
    }
    template <class Clock, class Duration>
    REDLOCK_HPP_NODISCARD bool
    try_lock_until(const std::chrono::time_point<Clock, Duration> &time) {
        using Precise = std::chrono::duration<double, std::milli>;
        const Precise now(Clock::now().time_since_epoch());
        return try_lock_for(Precise(time.time_since_epoch()) - now);
    }

    /** Leaves the innermost level; the last one releases. Never throws; how it went is in last_unlock_status(), which
     * is Status::InvalidArgument, and nothing is done, on a thread that is not the owner. */
    void unlock() noexcept {
        if (!is_mine()) {
            mutex_.last_unlock_status_ = Status::InvalidArgument;
        } else if (--depth_ > 0) {
            mutex_.last_unlock_status_ = mutex_.lease_.release();
        } else {
            owner_.store(std::thread::id());
            mutex_.unlock();
        }
    }

    /** As those of Mutex; levels() is for the owner, too. */
    Status last_unlock_status() const noexcept { return mutex_.last_unlock_status(); }
    Status status() const { return mutex_.status(); }
    std::string message() const { return mutex_.message(); }
    bool held() const noexcept { return mutex_.held(); }
    std::chrono::milliseconds remaining() const noexcept { return mutex_.remaining(); }
    bool lost() const noexcept { return mutex_.lost(); }
    int levels() const noexcept { return mutex_.lease_.levels(); }
    std::int64_t fencing_token() const noexcept { return mutex_.fencing_token(); }
    REDLOCK_HPP_NODISCARD bool extend() { return mutex_.extend(); }
    REDLOCK_HPP_NODISCARD bool extend(std::chrono::milliseconds ttl) { return mutex_.extend(ttl); }
    REDLOCK_HPP_NODISCARD bool extend_by(std::chrono::milliseconds more) {
        return mutex_.extend_by(more);
    }
    REDLOCK_HPP_NODISCARD bool
    confirm(std::chrono::milliseconds least = std::chrono::milliseconds::zero()) {
        return mutex_.confirm(least);
    }
    const std::string &resource() const noexcept { return mutex_.resource(); }
    std::chrono::milliseconds ttl() const noexcept { return mutex_.ttl(); }

private:
    bool is_mine() const noexcept { return owner_.load() == std::this_thread::get_id(); }

    void own() noexcept {
        depth_ = 1;
        owner_.store(std::this_thread::get_id());
    }

    bool try_lock_within(std::chrono::milliseconds wait) {
        if (is_mine()) {
            return enter_within(wait);
        }
        if (!mutex_.try_lock_for(wait)) {
            return false;
        }
        own();
        return true;
    }

    // One level more for the owner. Servers that do not answer are asked again until then, or until it is lost.
    bool enter_within(std::chrono::milliseconds wait) {
        const detail::Milliseconds pause(20);
        const auto end = std::chrono::steady_clock::now() + wait;
        while (!enter()) {
            const auto left = end - std::chrono::steady_clock::now();
            if (mutex_.lease_.status() != Status::Unreachable || left <= detail::Milliseconds::zero()) {
                return false;
            }
            std::this_thread::sleep_for((std::min)(pause, detail::to_wait(left)));
        }
        return true;
    }

    bool enter() {
        Lease &lease = mutex_.lease_;
        const bool is_long_enough = mutex_.keeps_ || lease.remaining() >= ttl();
        const bool is_entered = (is_long_enough || lease.extend(ttl())) && lease.retain();
        std::string words = lease.message();
        {
            const std::lock_guard<std::mutex> here(mutex_.state_);
            mutex_.status_ = lease.status();
            mutex_.message_.swap(words);
        }
        depth_ += is_entered ? 1 : 0;
        return is_entered;
    }

    Mutex mutex_;
    std::atomic<std::thread::id> owner_{std::thread::id()};
    std::size_t depth_ = 0; // the owner's
};

/** One resource as a mutex that several may have at the same time if they want it shared: it fits std::shared_lock, and, as a
 * Mutex, std::unique_lock and the other guards. All programs with the same servers share it. Not recursive:
 * a thread that holds it shared must not lock it.
 *
 * While somebody waits to have it alone, nobody is let in that comes later to have it shared, in this program or another.
 * Each lock_shared() lasts for the TTL given, like a lock(). */
class SharedMutex : public Mutex {
public:
    /** As for Mutex. */
    SharedMutex(Manager &manager, std::string resource, std::chrono::milliseconds ttl)
        : Mutex(manager, std::move(resource), ttl) {}
    SharedMutex(Manager &manager, std::string resource, std::chrono::milliseconds ttl, KeepAlive)
        : Mutex(manager, std::move(resource), ttl, KeepAlive{}) {}

    /** Waits until it is had shared, also while too few servers answer. Throws Error for a fault of the call
     * only. */
    void lock_shared() {
        if (!take_shared(std::chrono::milliseconds(-1))) {
            throw Error(status(), message());
        }
    }

    /** Makes one attempt. Returns false if it was not had: status() and message() tell why. Throws
     * Error for a fault of the call. */
    REDLOCK_HPP_NODISCARD bool try_lock_shared() {
        return take_shared(std::chrono::milliseconds::zero());
    }

    /** Tries until so long has passed, or until that time; as try_lock_for and try_lock_until. */
    template <class Rep, class Period>
    REDLOCK_HPP_NODISCARD bool
    try_lock_shared_for(const std::chrono::duration<Rep, Period> &wait) {
        return take_shared(detail::to_wait(wait));
    }
    template <class Clock, class Duration>
    REDLOCK_HPP_NODISCARD bool
    try_lock_shared_until(const std::chrono::time_point<Clock, Duration> &time) {
        using Precise = std::chrono::duration<double, std::milli>;
        const Precise now(Clock::now().time_since_epoch());
        return try_lock_shared_for(Precise(time.time_since_epoch()) - now);
    }

    /** Releases what this thread has had shared for the shortest time, or, if it has nothing, what another
     * has. Never throws; how it went is in last_unlock_status(). */
    void unlock_shared() noexcept {
        Reader reader;
        {
            std::lock_guard<std::mutex> here(state_);
            const auto place = own_reader();
            if (place == readers_.rend()) {
                last_unlock_status_ = Status::Lost;
                return;
            }
            reader = std::move(*place);
            readers_.erase(std::next(place).base());
        }
        last_unlock_status_ = reader.lease.release();
    }

    /** For who has locked it: from now on it is had shared, and unlock_shared() releases it. Nobody can have had it
     * alone in between. Returns false if that failed, as Lease::downgrade: then it is held as before, unless status() is
     * Status::Lost. Throws Error for a fault of the call. */
    REDLOCK_HPP_NODISCARD bool downgrade() {
        Reader reader(std::this_thread::get_id(), Lease(lease_.engine_));
        std::unique_lock<std::mutex> here(state_);
        readers_.reserve(readers_.size() + 1);
        here.unlock();
        const bool done = lease_.downgrade();
        std::string words = lease_.message();
        here.lock();
        status_ = lease_.status();
        message_.swap(words);
        if (done && owned_) {
            std::swap(reader.lease, lease_);
            readers_.push_back(std::move(reader));
            owned_ = false;
            vacated_.notify_one();
        }
        return done;
    }

    /** How many have it shared through this object. */
    std::size_t readers() const {
        std::lock_guard<std::mutex> here(state_);
        return readers_.size();
    }

    /** For who has it shared: the members of Lease with these names, of what unlock_shared() would release. */
    bool held_shared() const noexcept {
        std::lock_guard<std::mutex> here(state_);
        const auto place = own_reader();
        return place != readers_.rend() && place->lease.held();
    }
    std::chrono::milliseconds remaining_shared() const noexcept {
        std::lock_guard<std::mutex> here(state_);
        const auto place = own_reader();
        return place == readers_.rend() ? std::chrono::milliseconds::zero()
                                        : place->lease.remaining();
    }

private:
    struct Reader {
        Reader() noexcept {}
        Reader(std::thread::id who, Lease what) noexcept : thread(who), lease(std::move(what)) {}
        std::thread::id thread;
        Lease lease;
    };

    template <class Readers> static auto own_of(Readers &readers) -> decltype(readers.rbegin()) {
        const std::thread::id self = std::this_thread::get_id();
        auto place = readers.rbegin();
        while (place != readers.rend() && place->thread != self) {
            ++place;
        }
        return place == readers.rend() ? readers.rbegin() : place;
    }
    std::vector<Reader>::reverse_iterator own_reader() { return own_of(readers_); }
    std::vector<Reader>::const_reverse_iterator own_reader() const { return own_of(readers_); }

    bool take_shared(std::chrono::milliseconds wait) {
        Reader reader(std::this_thread::get_id(), Lease(lease_.engine_));
        const Status status = reader.lease.take_shared(resource(), ttl_, 0, wait);
        std::string words = reader.lease.message();
        const bool kept = status == Status::Ok && keeps_ ? reader.lease.keep_alive() : true;
        std::lock_guard<std::mutex> here(state_);
        status_ = status;
        message_.swap(words);
        if (detail::is_fault(status)) {
            throw Error(status, message_);
        }
        if (status != Status::Ok || !kept) {
            return false;
        }
        readers_.push_back(std::move(reader));
        return true;
    }

    std::vector<Reader> readers_; // guarded by state_
};

/** A resource that so many may have at the same time, in all programs with the same servers: acquire and release as of
 * std::counting_semaphore, or permits as leases. Neither copied nor moved. It may outlive its Manager.
 *
 * All who use the resource have to name the same number of permits: else there are as many as the greatest of these.
 * Who locks the resource uses one of them. Threads may share a Semaphore, and release() may be called by another
 * thread than the one that acquired; callers wait in the order in which they came.
 *
 * Each permit lasts for the TTL given, and ends then even if its owner is still at work: ask for keep_alive, or for a
 * lease. After fork, make a new Semaphore in the child. */
class Semaphore {
public:
    /** `resource` and `ttl` as for Manager::lock; `permits` from 1 to 256. They are checked by the first call that
     * acquires. No I/O. */
    Semaphore(Manager &manager, std::string resource, std::int32_t permits,
              std::chrono::milliseconds ttl)
        : engine_(manager.engine_), resource_(std::move(resource)), permits_(permits), ttl_(ttl) {
        detail::without_nul(resource_, "the resource");
    }

    /** One whose permits are kept until they are released: Semaphore(manager, "api", 8, 10s, keep_alive). */
    Semaphore(Manager &manager, std::string resource, std::int32_t permits,
              std::chrono::milliseconds ttl, KeepAlive)
        : Semaphore(manager, std::move(resource), permits, ttl) {
        keeps_ = true;
    }

    Semaphore(const Semaphore &) = delete;
    Semaphore &operator=(const Semaphore &) = delete;

    /** Releases what was acquired, but for leases: these are their owners'. */
    ~Semaphore() {}

    /** The most permits that there may be. */
    static constexpr std::ptrdiff_t(max)() noexcept { return 256; }

    /** Waits for a permit, also while too few servers answer. Throws Error for a fault of the call only. */
    void acquire() { keep(permit(std::chrono::milliseconds(-1))); }

    /** Makes one attempt. Returns false if none was had: status() and message() tell why. Throws Error for a
     * fault of the call. */
    REDLOCK_HPP_NODISCARD bool try_acquire() {
        return try_acquire_within(detail::Milliseconds::zero());
    }

    /** Tries until so long has passed; a time that is not positive is one attempt. Returns and throws like
     * try_acquire. */
    template <class Rep, class Period>
    REDLOCK_HPP_NODISCARD bool
    try_acquire_for(const std::chrono::duration<Rep, Period> &wait) {
        return try_acquire_within(detail::to_wait(wait));
    }

    /** Tries until that time of `Clock`, as it looks now. Returns and throws like try_acquire. */
    template <class Clock, class Duration>
    REDLOCK_HPP_NODISCARD bool
    try_acquire_until(const std::chrono::time_point<Clock, Duration> &time) {
        // As floating point: the difference of two whole numbers may overflow.
        using Precise = std::chrono::duration<double, std::milli>;
        const Precise now(Clock::now().time_since_epoch());
        return try_acquire_for(Precise(time.time_since_epoch()) - now);
    }

    /** Releases a permit that acquire or one of its like has got: the one that was acquired first. Returns
     * Status::Ok; Status::Lost when it had ended before, so that there may have been one more than there are permits,
     * or none was acquired; Status::Unreachable when too few servers could be told: it ends with its TTL; a negative
     * status for a fault of the call. Never throws. */
    Status release() noexcept {
        Lease lease;
        {
            std::lock_guard<std::mutex> here(state_);
            if (held_.empty()) {
                return Status::Lost;
            }
            lease = std::move(held_.front());
            held_.pop_front();
        }
        return lease.release();
    }

    /** Waits for a permit until so long has passed: zero, the default: one attempt; less: until it is had. Returns a
     * lease, which is true if it holds one and releases it in its destructor; else its status() and message() tell
     * why not. Throws Error for a fault of the call. */
    REDLOCK_HPP_NODISCARD Lease
    permit(std::chrono::milliseconds wait = std::chrono::milliseconds::zero()) {
        if (permits_ < 1) {
            throw Error(Status::InvalidArgument, "a semaphore has 1 to 256 permits");
        }
        Lease lease(engine_);
        RedLockAcquireOptions options = REDLOCK_ACQUIRE_OPTIONS_INIT;
        options.resource = resource_.c_str();
        options.ttl_ms = ttl_.count();
        options.wait_ms = wait.count();
        options.permits = permits_;
        const Status status = lease.take([&](RedLock *rl, RedLockLease *handle) {
            return RedLock_Acquire(rl, &options, handle);
        });
        std::string words = lease.message();
        {
            std::lock_guard<std::mutex> here(state_);
            status_ = status;
            message_.swap(words);
        }
        if (detail::is_fault(status)) {
            throw Error(status, lease.message());
        }
        if (status == Status::Ok && keeps_ && !lease.keep_alive()) {
            throw Error(lease.status(), lease.message());
        }
        return lease;
    }

    /** How many permits somebody has, of all programs. The answer may be out of date when it arrives. Throws Error,
     * Status::Unreachable included. */
    REDLOCK_HPP_NODISCARD std::int32_t taken() {
        RedLockInfo info = REDLOCK_INFO_INIT;
        info.permits = permits_;
        const Status status = detail::status_of(
            RedLock_Inspect(detail::native(engine_), resource_.c_str(), 0, &info));
        if (status != Status::Ok) {
            throw Error(status, info.words);
        }
        return info.permits_taken;
    }

    /** Why the last attempt failed, whichever thread made it. After a success Status::Ok, and the words name the
     * servers that could not take part; empty if all could. */
    Status status() const {
        std::lock_guard<std::mutex> here(state_);
        return status_;
    }
    std::string message() const {
        std::lock_guard<std::mutex> here(state_);
        return message_;
    }

    const std::string &resource() const noexcept { return resource_; }
    std::int32_t permits() const noexcept { return permits_; }
    std::chrono::milliseconds ttl() const noexcept { return ttl_; }

private:
    bool try_acquire_within(std::chrono::milliseconds wait) { return keep(permit(wait)); }

    // If there is no memory to keep it, it is released again.
    bool keep(Lease lease) {
        if (lease.status() != Status::Ok) {
            return false;
        }
        std::lock_guard<std::mutex> here(state_);
        held_.push_back(std::move(lease));
        return true;
    }

    detail::EnginePtr engine_;
    const std::string resource_;
    const std::int32_t permits_;
    const std::chrono::milliseconds ttl_;
    bool keeps_ = false;

    mutable std::mutex state_; // guards what follows; never held while the servers are asked
    std::deque<Lease> held_;
    Status status_ = Status::Ok;
    std::string message_;
};

} // namespace redlock

#undef REDLOCK_HPP_NODISCARD

#endif // REDLOCK_HPP

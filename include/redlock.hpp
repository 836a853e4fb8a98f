/*
 * redlock for C++11 and later: the C interface of redlock.h as values that clean up after themselves.
 * Header only; link with -lredlock.
 *
 *     redlock::Manager servers{"redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"};
 *     redlock::Mutex mutex(servers, "invoice:42", std::chrono::seconds(10));
 *     {
 *         std::lock_guard<redlock::Mutex> guard(mutex);
 *         send_invoice(42);
 *     }
 *
 * There are two ways to hold a lock:
 *  - redlock::Mutex works with std::lock_guard, std::unique_lock and std::scoped_lock.
 *  - redlock::Lease, which Manager::lock and Manager::try_lock return, is its own guard.
 * For a lock that several holders can share, use redlock::SharedMutex, which also works with
 * std::shared_lock, or a Lease from Manager::lock_shared or Manager::try_lock_shared.
 *
 * Conventions:
 *  - A lock in Redis is a lease: it expires by itself after its TTL, even while a guard is still in
 *    scope. Work that may take longer must extend the lock, and must call confirm() before a step that
 *    cannot be undone.
 *  - Times are std::chrono durations; the library counts in milliseconds.
 *  - A function named for a question or a try returns false on an ordinary outcome (a positive status,
 *    such as Status::Taken). Any other function throws redlock::Error if it did not do what its name
 *    says. A fault of the call (a negative status) always throws.
 *  - Destructors, unlock() and release() never throw.
 *  - Names are byte strings. A name that contains a NUL is refused, because C would see only the part
 *    before the NUL.
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
#include <map>
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

// The interface version that this file needs. Below 1.0 the interface may change with the second number.
#define REDLOCK_HPP_FOR "0.3"
#if REDLOCK_VERSION_MAJOR != 0 || REDLOCK_VERSION_MINOR != 3
#error "this redlock.hpp is for redlock 0.3, and the redlock.h that was found is of another version"
#endif

#if __cplusplus >= 201703L
#define REDLOCK_HPP_NODISCARD [[nodiscard]]
#else
#define REDLOCK_HPP_NODISCARD
#endif

namespace redlock {

/** The outcomes of redlock.h, each with the value of its REDLOCK_... name. A library newer than this
 * header may return other values: treat them as their sign says. */
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

/** The name of the status in redlock.h, such as "REDLOCK_TAKEN". The string stays valid forever. */
inline const char *name(Status status) noexcept {
    return RedLockStatus_Name(static_cast<std::int32_t>(status));
}

/** How the manager guards against servers that lose their memory, for example in a restart without their
 * data. */
enum class RestartGuard : std::int32_t {
    /** Such servers have no vote until the locks that they may have forgotten have ended. The default. */
    On = REDLOCK_GUARD_ON,
    /** As On, but servers that seem to be new also have no vote at first. */
    Strict = REDLOCK_GUARD_STRICT,
    /** Every server that can be reached has a vote. */
    Off = REDLOCK_GUARD_OFF,
    /** As Off, because the program vouches that no server ever forgets what it granted. */
    Durable = REDLOCK_GUARD_DURABLE
};

/** Which events of locks a logger receives. */
enum class Trace : std::int32_t {
    /** None. The default. */
    Off = REDLOCK_TRACE_OFF,
    /** The events of locks, without names. */
    Events = REDLOCK_TRACE_EVENTS,
    /** The events of locks, with resource names. */
    Resources = REDLOCK_TRACE_RESOURCES
};

/** Whether the same call may succeed a little later without any change. */
inline bool is_retriable(Status status) noexcept {
    return RedLockStatus_IsRetriable(static_cast<std::int32_t>(status));
}

/** The exception that the functions below throw. what() is the name of the status and the library's
 * message, which names the servers and counts the votes. It contains no token and no password. */
class Error : public std::runtime_error {
public:
    Error(Status status, const std::string &words)
        : std::runtime_error(words.empty() ? name(status) : name(status) + (": " + words)),
          status_(status) {}

    Status status() const noexcept { return status_; }

private:
    Status status_;
};

/** A function that a Manager calls with log lines. The level is 1 for a server fault, 2 for a repaired
 * fault or another notable fact, and 3 for an event of a lock (Manager::set_tracing). The message is one
 * line of text. See Manager::set_logger. */
using Logger = std::function<void(int level, const char *message)>;

/** A function that a Manager calls to get the password for a server. Its argument is the server as
 * messages name it, such as "10.0.0.7:6379". An empty result, or an exception, says that there is no
 * password now. See Manager::set_password_callback. */
using PasswordCallback = std::function<std::string(const std::string &server)>;

namespace detail {

using Milliseconds = std::chrono::milliseconds;

inline bool is_fault(Status status) noexcept { return static_cast<std::int32_t>(status) < 0; }

inline Status status_of(RedLockStatus status) noexcept { return static_cast<Status>(status); }

// C would silently lock, or connect to, the part before the NUL.
inline const std::string &without_nul(const std::string &text, const char *what) {
    if (text.find('\0') != std::string::npos) {
        throw Error(Status::InvalidArgument, std::string(what) + " contains a NUL byte");
    }
    return text;
}

// Several resources in the form that C takes.
class Names {
public:
    explicit Names(const std::vector<std::string> &names) {
        if (names.empty()) {
            throw Error(Status::InvalidArgument, "resources is empty: give at least one name");
        }
        for (const std::string &name : names) {
            texts_.push_back(without_nul(name, "resource").c_str());
        }
    }

    // Valid as long as the names are. `tries` 0: `wait` applies.
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

// What {"a", "b"} is where a function takes several texts, or says that it takes one: as a std::string it would
// be made of two pointers that have nothing to do with each other.
using Several = std::initializer_list<std::string>;

// Passes an empty string to C as NULL.
inline const char *or_null(const std::string &text) noexcept {
    return text.empty() ? nullptr : text.c_str();
}

// A time to wait, in whole milliseconds. It is rounded up, is never negative (which would mean without
// limit), and is at most ten years, so that no clock overflows.
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

// Maps the leases of locks that are kept alive to the flags that are set when such a lock cannot be kept.
// The library's thread uses this.
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
    // Removes the entries whose flag is gone, before there are too many.
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

// Why servers have no password, for the logger: C is told nothing except that there is none.
class Refusals {
public:
    void add(const std::string &server, const std::string &why) {
        const std::lock_guard<std::mutex> here(mutex_);
        why_[server] = why;
    }

    std::map<std::string, std::string> take() {
        const std::lock_guard<std::mutex> here(mutex_);
        std::map<std::string, std::string> taken;
        taken.swap(why_);
        return taken;
    }

private:
    std::mutex mutex_;
    std::map<std::string, std::string> why_; // at most one for each server
};

// What the exception says that is being handled.
inline std::string words_of_exception() {
    try {
        throw;
    } catch (const std::exception &error) {
        return error.what();
    } catch (...) {
        return "an exception that is not a std::exception";
    }
}

// Calls a function of the program. No exception may pass through the frames of C further up the stack.
template <class Call, class Told>
void outside(const Call &call, const Told &told) noexcept {
    try {
        try {
            call();
        } catch (...) {
            told(words_of_exception());
        }
    } catch (...) {
        // It cannot be told, either.
    }
}

// A logger, or a password callback, as the library keeps it.
template <class Callback>
struct Kept {
    Callback callback;
    std::shared_ptr<Refusals> refusals;
};

// The library that runs may be of another version than redlock.h. Then its functions may take other arguments.
inline void refuse_another_version() {
    const std::string version(RedLock_Version());
    const std::string ours(REDLOCK_HPP_FOR ".");
    if (version.compare(0, ours.size(), ours) != 0) {
        throw Error(Status::Internal,
                    "the library is redlock " + version + ", and this redlock.hpp is for " REDLOCK_HPP_FOR);
    }
}

// The C manager. The Manager and every Lease and Mutex made with it share this object, so that none of
// them has to outlive another.
class Engine {
public:
    Engine() : rl_(nullptr) {
        refuse_another_version();
        rl_ = RedLock_New();
        if (rl_ == nullptr) {
            throw std::bad_alloc();
        }
        RedLock_SetLanguage(rl_, REDLOCK_LANGUAGE_CPP);
    }
    Engine(const Engine &) = delete;
    Engine &operator=(const Engine &) = delete;
    ~Engine() { RedLock_Free(rl_); }

    RedLock *get() const noexcept { return rl_; }

    void note_drift(double factor) noexcept { drift_.store(factor); }

    void note_tries(int tries) noexcept { tries_.store(tries); }
    int tries() const noexcept { return tries_.load(); }

    // The TTL that gives a lock this validity. It adds the allowance for drift, 2 ms for the precision of
    // expiry, and a rounding.
    Milliseconds ttl_for(Milliseconds validity) const noexcept {
        const double ttl = static_cast<double>(validity.count() + 3) / (1.0 - drift_.load());
        // This is more than the maximum TTL, and the library refuses it.
        return Milliseconds(ttl < 1e15 ? static_cast<std::int64_t>(ttl) + 1 : 1000000000000000);
    }

    // The library destroys each logger when no call can use it any more.
    Status set_logger(Logger logger) {
        if (!logger) {
            return status_of(RedLock_SetLogger(rl_, nullptr, nullptr, nullptr));
        }
        return status_of(RedLock_SetLogger(rl_, &Engine::tell, kept(std::move(logger)),
                                           &Engine::destroy<Kept<Logger>>));
    }

    Status set_password_callback(const char *user, PasswordCallback callback) {
        if (!callback) {
            return status_of(RedLock_SetPasswordCallback(rl_, user, nullptr, nullptr, nullptr));
        }
        return status_of(RedLock_SetPasswordCallback(rl_, user, &Engine::ask, kept(std::move(callback)),
                                                     &Engine::destroy<Kept<PasswordCallback>>));
    }

    // Sets `lost` when the lock of the lease cannot be kept alive. Keeping a lock alive needs a thread
    // that drives the library: the library's own thread.
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

    template <class Callback>
    void *kept(Callback callback) {
        return new Kept<Callback>{std::move(callback), refusals_};
    }

    static void tell(std::int32_t level, const char *message, void *kept) {
        const Kept<Logger> &it = *static_cast<Kept<Logger> *>(kept);
        outside(
            [&] {
                for (const auto &refusal : it.refusals->take()) {
                    const std::string &server = refusal.first;
                    say(it.callback, 1, ("no password for " + server + ": " + refusal.second).c_str());
                }
            },
            [](const std::string &) {});
        say(it.callback, level, message);
    }

    // A logger that throws is told so, once for each line.
    static void say(const Logger &logger, std::int32_t level, const char *message) noexcept {
        outside([&] { logger(static_cast<int>(level), message); },
                [&](const std::string &words) {
                    logger(1, ("the logger failed: " + words).c_str());
                });
    }

    static bool ask(const char *server, char *password, std::size_t size, void *kept) {
        const Kept<PasswordCallback> &it = *static_cast<Kept<PasswordCallback> *>(kept);
        bool is_given = false;
        outside(
            [&] {
                const std::string answer = it.callback(server);
                if (answer.size() >= size || answer.find('\0') != std::string::npos) {
                    throw std::length_error("the password is too long or contains a NUL byte");
                }
                password[answer.copy(password, size - 1)] = '\0';
                is_given = !answer.empty();
            },
            [&](const std::string &words) { it.refusals->add(server, words); });
        return is_given;
    }

    template <class Callback>
    static void destroy(void *callback) {
        delete static_cast<Callback *>(callback);
    }

    // Before rl_, which nobody would free if this one threw.
    const std::shared_ptr<Refusals> refusals_ = std::make_shared<Refusals>();
    RedLock *rl_;
    std::atomic<double> drift_{0.01};
    std::atomic<int> tries_{3};
    std::mutex mutex_; // guards the members below
    std::shared_ptr<Watches> watches_;
};

using EnginePtr = std::shared_ptr<Engine>;

// The threads that wait for one object, in the order in which they came. The object's mutex guards it.
class Line {
public:
    Line() noexcept {}
    Line(const Line &) = delete;
    Line &operator=(const Line &) = delete;

    // A place in the line, on the stack of the thread that waits.
    struct Place {
        std::condition_variable called;
        bool is_called = false;
        Place *next = nullptr;
    };

    // Waits until next() calls this thread, or until that time has passed. Negative: without limit. Returns
    // whether it was called.
    bool wait(std::unique_lock<std::mutex> &here, Milliseconds wait) {
        Place place;
        *end_ = &place;
        end_ = &place.next;
        const auto is_called = [&place] { return place.is_called; };
        if (wait < Milliseconds::zero()) {
            place.called.wait(here, is_called);
        } else if (!place.called.wait_for(here, wait, is_called)) {
            Place **it = &first_;
            while (*it != &place) {
                it = &(*it)->next;
            }
            leave(it);
        }
        return place.is_called;
    }

    // Calls the first thread, and takes it out of the line. Returns whether there is one.
    bool next() noexcept {
        Place *const place = first_;
        if (place == nullptr) {
            return false;
        }
        leave(&first_);
        place->is_called = true;
        place->called.notify_one(); // the mutex is locked, so the place is still there
        return true;
    }

private:
    // Takes the place out of the line that this pointer, which is in the line, points to.
    void leave(Place **it) noexcept {
        Place *const place = *it;
        *it = place->next;
        if (end_ == &place->next) {
            end_ = it;
        }
    }

    Place *first_ = nullptr;
    Place **end_ = &first_; // where the next one is put
};

#ifdef __cpp_lib_jthread
// Makes a call on the lease, and cancels the call when a stop is requested. A call that has not begun
// cannot be cancelled, so the cancellation is repeated until the call has ended.
template <class Call>
RedLockStatus until_stopped(RedLock *rl, RedLockLease *lease, const std::stop_token &token,
                            const Call &call) {
    std::atomic<bool> over{false};
    bool stopped_before = false;
    const std::thread::id here = std::this_thread::get_id();
    const std::stop_callback stop(token, [&] {
        if (std::this_thread::get_id() == here) {
            stopped_before = true; // the stop was requested before this call began
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

/** One lock, held or not, and its guard: the destructor releases the lock if it is held. Move-only.
 *
 * A Lease may outlive its Manager. Any thread may use it, but only one at a time. After fork, the
 * child's copy holds nothing: its destructor does not release the parent's lock. */
class Lease {
public:
    /** Holds nothing. */
    Lease() noexcept {}

    Lease(Lease &&other) noexcept
        : engine_(std::move(other.engine_)), handle_(std::move(other.handle_)),
          status_(other.status_), armed_(other.armed_), lost_(std::move(other.lost_)) {
        other.forget();
    }

    /** First releases the lock that this lease holds. */
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

    /** Releases the lock. One round trip if the lease holds a lock. The destructor does not report the
     * result: call release() if you need it. */
    ~Lease() { release_if_armed(); }

    /** Whether the lock is held and valid now, by this machine's clock. No I/O. */
    bool held() const noexcept { return RedLockLease_IsHeld(handle_.get()); }
    explicit operator bool() const noexcept { return held(); }

    /** How long the lock is valid from now on; zero if it is not held. No I/O. */
    std::chrono::milliseconds remaining() const noexcept {
        return std::chrono::milliseconds(RedLockLease_RemainingMs(handle_.get()));
    }

    /** How long the lock was valid when it was granted or last extended; does not count down. No I/O. */
    std::chrono::milliseconds validity() const noexcept {
        return std::chrono::milliseconds(RedLockLease_ValidityMs(handle_.get()));
    }

    /** The resource that was locked or requested; the first of several; empty for a lease that was never
     * used. */
    std::string resource() const { return RedLockLease_Resource(handle_.get()); }

    /** All of these resources, in the order in which they were given. */
    std::vector<std::string> resources() const {
        std::vector<std::string> names;
        for (std::size_t i = 0; i < RedLockLease_ResourceCount(handle_.get()); i++) {
            names.push_back(RedLockLease_ResourceAt(handle_.get(), i));
        }
        return names;
    }

    /** The secret that the servers store as the value of the key; empty if nothing is held. Anybody who
     * knows it can release the lock. */
    std::string token() const { return RedLockLease_Token(handle_.get()); }

    /** The number to pass with each write to the system that the lock protects. That system can then
     * refuse a number that is less than the greatest it has seen; see Manager::set_fencing. The number
     * does not change when the lock is extended. It stays available when the lock has expired or was
     * lost, until it is released. Above 0 and below 2^53; 0 if the lock has none. No I/O. */
    std::int64_t fencing_token() const noexcept { return RedLockLease_FencingToken(handle_.get()); }

    /** The status of the last call that asked the servers, and the library's message for it: which server
     * gave which answer. After Status::Ok the message names the servers that could not take part, and is
     * empty if all could. */
    Status status() const noexcept { return status_; }
    std::string message() const {
        return handle_ ? RedLockLease_ErrorMessage(handle_.get()) : "the lease never held a lock";
    }

    /** Makes the lock last for `ttl`, counted from now, with the same token. One round, no retries. This
     * never shortens the lock: if it lasts longer than that, it is unchanged, and the call is a success.
     *
     * Returns false if this failed. status() is then Status::Lost if the lock is gone, or
     * Status::Unreachable if too few servers answered. In the second case a valid lock stays valid until
     * its old expiry; see remaining(). Throws Error for a fault of the call. */
    REDLOCK_HPP_NODISCARD bool extend(std::chrono::milliseconds ttl) {
        return settle(handle_ ? RedLock_Extend(native(), handle_.get(), ttl.count())
                              : REDLOCK_LOST);
    }

    /** Extends the lock so that it is valid for `more` longer than now. The new validity is the remaining
     * validity plus `more`, which must be more than zero. Returns and throws like extend. */
    REDLOCK_HPP_NODISCARD bool extend_by(std::chrono::milliseconds more) {
        if (more <= std::chrono::milliseconds::zero()) {
            status_ = Status::InvalidArgument;
            throw Error(status_, "more must be more than 0");
        }
        if (!engine_ || !held()) {
            // The library gives the reason.
            return extend(more);
        }
        const std::chrono::milliseconds left = remaining();
        const std::chrono::milliseconds most((std::numeric_limits<std::int64_t>::max)() / 4);
        return extend(engine_->ttl_for(left + (std::min)(more, most)));
    }

    /** Keeps the lock alive until it is released: the lock is extended in the background. This needs a
     * thread, the only one that the library ever starts, and this function requests it
     * (Manager::set_background_thread). If the lock cannot be kept alive, lost() becomes true while at
     * least a tenth of the TTL is left. A lock is no longer kept alive when it is released or its lease
     * is gone.
     *
     * Returns false if the lock is not held. Throws Error for a fault of the call. */
    REDLOCK_HPP_NODISCARD bool keep_alive() {
        if (!handle_) {
            status_ = Status::Lost;
            return false;
        }
        std::string words;
        if (detail::is_fault(keep(words))) {
            throw Error(status_, words);
        }
        return status_ == Status::Ok;
    }

    /** Whether a lock that is kept alive can no longer be kept: stop the work within remaining(). Another
     * thread sets this flag, and it stays set until the next keep_alive(). No I/O. */
    bool lost() const noexcept { return lost_ && lost_->load(std::memory_order_acquire); }

    /** Whether others can hold the lock at the same time. No I/O. */
    bool shared() const noexcept { return RedLockLease_Mode(handle_.get()) == REDLOCK_SHARED; }

    /** Makes an exclusive lock shared. The holder continues as a reader, and no other client can have
     * held the lock exclusively in between. The reverse is not possible.
     *
     * Returns false if this failed. status() is then Status::Lost if the lock is gone, or
     * Status::Unreachable if too few servers answered. In the second case the lock is still held, as a
     * shared lock if shared() says so, and the caller may call this function again. Throws Error for a
     * fault of the call. */
    REDLOCK_HPP_NODISCARD bool downgrade() {
        return settle(handle_ ? RedLock_Downgrade(native(), handle_.get()) : REDLOCK_LOST);
    }

    /** Asks the servers whether this lease still holds its lock on a quorum, for at least that long. Use
     * this right before a step that cannot be undone. It changes nothing on the servers. Afterwards, the
     * lease is valid no longer than a quorum of the servers that answered has the lock.
     *
     * Returns false if the lock is not held (Status::Lost), is not held for that long
     * (Status::TooShort), or too few servers answered (Status::Unreachable). Throws Error for a fault of
     * the call. */
    REDLOCK_HPP_NODISCARD bool
    confirm(std::chrono::milliseconds least = std::chrono::milliseconds::zero()) {
        return settle(handle_ ? RedLock_Confirm(native(), handle_.get(), least.count())
                              : REDLOCK_LOST);
    }

    /** Gives the lock away and returns a ticket. Another process, or another Manager, takes the lock over
     * by passing the ticket to Manager::adopt. This lease then holds nothing, and releases nothing. The
     * ticket is as secret as the token. No I/O. See RedLock_Detach. Throws Error, with Status::Lost if
     * nothing is held. */
    REDLOCK_HPP_NODISCARD std::string detach() {
        if (!handle_) {
            status_ = Status::Lost;
            throw Error(status_, message());
        }
        // The memory is allocated before the lock is given away.
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

    /** Adds a level to a held lock: one more release() is then needed to release it. This is for code
     * that calls other code with the same Lease. The destructor leaves all levels. No I/O. See
     * RedLock_Retain. For a lock that a thread takes again, see RecursiveMutex.
     *
     * Returns false if the lock is not held (Status::Lost). Throws Error for a fault of the call. */
    REDLOCK_HPP_NODISCARD bool retain() {
        return settle(handle_ ? RedLock_Retain(handle_.get()) : REDLOCK_LOST);
    }

    /** How many release() calls are needed to release the lock: 1 without retain(); 0 if the lease holds
     * nothing. No I/O. */
    int levels() const noexcept { return RedLockLease_Levels(handle_.get()); }

    /** Releases the lock now instead of in the destructor, and returns the result. Status::Ok: released.
     * Status::Lost: there was nothing left to release, so others may have held the lock meanwhile.
     * Status::Unreachable: the release did not reach enough servers. The caller may call this function
     * again; otherwise the lock expires after its TTL. A negative status: a fault of the call. Never
     * throws. After retain() this function leaves one level, and asks no server. */
    Status release() noexcept {
        armed_ = armed_ && levels() > 1;
        status_ = handle_ ? detail::status_of(RedLock_Unlock(native(), handle_.get()))
                          : Status::Lost;
        return status_;
    }

    /** Releases the lock, but keeps others out until `least` after it was taken: its keys are not deleted,
     * and end then. For a job that must run once in a fleet of machines whose clocks differ. Returns what
     * release() returns, and Status::InvalidArgument if `least` is longer than the TTL, or if the lock is
     * shared or a permit: it is still held then. Never throws. */
    Status release_after(std::chrono::milliseconds least) noexcept {
        status_ = handle_ ? detail::status_of(RedLock_UnlockAfter(native(), handle_.get(), least.count()))
                          : Status::Lost;
        armed_ = armed_ && held();
        return status_;
    }

    /** For functions of redlock.h that have no counterpart here. NULL for a lease that was never used.
     * The handle still belongs to this object. */
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

    // Takes a shared lock. `tries` applies if it is more than 0, otherwise `wait` applies.
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

    // A lock that has expired is released, too: its keys may exist a little longer than the lock is
    // valid. A lock that was already released is not released again.
    void release_if_armed() noexcept {
        while (armed_ && !detail::is_fault(release())) {
        }
    }

    void forget() noexcept {
        armed_ = false;
        status_ = Status::Lost;
    }

    // Keeps the lock alive. From now on lost() is true when the library reports that it cannot do so.
    Status keep(std::string &words) {
        lost_ = std::make_shared<std::atomic<bool>>(false);
        status_ = engine_->watch(handle_.get(), lost_);
        if (status_ != Status::Ok) {
            words = std::string("the lock could not be kept alive: ") + RedLock_ErrorMessage(native());
            return status_;
        }
        status_ = detail::status_of(RedLock_KeepAlive(native(), handle_.get(), nullptr));
        words = message();
        return status_;
    }

    // After take: keeps the lock alive if it was taken and that is wanted. The status is that of both.
    Status keep_if(bool is_wanted, std::string &words) {
        if (is_wanted && status_ == Status::Ok) {
            return keep(words);
        }
        words = message();
        return status_;
    }

    RedLock *native() const noexcept { return detail::native(engine_); }

    detail::EnginePtr engine_;
    std::unique_ptr<RedLockLease, Free> handle_;
    Status status_ = Status::Lost;
    bool armed_ = false;
    std::shared_ptr<std::atomic<bool>> lost_;
};

/** The servers and the settings. Move-only. Any number of threads may lock through one Manager at once,
 * and they share its connections. Make the settings before the first lock.
 *
 * The connections are closed when the Manager and every Lease and Mutex made with it are gone. */
class Manager {
public:
    /** Without servers and with the default settings. Throws Error if the library that runs is of another
     * interface version than this header. */
    Manager() : engine_(std::make_shared<detail::Engine>()) {}

    /** With the servers at these URLs, as by add_server(url). */
    Manager(std::initializer_list<std::string> urls) : Manager() {
        for (const std::string &url : urls) {
            add_server(url);
        }
    }
    // Otherwise the inner braces would make one std::string of two pointers.
    Manager(std::initializer_list<std::initializer_list<const char *>> lists) : Manager() {
        for (const std::initializer_list<const char *> &urls : lists) {
            for (const char *url : urls) {
                add_server(url);
            }
        }
    }

    Manager(Manager &&) noexcept = default;
    Manager &operator=(Manager &&) noexcept = default;
    Manager(const Manager &) = delete;
    Manager &operator=(const Manager &) = delete;

    /** Adds a server: a host name or an address and a port (1 to 65535), or a URL. redlock.h
     * (RedLock_AddServerUrl) lists the forms of a URL. The quorum is more than half of the servers
     * added, including servers that are down. No I/O.
     *
     * Throws Error with Status::InvalidArgument if the server is malformed, was added before, or a lock
     * was already requested. */
    Manager &add_server(const std::string &host, int port) {
        const char *text = detail::without_nul(host, "host").c_str();
        return settle(RedLock_AddServerUrl(native(), text, port));
    }
    Manager &add_server(const std::string &url) {
        const char *text = detail::without_nul(url, "url").c_str();
        return settle(RedLock_AddServerUrl(native(), text, 0));
    }
    /** One call adds one server. */
    Manager &add_server(detail::Several urls) = delete;

    /** The total number of tries of lock() (at least 1; default 3), and the mean pause between two tries
     * of any call that waits (default 200 ms). Throws Error if out of range. */
    Manager &set_retry(int tries, std::chrono::milliseconds delay) {
        if (delay.count() < INT_MIN || delay.count() > INT_MAX) {
            throw Error(Status::InvalidArgument, "delay is too long");
        }
        settle(RedLock_SetRetry(native(), tries, static_cast<int>(delay.count())));
        engine_->note_tries(tries);
        return *this;
    }

    /** The timeouts for a server: for connecting (default 1500 ms), and for a reply (default zero: a
     * twentieth of the TTL, at least 25 and at most 500 ms). Throws Error if out of range. */
    Manager &set_timeouts(std::chrono::milliseconds connect, std::chrono::milliseconds reply) {
        return settle(RedLock_SetTimeouts(native(), connect.count(), reply.count()));
    }

    /** How much faster a server's clock may run than this machine's: at least 0, less than 1; default
     * 0.01. Throws Error if out of range. */
    Manager &set_clock_drift_factor(double factor) {
        settle(RedLock_SetClockDriftFactor(native(), factor));
        engine_->note_drift(factor);
        return *this;
    }

    /** How the manager guards against servers that lose their memory; redlock.h (RedLock_SetRestartGuard)
     * gives the details. `longest_ttl` is the longest TTL that any client uses on these servers; zero,
     * the default: the TTL that is noted on the servers. `cap` is the longest time that a server stays
     * without a vote; zero, the default: ten minutes. Applies to connections made later. Throws Error if
     * out of range. */
    Manager &
    set_restart_guard(RestartGuard mode,
                      std::chrono::milliseconds longest_ttl = std::chrono::milliseconds::zero(),
                      std::chrono::milliseconds cap = std::chrono::milliseconds::zero()) {
        return settle(RedLock_SetRestartGuard(native(), static_cast<std::int32_t>(mode),
                                              longest_ttl.count(), cap.count()));
    }

    /** Whether a master that Sentinels watch has a vote only while a majority of all its Sentinels names it
     * as the master. So an old master that was paused or cut off while another one was elected never
     * votes. Default: true. If false, an old master may vote beside its successor, and two clients may
     * hold one lock. Applies to connections made later. redlock.h (RedLock_SetFailoverGuard) gives the
     * details. */
    Manager &set_failover_guard(bool enabled) {
        return settle(RedLock_SetFailoverGuard(native(), enabled));
    }

    /** Whether locks that are taken from now on have a fencing token: a number that is greater than the
     * numbers of all earlier locks of the same resource, see Lease::fencing_token. Default: no token.
     * All clients that lock the resource must set this. redlock.h (RedLock_SetFencing) lists the
     * requirements. */
    Manager &set_fencing(bool enabled) { return settle(RedLock_SetFencing(native(), enabled)); }
    /** Whether waiting calls are woken when another process releases the lock, and whether releases wake
     * waiting clients. Default: true. If false, waiting calls ask the servers now and then. Set this
     * before the first lock. */
    Manager &set_waking(bool enabled) { return settle(RedLock_SetWaking(native(), enabled)); }

    /** Sets a function that is called when servers are lost, refuse or come back. An empty function, the
     * default, means no logger. The logger is called at the end of calls to this library, on the thread
     * that made the call, and at once on the library's own thread (set_background_thread), which locks that
     * are kept alive need. It is called with nothing held, and by one thread at a time. An exception that it throws harms
     * no call and ends there: the logger gets one more line, at level 1, that reports it. It may be replaced
     * at any time, and is destroyed when no call can use it any more. In a forked child, a logger that the
     * parent set is not destroyed. */
    Manager &set_logger(Logger logger) {
        return settle(engine_ ? engine_->set_logger(std::move(logger))
                              : Status::InvalidArgument);
    }

    /** Sets the user and the password for servers whose URLs name none. Without a user, the default user
     * is meant. Without a password, the user needs none. Without both, there is no log-in, which is the
     * default. Nothing needs to be escaped here. Throws Error if one of them cannot be used. */
    Manager &set_credentials(const std::string &user, const std::string &password) {
        detail::without_nul(user, "user");
        detail::without_nul(password, "password");
        return settle(RedLock_SetCredentials(native(), detail::or_null(user),
                                             detail::or_null(password)));
    }

    /** Sets the user and the password from the current values of these environment variables, as
     * set_credentials does. An empty name for the user's variable means the default user. Throws Error
     * if a variable is not set, or empty. */
    Manager &set_credentials_from_env(const std::string &user_variable,
                                      const std::string &password_variable) {
        detail::without_nul(user_variable, "user_variable");
        detail::without_nul(password_variable, "password_variable");
        return settle(RedLock_SetCredentialsFromEnv(native(), detail::or_null(user_variable),
                                                    detail::or_null(password_variable)));
    }

    /** Sets a function that provides the password for each server whose URL names none. It is called when
     * the library connects to a server for the first time, and again when the server did not accept the
     * last answer. It is called on the thread whose call connects, and by several threads at once for
     * several servers, so it should be quick. It must not use this Manager. An exception that it throws
     * says that there is no password now, and the logger is told of it. The function is then called again
     * after one second at the earliest. An empty function: nobody is asked.
     *
     * It may be replaced at any time, and is destroyed as a logger is. Throws Error if the user cannot
     * be used. Without a user, the default user is meant. */
    Manager &set_password_callback(const std::string &user, PasswordCallback callback) {
        detail::without_nul(user, "user");
        return settle(engine_ ? engine_->set_password_callback(detail::or_null(user),
                                                               std::move(callback))
                              : Status::InvalidArgument);
    }
    Manager &set_password_callback(PasswordCallback callback) {
        return set_password_callback(std::string(), std::move(callback));
    }

    /** Sets the authorities that must have signed the certificates of rediss:// servers: only those in
     * this PEM file, which is read now. An empty name, the default, means the authorities that the
     * system trusts. This and the other TLS settings apply to connections made later. They throw Error
     * if a file cannot be used, or if the library was built without TLS. */
    Manager &set_tls_ca(const std::string &ca_file) {
        detail::without_nul(ca_file, "ca_file");
        return settle(RedLock_SetTlsCa(native(), detail::or_null(ca_file)));
    }

    /** Sets the client certificate for rediss:// servers that ask for one. The first PEM file contains
     * the client certificate, followed by the certificates that lead up to one that the servers trust.
     * The second PEM file contains its key, not encrypted. Both are read now. Empty names, the default:
     * no certificate. */
    Manager &set_tls_certificate(const std::string &certificate_file, const std::string &key_file) {
        detail::without_nul(certificate_file, "certificate_file");
        detail::without_nul(key_file, "key_file");
        return settle(RedLock_SetTlsCertificate(native(), detail::or_null(certificate_file),
                                                detail::or_null(key_file)));
    }

    /** Sets the name that the certificates of rediss:// servers must be for, where this name is not the
     * host in their URLs. Empty, the default: the name is the host. */
    Manager &set_tls_server_name(const std::string &name) {
        detail::without_nul(name, "name");
        return settle(RedLock_SetTlsServerName(native(), detail::or_null(name)));
    }

    /** Whether rediss:// servers are accepted without verification. Then each server is believed to be
     * the server that it claims to be, without any proof. Anybody on the network path to the servers can
     * then read everything and answer in their place. Use this only for experiments. */
    Manager &set_tls_insecure_skip_verify(bool skip) {
        return settle(RedLock_SetTlsInsecureSkipVerify(native(), skip));
    }

    /** Whether the manager has a thread of its own, which keeps locks alive while no other thread is in a
     * call (Lease::keep_alive). Without it, the default, no thread is ever started. With false, this
     * call waits until the thread has ended. */
    Manager &set_background_thread(bool background) {
        return settle(RedLock_SetBackgroundThread(native(), background));
    }

    /** Connects now instead of at the first lock. Optional. Waits at most `timeout`, or, if `timeout` is
     * zero, as long as connecting may take. Returns when a quorum is connected; message() then names the
     * servers that are not connected. Throws Error, with Status::Unreachable if there is no quorum. */
    void connect(std::chrono::milliseconds timeout = std::chrono::milliseconds::zero()) {
        settle(RedLock_Connect(native(), timeout.count()));
    }

    /** Looks up the names of servers that may have moved: those that have been unreachable for 2 s. Without
     * that, a server that is down while a quorum is up is not followed to its new address. Waits for the
     * system's resolver, and holds up no other call. A manager with a background thread does this by itself.
     * Throws Error if no server was added. */
    void look_up() { settle(RedLock_LookUp(native())); }

    /** Whether look_up() would ask the resolver now, for a call that is under way or a lock that is kept. */
    bool is_look_up_due() noexcept { return RedLock_IsLookUpDue(native()); }

    /** Takes a lock, and tries as often as set_retry says. `resource` is the name of the key on the
     * servers, 1 to 65536 bytes. `ttl` is how long the lock lasts unless it is extended or released, at
     * least 4 ms with the default drift.
     *
     * Returns a lease that holds the lock. Throws Error if the lock was not taken, also for
     * Status::Taken. Nothing stays locked then. */
    REDLOCK_HPP_NODISCARD Lease lock(const std::string &resource, std::chrono::milliseconds ttl) {
        const char *text = detail::without_nul(resource, "resource").c_str();
        Lease lease(engine_);
        const Status status = lease.take([&](RedLock *rl, RedLockLease *handle) {
            return RedLock_Lock(rl, text, ttl.count(), handle);
        });
        if (status != Status::Ok) {
            throw Error(status, lease.message());
        }
        return lease;
    }
    /** lock({"a", "b"}, ttl) is lock_all. */
    REDLOCK_HPP_NODISCARD Lease lock(detail::Several resources, std::chrono::milliseconds ttl) {
        return lock_all(resources, ttl);
    }

    /** Takes a lock, and tries for a time instead of a number of times. `wait` zero: one attempt. More:
     * try until this time has passed. Less: try until the lock is taken.
     *
     * Returns a lease, which is true if it holds the lock. Otherwise its status() and message() give the
     * reason. Throws Error for a fault of the call. */
    REDLOCK_HPP_NODISCARD Lease
    try_lock(const std::string &resource, std::chrono::milliseconds ttl,
             std::chrono::milliseconds wait = std::chrono::milliseconds::zero()) {
        const char *text = detail::without_nul(resource, "resource").c_str();
        Lease lease(engine_);
        const Status status = lease.take([&](RedLock *rl, RedLockLease *handle) {
            return RedLock_TryLock(rl, text, ttl.count(), wait.count(), handle);
        });
        if (detail::is_fault(status)) {
            throw Error(status, lease.message());
        }
        return lease;
    }
    /** try_lock({"a", "b"}, ttl) is try_lock_all. */
    REDLOCK_HPP_NODISCARD Lease
    try_lock(detail::Several resources, std::chrono::milliseconds ttl,
             std::chrono::milliseconds wait = std::chrono::milliseconds::zero()) {
        return try_lock_all(resources, ttl, wait);
    }

#ifdef __cpp_lib_jthread
    /** As try_lock above, but a requested stop ends the wait. status() is then Status::Cancelled, and
     * nothing stays locked. The thread that requests the stop waits until this call has ended, which is
     * soon. */
    REDLOCK_HPP_NODISCARD Lease try_lock(const std::string &resource, std::chrono::milliseconds ttl,
                                         std::chrono::milliseconds wait,
                                         const std::stop_token &token) {
        const char *text = detail::without_nul(resource, "resource").c_str();
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
    /** Only a wait for one resource can be stopped. */
    Lease try_lock(detail::Several resources, std::chrono::milliseconds ttl,
                   std::chrono::milliseconds wait, const std::stop_token &token) = delete;
#endif

    /** As lock, but shared: other callers that want it shared can hold the lock at the same time, and no
     * caller can hold it exclusively. See REDLOCK_SHARED. */
    REDLOCK_HPP_NODISCARD Lease lock_shared(const std::string &resource,
                                            std::chrono::milliseconds ttl) {
        detail::without_nul(resource, "resource");
        Lease lease(engine_);
        const Status status =
            lease.take_shared(resource, ttl, tries(), std::chrono::milliseconds::zero());
        if (status != Status::Ok) {
            throw Error(status, lease.message());
        }
        return lease;
    }
    /** A shared lock is of one resource. */
    Lease lock_shared(detail::Several resources, std::chrono::milliseconds ttl) = delete;

    /** Takes several resources at once, all of them or none, as one lock: servers.lock_all({"a", "b"},
     * ttl). The lock has one token. It is extended and lost as a whole, and excludes every caller that
     * wants one of the resources. 1 to 128 different names in any order, 65536 bytes in total. Returns
     * and throws like lock. */
    REDLOCK_HPP_NODISCARD Lease lock_all(const std::vector<std::string> &resources,
                                         std::chrono::milliseconds ttl) {
        const detail::Names names(resources);
        Lease lease(engine_);
        const Status status = lease.take([&](RedLock *rl, RedLockLease *handle) {
            const RedLockAcquireOptions options =
                names.options(ttl, detail::Milliseconds::zero(), tries());
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
        detail::without_nul(resource, "resource");
        Lease lease(engine_);
        const Status status = lease.take_shared(resource, ttl, 0, wait);
        if (detail::is_fault(status)) {
            throw Error(status, lease.message());
        }
        return lease;
    }
    /** A shared lock is of one resource. */
    Lease try_lock_shared(
        detail::Several resources, std::chrono::milliseconds ttl,
        std::chrono::milliseconds wait = std::chrono::milliseconds::zero()) = delete;

    /** As lock_all, but tries for a time, as try_lock does. The message tells by its number which
     * resource was in the way. */
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

    /** Takes over a lock that was given away with Lease::detach, in this process or another. The servers
     * are asked whether the lock is there. Adopt a ticket only once: see RedLock_Adopt. Returns a lease
     * that holds the lock. Throws Error. Status::Lost: the lock has ended. Status::Unreachable: too few
     * servers answered, and the caller may try again. */
    REDLOCK_HPP_NODISCARD Lease adopt(const std::string &ticket) {
        const char *text = detail::without_nul(ticket, "ticket").c_str();
        Lease lease(engine_);
        const Status status = lease.take(
            [&](RedLock *rl, RedLockLease *handle) { return RedLock_Adopt(rl, text, handle); });
        if (status != Status::Ok) {
            throw Error(status, lease.message());
        }
        return lease;
    }

    /** Whether any client holds a resource, on a quorum. The answer may be out of date when it arrives:
     * to get a lock, take it without asking first. Throws Error, also for Status::Unreachable. */
    REDLOCK_HPP_NODISCARD bool is_locked(const std::string &resource) {
        const char *text = detail::without_nul(resource, "resource").c_str();
        bool locked = false;
        settle(RedLock_IsLocked(native(), text, &locked));
        return locked;
    }
    /** One call asks about one resource. */
    bool is_locked(detail::Several resources) = delete;

    /** As is_locked, and how long the resource is still held; see RedLock_Inspect and RedLockInfo. It
     * finds the locks of any client, and changes nothing. Throws Error, also for Status::Unreachable. */
    REDLOCK_HPP_NODISCARD RedLockInfo inspect(const std::string &resource) {
        detail::without_nul(resource, "resource");
        RedLockInfo info = REDLOCK_INFO_INIT;
        const Status status =
            detail::status_of(RedLock_Inspect(native(), resource.c_str(), 0, &info));
        if (status != Status::Ok) {
            throw Error(status, info.words);
        }
        return info;
    }
    /** One call asks about one resource. */
    RedLockInfo inspect(detail::Several resources) = delete;

    /** What is known of each server, in the order in which the servers were added: whether it is
     * connected and votes, if not, why not, and what it said about itself. No server is asked, and the
     * call does not wait. See RedLock_Servers. */
    std::vector<RedLockServerInfo> servers() {
        std::size_t count = 0;
        settle(RedLock_Servers(native(), nullptr, &count));
        const RedLockServerInfo first = REDLOCK_SERVER_INFO_INIT;
        std::vector<RedLockServerInfo> infos(count + 1, first);
        std::size_t room = infos.size();
        settle(RedLock_Servers(native(), infos.data(), &room));
        // Another thread may add servers meanwhile.
        infos.resize((std::min)(room, infos.size()));
        return infos;
    }

    /** The counters since the Manager was made: see RedLockStats. No server is asked, and the call does
     * not wait. */
    RedLockStats stats() {
        RedLockStats stats = REDLOCK_STATS_INIT;
        settle(RedLock_GetStats(native(), &stats));
        return stats;
    }

    /** The counters and the state of each server as text for Prometheus; content type "text/plain;
     * version=0.0.4". */
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

    /** Whether the logger receives the events of locks, at level 3: one line of key=value pairs for each
     * event. No line contains a resource name unless `trace` asks for it. Default: no events. See
     * RedLock_SetTracing. */
    Manager &set_tracing(Trace trace) {
        return settle(RedLock_SetTracing(native(), static_cast<std::int32_t>(trace)));
    }

    /** The message of the last call on this Manager that returned no lease; empty if there is nothing to
     * report. */
    std::string message() const { return RedLock_ErrorMessage(native()); }

    /** For functions of redlock.h that have no counterpart here. The handle still belongs to this object.
     */
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

    // Any number for a Manager that was moved from: its calls are refused.
    int tries() const noexcept { return engine_ ? engine_->tries() : 1; }

    detail::EnginePtr engine_;
};

/** Requests a Mutex that is kept alive while it is locked. */
struct KeepAlive {};
#if __cplusplus >= 201703L
inline constexpr KeepAlive keep_alive{};
#endif

/** One resource, or several, as a mutex that all programs with the same servers share. Like std::mutex,
 * it can be neither copied nor moved, and is not recursive; RecursiveMutex is. It may outlive its
 * Manager.
 *
 * Threads may share one Mutex. It has one owner at a time, and the other threads wait for it in this
 * object, in the order in which they came, before they ask the servers. Unlike std::mutex, it may be
 * unlocked by a thread other than the one that locked it.
 *
 * The lock lasts for the given TTL, and then expires even if its owner is still at work. Call extend()
 * in time, and check last_unlock_status() where it matters whether the lock held to the end;
 * last_unlock_message() says why it did not. After fork, make a new Mutex in the child. */
class Mutex {
public:
    /** `resource` and `ttl` as for Manager::lock; they are checked by the first lock. No I/O. */
    Mutex(Manager &manager, std::string resource, std::chrono::milliseconds ttl)
        : lease_(manager.engine_), resources_(1, std::move(resource)), ttl_(ttl) {
        detail::without_nul(resources_[0], "resource");
    }

    /** Several resources, all or none, as for Manager::lock_all: Mutex(manager, {"a", "b"}, 10s). */
    Mutex(Manager &manager, std::vector<std::string> resources, std::chrono::milliseconds ttl)
        : lease_(manager.engine_), resources_(std::move(resources)), ttl_(ttl) {
        detail::Names checked(resources_);
    }
    Mutex(Manager &manager, detail::Several resources,
          std::chrono::milliseconds ttl)
        : Mutex(manager, std::vector<std::string>(resources), ttl) {}

    /** A Mutex that is kept alive while it is locked, as by Lease::keep_alive: Mutex(manager, "job", 10s,
     * keep_alive). */
    Mutex(Manager &manager, std::string resource, std::chrono::milliseconds ttl, KeepAlive)
        : Mutex(manager, std::move(resource), ttl) {
        keeps_ = true;
    }

    Mutex(Manager &manager, std::vector<std::string> resources, std::chrono::milliseconds ttl,
          KeepAlive)
        : Mutex(manager, std::move(resources), ttl) {
        keeps_ = true;
    }
    Mutex(Manager &manager, detail::Several resources,
          std::chrono::milliseconds ttl, KeepAlive)
        : Mutex(manager, std::vector<std::string>(resources), ttl) {
        keeps_ = true;
    }

    Mutex(const Mutex &) = delete;
    Mutex &operator=(const Mutex &) = delete;

    /** Releases the lock if it is still held. */
    ~Mutex() {}

    /** Waits until the lock is taken, also while too few servers answer. Throws Error for a fault of the
     * call, or if a lock that is to be kept alive ended before that began. */
    void lock() {
        const std::chrono::milliseconds forever(-1);
        own_within(forever);
        if (!take(forever)) {
            throw Error(status(), message());
        }
    }

    /** Makes one attempt. Returns false if the lock was not taken: status() and message() give the
     * reason. Throws Error for a fault of the call. */
    REDLOCK_HPP_NODISCARD bool try_lock() { return try_lock_within(detail::Milliseconds::zero()); }

    /** Tries until this time has passed; a time that is not positive is one attempt. Returns and throws
     * like try_lock. */
    template <class Rep, class Period>
    REDLOCK_HPP_NODISCARD bool try_lock_for(const std::chrono::duration<Rep, Period> &wait) {
        return try_lock_within(detail::to_wait(wait));
    }

    /** Tries until that time of `Clock`, by its current reading: a later step of the clock is not
     * noticed. Returns and throws like try_lock. */
    template <class Clock, class Duration>
    REDLOCK_HPP_NODISCARD bool
    try_lock_until(const std::chrono::time_point<Clock, Duration> &time) {
        // As floating point, because the difference of two integers may overflow.
        using Precise = std::chrono::duration<double, std::milli>;
        const Precise now(Clock::now().time_since_epoch());
        return try_lock_for(Precise(time.time_since_epoch()) - now);
    }

    /** Releases the lock. If no thread holds it, nothing happens, also while a thread waits in lock(). Never
     * throws, because guards call it in their destructors; the result is in last_unlock_status() and
     * last_unlock_message(). */
    void unlock() noexcept {
        if (!begin_unlock()) {
            note_unlock(Status::Lost, "no thread holds it");
            return;
        }
        release(lease_);
        vacate();
    }

    /** The result of the last unlock(). Status::Ok: released. Status::Lost: the lock was not held, or had
     * ended before, so somebody else may have held it meanwhile. Status::Unreachable: the release did
     * not reach enough servers; the lock expires after its TTL. A negative status: a fault of the call.
     * Status::Ok before the first unlock(). */
    Status last_unlock_status() const noexcept { return last_unlock_status_; }

    /** Why the last unlock() was not Status::Ok, for example because the lock had expired while a guard held it. Empty
     * after a success. */
    std::string last_unlock_message() const {
        std::lock_guard<std::mutex> here(state_);
        return last_unlock_message_;
    }

    /** Why the last attempt to lock failed, whichever thread made it. After a success the status is
     * Status::Ok, and the message names the servers that could not take part; it is empty if all could.
     */
    Status status() const {
        std::lock_guard<std::mutex> here(state_);
        return status_;
    }
    std::string message() const {
        std::lock_guard<std::mutex> here(state_);
        return message_;
    }

    /** For the owner: as the members of Lease with these names. extend() without an argument makes the lock
     * last for the TTL of this Mutex again; if it lasts longer than that, it is unchanged. */
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

    /** The resource of the lock; the first of several. */
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
        if (owned_ && !line_.wait(here, wait)) {
            status_ = Status::Taken;
            message_ = "another thread holds this Mutex";
            return false;
        }
        owned_ = true;
        return true;
    }

    // Asks the servers, as the owner. If they do not grant the lock, this gives the ownership up again. A
    // granted lock, too, is given up if there is no memory for its message.
    bool take(std::chrono::milliseconds wait) {
        Vacate unless_granted(this);
        lease_.take([&](RedLock *rl, RedLockLease *handle) { return ask(rl, wait, handle); });
        std::string words;
        const Status status = lease_.keep_if(keeps_, words);
        note(status, words);
        if (status != Status::Ok) {
            return false;
        }
        unless_granted.owner = nullptr;
        const std::lock_guard<std::mutex> here(state_);
        locked_ = true;
        return true;
    }

    // A thread that is still locking has nothing to be released yet, and a lock is released once.
    bool begin_unlock() noexcept {
        const std::lock_guard<std::mutex> here(state_);
        const bool was_locked = locked_;
        locked_ = false;
        return was_locked;
    }

    void release(Lease &lease) noexcept {
        const Status status = lease.release();
        note_unlock(status, status == Status::Ok ? "" : RedLockLease_ErrorMessage(lease.native_handle()));
    }

    // The result of an unlock. Without memory for the message there is none.
    void note_unlock(Status status, const char *message) noexcept {
        std::string words;
        try {
            words = message;
        } catch (const std::bad_alloc &) {
        }
        last_unlock_status_ = status;
        const std::lock_guard<std::mutex> here(state_);
        last_unlock_message_.swap(words);
    }

    // The result of an attempt. Throws Error for a fault of the call.
    void note(Status status, std::string &words) {
        const std::lock_guard<std::mutex> here(state_);
        status_ = status;
        message_.swap(words);
        if (detail::is_fault(status)) {
            throw Error(status, message_);
        }
    }

    RedLockStatus ask(RedLock *rl, std::chrono::milliseconds wait, RedLockLease *handle) const {
        if (resources_.size() == 1) {
            return RedLock_TryLock(rl, resources_[0].c_str(), ttl_.count(), wait.count(), handle);
        }
        const detail::Names names(resources_);
        const RedLockAcquireOptions options = names.options(ttl_, wait, 0);
        return RedLock_Acquire(rl, &options, handle);
    }

    // Hands the ownership to the thread that has waited longest.
    void vacate() noexcept {
        const std::lock_guard<std::mutex> here(state_);
        owned_ = line_.next();
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

    mutable std::mutex state_; // guards the members below; never held while the servers are asked
    detail::Line line_;
    bool owned_ = false;  // a thread has the lock, or asks the servers for it or for its release
    bool locked_ = false; // it may be released
    Status status_ = Status::Ok;
    std::string message_;
    std::string last_unlock_message_;
};

/** As Mutex, but its owner may lock it again. It needs as many unlock() calls as lock() calls, and only
 * the last unlock() asks servers. The owner is the thread that locked it, as with std::recursive_mutex:
 * no other thread can unlock it. It may outlive its Manager.
 *
 * If the lock is valid for less than the TTL, an inner lock() extends it, which takes one round trip. A
 * lock that is kept alive is not extended by an inner lock(), because it is extended anyway. A lost lock
 * is not taken again at an inner level: lock() throws Error with Status::Lost, try_lock() returns false,
 * and each unlock() leaves Status::Lost in last_unlock_status(). */
class RecursiveMutex {
public:
    /** As the constructors of Mutex: one resource or several. */
    RecursiveMutex(Manager &manager, std::string resource, std::chrono::milliseconds ttl)
        : mutex_(manager, std::move(resource), ttl) {}
    RecursiveMutex(Manager &manager, std::string resource, std::chrono::milliseconds ttl, KeepAlive)
        : mutex_(manager, std::move(resource), ttl, KeepAlive()) {}
    RecursiveMutex(Manager &manager, std::vector<std::string> resources,
                   std::chrono::milliseconds ttl)
        : mutex_(manager, std::move(resources), ttl) {}
    RecursiveMutex(Manager &manager, std::vector<std::string> resources,
                   std::chrono::milliseconds ttl, KeepAlive)
        : mutex_(manager, std::move(resources), ttl, KeepAlive()) {}
    RecursiveMutex(Manager &manager, detail::Several resources, std::chrono::milliseconds ttl)
        : mutex_(manager, resources, ttl) {}
    RecursiveMutex(Manager &manager, detail::Several resources, std::chrono::milliseconds ttl,
                   KeepAlive)
        : mutex_(manager, resources, ttl, KeepAlive()) {}

    RecursiveMutex(const RecursiveMutex &) = delete;
    RecursiveMutex &operator=(const RecursiveMutex &) = delete;

    /** Releases the lock if it is still held, at all levels. */
    ~RecursiveMutex() {}

    /** Waits until the lock is taken, also while too few servers answer. Throws Error for a fault of the
     * call, and, at an inner level, if the lock is lost. */
    void lock() {
        if (!is_mine()) {
            mutex_.lock();
            own();
        } else if (!enter_within(detail::to_wait(std::chrono::hours(24 * 365 * 10)))) {
            throw Error(status(), message());
        }
    }

    /** Makes one attempt. Returns false if the lock was not taken: status() and message() give the
     * reason. Throws Error for a fault of the call. */
    REDLOCK_HPP_NODISCARD bool try_lock() { return try_lock_within(detail::Milliseconds::zero()); }

    /** As the members of Mutex. */
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

    /** Leaves the innermost level; the last unlock() releases the lock. Never throws; the result is in
     * last_unlock_status() and last_unlock_message(). On a thread that is not the owner, the result is Status::InvalidArgument,
     * and nothing is done. */
    void unlock() noexcept {
        if (!is_mine()) {
            mutex_.note_unlock(Status::InvalidArgument, "this thread does not hold it");
        } else if (--depth_ > 0) {
            mutex_.release(mutex_.lease_);
        } else {
            owner_.store(std::thread::id()); // before another thread can be the owner
            mutex_.unlock();
        }
    }

    /** As the members of Mutex; levels() is for the owner, too. */
    Status last_unlock_status() const noexcept { return mutex_.last_unlock_status(); }
    std::string last_unlock_message() const { return mutex_.last_unlock_message(); }
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
    const std::vector<std::string> &resources() const noexcept { return mutex_.resources(); }
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

    // Adds one level for the owner. If servers do not answer, this asks them again until the wait ends or
    // the lock is lost.
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
    std::size_t depth_ = 0; // used by the owner only
};

/** One resource as a mutex that several callers can hold at the same time if they lock it shared. It
 * works with std::shared_lock, and, as a Mutex, with std::unique_lock and the other guards. All programs
 * with the same servers share it. Not recursive: a thread that holds it shared must not lock it.
 *
 * While a caller waits for the exclusive lock, later callers that want it shared do not get it, in this
 * program or another. Each lock_shared() lasts for the given TTL, like a lock(). */
class SharedMutex : public Mutex {
public:
    /** As for Mutex, with one resource. */
    SharedMutex(Manager &manager, std::string resource, std::chrono::milliseconds ttl)
        : Mutex(manager, std::move(resource), ttl) {}
    SharedMutex(Manager &manager, std::string resource, std::chrono::milliseconds ttl, KeepAlive)
        : Mutex(manager, std::move(resource), ttl, KeepAlive{}) {}
    /** A shared lock is of one resource. */
    SharedMutex(Manager &manager, detail::Several resources, std::chrono::milliseconds ttl) = delete;
    SharedMutex(Manager &manager, detail::Several resources, std::chrono::milliseconds ttl,
                KeepAlive) = delete;

    /** Waits until the shared lock is taken, also while too few servers answer. Throws Error as lock()
     * does. */
    void lock_shared() {
        if (!take_shared(std::chrono::milliseconds(-1))) {
            throw Error(status(), message());
        }
    }

    /** Makes one attempt. Returns false if the lock was not taken: status() and message() give the
     * reason. Throws Error for a fault of the call. */
    REDLOCK_HPP_NODISCARD bool try_lock_shared() {
        return take_shared(std::chrono::milliseconds::zero());
    }

    /** Tries until this time has passed, or until that time; as try_lock_for and try_lock_until. */
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

    /** Releases the shared lock that this thread took last. If this thread holds none, releases a shared
     * lock of another thread. Never throws; the result is in last_unlock_status() and
     * last_unlock_message(). */
    void unlock_shared() noexcept {
        Reader reader;
        if (!take_reader(reader)) {
            note_unlock(Status::Lost, "no thread holds it shared");
            return;
        }
        release(reader.lease);
    }

    /** For the owner of the exclusive lock: makes it shared, and unlock_shared() then releases it. No
     * other client can have held the lock exclusively in between. Returns false if this failed, as
     * Lease::downgrade does. The lock is then held as before, unless status() is Status::Lost. Throws
     * Error for a fault of the call. */
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
        if (done && locked_) {
            std::swap(reader.lease, lease_);
            readers_.push_back(std::move(reader));
            locked_ = false;
            owned_ = line_.next();
        }
        return done;
    }

    /** How many shared locks are held through this object. */
    std::size_t readers() const {
        std::lock_guard<std::mutex> here(state_);
        return readers_.size();
    }

    /** For a holder of the shared lock: the members of Lease with these names, for the lock that
     * unlock_shared() would release. */
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

    bool take_reader(Reader &reader) noexcept {
        std::lock_guard<std::mutex> here(state_);
        const auto place = own_reader();
        if (place == readers_.rend()) {
            return false;
        }
        reader = std::move(*place);
        readers_.erase(std::next(place).base());
        return true;
    }

    bool take_shared(std::chrono::milliseconds wait) {
        Reader reader(std::this_thread::get_id(), Lease(lease_.engine_));
        reader.lease.take_shared(resource(), ttl_, 0, wait);
        std::string words;
        const Status status = reader.lease.keep_if(keeps_, words);
        note(status, words);
        if (status != Status::Ok) {
            return false;
        }
        const std::lock_guard<std::mutex> here(state_);
        readers_.push_back(std::move(reader));
        return true;
    }

    std::vector<Reader> readers_; // guarded by state_
};

/** A resource that this number of callers can hold at the same time, in all programs with the same
 * servers. Use acquire and release as with std::counting_semaphore, or take permits as leases. Neither
 * copied nor moved. It may outlive its Manager.
 *
 * All users of the resource must give the same number of permits. If the numbers differ, the greatest
 * applies. A caller that locks the resource uses one permit. Threads may share a Semaphore, and a thread
 * other than the one that acquired may call release(). Callers wait in the order in which they came.
 *
 * Each permit lasts for the given TTL, and then expires even if its owner is still at work: use
 * keep_alive, or a lease. After fork, make a new Semaphore in the child. */
class Semaphore {
public:
    /** `resource` and `ttl` as for Manager::lock; `permits` from 1 to 256. They are checked by the first
     * call that acquires. No I/O. */
    Semaphore(Manager &manager, std::string resource, std::int32_t permits,
              std::chrono::milliseconds ttl)
        : engine_(manager.engine_), resource_(std::move(resource)), permits_(permits), ttl_(ttl) {
        detail::without_nul(resource_, "resource");
    }

    /** A Semaphore whose permits are kept alive until they are released: Semaphore(manager, "api", 8,
     * 10s, keep_alive). */
    Semaphore(Manager &manager, std::string resource, std::int32_t permits,
              std::chrono::milliseconds ttl, KeepAlive)
        : Semaphore(manager, std::move(resource), permits, ttl) {
        keeps_ = true;
    }
    /** A permit is of one resource. */
    Semaphore(Manager &manager, detail::Several resources, std::int32_t permits,
              std::chrono::milliseconds ttl) = delete;
    Semaphore(Manager &manager, detail::Several resources, std::int32_t permits,
              std::chrono::milliseconds ttl, KeepAlive) = delete;

    Semaphore(const Semaphore &) = delete;
    Semaphore &operator=(const Semaphore &) = delete;

    /** Releases the acquired permits, except for leases, which belong to their owners. */
    ~Semaphore() {}

    /** The maximum number of permits. */
    static constexpr std::ptrdiff_t(max)() noexcept { return 256; }

    /** Waits for a permit, also while too few servers answer. Throws Error for a fault of the call, or if a
     * permit that is to be kept alive ended before that began. */
    void acquire() {
        Lease lease = permit(std::chrono::milliseconds(-1));
        if (lease.status() != Status::Ok) {
            throw Error(lease.status(), lease.message());
        }
        keep(std::move(lease));
    }

    /** Makes one attempt. Returns false if no permit was taken: status() and message() give the reason.
     * Throws Error for a fault of the call. */
    REDLOCK_HPP_NODISCARD bool try_acquire() {
        return try_acquire_within(detail::Milliseconds::zero());
    }

    /** Tries until this time has passed; a time that is not positive is one attempt. Returns and throws
     * like try_acquire. */
    template <class Rep, class Period>
    REDLOCK_HPP_NODISCARD bool
    try_acquire_for(const std::chrono::duration<Rep, Period> &wait) {
        return try_acquire_within(detail::to_wait(wait));
    }

    /** Tries until that time of `Clock`, by its current reading. Returns and throws like try_acquire. */
    template <class Clock, class Duration>
    REDLOCK_HPP_NODISCARD bool
    try_acquire_until(const std::chrono::time_point<Clock, Duration> &time) {
        // As floating point, because the difference of two integers may overflow.
        using Precise = std::chrono::duration<double, std::milli>;
        const Precise now(Clock::now().time_since_epoch());
        return try_acquire_for(Precise(time.time_since_epoch()) - now);
    }

    /** Releases the oldest permit that acquire or a similar function took. Returns Status::Ok if it was
     * released. Status::Lost: no permit was held, or the permit had ended before, so there may have been
     * one holder more than there are permits. Status::Unreachable: the release did not reach enough
     * servers; the permit expires after its TTL. A negative status: a fault of the call. Never throws. */
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

    /** Waits for a permit until this time has passed. Zero, the default: one attempt. Less: until the
     * permit is taken. Returns a lease, which is true if it holds a permit, and whose destructor
     * releases the permit. Otherwise its status() and message() give the reason. Throws Error for a
     * fault of the call. */
    REDLOCK_HPP_NODISCARD Lease
    permit(std::chrono::milliseconds wait = std::chrono::milliseconds::zero()) {
        if (permits_ < 1) {
            throw Error(Status::InvalidArgument, "permits must be 1 to 256");
        }
        Lease lease(engine_);
        RedLockAcquireOptions options = REDLOCK_ACQUIRE_OPTIONS_INIT;
        options.resource = resource_.c_str();
        options.ttl_ms = ttl_.count();
        options.wait_ms = wait.count();
        options.permits = permits_;
        lease.take([&](RedLock *rl, RedLockLease *handle) {
            return RedLock_Acquire(rl, &options, handle);
        });
        std::string words;
        const Status status = lease.keep_if(keeps_, words);
        const std::lock_guard<std::mutex> here(state_);
        status_ = status;
        message_.swap(words);
        if (detail::is_fault(status)) {
            throw Error(status, message_);
        }
        return lease;
    }

    /** How many permits are taken, by all programs together. The answer may be out of date when it
     * arrives. Throws Error, also for Status::Unreachable. */
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

    /** Why the last attempt failed, whichever thread made it. After a success the status is Status::Ok,
     * and the message names the servers that could not take part; it is empty if all could. */
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

    // If there is no memory to store the lease, it is released again.
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

    mutable std::mutex state_; // guards the members below; never held while the servers are asked
    std::deque<Lease> held_;
    Status status_ = Status::Ok;
    std::string message_;
};

} // namespace redlock

#undef REDLOCK_HPP_NODISCARD

#endif // REDLOCK_HPP

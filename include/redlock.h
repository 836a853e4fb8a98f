/*
 * redlock: a lock held on a majority of independent Redis or Valkey servers.
 *
 * A lock in Redis is a lease: it expires by itself at the end of its TTL. Names of times end in _ms for
 * milliseconds and in _us for microseconds. Times are int64_t, except that RedLock_SetRetry takes an int.
 * A call that can fail returns a RedLockStatus, unless its comment names another value: 0 is success, a
 * positive value is an ordinary outcome, and a negative value is a fault of the call.
 *
 * Conventions that hold for every function:
 *  - NULL is never undefined behaviour. Where NULL has no meaning, the call returns
 *    REDLOCK_INVALID_ARGUMENT, or the value named in its comment.
 *  - The library reads strings passed in during the call only, and they may be freed after it. Strings
 *    handed out belong to the handle they came from; do not free them. They are never NULL.
 *  - The library prints nothing and sets no signal handler. It starts no thread unless
 *    RedLock_SetBackgroundThread asks for one. It never ends the process, with one exception: if the
 *    system gives no memory, the process is aborted, with a line on the standard error. A call that is
 *    interrupted by a signal goes on. A thread that is cancelled (pthread_cancel) ends after the call it
 *    is in.
 *  - A thread that calls the library needs a stack of 64 KiB. Where TLS is used, PTHREAD_STACK_MIN is not
 *    enough.
 *  - After fork, a child may go on using the manager, and makes its own connections. It may not use a
 *    lease that the parent took: such calls return REDLOCK_FORKED and touch nothing of the parent's. The
 *    library can tell a child from its parent, whatever their process ids are. A callback may fork: the
 *    call that runs the callback then ends in the child with REDLOCK_FORKED. A signal handler that
 *    interrupts a call may fork, too, if the child does not return from the handler.
 *  - No message and no log line ever contains a token or a password.
 */

/*
 * Contents. Most programs need the first section only.
 *
 * Everyday use
 *    RedLock_New                       creates a manager
 *    RedLock_Free                      frees it
 *    RedLock_AddServerUrl              adds a server
 *    RedLock_ErrorMessage              why a call without a lease failed
 *    RedLockLease_New                  creates a lease, which receives a lock
 *    RedLockLease_Free                 frees it, and releases nothing
 *    RedLockLease_ErrorMessage         why a call with this lease failed
 *    RedLock_Lock                      takes a lock, in a few tries
 *    RedLock_TryLock                   takes a lock, and waits for a time
 *    RedLock_Extend                    gives it a new TTL
 *    RedLock_Confirm                   asks the servers whether it is held
 *    RedLock_Unlock                    releases it
 *    RedLock_UnlockAfter               releases it, but keeps others out
 *    RedLockLease_IsHeld               whether it is valid, by our clock
 *    RedLockLease_RemainingMs          for how long it is valid
 *
 * Events: calls that do not block
 *    RedLock_SubmitAcquire             takes a lock
 *    RedLock_SubmitExtend              gives it a new TTL
 *    RedLock_SubmitConfirm             asks the servers whether it is held
 *    RedLock_SubmitUnlock              releases it
 *    RedLock_SubmitUnlockAfter         releases it, but keeps others out
 *    RedLock_SubmitDowngrade           makes it shared
 *    RedLock_SubmitAdopt               takes a lock over
 *    RedLock_KeepAlive                 extends a lock until it is unlocked
 *    RedLock_Cancel                    ends a call from any thread
 *    RedLock_NextEvent                 takes the next event
 *    RedLock_Descriptor                shows an event loop when to look
 *    RedLock_SetBackgroundThread       a thread that does what is due
 *    RedLock_SetEventCallback          a function that this thread calls
 *
 * Kinds of locks
 *    RedLock_Acquire                   by options: shared, several, semaphores
 *    RedLock_Downgrade                 makes an exclusive lock shared
 *    RedLockLease_Mode                 exclusive or shared
 *    RedLockLease_ResourceCount        of several resources: how many
 *    RedLockLease_ResourceAt           of several resources: one of them
 *    RedLock_ContinueLock              takes a lock, or extends the one it has
 *    RedLock_Retain                    taking a lock again: one more level
 *    RedLockLease_Levels               how many levels
 *    RedLock_SetFencing                locks get fencing tokens
 *    RedLockLease_FencingToken         the token of this lock
 *
 * Operating: servers and settings
 *    RedLock_Connect                   connects now
 *    RedLock_Servers                   what is known of each server
 *    RedLock_LookUp                    finds servers that have moved
 *    RedLock_IsLookUpDue               whether that is due
 *    RedLock_SetRetry                  tries, and pauses between them
 *    RedLock_SetTimeouts               how long to wait for a server
 *    RedLock_SetClockDriftFactor       how much faster clocks may run
 *    RedLock_SetWaking                 whether a release wakes those who wait
 *    RedLock_SetRestartGuard           servers that forget their locks
 *    RedLock_SetFailoverGuard          masters that Sentinels have replaced
 *
 * Operating: credentials and TLS
 *    RedLock_SetCredentials            user and password
 *    RedLock_SetCredentialsFromEnv     the same, from the environment
 *    RedLock_SetPasswordCallback       a function that knows the password
 *    RedLock_SetTlsCa                  whose certificates are trusted
 *    RedLock_SetTlsCertificate         our own certificate
 *    RedLock_SetTlsServerName          the name in the servers' certificates
 *    RedLock_SetTlsInsecureSkipVerify  trusts everybody: for experiments
 *
 * Operating: log, statistics, inspection
 *    RedLock_SetLogger                 a function that receives log lines
 *    RedLock_SetTracing                log lines for events of locks, too
 *    RedLock_GetStats                  counters, as numbers
 *    RedLock_StatsText                 counters, as text for Prometheus
 *    RedLock_IsLocked                  whether anybody holds a resource
 *    RedLock_Inspect                   the same, how, and for how long
 *    RedLockStatus_Name                the name of a status
 *    RedLockStatus_IsRetriable         whether to try again
 *    RedLockLease_Resource             what the lease is for
 *    RedLockLease_ResourceSize         its size, as it may contain NULs
 *    RedLockLease_Token                the secret value on the servers
 *    RedLockLease_ValidityMs           the validity when it was granted
 *
 * For bindings to other languages, and for handing locks over
 *    RedLock_Version                   the version of the library that runs
 *    RedLock_SetLanguage               the names of arguments in messages
 *    RedLock_Detach                    gives a lock away, as a ticket
 *    RedLock_Adopt                     takes a lock over, by its ticket
 *    RedLock_Wait                      waits for one submitted call
 *    RedLockLease_SetDoneEvents        no event at the end of its calls
 *    RedLock_KeepLog                   keeps log lines to be taken
 *    RedLock_TakeLogLine               takes one
 *    RedLock_CopyErrorMessage          copies the message of the manager
 *    RedLockLease_CopyErrorMessage     copies the message of the lease
 */


#ifndef REDLOCK_H
#define REDLOCK_H

/* Generated from src/ffi by cbindgen. Do not edit: run `make header`. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REDLOCK_VERSION_TEXT_(number) #number
#define REDLOCK_VERSION_TEXT(number) REDLOCK_VERSION_TEXT_(number)
/**
 * The version of this header as a string, such as "1.2.3".
 */
#define REDLOCK_VERSION_STRING \
  REDLOCK_VERSION_TEXT(REDLOCK_VERSION_MAJOR) "." \
  REDLOCK_VERSION_TEXT(REDLOCK_VERSION_MINOR) "." \
  REDLOCK_VERSION_TEXT(REDLOCK_VERSION_PATCH)

/**
 * The initial value of a RedLockAcquireOptions: no resource, and the default for everything.
 */
#define REDLOCK_ACQUIRE_OPTIONS_INIT {sizeof(RedLockAcquireOptions), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
/**
 * The initial value of a RedLockEvent.
 */
#define REDLOCK_EVENT_INIT {sizeof(RedLockEvent), 0, REDLOCK_OK, 0, 0, 0}
/**
 * The initial value of a RedLockServerInfo.
 */
#define REDLOCK_SERVER_INFO_INIT {sizeof(RedLockServerInfo), 0, 0, 0, 0, "", "", "", "", "", "", ""}
/**
 * The maximum size in bytes of a ticket from RedLock_Detach, including the NUL, for a resource of
 * resource_size bytes.
 */
#define REDLOCK_TICKET_SIZE(resource_size) (128 + ((resource_size) + 2) / 3 * 4)
/**
 * The initial value of a RedLockInfo.
 */
#define REDLOCK_INFO_INIT {sizeof(RedLockInfo), 0, 0, 0, 0, "", 0, 0}
#define REDLOCK_NO_OUTCOMES_ {0, 0, 0, 0, 0, 0, 0, 0}
#define REDLOCK_NO_HISTOGRAM_ {0, 0, {0}}
/**
 * The initial value of a RedLockStats.
 */
#define REDLOCK_STATS_INIT \
  {sizeof(RedLockStats), REDLOCK_NO_OUTCOMES_, REDLOCK_NO_OUTCOMES_, REDLOCK_NO_OUTCOMES_, \
   REDLOCK_NO_OUTCOMES_, REDLOCK_NO_OUTCOMES_, REDLOCK_NO_OUTCOMES_, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
   REDLOCK_NO_HISTOGRAM_, REDLOCK_NO_HISTOGRAM_, REDLOCK_NO_HISTOGRAM_, REDLOCK_NO_HISTOGRAM_, {0}}

/**
 * The version of this header. RedLock_Version() returns the version of the library that runs.
 */
#define REDLOCK_VERSION_MAJOR 0

#define REDLOCK_VERSION_MINOR 3

#define REDLOCK_VERSION_PATCH 0

/**
 * A submitted call has ended.
 */
#define REDLOCK_EVENT_DONE 0

/**
 * A lock can no longer be kept alive. Stop the work that it protects within its remaining validity.
 */
#define REDLOCK_EVENT_LOST 1

/**
 * For `mode`: nobody else holds the lock at the same time.
 */
#define REDLOCK_EXCLUSIVE 0

/**
 * For `mode`: other readers can hold the lock at the same time. A reader is a caller with this mode, and a
 * caller that holds the lock exclusively is a writer. RedLock_Lock and every other Redlock client are
 * writers. Each reader and each writer holds the lock on a quorum.
 *
 * Readers are recorded in a key whose name is the resource followed by :r. A waiting writer announces itself
 * in a key whose name is the resource followed by :i. So do not lock resources with these names beside a
 * resource that is locked shared. While a writer waits, later readers do not get the lock, in this process
 * or in another. A reader that already holds the lock can still extend it. A shared lock has no fencing
 * token, and cannot be made exclusive. The reverse is possible with RedLock_Downgrade. The ACL user needs
 * the right to use these keys, and EVAL, GET, GETRANGE, SET, DEL, TIME, PTTL, PEXPIREAT, ZADD, ZREM, ZRANGE,
 * ZSCORE, ZCARD, ZCOUNT and ZREMRANGEBYSCORE.
 */
#define REDLOCK_SHARED 1

/**
 * For RedLock_SetRestartGuard: the guard is on. A server that lost its memory has no vote for as long as a
 * lock that it has forgotten may live. If all servers are new at once, they have a vote.
 */
#define REDLOCK_GUARD_ON 0

/**
 * For RedLock_SetRestartGuard: the guard is strict. This is REDLOCK_GUARD_ON, but servers that seem to be
 * new also have no vote at first.
 */
#define REDLOCK_GUARD_STRICT 1

/**
 * For RedLock_SetRestartGuard: the guard is off. Every server that can be reached has a vote.
 */
#define REDLOCK_GUARD_OFF 2

/**
 * For RedLock_SetRestartGuard: the servers are durable. Every server that can be reached has a vote, because
 * the program vouches that no server ever forgets what it granted.
 */
#define REDLOCK_GUARD_DURABLE 3

/**
 * The number of buckets of a RedLockHistogram.
 */
#define REDLOCK_HISTOGRAM_BUCKETS 21

/**
 * The number of bounds of these buckets: the last bucket has no bound.
 */
#define REDLOCK_HISTOGRAM_BOUNDS 20

/**
 * For RedLock_SetTracing: log no events of locks.
 */
#define REDLOCK_TRACE_OFF 0

/**
 * For RedLock_SetTracing: log the events of locks, without names.
 */
#define REDLOCK_TRACE_EVENTS 1

/**
 * For RedLock_SetTracing: log the events of locks, with resource names.
 */
#define REDLOCK_TRACE_RESOURCES 2

/**
 * For RedLock_SetLanguage: C. Messages name arguments as this header does.
 */
#define REDLOCK_LANGUAGE_C 0

/**
 * For RedLock_SetLanguage: C++, as redlock.hpp names arguments.
 */
#define REDLOCK_LANGUAGE_CPP 1

/**
 * For RedLock_SetLanguage: Go.
 */
#define REDLOCK_LANGUAGE_GO 2

/**
 * For RedLock_SetLanguage: JavaScript in Node.js.
 */
#define REDLOCK_LANGUAGE_NODE 3

/**
 * For RedLock_SetLanguage: Python.
 */
#define REDLOCK_LANGUAGE_PYTHON 4

/**
 * For RedLock_SetLanguage: Ruby.
 */
#define REDLOCK_LANGUAGE_RUBY 5

/**
 * The status that a call returns. 0 is success, a positive value an ordinary outcome, a negative value a
 * fault of the call. Values are never reused. Treat an unknown value according to its sign.
 */
enum RedLockStatus
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * Success.
   */
  REDLOCK_OK = 0,
  /**
   * Another holder has the lock: so many servers refused that a quorum is out of reach.
   */
  REDLOCK_TAKEN = 1,
  /**
   * Too few servers gave a usable answer in time for any quorum.
   */
  REDLOCK_UNREACHABLE = 2,
  /**
   * A quorum granted the lock, but no validity was left. Everything was released again.
   */
  REDLOCK_TOO_SLOW = 3,
  /**
   * The lease is not held, or no longer held: it has expired, or was deleted or taken over. Also: so many
   * servers have lost the lock, or received it too late, that the servers that had it all the time are no
   * quorum. Another client may have held the lock in between.
   */
  REDLOCK_LOST = 4,
  /**
   * RedLock_Cancel ended the call. Nothing of the call stays locked. A lock that was held before the call
   * is still held.
   */
  REDLOCK_CANCELLED = 5,
  /**
   * RedLock_NextEvent had no event to return in that time.
   */
  REDLOCK_NO_EVENT = 6,
  /**
   * RedLock_Confirm found that the lock is held, but not for the required time.
   */
  REDLOCK_TOO_SHORT = 7,
  /**
   * NULL, an empty or too long resource, a TTL that leaves no validity, a bad URL or port, a lease that
   * still holds a lock, and so on. The message names the fault.
   */
  REDLOCK_INVALID_ARGUMENT = -1,
  /**
   * No server was added to the manager.
   */
  REDLOCK_NO_SERVERS = -2,
  /**
   * The lease belongs to the parent process, or the process was forked within the call.
   */
  REDLOCK_FORKED = -3,
  /**
   * A panic was caught, or the system provided no random bytes. The message says which.
   */
  REDLOCK_INTERNAL = -4,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum RedLockStatus RedLockStatus;
#else
typedef int32_t RedLockStatus;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * A lock manager: the servers and the settings. Any number of threads may take locks through one manager at
 * the same time, and they share its connections. Make the settings before the first lock.
 */
typedef struct RedLock RedLock;

/**
 * One lock, held or not: resource, token, validity and, after a failed call, the reason as text. The caller
 * creates the lease, passes it to calls, and may use it again when it holds no lock. One call at a time: a
 * second call at the same time waits for the first.
 */
typedef struct RedLockLease RedLockLease;

/**
 * A function that receives log lines. A line says that a server is lost, refuses or comes back, and why.
 * Similar lines are reported once a second, with a count of the lines left out. See RedLock_SetLogger.
 *
 * @param level     1: a server fault that may affect a lock. 2: a repaired fault, or another fact that may
 *                  interest a reader of logs. 3: an event of a lock, if RedLock_SetTracing asks for that.
 *                  More values may be added later.
 * @param message   one line without a line end, valid during the call only.
 * @param user_data the value that was passed to RedLock_SetLogger.
 */
typedef void (*RedLockLogger)(int32_t level, const char *message, void *user_data);

/**
 * Called when a callback's user_data is no longer used. See RedLock_SetLogger.
 *
 * @param user_data the user_data that was given with the callback.
 */
typedef void (*RedLockDestroy)(void *user_data);

/**
 * How to take a lock. Initialize this with REDLOCK_ACQUIRE_OPTIONS_INIT, so that fields of later versions
 * have their defaults. 0 is the default of every field.
 */
typedef struct {
  /**
   * sizeof(RedLockAcquireOptions).
   */
  size_t size;
  /**
   * The resource to lock: 1 to 65536 bytes. It is used unchanged as the name of the key on the servers.
   * NULL if there are several resources.
   */
  const char *resource;
  /**
   * The size of the resource in bytes, so that it may contain NULs. 0: the resource ends at its NUL.
   */
  size_t resource_size;
  /**
   * Several resources to lock at once: all of them, or none. The array holds resource_count strings in any
   * order. Each is the name of a key on the servers and different from the others. 65536 bytes in total.
   * NULL if there is one resource.
   */
  const char *const *resources;
  /**
   * The number of strings in `resources`: 1 to 128. 0 if there is one resource.
   */
  size_t resource_count;
  /**
   * How long the lock lasts, in milliseconds, unless it is extended or released, as for RedLock_Lock.
   */
  int64_t ttl_ms;
  /**
   * 0: one attempt. More than 0: try until this many milliseconds have passed. Less than 0: try until the
   * lock is taken. The pauses are those of RedLock_TryLock.
   */
  int64_t wait_ms;
  /**
   * More than 0: the number of tries, with the pauses of RedLock_Lock; wait_ms is ignored. 0: wait_ms
   * applies.
   */
  int32_t tries;
  /**
   * REDLOCK_EXCLUSIVE or REDLOCK_SHARED.
   */
  int32_t mode;
  /**
   * 0: a lock. More than 0: one permit of a semaphore with this number of permits, at most 256. That many
   * callers can then hold the resource at the same time if all give the same number. If the numbers
   * differ, the greatest applies. 1 is the same as a lock. A caller that locks the resource uses one
   * permit.
   */
  int32_t permits;
  /**
   * Not 0: the lock is kept alive until it is unlocked, as by RedLock_KeepAlive. RedLock_Acquire refuses this if
   * nothing drives the manager: see there.
   */
  int32_t keep_alive;
} RedLockAcquireOptions;

/**
 * An event that RedLock_NextEvent returns. Initialize it with REDLOCK_EVENT_INIT.
 */
typedef struct {
  /**
   * sizeof(RedLockEvent).
   */
  size_t size;
  /**
   * REDLOCK_EVENT_DONE or REDLOCK_EVENT_LOST. Ignore an event of an unknown kind.
   */
  int32_t kind;
  /**
   * The result of the submitted call. For REDLOCK_EVENT_LOST, the reason why the lock cannot be kept
   * alive: REDLOCK_LOST or REDLOCK_UNREACHABLE.
   */
  RedLockStatus status;
  /**
   * The lease of that call, or of that lock. The submitted call has ended, so the program may use its
   * lease again. If the lease was freed meanwhile, this pointer only identifies it.
   */
  RedLockLease *lease;
  /**
   * The user_data that was passed with the call.
   */
  void *user_data;
  /**
   * For REDLOCK_EVENT_LOST: the remaining validity of the lock, in milliseconds. At least a tenth of the
   * TTL, unless no thread drove this library in time, or another client has taken the lock away.
   */
  int64_t remaining_ms;
} RedLockEvent;

/**
 * A function that receives an event. See RedLock_SetEventCallback.
 *
 * @param event     the event, valid during the call.
 * @param user_data the value that was passed to RedLock_SetEventCallback.
 */
typedef void (*RedLockEventCallback)(const RedLockEvent *event, void *user_data);

/**
 * The state of one server, from RedLock_Servers. All strings end with a NUL; longer strings are cut.
 */
typedef struct {
  /**
   * sizeof(RedLockServerInfo).
   */
  size_t size;
  /**
   * 1 if there is a usable connection, else 0.
   */
  int32_t connected;
  /**
   * 1 if the grants of the server count, else 0.
   */
  int32_t votes;
  /**
   * The time that the last answer took, from sending to reading, in microseconds; -1 if there was no
   * answer yet.
   */
  int64_t round_trip_us;
  /**
   * How far the clock of the server is ahead of the clock of this machine, in microseconds; below 0 if it
   * is behind. The value is exact to half a round trip and a millisecond. It was measured when the
   * connection began and whenever a lock was requested, and is given for the time that the clock of this
   * machine shows now. INT64_MIN if it is not known: there was no connection yet, the guard is off
   * (RedLock_SetRestartGuard), or the user may not ask (TIME).
   */
  int64_t clock_offset_us;
  /**
   * The address: host:port, or the path of the socket. For a master that Sentinels watch: its name with
   * its address, "mymaster (10.0.0.7:6379)". Before the address is known: its name with the address of the
   * first Sentinel, "mymaster (Sentinel 10.0.0.5:26379)". Never a user or a password.
   */
  char name[256];
  /**
   * Why the server is not connected, does not vote, or is not guarded. Empty if there is nothing to
   * report.
   */
  char words[512];
  /**
   * The program and its version: "7.0.15" for a Redis, "valkey 9.1.0". This field and the following ones
   * are what the server said when it was last asked. They are empty if the server has not said it, or if
   * the user may not ask (INFO, CONFIG GET).
   */
  char version[32];
  /**
   * "primary", or "replica" or "sentinel", which cannot vote.
   */
  char role[16];
  /**
   * 40 hexadecimal digits that change with each start of the server.
   */
  char run_id[48];
  /**
   * Which data of the server outlives its process: "log, synced always", "log, synced every second", "log,
   * never synced", "log", "no log". A log is an append-only file.
   */
  char keeps[32];
  /**
   * Which keys the server evicts when its memory is full: its maxmemory-policy.
   */
  char eviction[32];
} RedLockServerInfo;

/**
 * Provides the password for a server. See RedLock_SetPasswordCallback.
 *
 * @param server    the server as messages name it, such as "10.0.0.7:6379". For a master that Sentinels
 *                  watch: its name and the first Sentinel, "mymaster (Sentinel 10.0.0.5:26379)". Valid
 *                  during the call.
 * @param password  the buffer for the password, to be written as a string that ends with a NUL. The library
 *                  fills the buffer with zeros before the call and again after it.
 * @param size      the size of the buffer in bytes, including the NUL: 16384.
 * @param user_data the user_data that was given to RedLock_SetPasswordCallback.
 * @return true if the password was written. false if there is no password now: the server then counts as not
 *         connected, and the library calls the callback again after one second at the earliest.
 */
typedef bool (*RedLockPasswordCallback)(const char *server,
                                        char *password,
                                        size_t size,
                                        void *user_data);

/**
 * The number of calls of one kind, by outcome.
 */
typedef struct {
  /**
   * REDLOCK_OK.
   */
  uint64_t ok;
  /**
   * REDLOCK_TAKEN.
   */
  uint64_t taken;
  /**
   * REDLOCK_UNREACHABLE.
   */
  uint64_t unreachable;
  /**
   * REDLOCK_TOO_SLOW.
   */
  uint64_t too_slow;
  /**
   * REDLOCK_LOST.
   */
  uint64_t lost;
  /**
   * REDLOCK_TOO_SHORT.
   */
  uint64_t too_short;
  /**
   * REDLOCK_CANCELLED.
   */
  uint64_t cancelled;
  /**
   * Any other status.
   */
  uint64_t failed;
} RedLockOutcomes;

/**
 * A histogram of durations.
 */
typedef struct {
  /**
   * The number of durations.
   */
  uint64_t count;
  /**
   * The sum of all durations, in microseconds.
   */
  int64_t sum_us;
  /**
   * The number of durations in each bucket: at most the bound at the same index in RedLockStats.bounds_us,
   * and more than the bound before it. The last bucket has no bound.
   */
  uint64_t buckets[REDLOCK_HISTOGRAM_BUCKETS];
} RedLockHistogram;

/**
 * The counters of a manager, from RedLock_GetStats. Begin with REDLOCK_STATS_INIT. All counts are of this
 * manager in this process, and only grow. The fields waiting and kept are current numbers.
 */
typedef struct {
  /**
   * sizeof(RedLockStats).
   */
  size_t size;
  /**
   * Calls that take locks: RedLock_Lock, RedLock_TryLock, RedLock_Acquire, RedLock_SubmitAcquire, and
   * RedLock_ContinueLock if it had to take the lock.
   */
  RedLockOutcomes acquire;
  /**
   * RedLock_Extend, and RedLock_ContinueLock if it extended the lock.
   */
  RedLockOutcomes extend;
  /**
   * RedLock_Confirm.
   */
  RedLockOutcomes confirm;
  /**
   * RedLock_Unlock, except for an inner level (RedLock_Retain). Also releases of locks whose lease was
   * freed before the program was told of the lock.
   */
  RedLockOutcomes release;
  /**
   * RedLock_Adopt.
   */
  RedLockOutcomes adopt;
  /**
   * RedLock_Inspect and RedLock_IsLocked.
   */
  RedLockOutcomes inspect;
  /**
   * Locks that were given away: RedLock_Detach.
   */
  uint64_t detached;
  /**
   * How often the servers were asked for a lock. Asking all of them at once counts as one.
   */
  uint64_t attempts;
  /**
   * Calls that had to wait for a lock, even if only for a moment.
   */
  uint64_t waits;
  /**
   * Extensions of locks that are kept alive. renewed: those that succeeded. not_renewed: those that
   * failed, and were tried again as long as there was time.
   */
  uint64_t renewed;
  uint64_t not_renewed;
  /**
   * Locks that could not be kept alive: REDLOCK_EVENT_LOST.
   */
  uint64_t kept_lost;
  /**
   * Requests that were sent, for all servers together.
   */
  uint64_t requests;
  /**
   * Connections that could be used, those of them that were lost, and attempts to connect that failed.
   */
  uint64_t connections;
  uint64_t connections_lost;
  uint64_t connections_failed;
  /**
   * The number of calls that are waiting for a lock now.
   */
  uint64_t waiting;
  /**
   * The number of locks that are kept alive now.
   */
  uint64_t kept;
  /**
   * How long it took to take a lock, for locks that were taken. Includes pauses and waiting.
   */
  RedLockHistogram acquire_time;
  /**
   * The waiting time of calls that had to wait, from the beginning of the first wait to the end of the
   * call.
   */
  RedLockHistogram wait_time;
  /**
   * How long released locks were held, from the time when they were requested.
   */
  RedLockHistogram hold_time;
  /**
   * The time from sending a request to reading its answer, for all servers together.
   */
  RedLockHistogram round_trip;
  /**
   * The upper bounds of the buckets of all histograms, in microseconds: 25, 50, 100, 250, ..., 60000000.
   */
  int64_t bounds_us[REDLOCK_HISTOGRAM_BOUNDS];
} RedLockStats;

/**
 * The state of a resource, from RedLock_Inspect. Begin with REDLOCK_INFO_INIT.
 */
typedef struct {
  /**
   * sizeof(RedLockInfo).
   */
  size_t size;
  /**
   * 1 if somebody holds the resource on a quorum, else 0.
   */
  int32_t locked;
  /**
   * How the resource is held: REDLOCK_EXCLUSIVE (also if nobody holds it) or REDLOCK_SHARED. Later
   * versions may add values.
   */
  int32_t mode;
  /**
   * How long the resource is still held, in milliseconds, if the lock is neither extended nor released: until
   * fewer than a quorum of the servers have it. If the first servers that answer have it for different times,
   * the others are waited for, for as long as a server may take to answer.
   * -1: forever, as with a program that set no TTL. 0: the lock is just expiring, or the user may not ask
   * (PTTL), or nobody holds the resource.
   */
  int64_t remaining_ms;
  /**
   * The number of holders at the same time, in a mode that allows several: a quorum of servers has at
   * least this many. Else 0.
   */
  int64_t readers;
  /**
   * After REDLOCK_OK: which servers could not answer, and why; empty if all servers that were needed could
   * answer. After a failure: what was wrong. Ends with a NUL; a longer text is cut.
   */
  char words[1024];
  /**
   * Set this before the call. 0: the resource is a lock. More than 0: the resource is a semaphore with
   * this many permits, at most 256. `locked` is then 1 if all permits are taken. `remaining_ms` is then
   * the time until the first of the taken permits expires.
   */
  int32_t permits;
  /**
   * The number of permits that are taken.
   */
  int32_t permits_taken;
} RedLockInfo;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The version of the library that runs, such as "0.3.0".
 *
 * @return a string that stays valid forever. Any thread may call this.
 */
const char *RedLock_Version(void);

/**
 * Returns the name of a status, such as "REDLOCK_TAKEN".
 *
 * @param status any integer.
 * @return a string that is never freed; "REDLOCK_UNKNOWN_STATUS" for a value that is no status. Any thread
 *         may call this.
 */
const char *RedLockStatus_Name(int32_t status);

/**
 * Tells whether the same call may succeed a little later without any change.
 *
 * @param status any integer.
 * @return true for REDLOCK_TAKEN, REDLOCK_UNREACHABLE and REDLOCK_TOO_SLOW. Any thread may call this.
 */
bool RedLockStatus_IsRetriable(int32_t status);

/**
 * Creates a lock manager without servers and with the default settings.
 *
 * @return the manager. The caller owns it and must free it with RedLock_Free. NULL if the manager could not
 *         be created. No I/O. Any thread may call this.
 */
RedLock *RedLock_New(void);

/**
 * Frees a manager. This function does not wait. Held locks stay held until they expire, and their leases
 * stay valid handles. Submitted calls are cancelled, and locks are no longer kept alive. From then on, only
 * an event callback receives events (RedLock_SetEventCallback).
 *
 * Other threads finish the calls that they have begun, and may use callbacks with their user_data until
 * then. RedLock_NextEvent returns. The connections are closed, as at the end of the process. A server that
 * had fallen behind the others may therefore not carry out the last releases. It then keeps those keys until
 * their TTL expires.
 *
 * @param rl a manager, or NULL, which does nothing. The manager must not be used after this call, nor freed
 *           twice.
 */
void RedLock_Free(RedLock *rl);

/**
 * Adds a server. All clients that must exclude each other must add the same servers. Each server must be an
 * independent primary. The quorum is more than half of the servers added, including servers that are down.
 * No I/O: an unreachable server shows at the first lock.
 *
 * @param rl          the manager.
 * @param host_or_url a host name or an IPv4 or IPv6 address, with its port in the port parameter. With
 *                    port 0: host:port ([address]:port for IPv6), or a whole URL. A URL is
 *                    redis://[user][:password@]host[:port][/database], unix:///path or redis+unix:///path.
 *                    The last two accept ?db=, &user= and &pass=. With rediss:// in place of redis://, TLS
 *                    is used. valkey:// and its variants mean the same. A URL can also be
 *                    redis-sentinel://[user][:password@]hosts/master[/database], where hosts is
 *                    host[:port][,host[:port]...]. It names the master that these Sentinels report under
 *                    this name, and counts as one voter. With rediss-sentinel://, the Sentinels and the
 *                    master are reached over TLS. The user and the password are those of the master. Those
 *                    of the Sentinels are ?sentinel_username= and &sentinel_password=. After a failover, the
 *                    new master has no vote until every lock that may be unknown to it has ended.
 *                    redis-cluster://[user][:password@]hosts?tag=name names the node of a Redis Cluster that
 *                    has the slot of the tag, and counts as one voter, too. All keys there have the tag in
 *                    braces before their names. A tag is 1 to 32 of A-Z, a-z, 0-9, ".", "-" and "_";
 *                    "redlock" if there is none. Masters of one cluster are several voters if each has a tag
 *                    of its own. In a URL,
 *                    IPv6 addresses must be in brackets, and users and passwords must be percent-encoded.
 *                    An address on one link has a zone: fe80::1%eth0, or in a URL [fe80::1%25eth0].
 *                    RedLock_SetCredentials needs no encoding. The system's resolver looks up a name, which
 *                    may block. An address never blocks.
 * @param port        1 to 65535. 0 if host_or_url names the port, as host:port and URLs do.
 * @return REDLOCK_OK. REDLOCK_INVALID_ARGUMENT: an argument is malformed; the same server was added before,
 *         or a master of the same name that one of the same Sentinels watches; there are already 64 servers;
 *         or the list is closed. The first call that asks servers or connects to them closes the list. Also
 *         for rediss:// if this build has no TLS. RedLock_ErrorMessage(rl) names the fault.
 */
RedLockStatus RedLock_AddServerUrl(RedLock *rl,
                                   const char *host_or_url,
                                   int port);

/**
 * Connects to the servers now instead of at the first lock. Optional. Returns when a quorum is connected,
 * after a moment for the other servers to follow.
 *
 * @param rl         the manager.
 * @param timeout_ms how long to wait at most, in milliseconds. 0: as long as connecting may take
 *                   (RedLock_SetTimeouts).
 * @return REDLOCK_OK if a quorum is connected. RedLock_ErrorMessage(rl) then names the servers that are not
 *         connected, have no vote, or are not guarded. It is empty if there are none.
 *         REDLOCK_UNREACHABLE if too few servers could be reached. The message then
 *         gives the reason for each server. REDLOCK_NO_SERVERS, REDLOCK_INVALID_ARGUMENT, REDLOCK_FORKED (a
 *         callback forked, and this process is the child), REDLOCK_INTERNAL.
 */
RedLockStatus RedLock_Connect(RedLock *rl,
                              int64_t timeout_ms);

/**
 * Looks up the names that submitted calls wait for (RedLock_IsLookUpDue), and those of servers that may have moved:
 * those that have been unreachable for 2 s, and those whose addresses are not known yet. If a server is down while a quorum is up, no call lacks it, so no call looks up its
 * name. If all servers move, one after the other (a rolling restart under Kubernetes), a lock that is kept for long
 * would be lost. The pauses between two look-ups of a name grow to a minute. A server that has moved is connected
 * to, and takes part again with the next call or renewal. The background thread (RedLock_SetBackgroundThread) does
 * this by itself. Without it, a program that keeps locks for long calls this function, for example every few
 * seconds or whenever RedLock_IsLookUpDue says so, in a thread that may wait.
 *
 * @param rl the manager.
 * @return REDLOCK_OK, also if no name was due or a name is not known: RedLock_Servers and the logger tell that.
 *         This waits for the system's resolver, perhaps for many seconds, and holds up no other call on the
 *         manager. REDLOCK_NO_SERVERS, REDLOCK_INVALID_ARGUMENT, REDLOCK_FORKED (a callback forked, and this
 *         process is the child), REDLOCK_INTERNAL. Any thread may call this.
 */
RedLockStatus RedLock_LookUp(RedLock *rl);

/**
 * Whether RedLock_LookUp would ask the system's resolver now for a call that is under way or a lock that is kept
 * alive. A program with an event loop of its own asks this once before its first call, and whenever RedLock_NextEvent
 * or RedLock_Wait has returned without a result. It has RedLock_LookUp called in a thread that may wait. From the first
 * time on, RedLock_NextEvent and RedLock_Wait leave the resolver to that thread: a submitted call that needs a name
 * waits for it, until it is cancelled. Calls that block still look up names themselves. This function does not wait.
 *
 * @param rl the manager, or NULL.
 * @return true if a look-up is due. false if none is, if no call has used the servers in this process, or if rl is
 *         NULL. Any thread may call this.
 */
bool RedLock_IsLookUpDue(const RedLock *rl);

/**
 * Sets the number of tries, and the pause between two tries. RedLock_Lock and RedLock_ContinueLock make this
 * number of tries. Their pause is random in [delay_ms / 2, 3 * delay_ms / 2), as in the CRedLock class.
 * There is no pause after the last try. RedLock_TryLock begins with shorter pauses, and its pauses are
 * shorter than 3 * delay_ms / 2. A caller that waits to be woken (RedLock_SetWaking), or cannot reach the
 * servers, may pause for longer.
 *
 * @param rl       the manager.
 * @param count    total number of tries, at least 1. Default 3.
 * @param delay_ms mean pause in milliseconds, at least 0. Default 200.
 * @return REDLOCK_OK or REDLOCK_INVALID_ARGUMENT.
 */
RedLockStatus RedLock_SetRetry(RedLock *rl,
                               int count,
                               int delay_ms);

/**
 * Sets how long calls wait for a server.
 *
 * @param rl         the manager.
 * @param connect_ms timeout for connecting, including the login, in milliseconds. 1 to 86400000 (a day).
 *                   Default 1500.
 * @param reply_ms   timeout for a reply on an established connection, in milliseconds. 0 to 86400000. 0, the
 *                   default, means a twentieth of the TTL, at least 25 and at most 500. This is the advice
 *                   of the Redlock page (5 to 50 ms for a TTL of 10 s), rounded up for slow networks. If a
 *                   server owes a reply for four times as long, and for at least a second, a second
 *                   connection to it is opened. The first connection is closed when no key that was
 *                   requested over it can be left.
 * @return REDLOCK_OK or REDLOCK_INVALID_ARGUMENT.
 */
RedLockStatus RedLock_SetTimeouts(RedLock *rl,
                                  int64_t connect_ms,
                                  int64_t reply_ms);

/**
 * Sets how much faster a server's clock may run than this machine's. A lock of ttl_ms is valid for
 * ttl_ms - ceil(ttl_ms * factor) - 2 ms, less the time that the call took. The 2 ms cover the precision of
 * expiry in Redis.
 *
 * @param rl     the manager.
 * @param factor at least 0, less than 1. Default 0.01, as in the Redlock page.
 * @return REDLOCK_OK or REDLOCK_INVALID_ARGUMENT.
 */
RedLockStatus RedLock_SetClockDriftFactor(RedLock *rl,
                                          double factor);

/**
 * Sets the logger: a function that is called when servers are lost, refuse or come back. Without a logger,
 * the library reports nothing anywhere.
 *
 * The logger is called at the end of calls that ask servers, on the thread that made the call. The thread of
 * RedLock_SetBackgroundThread, and threads in RedLock_NextEvent and RedLock_Wait, call it at once while they do the
 * work that is due. At that point the thread holds nothing, not even a lease.
 * The logger may therefore call this library with any lease, wait for calls of other threads, free the
 * manager, or fork. If it forks, the call ends in the child with REDLOCK_FORKED. The logger must not unwind
 * (longjmp, throw) through the library. The time that the logger takes counts against the lock's validity.
 * If the lock has expired when the logger returns, the call returns REDLOCK_TOO_SLOW, or REDLOCK_LOST if the
 * lock was held before the call.
 *
 * For one manager, the logger is never called by two threads at once, nor from within itself. Lines
 * therefore come in their order: the thread that calls the logger also reports the lines of other threads,
 * and the lines of calls that the logger makes. Lines that arise while a long call such as RedLock_TryLock does the
 * work that is due are reported when that call ends, or when another call on this manager ends. Up to
 * 256 lines, 64 KiB in total, wait to be reported. Beyond that, the oldest lines are left out, and one line
 * reports how many.
 *
 * @param rl        the manager.
 * @param callback  the function, or NULL for no logger.
 * @param user_data passed to the function unchanged; may be NULL. When this function or RedLock_Free
 *                  returns, another thread may still be using user_data. It must stay valid until all calls
 *                  on the manager that had begun by then have ended: destroy tells when that is.
 * @param destroy   called once, with user_data, when the library no longer needs user_data. That is when
 *                  another logger was set or the manager was freed, and every call that might use
 *                  user_data has ended. If callback is NULL, or this function fails, destroy is called
 *                  before this function returns. The last thread that needed user_data calls destroy: in
 *                  this function, in RedLock_Free, at the end of a call on the manager, or on the thread of
 *                  RedLock_SetBackgroundThread. The library holds nothing then. destroy may call the
 *                  library, but the manager may have been freed. destroy must not unwind (longjmp, throw)
 *                  through the library. A forked child has only a copy of its parent's user_data, and does
 *                  not call destroy for it. NULL: nobody needs to be told.
 * @return REDLOCK_OK, REDLOCK_INVALID_ARGUMENT, REDLOCK_FORKED.
 */
RedLockStatus RedLock_SetLogger(RedLock *rl,
                                RedLockLogger callback,
                                void *user_data,
                                RedLockDestroy destroy);

/**
 * Returns the message of the last call on this manager that has no lease. Such calls are
 * RedLock_AddServerUrl, RedLock_Connect, RedLock_Set..., RedLock_IsLocked, RedLock_Inspect, and any call
 * whose lease was NULL. RedLock_NextEvent, RedLock_Descriptor and RedLock_Cancel change the message only if
 * they fail. A thread that takes events therefore leaves the messages of other threads' calls unchanged.
 *
 * @param rl the manager, or NULL.
 * @return a human-readable text of at most 4095 bytes; empty if there is nothing to report. It is the
 *         complete message of one call, of any thread. The string never changes: after the next call, call
 *         this function again. The string belongs to the manager and lives as long as the manager. The
 *         manager therefore limits its messages. After it has handed out a megabyte of different messages,
 *         it leaves times out of new ones ("timed out after some ms"). After two megabytes, a sentence that
 *         says so replaces messages that were never handed out before.
 */
const char *RedLock_ErrorMessage(const RedLock *rl);

/**
 * Copies the message of RedLock_ErrorMessage, and keeps nothing of it. For programs with many managers, or
 * many different messages.
 *
 * @param rl      the manager, or NULL.
 * @param message receives the text, truncated to the size of the buffer, and a NUL. May be NULL if size is 0.
 * @param size    the size of the buffer in bytes, including the NUL; 4096 is enough for every message.
 * @return the length of the text in bytes, without the NUL. If it is not less than size, the text was
 *         truncated.
 */
size_t RedLock_CopyErrorMessage(const RedLock *rl,
                                char *message,
                                size_t size);

/**
 * Takes a lock, trying as often as RedLock_SetRetry says.
 *
 * Callers that want the same resource through the same manager wait in a queue. The head of the queue asks
 * the servers. RedLock_Unlock hands the lock over to the head within a round trip, even in the middle of the
 * head's pause. Every 200 ms (every 40 ms while other processes want the lock), the lock is released openly
 * instead. The queue then stands back for up to 8 ms, so that other processes get the lock, too. Beside
 * clients of other libraries that wake nobody (RedLock_SetWaking), it does so only every 100 ms. While this
 * manager holds the lock, the head of the queue asks the servers once a second: if they have lost the lock,
 * the head can take it.
 *
 * @param rl       the manager.
 * @param resource the resource to lock: 1 to 65536 bytes, any but NUL. It is used unchanged as the name of
 *                 the key on the servers.
 * @param ttl_ms   how long the lock lasts, in milliseconds, unless it is extended or released. At least 4
 *                 with the default drift, because some validity must be left. At most 315360000000 (ten
 *                 years).
 * @param lease    receives the lock. Must not hold a lock. On failure it holds none, and
 *                 RedLockLease_ErrorMessage reports what each server said.
 * @return REDLOCK_OK, REDLOCK_TAKEN, REDLOCK_UNREACHABLE, REDLOCK_TOO_SLOW, REDLOCK_CANCELLED,
 *         REDLOCK_INVALID_ARGUMENT, REDLOCK_NO_SERVERS, REDLOCK_FORKED, REDLOCK_INTERNAL. After every status
 *         but REDLOCK_OK, nothing of this call stays locked. Anything that servers may have granted is
 *         released at once. If a server does not answer, the release is queued behind the request.
 */
RedLockStatus RedLock_Lock(RedLock *rl,
                           const char *resource,
                           int64_t ttl_ms,
                           RedLockLease *lease);

/**
 * Takes a lock, trying for a time instead of a number of times. Callers wait in a queue as for RedLock_Lock.
 * The pause between two tries is random, between zero and a bound. The bound is four round trips at first.
 * Each refusal doubles the bound, up to the limit of RedLock_SetRetry. While the lock changes hands, the
 * bound is at most 16 ms. A pause never extends past the moment when the lock can have expired.
 *
 * @param rl       the manager.
 * @param resource as for RedLock_Lock.
 * @param ttl_ms   as for RedLock_Lock.
 * @param wait_ms  0: one attempt. More than 0: try until this many milliseconds have passed. Less than 0:
 *                 try until the lock is taken. In any case one attempt is made, and that attempt is not cut
 *                 short.
 * @param lease    as for RedLock_Lock.
 * @return as for RedLock_Lock.
 */
RedLockStatus RedLock_TryLock(RedLock *rl,
                              const char *resource,
                              int64_t ttl_ms,
                              int64_t wait_ms,
                              RedLockLease *lease);

/**
 * Takes a lock or renews it. If the lease passed still holds the lock, this function works as
 * RedLock_Extend. The same applies if an earlier lease that was passed to this function with the same
 * manager and resource still holds the lock. The lease passed then becomes one more handle of that lock.
 * Otherwise this function works as RedLock_Lock. In both cases it tries as often as RedLock_SetRetry says.
 *
 * @param rl       the manager.
 * @param resource as for RedLock_Lock.
 * @param ttl_ms   as for RedLock_Lock, counted from now.
 * @param lease    empty, or a lease that holds this resource. A lease that holds another resource is
 *                 REDLOCK_INVALID_ARGUMENT.
 * @return as for RedLock_Lock if the lock had to be taken, as for RedLock_Extend if it was held.
 *         REDLOCK_LOST reports once that a lock was lost before its expiry; the next call takes the lock
 *         again. A lock that had expired is taken again at once, with REDLOCK_OK and another token, even if
 *         somebody else held it in between. After REDLOCK_UNREACHABLE, a lock that was held is still held
 *         until its old expiry.
 */
RedLockStatus RedLock_ContinueLock(RedLock *rl,
                                   const char *resource,
                                   int64_t ttl_ms,
                                   RedLockLease *lease);

/**
 * Gives a held lock a new TTL, counted from now, with the same token. One round, no retries. A TTL shorter
 * than the remaining time does not shorten the lock, and returns REDLOCK_OK.
 *
 * @param rl     a manager with the servers that the lock was taken on.
 * @param lease  the lock.
 * @param ttl_ms as for RedLock_Lock.
 * @return REDLOCK_OK: RedLockLease_ValidityMs returns the new validity. REDLOCK_LOST: the lock had expired,
 *         been deleted or been taken over; the lease is now empty. REDLOCK_UNREACHABLE: too few servers
 *         answered; a valid lock stays valid until its old expiry. REDLOCK_CANCELLED: the same.
 *         REDLOCK_INVALID_ARGUMENT, REDLOCK_NO_SERVERS, REDLOCK_FORKED, REDLOCK_INTERNAL.
 */
RedLockStatus RedLock_Extend(RedLock *rl,
                             RedLockLease *lease,
                             int64_t ttl_ms);

/**
 * Releases a lock: deletes it on the servers where it still belongs to this lease. A lock of another holder
 * is never changed.
 *
 * @param rl    the manager that took the lock. Another manager with the same servers works, too. But then a
 *              server that has not yet carried out the request that took the lock, or that set its key again
 *              after the server had lost it, may keep the key until its TTL expires, and waiting callers may
 *              learn of the release up to a second later.
 * @param lease the lock.
 * @return REDLOCK_OK: the lock is released, and the lease is now empty. If RedLock_Retain has added levels,
 *         this call leaves one level instead, and the lock is still held. REDLOCK_LOST: the lock had already
 *         ended, or the lease holds none. REDLOCK_UNREACHABLE: the release did not reach some servers. It
 *         reaches them when they are back, if this manager is in use then; otherwise the lock expires there.
 *         The lease counts as released but keeps its token, and the caller may call this function again.
 *         REDLOCK_CANCELLED: the same. REDLOCK_INVALID_ARGUMENT, REDLOCK_NO_SERVERS, REDLOCK_FORKED,
 *         REDLOCK_INTERNAL.
 */
RedLockStatus RedLock_Unlock(RedLock *rl,
                             RedLockLease *lease);

/**
 * Releases a lock, but keeps others out until a time after it was taken. The keys are not deleted: on each server, the
 * key ends least_ms after the lock was taken, and never later than it would have. The lease is empty from now on, as
 * after RedLock_Unlock. No waiting client is woken. Use this for a job that must run once in a fleet of machines whose
 * clocks differ: a machine that is late finds the lock taken although the job is done. If that time has passed, this
 * is RedLock_Unlock. The time counts from when the request that took the lock was sent, by this machine's clock. An
 * extension does not begin it anew; for an adopted lock it counts from the adoption. A server that is told of it late
 * keeps the key longer than the others, at most for its TTL. So does a server that has not yet carried out an extension
 * through another manager, if that extension was cancelled, or had no answer in time, before this call. The ACL user needs
 * the right to use EVAL, GET, PTTL and PEXPIRE.
 *
 * @param rl       as for RedLock_Unlock.
 * @param lease    the lock. Not a shared lock, nor a permit. With several resources, this applies to each of them.
 * @param least_ms how long others are kept out, in milliseconds from when the lock was taken: 0 to its TTL.
 * @return as for RedLock_Unlock. If it is called again after REDLOCK_UNREACHABLE, or RedLock_Unlock is, the keys still
 *         stay until the end of that time.
 */
RedLockStatus RedLock_UnlockAfter(RedLock *rl,
                                  RedLockLease *lease,
                                  int64_t least_ms);

/**
 * Asks the servers whether this lease still holds its lock on a quorum, and for how long. Use this right
 * before a step that cannot be undone. It changes nothing on the servers. Afterwards, the lease is valid no
 * longer than a quorum of the servers that answered has the lock.
 *
 * @param rl       a manager with the servers that the lock was taken on.
 * @param lease    the lock.
 * @param least_ms the required validity in milliseconds, at least 0.
 * @return REDLOCK_OK: the lock is held for at least that long. REDLOCK_TOO_SHORT: the lock is held, but not
 *         for that long; it stays held. REDLOCK_LOST: the lock is not held. REDLOCK_UNREACHABLE: too few
 *         servers answered. REDLOCK_CANCELLED. REDLOCK_INVALID_ARGUMENT, REDLOCK_NO_SERVERS, REDLOCK_FORKED,
 *         REDLOCK_INTERNAL.
 */
RedLockStatus RedLock_Confirm(RedLock *rl,
                              RedLockLease *lease,
                              int64_t least_ms);

/**
 * Asks the servers whether any client holds a resource on a quorum. The answer may be out of date when it
 * arrives: to get a lock, take it without asking first. RedLock_Inspect reports more.
 *
 * @param rl       the manager.
 * @param resource as for RedLock_Lock.
 * @param locked   receives the answer; false on failure.
 * @return REDLOCK_OK, REDLOCK_UNREACHABLE, REDLOCK_INVALID_ARGUMENT, REDLOCK_NO_SERVERS, REDLOCK_FORKED (a
 *         callback forked, and this process is the child), REDLOCK_INTERNAL. RedLock_ErrorMessage(rl) has
 *         the message.
 */
RedLockStatus RedLock_IsLocked(RedLock *rl,
                               const char *resource,
                               bool *locked);

/**
 * Creates an empty lease.
 *
 * @return the lease. The caller owns it and must free it with RedLockLease_Free. NULL if the lease could not
 *         be created. Any thread may call this.
 */
RedLockLease *RedLockLease_New(void);

/**
 * Frees the memory of a lease, and nothing else. A lock that the lease holds stays held until it expires,
 * and is no longer kept alive. A submitted call that uses the lease is cancelled, but its event still comes,
 * unless RedLockLease_SetDoneEvents has switched it off.
 * This function does not wait. In a child process it touches nothing that belongs to the parent.
 *
 * @param lease a lease, or NULL, which does nothing. The lease must not be used after this call, nor freed
 *              twice.
 */
void RedLockLease_Free(RedLockLease *lease);

/**
 * Sets whether each call that is submitted with this lease has an event of its end (REDLOCK_EVENT_DONE). Without
 * one, only RedLock_Wait returns the result, and no other thread can take it. REDLOCK_EVENT_LOST comes in any case.
 *
 * @param lease   the lease.
 * @param enabled true, the default: the end of a call is an event. false: it is kept for RedLock_Wait.
 * @return REDLOCK_OK. REDLOCK_INVALID_ARGUMENT: the lease is NULL, or in use by a call. REDLOCK_FORKED. No I/O.
 */
RedLockStatus RedLockLease_SetDoneEvents(RedLockLease *lease,
                                         bool enabled);

/**
 * Tells whether the lock is held and valid now, by this machine's clock. No I/O.
 *
 * @param lease a lease, or NULL.
 * @return true if the lock is held and valid; false for NULL, and in a child process for a lock of its
 *         parent.
 */
bool RedLockLease_IsHeld(const RedLockLease *lease);

/**
 * Returns how long the lock is valid from now on. The value counts down, and is never more than the servers
 * would report. After a server's clock was set, this is true again once RedLock_Extend or RedLock_Confirm
 * has asked the servers. No I/O.
 *
 * @param lease a lease, or NULL.
 * @return milliseconds, rounded down; 0 if the lock is not held, and for NULL.
 */
int64_t RedLockLease_RemainingMs(const RedLockLease *lease);

/**
 * Returns the validity of the lock when it was granted, or last extended with this lease. The value does not
 * count down. It does not change when the lock expires, or ends through another handle.
 * RedLockLease_RemainingMs returns the remaining validity. No I/O.
 *
 * @param lease a lease, or NULL.
 * @return milliseconds; 0 if the lease is empty, and for NULL.
 */
int64_t RedLockLease_ValidityMs(const RedLockLease *lease);

/**
 * Returns the resource of the last locking call on this lease; the first of several.
 *
 * @param lease a lease, or NULL.
 * @return a string that belongs to the lease, valid until the next call that changes the lease; empty if
 *         there was no such call yet, and for NULL.
 */
const char *RedLockLease_Resource(const RedLockLease *lease);

/**
 * Returns the size of the resource that RedLockLease_Resource returns. If the resource contains NULs, that
 * string seems to end early. No I/O.
 *
 * @param lease a lease, or NULL.
 * @return bytes, without the NUL at the end; 0 for NULL.
 */
size_t RedLockLease_ResourceSize(const RedLockLease *lease);

/**
 * Returns the token, which is the value of the key on the servers. It has 40 upper-case hexadecimal digits:
 * 20 bytes from the operating system's random source. Keep the token secret, because anyone who knows it can
 * release the lock.
 *
 * @param lease a lease, or NULL.
 * @return a string that belongs to the lease, valid until the next call that changes the lease. The token
 *         stays when the lock expires, is found to be lost, or ends through another handle, because the
 *         lease may still be needed to clean up. Empty if the lease is empty, and for NULL.
 */
const char *RedLockLease_Token(const RedLockLease *lease);

/**
 * Returns the message of the last locking call on this lease. After a failure: what was wrong, or the votes
 * counted and what each server answered. After a success: which servers could not take part, and why.
 *
 * @param lease a lease, or NULL.
 * @return a human-readable string that belongs to the lease, valid until the next call that changes the
 *         lease; empty after a success in which no server failed.
 */
const char *RedLockLease_ErrorMessage(const RedLockLease *lease);

/**
 * Copies the message that RedLockLease_ErrorMessage returns. Use this for a lease that another thread may
 * use at the same time, because that thread could change the string while it is read.
 *
 * @param lease   a lease, or NULL.
 * @param message receives the text, truncated to the size of the buffer, and a NUL. May be NULL if size is 0.
 * @param size    the size of the buffer in bytes, including the NUL.
 * @return the length of the text in bytes, without the NUL. If it is not less than size, the text was
 *         truncated.
 */
size_t RedLockLease_CopyErrorMessage(const RedLockLease *lease,
                                     char *message,
                                     size_t size);

/**
 * Begins to take a lock as the options say. This function does not wait. The call is sent, and continues,
 * whenever a thread drives the library, as in RedLock_NextEvent. RedLock_Descriptor tells when that is due.
 *
 * The lease belongs to the call until its event is taken. Until then, other calls on the lease are refused,
 * except RedLock_Cancel and calls that only read the lease. Freeing the lease cancels the call.
 *
 * Any number of calls may be under way at once. At most 512 of them ask the servers at the same time. The
 * others wait their turn, and the time of their locks does not begin before that.
 *
 * @param rl        the manager.
 * @param options   the options; read during the call only.
 * @param lease     as for RedLock_Lock.
 * @param user_data comes with the event.
 * @return REDLOCK_OK: exactly one event with REDLOCK_EVENT_DONE follows, whose status is one that
 *         RedLock_Acquire can return. After any other status, no event follows. REDLOCK_INVALID_ARGUMENT,
 *         REDLOCK_NO_SERVERS, REDLOCK_FORKED, REDLOCK_INTERNAL. Any thread may call this.
 */
RedLockStatus RedLock_SubmitAcquire(RedLock *rl,
                                    const RedLockAcquireOptions *options,
                                    RedLockLease *lease,
                                    void *user_data);

/**
 * Begins to give a held lock a new TTL, as RedLock_Extend does. See RedLock_SubmitAcquire.
 *
 * @param rl        as for RedLock_Extend.
 * @param lease     the lock.
 * @param ttl_ms    as for RedLock_Extend, counted from the moment when the request is sent.
 * @param user_data comes with the event.
 * @return as for RedLock_SubmitAcquire, and REDLOCK_LOST: the lease holds no lock. The status of the event
 *         is one that RedLock_Extend can return.
 */
RedLockStatus RedLock_SubmitExtend(RedLock *rl,
                                   RedLockLease *lease,
                                   int64_t ttl_ms,
                                   void *user_data);

/**
 * Begins to release a lock, as RedLock_Unlock does. See RedLock_SubmitAcquire.
 *
 * @param rl        as for RedLock_Unlock.
 * @param lease     the lock.
 * @param user_data comes with the event.
 * @return as for RedLock_SubmitExtend. The status of the event is one that RedLock_Unlock can return.
 */
RedLockStatus RedLock_SubmitUnlock(RedLock *rl,
                                   RedLockLease *lease,
                                   void *user_data);

/**
 * Begins to release a lock and to keep others out for a while, as RedLock_UnlockAfter does. See
 * RedLock_SubmitAcquire.
 *
 * @param rl        as for RedLock_UnlockAfter.
 * @param lease     the lock.
 * @param least_ms  as for RedLock_UnlockAfter.
 * @param user_data comes with the event.
 * @return as for RedLock_SubmitExtend. The status of the event is one that RedLock_UnlockAfter can return.
 */
RedLockStatus RedLock_SubmitUnlockAfter(RedLock *rl,
                                        RedLockLease *lease,
                                        int64_t least_ms,
                                        void *user_data);

/**
 * Begins to confirm a lock, as RedLock_Confirm does: asks the servers whether this lease still holds it. See
 * RedLock_SubmitAcquire.
 *
 * @param rl        as for RedLock_Confirm.
 * @param lease     the lock.
 * @param least_ms  as for RedLock_Confirm.
 * @param user_data comes with the event.
 * @return as for RedLock_SubmitExtend. The status of the event is one that RedLock_Confirm can return.
 */
RedLockStatus RedLock_SubmitConfirm(RedLock *rl,
                                    RedLockLease *lease,
                                    int64_t least_ms,
                                    void *user_data);

/**
 * Begins to take over a lock that was given away, as RedLock_Adopt does. See RedLock_SubmitAcquire. If the
 * lease is freed after the lock was adopted and before the event is taken, the lock is released.
 *
 * @param rl        as for RedLock_Adopt.
 * @param ticket    as for RedLock_Adopt; read during the call only.
 * @param lease     as for RedLock_Adopt.
 * @param user_data comes with the event.
 * @return as for RedLock_SubmitAcquire. The status of the event is one that RedLock_Adopt can return.
 */
RedLockStatus RedLock_SubmitAdopt(RedLock *rl,
                                  const char *ticket,
                                  RedLockLease *lease,
                                  void *user_data);

/**
 * Keeps a held lock alive until it is unlocked. The lock is extended, with the TTL that it was given last,
 * when a sixth to a third of that TTL has passed. This is done by the thread that drives the library at that time,
 * in RedLock_NextEvent or in any call that waits. A driver is needed for as long as the lock is held: the thread
 * of RedLock_SetBackgroundThread, an event loop with RedLock_Descriptor, or threads that call RedLock_NextEvent or
 * are in RedLock_Wait, in this process (a forked child needs its own). Without one, this function fails. A
 * server that is slow or down does no harm as long as a quorum is left. A lost lock is never taken again.
 *
 * If the lock cannot be kept alive, REDLOCK_EVENT_LOST follows once, while at least a tenth of the TTL is
 * left. From then on the lock is no longer extended. A call may find that the servers hold the lock for less
 * than that, because they lost keys or a clock was set. Then the event follows at once. If that call was
 * made on another manager, the event follows when the lock is next due to be extended. There is no event for
 * a lock that was unlocked, or whose lease was freed or used for another lock. Such a lock is no longer kept
 * alive either. A lock that is kept alive ends with its process, at the latest one TTL after it.
 *
 * @param rl        a manager with the servers that the lock was taken on.
 * @param lease     the lock. It may be used for other calls. If this function is called twice, the later
 *                  user_data applies.
 * @param user_data comes with the event.
 * @return REDLOCK_OK, REDLOCK_LOST: the lock is not held. REDLOCK_INVALID_ARGUMENT, also if nothing drives the
 *         manager. REDLOCK_NO_SERVERS, REDLOCK_FORKED, REDLOCK_INTERNAL. No I/O.
 */
RedLockStatus RedLock_KeepAlive(RedLock *rl,
                                RedLockLease *lease,
                                void *user_data);

/**
 * Returns a descriptor for a program with an event loop of its own: poll, epoll, libuv, libevent, asyncio.
 * The descriptor is readable (level-triggered) whenever RedLock_NextEvent has work to do or an event to
 * return, also when a timer is due. Wait only for the descriptor to become readable, never read from it, and
 * do not close it. It belongs to the manager, and is closed with the manager.
 *
 * @param rl the manager.
 * @return the descriptor, the same with each call; -1 if there is none: RedLock_ErrorMessage(rl) gives the
 *         reason. A forked child has a descriptor of its own. Any thread may call this.
 */
int RedLock_Descriptor(RedLock *rl);

/**
 * Does the work that is due, and returns one event. The work is that of submitted calls and of locks that
 * are kept alive. This function calls password callbacks and loggers.
 *
 * If a submitted call cannot connect before names are looked up, this function does that, which may take as long as
 * the system's resolver takes. It does not if the program has asked RedLock_IsLookUpDue before and wait_ms is not
 * less than 0: then it returns, perhaps before the time is over, and the program has RedLock_LookUp called. An address
 * needs no look-up.
 *
 * @param rl      the manager.
 * @param wait_ms how long to wait for an event, in milliseconds. 0: do not wait. Less than 0: wait without
 *                limit. Meanwhile this thread does the work that is due for all calls, as does every thread
 *                that waits in a call.
 * @param event   receives the event. Its size must be set.
 * @return REDLOCK_OK with an event. REDLOCK_NO_EVENT without an event: there was none in that time, or a look-up
 *         has become due.
 *         REDLOCK_INVALID_ARGUMENT, REDLOCK_NO_SERVERS, REDLOCK_FORKED (a callback forked, and this process
 *         is the child), REDLOCK_INTERNAL. RedLock_ErrorMessage(rl) has the message. Any number of threads
 *         may call this at once: each event is returned once, to one of them.
 */
RedLockStatus RedLock_NextEvent(RedLock *rl,
                                int64_t wait_ms,
                                RedLockEvent *event);

/**
 * Waits for the submitted call that uses a lease. This is for a program that waits in a thread and must stay
 * interruptible: it submits the call, waits in slices with this function, looks after its other duties between two
 * slices, and calls RedLock_Cancel to give up. The call goes on between two slices, so a caller keeps its place in
 * the queue of its resource. After RedLock_Cancel the program must call this function once more, with wait_ms less
 * than 0. That returns at once: REDLOCK_CANCELLED, or the result of a call that had ended before. So no lock is
 * taken between the last slice and the cancellation without the program being told.
 *
 * Any number of threads may wait at once, each for a lease of its own. One of them does the work that is due for
 * all. If the call ends while no thread is in this function, its end is an event as usual. It is for whoever comes
 * first: this function, RedLock_NextEvent, or the function of RedLock_SetEventCallback. With
 * RedLockLease_SetDoneEvents(lease, false) it is for this function alone. Names are looked up as by RedLock_NextEvent.
 *
 * @param rl      the manager that the call was submitted to.
 * @param lease   the lease of the call.
 * @param wait_ms how long to wait, in milliseconds. 0: do the work that is due, and do not wait. Less than 0: until
 *                the call has ended.
 * @return the status of the call, as its event would have it, when the call has ended: there is then no event, and
 *         the lease can be used again. REDLOCK_NO_EVENT: the call is still under way, after that time or because a
 *         look-up has become due. REDLOCK_INVALID_ARGUMENT: an
 *         argument is NULL, the lease has no submitted call on this manager (its event was taken), or
 *         another thread waits for it. REDLOCK_NO_SERVERS, REDLOCK_FORKED (a callback forked, and this process is
 *         the child), REDLOCK_INTERNAL. RedLockLease_ErrorMessage(lease) has the message. Any thread may call this.
 */
RedLockStatus RedLock_Wait(RedLock *rl,
                           RedLockLease *lease,
                           int64_t wait_ms);

/**
 * Sets whether the manager has a thread of its own, named "redlock". This thread does the work that is due
 * for submitted calls and for locks that are kept alive, whenever no other thread does, and sleeps
 * otherwise. The program then does not need to call RedLock_NextEvent in time. All signals are blocked in
 * the thread. Password callbacks and loggers may be called on it. The thread starts with the first call that
 * asks servers. When it needs the name of a server to be looked up, a second thread, "redlock-names", waits for the
 * system's resolver, and ends with the look-up. A forked child has no such thread unless it asks for its own.
 *
 * @param rl         the manager.
 * @param background true: the manager uses such a thread. false, the default: no thread is ever started, and
 *                   an existing thread has ended when this function returns, unless this function is called
 *                   on that thread. This function therefore waits for a callback that runs on the thread.
 *                   RedLock_Free does not wait: there the thread ends soon after.
 * @return REDLOCK_OK, REDLOCK_INVALID_ARGUMENT, REDLOCK_FORKED, REDLOCK_INTERNAL: the system could not
 *         create a thread.
 */
RedLockStatus RedLock_SetBackgroundThread(RedLock *rl,
                                          bool background);

/**
 * Sets a function that receives events on the manager's own thread. That is the thread of
 * RedLock_SetBackgroundThread. The function is called with one event at a time, and with nothing held. It
 * may therefore call this library, also with the lease of the event. Each event is delivered once, to this
 * function or by RedLock_NextEvent. While the function runs, that thread does nothing else: locks are kept
 * alive only if another thread is in a call. The function must not unwind (longjmp, throw) through the
 * library.
 *
 * @param rl        the manager.
 * @param callback  the function, or NULL for none.
 * @param user_data passed to the function unchanged; may be NULL. It must stay valid for as long as the
 *                  user_data of RedLock_SetLogger.
 * @param destroy   as for RedLock_SetLogger. NULL: nobody needs to be told.
 * @return REDLOCK_OK, REDLOCK_INVALID_ARGUMENT, REDLOCK_FORKED.
 */
RedLockStatus RedLock_SetEventCallback(RedLock *rl,
                                       RedLockEventCallback callback,
                                       void *user_data,
                                       RedLockDestroy destroy);

/**
 * Cancels the call, blocking or submitted, that uses a lease. The call ends with REDLOCK_CANCELLED, and
 * nothing of it stays locked. Anything that servers may have granted is released, at once or queued behind
 * the request. A lock that was held before the call stays held. If RedLock_Unlock is cancelled, its lock is
 * still being released, and RedLock_Unlock may be called again. A call that has just ended keeps its own
 * status, and its event comes as if nothing had been cancelled. Without such a call this function does
 * nothing. A password callback that is running is not cut short.
 *
 * @param rl    the manager that the call is made on.
 * @param lease the lease of the call.
 * @return REDLOCK_OK, REDLOCK_INVALID_ARGUMENT. Any thread may call this, also while another thread is in
 *         the call.
 */
RedLockStatus RedLock_Cancel(RedLock *rl,
                             RedLockLease *lease);

/**
 * Takes a lock as the options say, and waits for it. RedLock_Lock and RedLock_TryLock are short forms of
 * this function. Callers wait in a queue as for RedLock_Lock.
 *
 * Several resources (`resources`) are one lock, with one token, one validity and one fencing token. A server
 * grants the lock by setting all of its keys in one step. It sets no key if another holder has one of them.
 * The lock is extended as a whole, and lost as a whole. Each key is the same as for a lock of that resource
 * alone. This lock and every lock of one of its resources therefore exclude each other. A caller that wants
 * { a, b } and a caller that wants { b, a } never wait for each other. The message names the resource that
 * is in the way by its number: "resource 3 of 5 held by another client (8211 ms left)".
 *
 * In the queue of this manager, a caller that waits for several resources keeps a free resource from other
 * callers for at most 100 ms. After that, the other callers come first, until the resource that it waits for
 * is released.
 *
 * @param rl      the manager.
 * @param options the options; read during the call only.
 * @param lease   as for RedLock_Lock.
 * @return as for RedLock_Lock, and REDLOCK_CANCELLED: RedLock_Cancel ended the call.
 */
RedLockStatus RedLock_Acquire(RedLock *rl,
                              const RedLockAcquireOptions *options,
                              RedLockLease *lease);

/**
 * Makes an exclusive lock shared. Its holder continues as a reader, and other readers can take the lock. No
 * writer can hold the lock in between. The lock keeps its token, its fencing token and its expiry. A lock
 * that is already shared does not change.
 *
 * A shared lock cannot be made exclusive, because two readers that wait for each other to leave would wait
 * forever. To hold the lock exclusively again, unlock it and take it again.
 *
 * @param rl    a manager with the servers that the lock was taken on.
 * @param lease the lock.
 * @return REDLOCK_OK: a quorum holds the lock as shared. REDLOCK_LOST: as for RedLock_Extend; the lease is
 *         now empty. REDLOCK_UNREACHABLE: too few servers answered. The lock is still held until its old
 *         expiry. If any server was asked, the lock counts as shared from then on, and RedLockLease_Mode
 *         says so, because readers may be let in at any time. The caller may call this function again, and
 *         an extension also makes the lock shared. REDLOCK_CANCELLED: the same. REDLOCK_INVALID_ARGUMENT,
 *         REDLOCK_NO_SERVERS, REDLOCK_FORKED, REDLOCK_INTERNAL.
 */
RedLockStatus RedLock_Downgrade(RedLock *rl,
                                RedLockLease *lease);

/**
 * Begins to make an exclusive lock shared, as RedLock_Downgrade does. See RedLock_SubmitAcquire.
 *
 * @param rl        as for RedLock_Downgrade.
 * @param lease     the lock.
 * @param user_data comes with the event.
 * @return as for RedLock_SubmitExtend. The status of the event is one that RedLock_Downgrade can return.
 */
RedLockStatus RedLock_SubmitDowngrade(RedLock *rl,
                                      RedLockLease *lease,
                                      void *user_data);

/**
 * Returns how a lease holds its lock, or held it if the lock has ended. No I/O.
 *
 * @param lease a lease, or NULL.
 * @return REDLOCK_SHARED: others can hold the lock at the same time. REDLOCK_EXCLUSIVE: nobody else can, or
 *         the lease is empty or NULL. More values may be added later.
 */
int32_t RedLockLease_Mode(const RedLockLease *lease);

/**
 * Returns the number of resources of the last locking call on this lease. No I/O.
 *
 * @param lease a lease, or NULL.
 * @return 1, or the number of RedLockAcquireOptions.resources; 0 if there was no such call yet, and for
 *         NULL.
 */
size_t RedLockLease_ResourceCount(const RedLockLease *lease);

/**
 * Returns one resource of the last locking call on this lease. They have the order in which they were given.
 * No I/O.
 *
 * @param lease a lease, or NULL.
 * @param index which resource: from 0, below RedLockLease_ResourceCount.
 * @return a string that belongs to the lease, valid until the next call that changes the lease; empty if
 *         there is no such resource, and for NULL.
 */
const char *RedLockLease_ResourceAt(const RedLockLease *lease,
                                    size_t index);

/**
 * Adds a level to a held lock: one more RedLock_Unlock is needed to release it. Use this for code that calls
 * code that takes the same lock. The count belongs to the lease: all code that has the lease holds the lock,
 * at any level and on any thread. No I/O.
 *
 * An inner level lasts no longer than the lock. If RedLockLease_RemainingMs is less than the inner level
 * needs, call RedLock_Extend first.
 *
 * The other functions treat a lock with several levels as follows:
 *  - RedLock_Unlock and RedLock_SubmitUnlock leave the innermost level. Only the last unlock asks servers.
 *    The others end with REDLOCK_OK, or with REDLOCK_LOST if the lock is known to be lost or has expired.
 *    The level is left in both cases. A lost lock is therefore reported at every level.
 *  - RedLock_Extend, RedLock_Confirm and RedLock_KeepAlive apply to the lock, at whatever level they are
 *    called. The lock is kept alive until it is released. If RedLock_Extend finds the lock lost, the lease
 *    is empty, and each RedLock_Unlock returns REDLOCK_LOST.
 *  - RedLock_ContinueLock extends the lock, and the levels stay. Another lease that continues the lock has a
 *    count of its own: its RedLock_Unlock releases the lock for all leases.
 *  - RedLock_Detach refuses the lock: REDLOCK_INVALID_ARGUMENT.
 *  - RedLock_Cancel and RedLockLease_Free do what they do without levels. RedLockLease_Free releases
 *    nothing.
 *  - A lease that is used for another lock begins with one level.
 *  - A child process holds no lock of its parent, at any level: REDLOCK_FORKED.
 *
 * @param lease the lock.
 * @return REDLOCK_OK. REDLOCK_LOST: the lock is not held, and no level was added. REDLOCK_INVALID_ARGUMENT:
 *         also if there are 2147483647 levels, or a submitted call uses the lease. REDLOCK_FORKED,
 *         REDLOCK_INTERNAL. RedLockLease_ErrorMessage(lease) has the message. Any thread may call this.
 */
RedLockStatus RedLock_Retain(RedLockLease *lease);

/**
 * Returns the number of levels of the lock: how many calls of RedLock_Unlock it takes to release it. No I/O.
 *
 * @param lease a lease, or NULL.
 * @return 1 for a lock without RedLock_Retain, also when it has expired. 0 if the lease is empty, for NULL,
 *         and in a child process for a lock of its parent.
 */
int32_t RedLockLease_Levels(const RedLockLease *lease);

/**
 * Sets whether locks come with a fencing token. This is a number that is greater than the numbers of all
 * earlier locks of the same resource. Pass it with each write to the system that the lock protects. That
 * system must refuse a number that is less than the greatest it has seen, as a database does with UPDATE ...
 * WHERE fence <= :token. Then a holder that was paused beyond the end of its lock cannot undo what the next
 * holder wrote.
 *
 * To draw tokens, each server keeps numbers for all resources in the key redlock:fence, which has no TTL. Do
 * not lock a resource with this name. The user needs the right to use this key, and TIME, HMGET, HSET, HDEL
 * and HGETALL in addition to what other locks need. Taking a lock needs a second round trip only if the
 * numbers of the servers differ, as after an outage of one server.
 *
 * All clients that lock the resource must use this. A lock that is taken without it draws no token, and a
 * token distinguishes its holder only from holders of other tokens. Tokens grow whatever the clocks show, as
 * long as servers lose their memory one after another, with the restart guard on (RedLock_SetRestartGuard). A
 * server that lost its memory has no vote for locks with tokens until its numbers are restored from the other
 * servers. If too many lose it at once, tokens grow unless clocks are set back.
 *
 * @param rl      the manager.
 * @param enabled true: locks that are taken from now on have a token. false, the default: they have none.
 * @return REDLOCK_OK or REDLOCK_INVALID_ARGUMENT.
 */
RedLockStatus RedLock_SetFencing(RedLock *rl,
                                 bool enabled);

/**
 * The fencing token of the lock. It does not change when the lock is extended. It stays available when the
 * lock has expired or was lost, until the lease is unlocked or used for another lock. No I/O.
 *
 * @param lease a lease, or NULL.
 * @return a number above 0 and below 2^53, which a double holds exactly. 0 if the lease is empty, if the
 *         lock was taken without a token (RedLock_SetFencing), and for NULL.
 */
int64_t RedLockLease_FencingToken(const RedLockLease *lease);

/**
 * Reports what is known of each server, for a person or a monitor. No server is asked, and the call does not
 * wait. Before the first call that asks servers, none is connected. RedLock_Connect is such a call.
 *
 * @param rl    the manager.
 * @param infos receives one struct for each server, in the order in which they were added, as far as there
 *              is room. Begin the first one with REDLOCK_SERVER_INFO_INIT: its size applies to all of them.
 *              May be NULL if *count is 0.
 * @param count the number of structs that there is room for. Receives the number of servers, which may be
 *              greater.
 * @return REDLOCK_OK. REDLOCK_INVALID_ARGUMENT or REDLOCK_FORKED (the parent was using the manager when it
 *         forked): RedLock_ErrorMessage(rl) returns the message. Any thread may call this.
 */
RedLockStatus RedLock_Servers(RedLock *rl,
                              RedLockServerInfo *infos,
                              size_t *count);

/**
 * Sets how the manager guards against servers that forget their locks. A server forgets them by a restart
 * without its data, by FLUSHALL, by a failover to a copy, or if an empty server takes over its address. Such
 * a server might grant a lock that another client still holds on it.
 *
 * Each server bears a note of its memory in the key redlock:guard, which has no TTL. The user needs the right
 * to read and write this key, and to use INFO, TIME, PEXPIRETIME (Redis 7.0), GETRANGE, GET, SET and EVAL.
 * Without this right the server has a vote but is not guarded, and RedLock_Servers reports this. The note is
 * read when a connection begins, and again along with every acquire. If the note is missing or belongs to
 * another server process, the grants of the server are not votes for a time. This time is the longest of these
 * TTLs: the requested one, those noted on any server, and longest_ttl_ms. It is at least 3 s, and at most
 * cap_ms.
 *
 * A server whose append-only file is always synced (appendfsync always) forgets nothing when it restarts,
 * and has its vote at once. If all servers were asked and none has a note, the library takes them for new
 * servers, which have their votes at once. So if all servers lose everything at the same moment, nobody can
 * tell.
 *
 * A server whose clock is set forward expires keys before their time. A client that was connected to it
 * before notices this at its next acquire. Then it takes no vote of that server for as long as of a server
 * that has forgotten its locks.
 *
 * A server that may evict keys (maxmemory with another maxmemory-policy than noeviction) is refused, unless
 * the mode is REDLOCK_GUARD_OFF.
 *
 * @param rl             the manager.
 * @param mode           REDLOCK_GUARD_ON, the default, REDLOCK_GUARD_STRICT, REDLOCK_GUARD_OFF or
 *                       REDLOCK_GUARD_DURABLE. It applies to connections that are made from now on.
 * @param longest_ttl_ms the longest TTL that any client uses on these servers, 0 to 315360000000 (ten
 *                       years). 0, the default: the TTL that is noted on the servers. This is enough unless
 *                       several of them are lost at once.
 * @param cap_ms         the longest time that a server stays without a vote, 0 to 315360000000; less than
 *                       3000 is 3000. 0, the default: 600000. Locks with a longer TTL are guarded for that
 *                       time only.
 * @return REDLOCK_OK or REDLOCK_INVALID_ARGUMENT.
 */
RedLockStatus RedLock_SetRestartGuard(RedLock *rl,
                                      int32_t mode,
                                      int64_t longest_ttl_ms,
                                      int64_t cap_ms);

/**
 * Sets whether a master that Sentinels watch needs a majority of them for its vote. If enabled, it has a vote only
 * while a majority of all its Sentinels names it as the master. They are asked about once a second while locks are
 * taken, in parallel with the requests. So an old master that was paused or cut off while another one was elected
 * never votes beside its successor.
 *
 * If not enabled, one Sentinel that answers is enough, and a master keeps its vote while no Sentinel can be
 * reached. Then an old master may vote beside its successor, and two clients may hold one lock.
 *
 * This has no effect on servers that no Sentinel watches. Nor has it any effect if the restart guard is off or
 * durable (RedLock_SetRestartGuard), because the servers bear no notes then.
 *
 * @param rl      the manager.
 * @param enabled true, the default, or false. It applies to connections that are made from now on.
 * @return REDLOCK_OK or REDLOCK_INVALID_ARGUMENT.
 */
RedLockStatus RedLock_SetFailoverGuard(RedLock *rl,
                                       bool enabled);

/**
 * Sets whether a release wakes waiting callers. If enabled, waiting calls of this manager are notified when any
 * process releases the lock, and the releases of this manager notify waiting callers. This is the default, and
 * costs little: a lock that is held for long is rarely asked for, and still changes hands in a few round
 * trips. Servers need no configuration.
 *
 * While a call waits (RedLock_TryLock, RedLock_Acquire and RedLock_SubmitAcquire with a wait_ms that is
 * not 0), its manager has a place in a wait queue on each server. This queue is a sorted set whose name is
 * the resource followed by :w. It expires when nobody has waited for a while. So do not lock a resource with
 * such a name. The manager listens to a channel of its own: redlock:w: and 32 hexadecimal digits. A release
 * publishes to the channel of the manager that has waited longest. The order is nearly the order of arrival,
 * and is not guaranteed.
 *
 * All of this only decides when a caller asks. It does not decide who holds a lock. If a caller cannot be
 * woken, it asks from time to time, as it does for locks that expire or that another kind of client releases.
 * If a lock changes hands twice and no client is woken, because clients of other libraries want it, too, one
 * waiting caller of this manager asks every 20 ms on average, until a caller is woken. This is the case with
 * servers older than Redis 6.0. It is also the case if the ACL user lacks the right to the channel (Redis 7.0
 * gives new users none), to the key :w, or to HELLO, SUBSCRIBE, PUBLISH, EXISTS, TIME, ZADD, ZCARD, ZRANK,
 * ZRANGE, ZREM and ZPOPMIN, which it needs in addition to what other locks need. A line in the log reports
 * this.
 *
 * @param rl      the manager.
 * @param enabled true, the default, or false: callers of this manager ask from time to time, and its
 *                releases notify nobody. Set this before the first call that asks servers, because existing
 *                connections do not change.
 * @return REDLOCK_OK or REDLOCK_INVALID_ARGUMENT.
 */
RedLockStatus RedLock_SetWaking(RedLock *rl,
                                bool enabled);

/**
 * Sets the user and the password for servers whose URLs name none. A URL that names both, or only a
 * password, is not affected. A URL that names only a user gets the password. Existing connections stay as
 * they are. Nothing needs to be escaped here, unlike in a URL.
 *
 * @param rl       the manager.
 * @param user     the name of an ACL user, or NULL for the default user. Must not be empty.
 * @param password the password, or NULL. NULL with a user: that user needs no password. NULL without a user:
 *                 no log-in at all, which is the default. Must not be empty.
 * @return REDLOCK_OK, REDLOCK_INVALID_ARGUMENT, REDLOCK_FORKED.
 */
RedLockStatus RedLock_SetCredentials(RedLock *rl,
                                     const char *user,
                                     const char *password);

/**
 * Sets the user and the password from two environment variables. This is RedLock_SetCredentials with the
 * values of these variables, so that neither value is in the program or on a command line. The variables are
 * read now, and not again. In a program that has more rights than its user (setuid, setgid, capabilities)
 * neither is read. Otherwise the user who starts the program could choose its identity on the servers.
 *
 * @param rl                the manager.
 * @param user_variable     the name of the variable that holds the user, or NULL for the default user.
 * @param password_variable the name of the variable that holds the password.
 * @return REDLOCK_OK. REDLOCK_INVALID_ARGUMENT if a variable is not set, is empty, or must not be read: the
 *         message says which of the two variables it is, and never contains the name of a variable or its
 *         value. REDLOCK_FORKED.
 */
RedLockStatus RedLock_SetCredentialsFromEnv(RedLock *rl,
                                            const char *user_variable,
                                            const char *password_variable);

/**
 * Sets a function that provides the password for each server whose URL names none. The library calls it when
 * it connects to a server for the first time, and again when the server did not accept the last answer. So a
 * password may be changed while the program runs. The function is called on a thread that is in a call to
 * this library, or on the thread of RedLock_SetBackgroundThread. No mutex is held, and two threads never
 * call it at once for one server. RedLock_Lock and similar calls, and RedLock_Connect, ask for passwords
 * before they begin. A call on a held lock asks only if too few servers are connected. These calls wait for
 * the function, so it should be quick.
 *
 * The function may call this library, with two limits. The lease of the call that it runs in cannot be used,
 * because it is in use. A call on this manager waits for the answer in vain, up to the timeout for
 * connecting. The function may fork: then the call ends in the child with REDLOCK_FORKED. It must not unwind
 * (longjmp, throw) through the library.
 *
 * @param rl        the manager.
 * @param user      as for RedLock_SetCredentials.
 * @param callback  the function. NULL: ask nobody, and do not log in.
 * @param user_data passed to the function unchanged; may be NULL. It must stay valid for as long as the
 *                  user_data of RedLock_SetLogger.
 * @param destroy   as for RedLock_SetLogger: called once, with user_data, when the library no longer needs
 *                  user_data. RedLock_SetCredentials also replaces the callback. If callback is NULL, or
 *                  this function fails, destroy is called before this function returns. NULL: nobody needs
 *                  to be told.
 * @return REDLOCK_OK, REDLOCK_INVALID_ARGUMENT, REDLOCK_FORKED.
 */
RedLockStatus RedLock_SetPasswordCallback(RedLock *rl,
                                          const char *user,
                                          RedLockPasswordCallback callback,
                                          void *user_data,
                                          RedLockDestroy destroy);

/**
 * Sets which certificates are trusted to identify rediss:// servers. Existing connections stay as they are.
 *
 * @param rl      the manager.
 * @param ca_file the path of a PEM file with certificates: only these are trusted. The file is read now; if
 *                it is a FIFO, the call waits for it. NULL, the default: the certificates that the system
 *                trusts. They are read by the first lock call, from the place where the OpenSSL of the
 *                system looks for them, or from SSL_CERT_FILE and SSL_CERT_DIR of the environment. In a
 *                program that has more rights than its user (setuid, setgid, capabilities) both variables
 *                are ignored, as OpenSSL does.
 * @return REDLOCK_OK. REDLOCK_INVALID_ARGUMENT if the file cannot be used, or if this build has no TLS. The
 *         message says why, but never contains the name of the file: that name might be the certificate or a
 *         key itself. REDLOCK_FORKED.
 */
RedLockStatus RedLock_SetTlsCa(RedLock *rl,
                               const char *ca_file);

/**
 * Sets the client certificate for rediss:// servers that ask for one. Both files are read now. Set them
 * again when they have changed. Existing connections stay as they are.
 *
 * @param rl               the manager.
 * @param certificate_file the path of a PEM file with the client certificate, followed by the certificates
 *                         that lead up to one that the servers trust. NULL, the default, for none.
 * @param key_file         the path of a PEM file with the key of that certificate, not encrypted. NULL if,
 *                         and only if, certificate_file is NULL.
 * @return as for RedLock_SetTlsCa.
 */
RedLockStatus RedLock_SetTlsCertificate(RedLock *rl,
                                        const char *certificate_file,
                                        const char *key_file);

/**
 * Sets the name that the certificates of rediss:// servers must be for. Use it where this name is not the
 * host in the URLs: with a tunnel, for example, or with one certificate for all servers. Existing
 * connections stay as they are.
 *
 * @param rl   the manager.
 * @param name a host name or an address. NULL, the default: for each server its own host.
 * @return REDLOCK_OK. REDLOCK_INVALID_ARGUMENT if no host can have this name, or if this build has no TLS.
 *         REDLOCK_FORKED.
 */
RedLockStatus RedLock_SetTlsServerName(RedLock *rl,
                                       const char *name);

/**
 * Sets whether rediss:// servers are accepted without verification. Then each server is believed to be the
 * server that it claims to be, without any proof. A certificate that cannot be read, or is not of version 3,
 * is still refused. Anybody on the network path to the servers can then read everything, including passwords
 * and tokens, and can answer in place of the servers. Use this only for experiments. If the certificates are
 * your own, name them with RedLock_SetTlsCa.
 *
 * @param rl   the manager.
 * @param skip true: nothing is verified. false, the default: everything is verified.
 * @return REDLOCK_OK. REDLOCK_INVALID_ARGUMENT if this build has no TLS. REDLOCK_FORKED.
 */
RedLockStatus RedLock_SetTlsInsecureSkipVerify(RedLock *rl,
                                               bool skip);

/**
 * Reports what was counted since the manager was made, for a monitor. No server is asked, and the call does
 * not wait. All numbers are of the same moment. Counting has no measurable cost. A call that is refused
 * because of its arguments is not counted. A forked child begins to count at zero.
 *
 * @param rl    the manager.
 * @param stats receives the numbers. Its size must be set: begin with REDLOCK_STATS_INIT.
 * @return REDLOCK_OK. REDLOCK_INVALID_ARGUMENT or REDLOCK_FORKED (the parent was using the manager when it
 *         forked): RedLock_ErrorMessage(rl) returns the message. Any thread may call this.
 */
RedLockStatus RedLock_GetStats(RedLock *rl,
                               RedLockStats *stats);

/**
 * Writes the counters and the state of each server as text for Prometheus. Its content type is
 * "text/plain; version=0.0.4". All names begin with redlock_, counters end in _total, and times are in
 * seconds. The label server names a server as messages do: never with a user or a password. No resource is
 * named. docs/stats.md explains each name. Names and meanings stay; later versions may add some.
 *
 * Ask for the size first, and again if it has grown meanwhile:
 *
 *  - size_t size = RedLock_StatsText(rl, NULL, 0) + 1;
 *  - char *text = malloc(size);
 *  - RedLock_StatsText(rl, text, size) is less than size if the text fits.
 *
 * No server is asked, and the call does not wait.
 *
 * @param rl   the manager, or NULL.
 * @param text receives the whole text and a NUL. If there is too little room, it receives an empty string.
 *             May be NULL if size is 0.
 * @param size the size of the buffer in bytes, including the NUL.
 * @return the present size of the text in bytes, without the NUL. If that is not less than size, the text
 *         was not written. 0 for NULL, and if the parent was using the manager when it forked. Any thread
 *         may call this.
 */
size_t RedLock_StatsText(RedLock *rl,
                         char *text,
                         size_t size);

/**
 * Sets whether the events of locks are logged, at level 3. Each event is one line of key=value pairs with a
 * space in between, such as
 * event=acquired resource="invoice:42" duration_ms=1.204 attempts=1.
 * The events are acquired, refused, extended, not_extended, released, not_released, lost, adopted, detached,
 * renewed, not_renewed and kept_lost. outcome= says why something did not succeed. The lines are logged like
 * all others: see RedLock_SetLogger and RedLock_KeepLog. If there are more lines than can be logged, the
 * oldest are left out, and their number is logged.
 *
 * The name of a resource may be confidential. So messages and log lines contain no such name, unless
 * REDLOCK_TRACE_RESOURCES asks for it. The name is then in quotes, with \xNN for characters that cannot be
 * printed, and is cut after 256 bytes. For several resources it is the name of the first. A token is never
 * logged.
 *
 * @param rl     the manager.
 * @param events REDLOCK_TRACE_OFF, the default, REDLOCK_TRACE_EVENTS or REDLOCK_TRACE_RESOURCES, for calls
 *               that begin from now on.
 * @return REDLOCK_OK or REDLOCK_INVALID_ARGUMENT.
 */
RedLockStatus RedLock_SetTracing(RedLock *rl,
                                 int32_t events);

/**
 * Asks the servers whether anybody holds a resource, and for how long. The resource counts as held if it is
 * held on a quorum, and the lock of any client is found. All servers are asked at once. If readers hold the
 * resource, the servers are asked again for the number of readers. Nothing is changed on the servers. The
 * answer may be out of date when it arrives: only taking the lock tells whether it is free. For a semaphore,
 * set `info->permits` to its number of permits: the call then reports how many are taken.
 *
 * @param rl            the manager.
 * @param resource      as for RedLock_Lock.
 * @param resource_size the size of the resource in bytes, so that it may contain a NUL. 0: the resource ends
 *                      at its NUL.
 * @param info          receives the answer. On failure it says that nobody holds the resource. Its size must
 *                      be set.
 * @return REDLOCK_OK. REDLOCK_UNREACHABLE: too few servers answered to tell; also while a server is down and
 *         those that answered differ, as they do for a moment when a lock ends. REDLOCK_INVALID_ARGUMENT,
 *         REDLOCK_NO_SERVERS, REDLOCK_FORKED (a callback forked, and this is the child), REDLOCK_INTERNAL.
 *         RedLock_ErrorMessage(rl) also returns the message. Any thread may call this.
 */
RedLockStatus RedLock_Inspect(RedLock *rl,
                              const char *resource,
                              size_t resource_size,
                              RedLockInfo *info);

/**
 * Gives a held lock away, and writes a ticket for RedLock_Adopt. With this ticket another process, or
 * another lease of this process, takes the lock over. On the servers the lock stays as it is, with its token
 * and its fencing token. Until the lock is adopted nobody extends it, and it expires at the end of its TTL.
 * No I/O.
 *
 * After this call the lease holds nothing. The same is true for any other handle of the lock
 * (RedLock_ContinueLock). RedLock_Unlock, RedLock_Extend and RedLock_Confirm return REDLOCK_LOST, and the
 * message says that the lock was given away. The lock is no longer kept alive. Freeing a handle or the
 * manager releases nothing. The lease may be used for another lock. A lock can be given away only if nobody
 * has begun to release it.
 *
 * The ticket contains the token and is as secret as the token: anybody who knows it can release the lock.
 * Pass it by a descriptor or by the environment, not in the arguments of a program, which everybody can see.
 * The library cannot know what has become of a ticket that nobody adopts.
 *
 * A server may not have answered the call that took the lock or repaired it there. Such a server may carry
 * out that call after the adopter has released the lock. Its key then expires with its TTL.
 *
 * @param rl     a manager with the servers that the lock was taken on.
 * @param lease  the lock.
 * @param ticket receives the ticket: printable ASCII without spaces, and a NUL.
 * @param size   the size of the buffer in bytes, including the NUL: REDLOCK_TICKET_SIZE(n) is enough for a
 *               resource of n bytes. For several resources, n is the sum of their sizes, plus 2 for each.
 * @return REDLOCK_OK. REDLOCK_LOST: the lock is not held, and there is no ticket. REDLOCK_INVALID_ARGUMENT:
 *         also if the buffer is too small; the lock stays held. REDLOCK_CANCELLED, REDLOCK_NO_SERVERS,
 *         REDLOCK_FORKED, REDLOCK_INTERNAL.
 */
RedLockStatus RedLock_Detach(RedLock *rl,
                             RedLockLease *lease,
                             char *ticket,
                             size_t size);

/**
 * Takes over a lock that RedLock_Detach gave away, in this process or another. Like RedLock_Confirm, this
 * asks the servers and changes nothing on them. If a quorum has the lock, the lease holds it for the time
 * that is left on these servers, minus the allowance for drift. To hold it longer, extend it.
 *
 * Adopt a ticket only once. The servers cannot tell two adopters of one ticket apart. The adopters would
 * share the lock, as threads that share a lease do, and the first to unlock it would release it for both. A
 * call that failed or was cancelled does not use up the ticket.
 *
 * Every server that has the lock counts, as after RedLock_Lock. If servers lost their memory between the two
 * holders without a guard (RedLock_SetRestartGuard), nobody can tell whether another client held the lock in
 * between.
 *
 * @param rl     a manager of the same servers, in any order.
 * @param ticket the ticket that RedLock_Detach wrote, in any process. It is as secret as a token, and the
 *               library never quotes it.
 * @param lease  receives the lock. Must not hold one. Its resource, token and fencing token become those of
 *               the lock.
 * @return REDLOCK_OK. REDLOCK_LOST: the lock has ended, or was never on these servers. REDLOCK_UNREACHABLE:
 *         too few servers answered; try again. REDLOCK_TOO_SLOW: the lock expired while the logger ran.
 *         REDLOCK_CANCELLED. REDLOCK_INVALID_ARGUMENT: also if the text is not a ticket, is only a part of
 *         one, or is a ticket of another version. REDLOCK_NO_SERVERS, REDLOCK_FORKED, REDLOCK_INTERNAL.
 */
RedLockStatus RedLock_Adopt(RedLock *rl,
                            const char *ticket,
                            RedLockLease *lease);

/**
 * Sets for which language the messages of this manager name arguments and give times. Each binding of this
 * library calls this for its manager, so that a program in Python reads "ttl is 0 s" and not "ttl_ms is 0".
 * Programs in C do not need it.
 *
 * @param rl       the manager.
 * @param language REDLOCK_LANGUAGE_C, the default, REDLOCK_LANGUAGE_CPP, REDLOCK_LANGUAGE_GO,
 *                 REDLOCK_LANGUAGE_NODE, REDLOCK_LANGUAGE_PYTHON or REDLOCK_LANGUAGE_RUBY.
 * @return REDLOCK_OK or REDLOCK_INVALID_ARGUMENT.
 */
RedLockStatus RedLock_SetLanguage(RedLock *rl,
                                  int32_t language);

/**
 * Keeps log lines in the manager, for RedLock_TakeLogLine. The lines are those that a logger would get. This
 * is for programs into which no thread may call from C, such as interpreters. It replaces a function set by
 * RedLock_SetLogger, and a function that is set later replaces it. Lines that were kept before are dropped.
 * A forked child keeps its own lines, and has none of its parent's.
 *
 * @param rl    the manager.
 * @param lines the maximum number of lines to keep, up to 65536. If one more line comes, the oldest is
 *              dropped. 0: no lines are kept, and nothing is logged any more.
 * @return REDLOCK_OK or REDLOCK_INVALID_ARGUMENT.
 */
RedLockStatus RedLock_KeepLog(RedLock *rl,
                              int lines);

/**
 * Takes the oldest line that was kept. See RedLock_KeepLog. No I/O. Any thread may call this.
 *
 * @param rl   the manager, or NULL.
 * @param line receives the line, cut to the size of the buffer, and a NUL; empty if there is no line. May be
 *             NULL: then the line is dropped.
 * @param size the size of the buffer in bytes, including the NUL; 256 are enough for most lines.
 * @return the level of the line, as for RedLockLogger; 0 if there is no line.
 */
int32_t RedLock_TakeLogLine(RedLock *rl,
                            char *line,
                            size_t size);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* REDLOCK_H */

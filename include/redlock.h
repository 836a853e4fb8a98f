/*
 * redlock: a lock held on a majority of independent Redis or Valkey servers.
 *
 * A lock in Redis is a lease: it ends by itself when its time is over. All times are milliseconds
 * in int64_t and their names end in _ms. Every call that can fail returns a RedLockStatus: 0 is
 * success, a positive value an ordinary outcome, a negative one a fault of the call.
 *
 * Conventions that hold for every function:
 *  - NULL is never undefined behaviour. Where it has no meaning the call answers
 *    REDLOCK_INVALID_ARGUMENT, or the value named in its comment.
 *  - Strings passed in are read during the call only and may be freed after it. Strings handed out
 *    belong to the handle they came from; do not free them. They are never NULL.
 *  - Nothing is printed, no signal handler is set, no thread is started unless RedLock_SetBackgroundThread
 *    asks for one, and the process is never ended, unless the system gives no memory: then it is aborted, with a line on the standard
 *    error. Signals do not show: a call interrupted by one goes on. A thread that is cancelled
 *    (pthread_cancel) ends after the call it is in.
 *  - Threads that call need a stack of 64 KiB: more than PTHREAD_STACK_MIN, where TLS is used.
 *  - After fork, a child may go on using the manager (it connects anew) but not a lease that the
 *    parent took: such calls answer REDLOCK_FORKED and touch nothing of the parent's. A child is told
 *    from its parent whatever their process ids are. A callback may fork: the call that it is called
 *    in ends in the child with REDLOCK_FORKED. A signal handler that interrupts a call may, too, if
 *    the child does not return from it.
 *  - No message and no log line ever holds a token or a password.
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
 * What a RedLockAcquireOptions begins with: no resource, and the default of everything.
 */
#define REDLOCK_ACQUIRE_OPTIONS_INIT {sizeof(RedLockAcquireOptions), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
/**
 * What a RedLockEvent begins with.
 */
#define REDLOCK_EVENT_INIT {sizeof(RedLockEvent), 0, REDLOCK_OK, 0, 0, 0}
/**
 * What a RedLockServerInfo begins with.
 */
#define REDLOCK_SERVER_INFO_INIT {sizeof(RedLockServerInfo), 0, 0, 0, 0, "", "", "", "", "", "", ""}
/**
 * How many bytes a ticket of RedLock_Detach has at most, with its NUL, if the resource has so many.
 */
#define REDLOCK_TICKET_SIZE(resource_size) (128 + ((resource_size) + 2) / 3 * 4)
/**
 * What a RedLockInfo begins with.
 */
#define REDLOCK_INFO_INIT {sizeof(RedLockInfo), 0, 0, 0, 0, "", 0, 0}
#define REDLOCK_NO_OUTCOMES_ {0, 0, 0, 0, 0, 0, 0, 0}
#define REDLOCK_NO_HISTOGRAM_ {0, 0, {0}}
/**
 * What a RedLockStats begins with.
 */
#define REDLOCK_STATS_INIT \
  {sizeof(RedLockStats), REDLOCK_NO_OUTCOMES_, REDLOCK_NO_OUTCOMES_, REDLOCK_NO_OUTCOMES_, \
   REDLOCK_NO_OUTCOMES_, REDLOCK_NO_OUTCOMES_, REDLOCK_NO_OUTCOMES_, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
   REDLOCK_NO_HISTOGRAM_, REDLOCK_NO_HISTOGRAM_, REDLOCK_NO_HISTOGRAM_, REDLOCK_NO_HISTOGRAM_, {0}}

/**
 * The version of this header. RedLock_Version() tells that of the library that runs.
 */
#define REDLOCK_VERSION_MAJOR 0

#define REDLOCK_VERSION_MINOR 2

#define REDLOCK_VERSION_PATCH 0

/**
 * For `mode`: nobody else has the lock at the same time.
 */
#define REDLOCK_EXCLUSIVE 0

/**
 * For `mode`: others may have it at the same time that want it so, too. Those are readers, and who has it alone is a
 * writer; RedLock_Lock and every other Redlock client are writers. Each has it on a quorum.
 *
 * Readers stand in a key that is named as the resource with :r behind it, and a writer that waits says so in one with
 * :i. So do not lock a resource of such a name, beside one that is locked shared. While a writer waits, no reader is let
 * in that comes later, in this process or another; one that is there may be extended. A shared lock has no
 * fencing token, and is never made an exclusive one; the other way it goes, by RedLock_Downgrade. The user needs the
 * right to use these keys, and EVAL, GET, SET, DEL, TYPE, TIME, PTTL, PEXPIREAT, ZADD, ZREM, ZRANGE, ZSCORE, ZCARD, ZCOUNT and
 * ZREMRANGEBYSCORE.
 */
#define REDLOCK_SHARED 1

/**
 * A submitted call has ended.
 */
#define REDLOCK_EVENT_DONE 0

/**
 * A lock that is kept cannot be kept: stop what it guards within what is left of it.
 */
#define REDLOCK_EVENT_LOST 1

/**
 * For RedLock_SetRestartGuard: a server that lost its memory has no vote for as long as a lock may live that it
 * has forgotten. Servers that are all new at once have one.
 */
#define REDLOCK_GUARD_ON 0

/**
 * For RedLock_SetRestartGuard: as REDLOCK_GUARD_ON, and servers that seem to be new have no vote at first either.
 */
#define REDLOCK_GUARD_STRICT 1

/**
 * For RedLock_SetRestartGuard: every server that can be reached has a vote.
 */
#define REDLOCK_GUARD_OFF 2

/**
 * For RedLock_SetRestartGuard: the same, because the program vouches that no server ever forgets what it granted.
 */
#define REDLOCK_GUARD_DURABLE 3

/**
 * How many buckets a RedLockHistogram has.
 */
#define REDLOCK_HISTOGRAM_BUCKETS 21

/**
 * How many bounds they have: the last bucket has none.
 */
#define REDLOCK_HISTOGRAM_BOUNDS 20

/**
 * For RedLock_SetTracing: nothing is told of locks.
 */
#define REDLOCK_TRACE_OFF 0

/**
 * For RedLock_SetTracing: what becomes of locks is told, without names.
 */
#define REDLOCK_TRACE_EVENTS 1

/**
 * For RedLock_SetTracing: the same with the names of the resources.
 */
#define REDLOCK_TRACE_RESOURCES 2

/**
 * What a call answers. 0 is success, a positive value an ordinary outcome, a negative value a
 * fault of the call. Values are never reused; treat one you do not know like its sign says.
 */
enum RedLockStatus
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * Done.
   */
  REDLOCK_OK = 0,
  /**
   * Somebody else holds it: enough servers said no that a quorum is out of reach.
   */
  REDLOCK_TAKEN = 1,
  /**
   * Too few servers gave a usable answer in time for any quorum.
   */
  REDLOCK_UNREACHABLE = 2,
  /**
   * A quorum granted, but no validity was left; everything was released again.
   */
  REDLOCK_TOO_SLOW = 3,
  /**
   * The lease is not held, or no longer: expired, deleted, or taken over. Also where so many servers
   * have lost it, or had it too late, that those which had it all the time are no quorum: somebody else
   * may have held it in between.
   */
  REDLOCK_LOST = 4,
  /**
   * RedLock_Cancel ended the call. Nothing of it stays locked; a lock that was held before is held still.
   */
  REDLOCK_CANCELLED = 5,
  /**
   * RedLock_NextEvent had nothing to tell in that time.
   */
  REDLOCK_NO_EVENT = 6,
  /**
   * RedLock_Confirm found the lock ours, but not for as long as was asked.
   */
  REDLOCK_TOO_SHORT = 7,
  /**
   * NULL, an empty or too long resource, a TTL that leaves no validity, a bad URL or port,
   * a lease that still holds a lock, ...: the message names what was wrong.
   */
  REDLOCK_INVALID_ARGUMENT = -1,
  /**
   * No server was added to the manager.
   */
  REDLOCK_NO_SERVERS = -2,
  /**
   * The lease belongs to the parent process.
   */
  REDLOCK_FORKED = -3,
  /**
   * A panic was caught, or the system gave no randomness; the message says which.
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
 * A lock manager: the servers and the settings. Any number of threads may lock through one
 * manager at once, and they share its connections; make the settings before the first lock.
 */
typedef struct RedLock RedLock;

/**
 * One lock, held or not: resource, token, validity and, after a failed call, the reason in
 * words. The caller makes it, passes it in, and may use it again once it holds nothing. One call
 * at a time; a second one at the same time waits for the first.
 */
typedef struct RedLockLease RedLockLease;

/**
 * What a logger may be told: of each server that it is lost, refuses or comes back, and why. Things that
 * are alike are told once a second, with a count of the lines left out. See RedLock_SetLogger.
 *
 * @param level     1: a fault of a server that a lock may suffer from. 2: a fault mended, or
 *                  something that a reader of logs may care for. 3: an event of a lock, if RedLock_SetTracing asks for that.
 *                  Other values may follow.
 * @param message   one line without a line end, valid during the call only.
 * @param user_data what was given to RedLock_SetLogger.
 */
typedef void (*RedLockLogger)(int32_t level, const char *message, void *user_data);

/**
 * Is told that nobody will use a callback's user_data any more. See RedLock_SetLoggerWithDestroy.
 *
 * @param user_data what was given along with the callback.
 */
typedef void (*RedLockDestroy)(void *user_data);

/**
 * What RedLock_Inspect tells of a resource. Begin with REDLOCK_INFO_INIT.
 */
typedef struct {
  /**
   * sizeof(RedLockInfo).
   */
  size_t size;
  /**
   * 1 if somebody holds it on a quorum, else 0.
   */
  int32_t locked;
  /**
   * How it is held: REDLOCK_EXCLUSIVE, as well if nobody holds it, or REDLOCK_SHARED. Other values may follow.
   */
  int32_t mode;
  /**
   * For how long it is held still, in milliseconds, if it is neither extended nor released. -1: for ever, as by
   * a program that has set no TTL. 0: it ends just now, or the user may not ask (PTTL), or nobody holds it.
   */
  int64_t remaining_ms;
  /**
   * How many hold it at the same time in a mode in which several may: so many as a quorum of servers has at
   * the least; else 0.
   */
  int64_t readers;
  /**
   * After REDLOCK_OK: which servers could not answer, and why; empty if all that were needed could. After a
   * failure: what was wrong. It ends with a NUL; longer words are cut.
   */
  char words[1024];
  /**
   * To be set before the call. 0: the resource is a lock. More than 0: a semaphore of so many permits, at most 256.
   * Then `locked` is 1 if all are taken, and `remaining_ms` is for how long the first of those that are taken still
   * is.
   */
  int32_t permits;
  /**
   * How many of them are taken.
   */
  int32_t permits_taken;
} RedLockInfo;

/**
 * How a lock is to be taken. Begin with REDLOCK_ACQUIRE_OPTIONS_INIT: then what later versions add has its
 * default, as 0 is the default of every field.
 */
typedef struct {
  /**
   * sizeof(RedLockAcquireOptions).
   */
  size_t size;
  /**
   * What to lock: 1 to 65536 bytes. It is the name of the key on the servers, as given. NULL if there are
   * several.
   */
  const char *resource;
  /**
   * How many bytes that is, so that a NUL may be one of them; 0: up to the NUL.
   */
  size_t resource_size;
  /**
   * Several resources, to be locked at once: all of them, or none. So many strings, each the name of a key on
   * the servers and different from the others, in any order; 65536 bytes in all. NULL if there is one.
   */
  const char *const *resources;
  /**
   * How many they are: 1 to 128; 0 if there is one resource.
   */
  size_t resource_count;
  /**
   * How long the lock lasts unless it is extended or released, as for RedLock_Lock.
   */
  int64_t ttl_ms;
  /**
   * 0: one attempt. More than 0: try until so long has passed. Less than 0: until the lock is had. The
   * pauses are those of RedLock_TryLock.
   */
  int64_t wait_ms;
  /**
   * More than 0: so many tries, with the pauses of RedLock_Lock; wait_ms is not looked at. 0: as wait_ms
   * says.
   */
  int32_t tries;
  /**
   * REDLOCK_EXCLUSIVE or REDLOCK_SHARED.
   */
  int32_t mode;
  /**
   * 0: a lock. More than 0: one permit of a semaphore that has so many, at most 256. Then so many may have the
   * resource at the same time, if all say the same number; if not, as many as the greatest of these. 1 is the
   * same as a lock, and who locks the resource uses one permit.
   */
  int32_t permits;
  /**
   * Not 0: the lock is kept until it is unlocked, as by RedLock_KeepAlive.
   */
  int32_t keep_alive;
} RedLockAcquireOptions;

/**
 * What RedLock_NextEvent tells. Begin with REDLOCK_EVENT_INIT.
 */
typedef struct {
  /**
   * sizeof(RedLockEvent).
   */
  size_t size;
  /**
   * REDLOCK_EVENT_DONE or REDLOCK_EVENT_LOST. Treat one that you do not know as none.
   */
  int32_t kind;
  /**
   * What the submitted call has come to. For REDLOCK_EVENT_LOST why the lock cannot be kept: REDLOCK_LOST,
   * or REDLOCK_UNREACHABLE.
   */
  RedLockStatus status;
  /**
   * The lease of that call, or of that lock. The call is over: it is the program's again. If it was freed
   * meanwhile, this only names it.
   */
  RedLockLease *lease;
  /**
   * What was submitted along with the call.
   */
  void *user_data;
  /**
   * For REDLOCK_EVENT_LOST: how long the lock is valid still, in milliseconds. At least a tenth of the TTL,
   * unless nothing drove this library in time, or somebody has taken the lock away.
   */
  int64_t remaining_ms;
} RedLockEvent;

/**
 * Is told an event. See RedLock_SetEventCallback.
 *
 * @param event     the event, valid during the call.
 * @param user_data what was given to RedLock_SetEventCallback.
 */
typedef void (*RedLockEventCallback)(const RedLockEvent *event, void *user_data);

/**
 * What RedLock_Servers tells of one server. All words end with a NUL; longer ones are cut.
 */
typedef struct {
  /**
   * sizeof(RedLockServerInfo).
   */
  size_t size;
  /**
   * 1 if there is a connection that can be used, else 0.
   */
  int32_t connected;
  /**
   * 1 if what it grants counts, else 0.
   */
  int32_t votes;
  /**
   * How long its last answer took, from sending to reading, in microseconds; -1 if it has given none.
   */
  int64_t round_trip_us;
  /**
   * How far its clock is ahead of this machine's, in microseconds; below 0 if it is behind. It is exact to half a
   * round trip and a millisecond. It was measured when the connection began and whenever a lock was asked
   * for, and is told for what this machine's clock shows now. INT64_MIN if it is not known: there was no
   * connection yet, the guard is off (RedLock_SetRestartGuard), or the user may not ask (TIME).
   */
  int64_t clock_offset_us;
  /**
   * Where it is: host:port, or the path of its socket. Of a master that Sentinels watch its name with its
   * address: "mymaster (10.0.0.7:6379)", or that of the first Sentinel before it is known:
   * "mymaster (Sentinel 10.0.0.5:26379)". Never a user or a password.
   */
  char name[256];
  /**
   * Why it is not connected, or does not vote. Empty if there is nothing to say.
   */
  char words[512];
  /**
   * What program it is: "7.0.15" for a Redis, "valkey 9.1.0". This and what follows is what it said when it
   * was last asked; empty if it has not said it, or the user may not ask (INFO, CONFIG GET).
   */
  char version[32];
  /**
   * "primary", or "replica" or "sentinel", which cannot vote.
   */
  char role[16];
  /**
   * 40 hexadecimal digits that are others after each start of the server.
   */
  char run_id[48];
  /**
   * What of its data outlives its process: "log, synced always", "log, synced every second", "log, never
   * synced", "log", "no log". A log is an append-only file.
   */
  char keeps[32];
  /**
   * Which keys it gives up when its memory is full: its maxmemory-policy.
   */
  char eviction[32];
} RedLockServerInfo;

/**
 * How many calls of a kind have come to what.
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
   * Any other.
   */
  uint64_t failed;
} RedLockOutcomes;

/**
 * How many took how long.
 */
typedef struct {
  /**
   * How many there were.
   */
  uint64_t count;
  /**
   * How long they took together, in microseconds.
   */
  int64_t sum_us;
  /**
   * How many took at most RedLockStats.bounds_us of that place, and more than that of the place before. The
   * last bucket has no bound.
   */
  uint64_t buckets[REDLOCK_HISTOGRAM_BUCKETS];
} RedLockHistogram;

/**
 * What RedLock_GetStats tells. Begin with REDLOCK_STATS_INIT. All counts are of this manager in this process, and only
 * grow; waiting and kept are what there is now.
 */
typedef struct {
  /**
   * sizeof(RedLockStats).
   */
  size_t size;
  /**
   * Calls that take locks: RedLock_Lock, RedLock_TryLock, RedLock_Acquire, RedLock_SubmitAcquire, and
   * RedLock_ContinueLock where it had to take one. All slices of RedLock_TryLockSlice together are one call.
   */
  RedLockOutcomes acquire;
  /**
   * RedLock_Extend, and RedLock_ContinueLock where it extended a lock.
   */
  RedLockOutcomes extend;
  /**
   * RedLock_Confirm.
   */
  RedLockOutcomes confirm;
  /**
   * RedLock_Unlock, but not of an inner level (RedLock_Retain); also of locks whose lease was freed before they were told.
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
   * How often the servers were asked for a lock, all at once.
   */
  uint64_t attempts;
  /**
   * Calls that had to wait for a lock, for a moment at least.
   */
  uint64_t waits;
  /**
   * Extensions of locks that are kept, and those that failed and were tried again as long as there was time.
   */
  uint64_t renewed;
  uint64_t not_renewed;
  /**
   * Locks that could not be kept: REDLOCK_EVENT_LOST.
   */
  uint64_t kept_lost;
  /**
   * Requests that were sent, to all servers together.
   */
  uint64_t requests;
  /**
   * Connections that could be used, those of them that were lost, and attempts to connect that failed.
   */
  uint64_t connections;
  uint64_t connections_lost;
  uint64_t connections_failed;
  /**
   * How many calls wait for a lock now.
   */
  uint64_t waiting;
  /**
   * How many locks are kept now.
   */
  uint64_t kept;
  /**
   * How long it took to take a lock, of those that were taken: with pauses and waiting.
   */
  RedLockHistogram acquire_time;
  /**
   * How long those waited that had to, from the beginning of the first wait to the end of the call.
   */
  RedLockHistogram wait_time;
  /**
   * How long locks were held that were released, from when they were asked for.
   */
  RedLockHistogram hold_time;
  /**
   * From the sending of a request to the reading of its answer, of all servers together.
   */
  RedLockHistogram round_trip;
  /**
   * The upper bounds of the buckets of all histograms, in microseconds: 25, 50, 100, 250, ..., 60000000.
   */
  int64_t bounds_us[REDLOCK_HISTOGRAM_BOUNDS];
} RedLockStats;

/**
 * Gives the password to a server. See RedLock_SetPasswordCallback.
 *
 * @param server    the server as messages name it, such as "10.0.0.7:6379", or, for a master that Sentinels
 *                  watch, its name and the first of them: "mymaster (Sentinel 10.0.0.5:26379)". Valid
 *                  during the call.
 * @param password  room for the password, to be written as a string that ends with a NUL. It is
 *                  all zero before, and again after the call.
 * @param size      the room in bytes, with that NUL: 16384.
 * @param user_data what was given to RedLock_SetPasswordCallback.
 * @return true if the password is written; false if there is none now: then the server counts as
 *         not connected, and the callback is asked again a second later at the earliest.
 */
typedef bool (*RedLockPasswordCallback)(const char *server,
                                        char *password,
                                        size_t size,
                                        void *user_data);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The version of the library that runs, such as "0.2.0".
 *
 * @return a string that lives for ever. Any thread may call this.
 */
const char *RedLock_Version(void);

/**
 * The name of a status, such as "REDLOCK_TAKEN".
 *
 * @param status any integer.
 * @return a string that lives for ever, "REDLOCK_UNKNOWN_STATUS" for a value that is none.
 *         Any thread may call this.
 */
const char *RedLockStatus_Name(int32_t status);

/**
 * Whether the same call may succeed a little later without anything being changed.
 *
 * @param status any integer.
 * @return true for REDLOCK_TAKEN, REDLOCK_UNREACHABLE and REDLOCK_TOO_SLOW. Any thread may call
 *         this.
 */
bool RedLockStatus_IsRetriable(int32_t status);

/**
 * Makes a lock manager without servers and with the default settings.
 *
 * @return the manager, owned by the caller: free it with RedLock_Free. NULL if it could not
 *         be made. No I/O. Any thread may call this.
 */
RedLock *RedLock_New(void);

/**
 * Frees a manager. Waits for nothing: locks that are held stay held until they expire, and their leases stay
 * valid handles. Submitted calls are cancelled, and locks are kept no more; of events only those are told that a
 * callback is told (RedLock_SetEventCallback). Calls of other threads that have begun are finished by those
 * threads, and may use callbacks with their user_data until then; RedLock_NextEvent returns. The connections
 * are closed, as at the end of the process: a server that had fallen behind the others may not carry
 * out the last releases, and keeps those keys until their TTL is over.
 *
 * @param rl a manager, or NULL, which is fine. Not to be used after this call, nor freed twice.
 */
void RedLock_Free(RedLock *rl);

/**
 * Adds a server. All clients that are to exclude each other must name the same servers, each an
 * independent primary; the quorum is more than half of the servers added, also of those that are
 * down. No I/O: that a server cannot be reached shows at the first lock.
 *
 * @param rl          the manager.
 * @param host_or_url a host name or an IPv4 or IPv6 address, with its port; or, with port 0,
 *                    host:port ([address]:port for IPv6), or a whole URL: redis://[user][:password@]host[:port][/database],
 *                    unix:///path or redis+unix:///path, these two with ?db=, &user= and &pass=
 *                    as needed; with rediss:// in the place of redis://, TLS is used. valkey:// and
 *                    its like are the same. redis-sentinel://[user][:password@]hosts/master[/database], with
 *                    host[:port][,host[:port]...] for hosts, is the master of this name, wherever these
 *                    Sentinels say it is, one voter; with
 *                    rediss-sentinel:// they and the master are reached over TLS. The user and the
 *                    password are the master's; those of the Sentinels are ?sentinel_username= and
 *                    &sentinel_password=. After a failover the new master has no vote until every lock that
 *                    it may not have heard of has ended. IPv6 addresses in a URL stand in brackets, and users and
 *                    passwords are percent-encoded (RedLock_SetCredentials needs neither). A name is
 *                    looked up by the system's resolver, which may block; an address never does.
 * @param port        1 to 65535; 0 if host_or_url names it, as host:port and URLs do.
 * @return REDLOCK_OK; REDLOCK_INVALID_ARGUMENT if one of them is malformed, the same server (or a
 *         master of the same name that one of the same Sentinels watches) was
 *         added before, 64 servers are there already, or the first call was made that asks or
 *         connects to servers: from then on the list is closed. Also for rediss:// if this build has
 *         no TLS. RedLock_ErrorMessage(rl) names what was wrong.
 */
RedLockStatus RedLock_AddServerUrl(RedLock *rl,
                                   const char *host_or_url,
                                   int port);

/**
 * Connects to the servers now rather than at the first lock. Optional. Returns when a quorum is
 * up, leaving the others a moment to follow.
 *
 * @param rl         the manager.
 * @param timeout_ms how long to wait at most; 0: as long as connecting may take
 *                   (RedLock_SetTimeouts).
 * @return REDLOCK_OK when a quorum is up; RedLock_ErrorMessage(rl) then names the servers that
 *         are not, or is empty. REDLOCK_UNREACHABLE when too few could be reached: it says why,
 *         server by server. REDLOCK_NO_SERVERS, REDLOCK_INVALID_ARGUMENT, REDLOCK_FORKED (a callback
 *         forked, and this is the child), REDLOCK_INTERNAL.
 */
RedLockStatus RedLock_Connect(RedLock *rl,
                              int64_t timeout_ms);

/**
 * Sets how often RedLock_Lock and RedLock_ContinueLock try, and how long callers pause between two
 * tries. The pause of those two is random in [delay_ms / 2, 3 * delay_ms / 2), as in the CRedLock
 * class; there is none after the last try. RedLock_TryLock begins with shorter ones, and pauses
 * for less than 3 * delay_ms / 2 at most.
 *
 * @param rl       the manager.
 * @param count    tries in all, at least 1. Default 3.
 * @param delay_ms mean pause in milliseconds, at least 0. Default 200.
 * @return REDLOCK_OK or REDLOCK_INVALID_ARGUMENT.
 */
RedLockStatus RedLock_SetRetry(RedLock *rl, int count, int delay_ms);

/**
 * Sets how long a server is waited for.
 *
 * @param rl         the manager.
 * @param connect_ms for connecting, with the log-in. 1 to 86400000 (a day). Default 1500.
 * @param reply_ms   for a reply on a connection that is up. 0 to 86400000. 0, the default, means
 *                   a twentieth of the TTL, at least 25 and at most 500: the advice of the
 *                   Redlock page, 5 to 50 ms for a TTL of 10 s, rounded up for slow networks.
 *                   A server that owes a reply for four times as long, and a second at least, gets
 *                   a second connection; the first one is closed when no key that was asked for
 *                   over it can be left.
 * @return REDLOCK_OK or REDLOCK_INVALID_ARGUMENT.
 */
RedLockStatus RedLock_SetTimeouts(RedLock *rl, int64_t connect_ms, int64_t reply_ms);

/**
 * Sets how much faster a server's clock may run than this machine's. A lock of ttl_ms is valid
 * for ttl_ms - ceil(ttl_ms * factor) - 2 ms, less the time the call took; the 2 ms are for the
 * precision of expiry in Redis.
 *
 * @param rl     the manager.
 * @param factor at least 0, less than 1. Default 0.01, as in the Redlock page.
 * @return REDLOCK_OK or REDLOCK_INVALID_ARGUMENT.
 */
RedLockStatus RedLock_SetClockDriftFactor(RedLock *rl, double factor);

/**
 * Sets a function to be told of servers that are lost, refuse or come back. Without one,
 * nothing is said anywhere.
 *
 * It is called at the end of calls that ask servers, on the thread that made the call, and the call
 * holds nothing any more then, not even its lease. So it may call this library, with any lease; wait
 * for calls of other threads; free the manager; or fork (then the call ends in the child with
 * REDLOCK_FORKED).
 * It must not unwind (longjmp, throw) through the library. Its time passes for the lock as well: one
 * that is over by then is REDLOCK_TOO_SLOW, or REDLOCK_LOST if it was held before.
 *
 * For one manager it is never called by two threads at once, nor from within itself, so lines come in
 * their order: the thread that tells goes on with lines of other threads, and with those of its own
 * calls. What comes up
 * in a call that takes long, as RedLock_TryLock may, is told when that call ends, or another one on
 * this manager. Up to 256 lines of 64 KiB in all wait for it; then the oldest are left out, and a line
 * tells how many.
 *
 * @param rl        the manager.
 * @param callback  the function, or NULL for silence.
 * @param user_data handed to the function as it is; may be NULL. Another thread may be using it when
 *                  this function, or RedLock_Free, returns: it must stay valid until all calls on the
 *                  manager that had begun by then are over. Who cannot tell when that is uses
 *                  RedLock_SetLoggerWithDestroy.
 * @return REDLOCK_OK, REDLOCK_INVALID_ARGUMENT, REDLOCK_FORKED.
 */
RedLockStatus RedLock_SetLogger(RedLock *rl,
                                RedLockLogger callback,
                                void *user_data);

/**
 * RedLock_SetLogger with a function that is told when nobody uses user_data any more.
 *
 * @param rl        the manager.
 * @param callback  as for RedLock_SetLogger.
 * @param user_data as for RedLock_SetLogger. It belongs to the manager from now on, also if this
 *                  function fails.
 * @param destroy   is called exactly once, with user_data: when another logger was set, or the manager
 *                  was freed, and the last call that might use it is over. At once, before this
 *                  function returns, if callback is NULL or anything but REDLOCK_OK is returned. It is
 *                  called by the thread that was the last to need user_data: in this function, in
 *                  RedLock_Free, or at the end of a call on the manager, with nothing held: it may call
 *                  this library, but the manager may have been freed. It must not unwind through the
 *                  library. It is not called in a forked child for what was set by the parent: what the
 *                  child has is a copy, and ends with it. NULL, if nobody needs to be told.
 * @return as for RedLock_SetLogger.
 */
RedLockStatus RedLock_SetLoggerWithDestroy(RedLock *rl,
                                           RedLockLogger callback,
                                           void *user_data,
                                           RedLockDestroy destroy);

/**
 * What went wrong in the last call on this manager that has no lease: RedLock_AddServerUrl,
 * RedLock_Connect, RedLock_Set..., RedLock_IsLocked, RedLock_Inspect, or one whose lease was NULL. RedLock_NextEvent,
 * RedLock_Descriptor and RedLock_Cancel change it only if they fail: a thread that takes events leaves the
 * words of other threads' calls alone.
 *
 * @param rl the manager, or NULL.
 * @return words for a person, at most 4095 bytes; empty if there is nothing to say. Whole words of one
 *         call, of whichever thread, and they never change: after the next call, ask again. They belong
 *         to the manager and live as long as it does. So that they can, a manager has bounds: once it
 *         has handed out a megabyte of different words, times are left out of new ones ("no answer in
 *         some ms"); after two, words that were never handed out before are replaced by a sentence that
 *         says so.
 */
const char *RedLock_ErrorMessage(const RedLock *rl);

/**
 * Copies what RedLock_ErrorMessage returns, and keeps nothing of it: for programs with many managers, or many
 * different words.
 *
 * @param rl      the manager, or NULL.
 * @param message receives the words, cut to what there is room for, and a NUL. May be NULL if size is 0.
 * @param size    bytes of room, with the NUL; 4096 are enough for all.
 * @return how many bytes the words have, without the NUL: if that is not less than size, they were cut.
 */
size_t RedLock_CopyErrorMessage(const RedLock *rl,
                                char *message,
                                size_t size);

/**
 * Takes a lock, trying as often as RedLock_SetRetry says.
 *
 * Callers that want one resource through one manager wait in a queue: the head of it asks the
 * servers, and RedLock_Unlock hands the lock over to the head within a round trip, even
 * in the middle of its pause. Every 200 ms (every 40 ms while other processes want the lock) it is
 * released openly instead, and the queue stands back for up to 8 ms, so that others get it, too.
 * While this manager has the lock, the head of the queue asks once a second: if the servers have lost it,
 * it is to be had.
 *
 * @param rl       the manager.
 * @param resource what to lock: 1 to 65536 bytes, any but NUL. It is the name of the key on the
 *                 servers, as given.
 * @param ttl_ms   how long the lock lasts unless it is extended or released: at least 4 with the
 *                 default drift (some validity must be left of it), at most 315360000000 (ten
 *                 years).
 * @param lease    receives the lock. Must not hold one. On failure it holds none, and
 *                 RedLockLease_ErrorMessage tells what each server said.
 * @return REDLOCK_OK, REDLOCK_TAKEN, REDLOCK_UNREACHABLE, REDLOCK_TOO_SLOW, REDLOCK_CANCELLED,
 *         REDLOCK_INVALID_ARGUMENT, REDLOCK_NO_SERVERS, REDLOCK_FORKED, REDLOCK_INTERNAL.
 *         After each but REDLOCK_OK nothing of this call stays locked: what servers may have
 *         granted is released at once, or queued behind the request where one does not answer.
 */
RedLockStatus RedLock_Lock(RedLock *rl,
                           const char *resource,
                           int64_t ttl_ms,
                           RedLockLease *lease);

/**
 * Takes a lock, trying for a time rather than a number of times. Callers wait in a queue as for
 * RedLock_Lock. The pause between two tries is random, from nothing up to a bound: four round
 * trips at first, doubled by each refusal up to what RedLock_SetRetry allows, no more than 16 ms
 * while the lock changes hands, and never past the moment when the lock can have expired.
 *
 * @param rl       the manager.
 * @param resource as for RedLock_Lock.
 * @param ttl_ms   as for RedLock_Lock.
 * @param wait_ms  0: one attempt. More than 0: try until so long has passed. Less than 0: until
 *                 the lock is had. One attempt is made, and not cut short, in any case.
 * @param lease    as for RedLock_Lock.
 * @return as for RedLock_Lock.
 */
RedLockStatus RedLock_TryLock(RedLock *rl,
                              const char *resource,
                              int64_t ttl_ms,
                              int64_t wait_ms,
                              RedLockLease *lease);

/**
 * RedLock_TryLock for callers that must look up from a wait now and then: one call of this function
 * is a slice of the wait, and the next one with the same lease and resource goes on with it. It
 * asks no sooner than the wait would have done in one piece, and the pauses go on growing; so a
 * wait in slices sends what one in a piece sends. In between the caller has no place in the line.
 * Any other locking call on the lease, or another resource, ends the wait.
 *
 * @param rl       the manager.
 * @param resource as for RedLock_Lock.
 * @param ttl_ms   as for RedLock_Lock.
 * @param wait_ms  how much of the wait is left, this slice included. 0: one attempt, at once. More
 *                 than 0: as long as that. Less than 0: for ever.
 * @param slice_ms how long this call may wait, at least 0. Where that is less than wait_ms, there is
 *                 no last attempt at its end; an attempt that is under way then is not cut short.
 *                 Otherwise this is the last slice, and ends as RedLock_TryLock does.
 * @param lease    as for RedLock_Lock. It keeps what the next slice has to know. To give the wait up
 *                 between two slices, free it, or use it for something else.
 * @return as for RedLock_Lock. At the end of a slice it is what the last attempt of the wait has come
 *         to, as a rule REDLOCK_TAKEN: whether the wait is over, the caller knows.
 */
RedLockStatus RedLock_TryLockSlice(RedLock *rl,
                                   const char *resource,
                                   int64_t ttl_ms,
                                   int64_t wait_ms,
                                   int64_t slice_ms,
                                   RedLockLease *lease);

/**
 * Takes a lock or renews it. Where the lease passed, or an earlier one passed to this function
 * with the same manager and resource, still holds it, this is RedLock_Extend and the lease passed
 * becomes one more handle of that lock; otherwise it is RedLock_Lock. Both try as RedLock_SetRetry
 * says.
 *
 * @param rl       the manager.
 * @param resource as for RedLock_Lock.
 * @param ttl_ms   as for RedLock_Lock, counted from now.
 * @param lease    empty, or the holder of this very resource. A lease that holds another
 *                 resource is REDLOCK_INVALID_ARGUMENT.
 * @return as RedLock_Lock where it had to be taken, as RedLock_Extend where it was held:
 *         REDLOCK_LOST tells once that a lock had slipped away before its time; the next call takes
 *         it anew. One that had come to its end by itself is taken anew at once, with REDLOCK_OK and
 *         another token, whoever may have had it in between. After REDLOCK_UNREACHABLE a lock that was held still is, until its old end.
 */
RedLockStatus RedLock_ContinueLock(RedLock *rl,
                                   const char *resource,
                                   int64_t ttl_ms,
                                   RedLockLease *lease);

/**
 * Gives a held lock a new TTL, counted from now, under the same token. One round, no retries. A
 * TTL shorter than what is left shortens nothing, and is REDLOCK_OK.
 *
 * @param rl     a manager with the servers that the lock was taken on.
 * @param lease  the lock.
 * @param ttl_ms as for RedLock_Lock.
 * @return REDLOCK_OK: RedLockLease_ValidityMs tells the new validity. REDLOCK_LOST: it had
 *         expired, been deleted or been taken over; the lease is empty now. REDLOCK_UNREACHABLE: too
 *         few servers answered; what was valid stays valid until its old end. REDLOCK_CANCELLED: the same.
 *         REDLOCK_INVALID_ARGUMENT, REDLOCK_NO_SERVERS, REDLOCK_FORKED, REDLOCK_INTERNAL.
 */
RedLockStatus RedLock_Extend(RedLock *rl,
                             RedLockLease *lease,
                             int64_t ttl_ms);

/**
 * Releases a lock: deletes it on the servers where it is still this lease's. Nobody else's is
 * ever touched.
 *
 * @param rl    the manager that took it. Another one with the same servers does, too; but a server
 *              that is still about to carry out the call that took the lock may keep the key then
 *              until its TTL is over, and callers that wait hear of it up to a second later.
 * @param lease the lock.
 * @return REDLOCK_OK: released; the lease is empty now, unless RedLock_Retain has added levels: then one is left, and the
 *         lock is held still. REDLOCK_LOST: it had already ended, or
 *         the lease holds none. REDLOCK_UNREACHABLE: some servers could not be told, and will be
 *         when they are back if this manager is in use then, else the lock expires there; the
 *         lease counts as released but keeps its token, and calling again is allowed. REDLOCK_CANCELLED: the
 *         same.
 *         REDLOCK_INVALID_ARGUMENT, REDLOCK_NO_SERVERS, REDLOCK_FORKED, REDLOCK_INTERNAL.
 */
RedLockStatus RedLock_Unlock(RedLock *rl,
                             RedLockLease *lease);

/**
 * Asks the servers whether a lock is still this lease's on a quorum, and for how long; for the
 * moment before a step that cannot be undone. Changes nothing.
 *
 * @param rl       a manager with the servers that the lock was taken on.
 * @param lease    the lock.
 * @param least_ms how much validity is needed, at least 0.
 * @return REDLOCK_OK: it is, for at least that long. REDLOCK_TOO_SHORT: it is, but not for that long; it stays
 *         held. REDLOCK_LOST: it is not. REDLOCK_UNREACHABLE: too few servers answered. REDLOCK_CANCELLED.
 *         REDLOCK_INVALID_ARGUMENT, REDLOCK_NO_SERVERS, REDLOCK_FORKED, REDLOCK_INTERNAL.
 */
RedLockStatus RedLock_Confirm(RedLock *rl,
                              RedLockLease *lease,
                              int64_t least_ms);

/**
 * Asks the servers whether anybody holds a resource, on a quorum. The answer may be out of date
 * when it arrives: to take a lock, take it. RedLock_Inspect tells more.
 *
 * @param rl       the manager.
 * @param resource as for RedLock_Lock.
 * @param locked   receives the answer; false on failure.
 * @return REDLOCK_OK, REDLOCK_UNREACHABLE, REDLOCK_INVALID_ARGUMENT, REDLOCK_NO_SERVERS, REDLOCK_FORKED
 *         (a callback forked, and this is the child), REDLOCK_INTERNAL; RedLock_ErrorMessage(rl) has the
 *         words.
 */
RedLockStatus RedLock_IsLocked(RedLock *rl,
                               const char *resource,
                               bool *locked);

/**
 * Asks the servers whether anybody holds a resource, on a quorum, and for how long still: any client's lock is
 * found. All servers are asked at once, and once more if readers have it, for their number; nothing is changed. The
 * answer may be out of date when it arrives: to take a lock, take it. Of a semaphore, `info->permits` says how many
 * permits it has: it tells how many are taken.
 *
 * @param rl            the manager.
 * @param resource      as for RedLock_Lock.
 * @param resource_size how many bytes it has, so that a NUL may be one of them; 0: up to the NUL.
 * @param info          receives the answer: nobody holds it, on failure. Its size must be set.
 * @return REDLOCK_OK. REDLOCK_UNREACHABLE: so few servers answered that nobody can say. REDLOCK_INVALID_ARGUMENT,
 *         REDLOCK_NO_SERVERS, REDLOCK_FORKED (a callback forked, and this is the child), REDLOCK_INTERNAL.
 *         RedLock_ErrorMessage(rl) has the words, too. Any thread may call this.
 */
RedLockStatus RedLock_Inspect(RedLock *rl,
                              const char *resource,
                              size_t resource_size,
                              RedLockInfo *info);

/**
 * Takes a lock as the options say, and waits for that: RedLock_Lock and RedLock_TryLock are short forms of
 * it. Callers wait in a queue as for RedLock_Lock.
 *
 * Several resources (`resources`) are one lock, with one token, one validity and one fencing token: it is had on a
 * server when all of its keys are set there, in one step, and none is set where one of them is another's. It is extended as a
 * whole, and lost as a whole. Each key is that of a lock of this resource alone, so everybody who locks one of them
 * is kept out, and keeps this lock out. Who wants { a, b } and who wants { b, a } never wait for each other. The words
 * tell which resource is in the way by its number: "resource 3 of 5 held by another (8211 ms left)".
 *
 * In the queue of this manager, who wants several resources keeps one that is free from others for 100 ms at most while it
 * waits for the rest; then they come first, until what it waits for is let go of.
 *
 * @param rl      the manager.
 * @param options how; read during the call only.
 * @param lease   as for RedLock_Lock.
 * @return as for RedLock_Lock, and REDLOCK_CANCELLED: RedLock_Cancel ended the call.
 */
RedLockStatus RedLock_Acquire(RedLock *rl,
                              const RedLockAcquireOptions *options,
                              RedLockLease *lease);

/**
 * The same for callers that must not block for long, as RedLock_TryLockSlice for RedLock_TryLock: this call is a
 * slice of the wait, and the next one with the same lease and options goes on with it.
 *
 * @param rl       the manager.
 * @param options  how; read during the call only. wait_ms is how much of the wait is left, and tries has to be 0.
 * @param slice_ms how long this call may wait, at least 0; see RedLock_TryLockSlice.
 * @param lease    as for RedLock_TryLockSlice.
 * @return as for RedLock_Acquire.
 */
RedLockStatus RedLock_AcquireSlice(RedLock *rl,
                                   const RedLockAcquireOptions *options,
                                   int64_t slice_ms,
                                   RedLockLease *lease);

/**
 * Gives a held lock away: writes a ticket, by which another process, or another lease of this one, takes it over
 * with RedLock_Adopt. The lock stays as it is on the servers, with its token and its fencing token; until it is adopted nobody
 * extends it, and it ends when its time is over. No I/O.
 *
 * After this the lease holds nothing, nor does any other handle of the lock (RedLock_ContinueLock): RedLock_Unlock,
 * RedLock_Extend and RedLock_Confirm answer REDLOCK_LOST and say so, it is not kept any more, and freeing a handle, or the
 * manager, releases nothing. The lease may be used for another lock. Only a lock that nobody has begun to release is
 * given away.
 *
 * The ticket is as secret as the token, which is in it: who knows it can release the lock. Hand it over by a
 * descriptor or by the environment, not in the arguments of a program, which everybody can see. What has become of a
 * ticket that nobody adopts, the library cannot know.
 *
 * A server that had not answered the call that took the lock, or repaired it there, may carry that out after
 * whoever adopted the lock has released it: then its key ends with its TTL.
 *
 * @param rl     a manager with the servers that the lock was taken on.
 * @param lease  the lock.
 * @param ticket receives the ticket: printable ASCII without spaces, and a NUL.
 * @param size   bytes of room, with the NUL: REDLOCK_TICKET_SIZE(n) is enough for a resource of n bytes. Of several, n is
 *               what all have together, and 2 for each.
 * @return REDLOCK_OK. REDLOCK_LOST: it is not held; there is no ticket. REDLOCK_INVALID_ARGUMENT: also if there is too
 *         little room; the lock stays held. REDLOCK_CANCELLED, REDLOCK_NO_SERVERS, REDLOCK_FORKED, REDLOCK_INTERNAL.
 */
RedLockStatus RedLock_Detach(RedLock *rl,
                             RedLockLease *lease,
                             char *ticket,
                             size_t size);

/**
 * Takes over a lock that was given away by RedLock_Detach, in this process or another. The servers are asked, as
 * by RedLock_Confirm, and nothing is changed on them: where a quorum has the lock, the lease holds it for as long as they
 * have it still, less what is allowed for drift. To have it for longer, extend it.
 *
 * Adopt a ticket once. Nothing on the servers tells two adopters of one ticket apart: they would share the
 * lock, as threads that share a lease do, and the first to unlock it would release it for both. Of a call that failed, or was
 * cancelled, the ticket is as good as before.
 *
 * Every server that has the lock counts, as after RedLock_Lock. Whether somebody else has had it between the two
 * holders nobody can tell if servers lost their memory in between without a guard (RedLock_SetRestartGuard).
 *
 * @param rl     a manager of the same servers, in any order.
 * @param ticket what RedLock_Detach has written, in any process. As secret as a token, and quoted nowhere.
 * @param lease  receives the lock. Must not hold one. Its resource, token and fencing token are those of the lock.
 * @return REDLOCK_OK. REDLOCK_LOST: the lock has ended, or never was on these servers. REDLOCK_UNREACHABLE: too few
 *         servers answered; try again. REDLOCK_TOO_SLOW: it ended while log lines were told. REDLOCK_CANCELLED.
 *         REDLOCK_INVALID_ARGUMENT: also for what is no ticket, or only a part of one, or one of another version.
 *         REDLOCK_NO_SERVERS, REDLOCK_FORKED, REDLOCK_INTERNAL.
 */
RedLockStatus RedLock_Adopt(RedLock *rl,
                            const char *ticket,
                            RedLockLease *lease);

/**
 * Adds a level to a lock that is held: one more RedLock_Unlock is needed until it is released. For code that calls
 * code that takes the same lock. The count is the lease's: whoever has the lease holds the lock, at whatever level and
 * on whatever thread. No I/O.
 *
 * An inner level lasts no longer than the lock: where RedLockLease_RemainingMs is less than it needs, call
 * RedLock_Extend first.
 *
 * What the other functions do with a lock that has several levels:
 *  - RedLock_Unlock and RedLock_SubmitUnlock leave the innermost level. Only the last of them asks servers. The others
 *    answer REDLOCK_OK, or REDLOCK_LOST if the lock is known to be lost or its time is over; the level is left all the
 *    same. So a lock that is lost is told at every level.
 *  - RedLock_Extend, RedLock_Confirm and RedLock_KeepAlive are about the lock, whichever level they are called at. It is kept
 *    until it is released. If RedLock_Extend finds it lost, the lease is empty, and each RedLock_Unlock answers REDLOCK_LOST.
 *  - RedLock_ContinueLock extends it, and the levels stay. Another lease that continues the lock has a count of its
 *    own: its RedLock_Unlock releases the lock for all.
 *  - RedLock_Detach refuses it: REDLOCK_INVALID_ARGUMENT.
 *  - RedLock_Cancel, and RedLockLease_Free, which releases nothing, do what they do without levels.
 *  - A lease that is used for another lock begins with one level.
 *  - A child process holds nothing of its parent's, at no level: REDLOCK_FORKED.
 *
 * @param lease the lock.
 * @return REDLOCK_OK. REDLOCK_LOST: it is not held, and has no level more. REDLOCK_INVALID_ARGUMENT: also if there are
 *         2147483647 levels, or a submitted call uses the lease. REDLOCK_FORKED, REDLOCK_INTERNAL.
 *         RedLockLease_ErrorMessage(lease) has the words. Any thread may call this.
 */
RedLockStatus RedLock_Retain(RedLockLease *lease);

/**
 * At how many levels the lock is held: how many calls of RedLock_Unlock it takes to release it. No I/O.
 *
 * @param lease a lease, or NULL.
 * @return 1 for a lock without RedLock_Retain, also when it has expired. 0 if the lease is empty, for NULL, and in a
 *         child process for a lock of its parent.
 */
int32_t RedLockLease_Levels(const RedLockLease *lease);

/**
 * Makes a shared lock of an exclusive one: its holder goes on as a reader, and others that want it shared are let
 * in. Nobody can have it alone in between. The lock keeps its token, its fencing token and its end. Of a lock that is shared
 * already nothing is changed.
 *
 * There is no way back: two readers that wait for each other to leave would wait for ever. To have it alone again,
 * unlock it and take it anew.
 *
 * @param rl    a manager with the servers that the lock was taken on.
 * @param lease the lock.
 * @return REDLOCK_OK: a quorum has it as a shared one. REDLOCK_LOST: as for RedLock_Extend; the lease is empty now.
 *         REDLOCK_UNREACHABLE: too few servers answered; it is held still, until its old end. If any server was asked, it
 *         counts as shared from then on, and RedLockLease_Mode says so: others may be let in at any time. Calling again is
 *         allowed, and an extension does it, too. REDLOCK_CANCELLED: the same.
 *         REDLOCK_INVALID_ARGUMENT, REDLOCK_NO_SERVERS, REDLOCK_FORKED, REDLOCK_INTERNAL.
 */
RedLockStatus RedLock_Downgrade(RedLock *rl,
                                RedLockLease *lease);

/**
 * Begins to make a shared lock of an exclusive one, as RedLock_Downgrade does. See RedLock_SubmitAcquire.
 *
 * @param rl        as for RedLock_Downgrade.
 * @param lease     the lock.
 * @param user_data comes with the event.
 * @return as for RedLock_SubmitExtend. The status of the event is one of RedLock_Downgrade.
 */
RedLockStatus RedLock_SubmitDowngrade(RedLock *rl,
                                      RedLockLease *lease,
                                      void *user_data);

/**
 * How a lease holds its lock, or held it if it has ended. No I/O.
 *
 * @param lease a lease, or NULL.
 * @return REDLOCK_SHARED: others may have it at the same time. REDLOCK_EXCLUSIVE: nobody else; or the lease is empty, or
 *         NULL. Other values may follow.
 */
int32_t RedLockLease_Mode(const RedLockLease *lease);

/**
 * Begins to take a lock as the options say. Waits for nothing: it is sent, and goes on, whenever a thread
 * drives the library, as in RedLock_NextEvent; RedLock_Descriptor tells when that is due.
 *
 * The lease belongs to the call until its event is taken: other calls on it are refused until then, but for
 * RedLock_Cancel and those that only look. To free it cancels the call.
 *
 * Any number of calls may be under way at once; of more than 512 that would ask the servers, the others wait
 * their turn, and the time of their locks does not begin before.
 *
 * @param rl        the manager.
 * @param options   how; read during the call only.
 * @param lease     as for RedLock_Lock.
 * @param user_data comes with the event.
 * @return REDLOCK_OK: exactly one event with REDLOCK_EVENT_DONE follows, whose status is one of
 *         RedLock_Acquire. Any other: none follows. REDLOCK_INVALID_ARGUMENT, REDLOCK_NO_SERVERS,
 *         REDLOCK_FORKED, REDLOCK_INTERNAL. Any thread may call this.
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
 * @param ttl_ms    as for RedLock_Extend, counted from when it is sent.
 * @param user_data comes with the event.
 * @return as for RedLock_SubmitAcquire, and REDLOCK_LOST: the lease holds no lock. The status of the event is
 *         one of RedLock_Extend.
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
 * @return as for RedLock_SubmitExtend. The status of the event is one of RedLock_Unlock.
 */
RedLockStatus RedLock_SubmitUnlock(RedLock *rl, RedLockLease *lease, void *user_data);

/**
 * Begins to ask the servers whether a lock is still this lease's, as RedLock_Confirm does. See
 * RedLock_SubmitAcquire.
 *
 * @param rl        as for RedLock_Confirm.
 * @param lease     the lock.
 * @param least_ms  as for RedLock_Confirm.
 * @param user_data comes with the event.
 * @return as for RedLock_SubmitExtend. The status of the event is one of RedLock_Confirm.
 */
RedLockStatus RedLock_SubmitConfirm(RedLock *rl,
                                    RedLockLease *lease,
                                    int64_t least_ms,
                                    void *user_data);

/**
 * Begins to take over a lock that was given away, as RedLock_Adopt does. See RedLock_SubmitAcquire. If the lease is
 * freed when it has been adopted, and before the event is taken, the lock is released.
 *
 * @param rl        as for RedLock_Adopt.
 * @param ticket    as for RedLock_Adopt; read during the call only.
 * @param lease     as for RedLock_Adopt.
 * @param user_data comes with the event.
 * @return as for RedLock_SubmitAcquire. The status of the event is one of RedLock_Adopt.
 */
RedLockStatus RedLock_SubmitAdopt(RedLock *rl,
                                  const char *ticket,
                                  RedLockLease *lease,
                                  void *user_data);

/**
 * Keeps a held lock until it is unlocked: it is extended, with the TTL that it was given last, whenever a third
 * of that has passed. That is done by whatever thread drives the library then, in RedLock_NextEvent or in any
 * call that waits; where none does, the lock ends with its time. A server that is slow or down
 * costs nothing as long as a quorum is left. A lock that is lost is never taken again.
 *
 * Where it cannot be kept, REDLOCK_EVENT_LOST follows, once, while at least a tenth of the TTL is left; it is
 * not extended any more then. If a call finds out that the servers have the lock for less than that, since they
 * lost keys or a clock was set, the event follows at once; if that call was one of another manager, when the lock
 * is next to be extended. There is no event for a lock that was unlocked, or whose lease was freed or used
 * for another lock: then it is not kept any more either. A lock that is kept ends with its process, at
 * the latest one TTL after it.
 *
 * @param rl        a manager with the servers that the lock was taken on.
 * @param lease     the lock. It may be used for other calls. Kept twice, it is kept with the later user_data.
 * @param user_data comes with the event.
 * @return REDLOCK_OK, REDLOCK_LOST: it is not held. REDLOCK_INVALID_ARGUMENT, REDLOCK_NO_SERVERS,
 *         REDLOCK_FORKED, REDLOCK_INTERNAL. No I/O.
 */
RedLockStatus RedLock_KeepAlive(RedLock *rl,
                                RedLockLease *lease,
                                void *user_data);

/**
 * A descriptor for a program that waits in a loop of its own: poll, epoll, libuv, libevent, asyncio. It is
 * readable (level-triggered) whenever RedLock_NextEvent has something to do or to tell, also when a timer is
 * due. Wait for nothing else than to read it, never read from it, and do not close it: it belongs to the
 * manager, and is closed with it.
 *
 * @param rl the manager.
 * @return the descriptor, the same with each call; -1 if there is none: RedLock_ErrorMessage(rl) says why. A
 *         forked child has one of its own. Any thread may call this.
 */
int RedLock_Descriptor(RedLock *rl);

/**
 * Does what is due for submitted calls and for locks that are kept, and tells one event. Password callbacks
 * and loggers are called here, and names are looked up, which may take as long as the system's resolver takes;
 * an address never does.
 *
 * @param rl      the manager.
 * @param wait_ms how long to wait for an event: 0: not at all; less: for ever. Meanwhile the thread does what
 *                is due for all calls, as every thread does that waits in a call.
 * @param event   receives the event. Its size must be set.
 * @return REDLOCK_OK with an event. REDLOCK_NO_EVENT without one: there was none in that time.
 *         REDLOCK_INVALID_ARGUMENT, REDLOCK_NO_SERVERS, REDLOCK_FORKED (a callback forked, and this is the
 *         child), REDLOCK_INTERNAL; RedLock_ErrorMessage(rl) has the words. Any number of threads may call
 *         this at once: each event is told once, to one of them.
 */
RedLockStatus RedLock_NextEvent(RedLock *rl,
                                int64_t wait_ms,
                                RedLockEvent *event);

/**
 * Sets whether the manager has a thread of its own, named "redlock": it does what is due for submitted calls
 * and for locks that are kept, whenever no other thread does, and sleeps otherwise. So nobody has to call
 * RedLock_NextEvent in time. All signals are blocked in it. Password callbacks and loggers may be called on it.
 * It begins with the first call that asks servers. A forked child has none unless it asks for its own.
 *
 * @param rl         the manager.
 * @param background true: there is to be one. false, the default: no thread is ever started; one that there is
 *                   has ended when this returns, unless this is called on it. So a callback that runs on it is
 *                   waited for. RedLock_Free does not wait: there the thread ends soon after.
 * @return REDLOCK_OK, REDLOCK_INVALID_ARGUMENT, REDLOCK_FORKED, REDLOCK_INTERNAL: the system gave no thread.
 */
RedLockStatus RedLock_SetBackgroundThread(RedLock *rl,
                                          bool background);

/**
 * Sets a function that is told events, on the thread of RedLock_SetBackgroundThread, one at a time and with
 * nothing held: it may call this library, also with the lease of the event. An event is told once, to it or
 * by RedLock_NextEvent. While it runs that thread does nothing else: locks are kept only if another thread is in
 * a call. It must not unwind (longjmp, throw) through the library.
 *
 * @param rl        the manager.
 * @param callback  the function, or NULL for none.
 * @param user_data handed to the function as it is; may be NULL. It belongs to the manager from now on, also if
 *                  this function fails.
 * @param destroy   as for RedLock_SetLoggerWithDestroy; it may also be called on that thread. NULL, if nobody
 *                  needs to be told.
 * @return REDLOCK_OK, REDLOCK_INVALID_ARGUMENT, REDLOCK_FORKED.
 */
RedLockStatus RedLock_SetEventCallback(RedLock *rl,
                                       RedLockEventCallback callback,
                                       void *user_data,
                                       RedLockDestroy destroy);

/**
 * Ends the call, blocking or submitted, that uses a lease: it answers REDLOCK_CANCELLED, and nothing of it
 * stays locked: what servers may have granted is released, at once or queued behind the request. A lock that
 * was held before stays held; one whose RedLock_Unlock is cancelled is being released, and RedLock_Unlock may
 * be called again. A call that has ended just now has its own status, and its event comes as if nothing had
 * been cancelled. Without a call this does nothing. A password callback that is being asked is not cut short.
 *
 * @param rl    the manager that the call is made on.
 * @param lease the lease of the call.
 * @return REDLOCK_OK, REDLOCK_INVALID_ARGUMENT. Any thread may call this, also while another is in the call.
 */
RedLockStatus RedLock_Cancel(RedLock *rl,
                             RedLockLease *lease);

/**
 * Has the manager keep what it would tell a logger, for RedLock_TakeLogLine: for callers into whom
 * no thread may call from C, as into interpreters. It takes the place of a function set by
 * RedLock_SetLogger, as one that is set later takes its place. What was kept before is forgotten. A
 * forked child keeps its own lines, and has none of its parent's.
 *
 * @param rl    the manager.
 * @param lines how many lines to keep at most, up to 65536: where one more comes, the oldest goes. 0:
 *              none, and nothing is said any more.
 * @return REDLOCK_OK or REDLOCK_INVALID_ARGUMENT.
 */
RedLockStatus RedLock_KeepLog(RedLock *rl,
                              int lines);

/**
 * Takes the oldest line that was kept. See RedLock_KeepLog. No I/O. Any thread may call this.
 *
 * @param rl   the manager, or NULL.
 * @param line receives the line, cut to what there is room for, and a NUL; empty where there is
 *             none. May be NULL: then the line is dropped.
 * @param size bytes of room, with the NUL; 256 are enough for most lines.
 * @return the level of the line, as RedLockLogger is told it; 0 if there is none.
 */
int32_t RedLock_TakeLogLine(RedLock *rl, char *line, size_t size);

/**
 * Tells what is known of each server, for a person or a monitor: nobody is asked, and nothing is waited for.
 * Before the first call that asks servers none is connected; RedLock_Connect is one.
 *
 * @param rl    the manager.
 * @param infos receives one struct for each server, in the order in which they were added, as far as there is
 *              room. Begin the first one with REDLOCK_SERVER_INFO_INIT: its size holds for all. May be NULL if
 *              *count is 0.
 * @param count how many structs there is room for; receives how many servers there are, which may be more.
 * @return REDLOCK_OK. REDLOCK_INVALID_ARGUMENT or REDLOCK_FORKED (the parent was using the manager when it
 *         forked); RedLock_ErrorMessage(rl) has the words. Any thread may call this.
 */
RedLockStatus RedLock_Servers(RedLock *rl,
                              RedLockServerInfo *infos,
                              size_t *count);

/**
 * Sets what is done against servers that forget: after a restart without their data, FLUSHALL, a failover to a
 * copy, or with an empty server at the same address. Such a server might grant a lock that another client still
 * holds on it.
 *
 * Each server bears a note of its memory in the key redlock:guard, which has no TTL. The user needs the right to
 * read and write this key, and to use INFO, TIME, GETRANGE and EVAL; without it, the server has a vote, and is
 * not guarded: RedLock_Servers says so. The note is read when a connection begins, and again along with every
 * acquire. If it is missing or another's, what the server grants is no vote until the longest TTL has passed that
 * is asked for, noted on any server, or given here; at least 3 s, at most cap_ms. A server whose append-only file is
 * synced always (appendfsync always) forgets nothing when it restarts, and has its vote at once. If all servers
 * were asked and none has a note, they are taken for new, and have their votes at once: so if all lose
 * everything in the same moment, nobody can tell.
 *
 * A server whose clock is set forward lets go of keys before their time. A client that was connected to it before sees that
 * by its next acquire, and takes no vote of that server for as long as of one that has forgotten.
 *
 * A server that may evict keys (maxmemory with another maxmemory-policy than noeviction) is refused, unless the
 * mode is REDLOCK_GUARD_OFF.
 *
 * @param rl             the manager.
 * @param mode           REDLOCK_GUARD_ON, the default, REDLOCK_GUARD_STRICT, REDLOCK_GUARD_OFF or
 *                       REDLOCK_GUARD_DURABLE. It holds for connections that are made from now on.
 * @param longest_ttl_ms the longest TTL that any client uses on these servers, 0 to 315360000000 (ten years). 0, the default: what is
 *                       noted on the servers, which is enough unless several of them are lost at once.
 * @param cap_ms         for how long a server is left without a vote at most, 0 to 315360000000; less than
 *                       3000 is 3000. 0, the default: 600000. Locks with a longer TTL are guarded for that long only.
 * @return REDLOCK_OK or REDLOCK_INVALID_ARGUMENT.
 */
RedLockStatus RedLock_SetRestartGuard(RedLock *rl,
                                      int32_t mode,
                                      int64_t longest_ttl_ms,
                                      int64_t cap_ms);

/**
 * Tells what was counted since the manager was made: for a monitor. Nobody is asked, nothing is waited for, and all
 * numbers are those of one moment. To count costs nothing that could be measured; a call that is refused
 * for its arguments is not counted. A forked child counts anew.
 *
 * @param rl    the manager.
 * @param stats receives the numbers. Its size must be set: begin with REDLOCK_STATS_INIT.
 * @return REDLOCK_OK. REDLOCK_INVALID_ARGUMENT or REDLOCK_FORKED (the parent was using the manager when it
 *         forked); RedLock_ErrorMessage(rl) has the words. Any thread may call this.
 */
RedLockStatus RedLock_GetStats(RedLock *rl,
                               RedLockStats *stats);

/**
 * Writes what was counted, and what is known of each server, in the text format that Prometheus reads; content
 * type "text/plain; version=0.0.4". All names begin with redlock_, counters end in _total, times are in seconds. Servers are
 * named by the label server, as messages name them: never with a user or a password. No resource is named. docs/stats.md
 * tells what each of them means; names and meanings stay, and later versions may add some.
 *
 * Ask for the size first, and again if it has grown meanwhile:
 *
 *  - size_t size = RedLock_StatsText(rl, NULL, 0) + 1;
 *  - char *text = malloc(size);
 *  - RedLock_StatsText(rl, text, size) is less than size if it fits in.
 *
 * Nobody is asked, and nothing is waited for.
 *
 * @param rl   the manager, or NULL.
 * @param text receives the text and a NUL, as a whole or, if there is too little room, not at all: then it is empty.
 *             May be NULL if size is 0.
 * @param size bytes of room, with the NUL.
 * @return how many bytes the text has now, without the NUL: if that is not less than size, nothing was written. 0 for NULL, and
 *         if the parent was using the manager when it forked. Any thread may call this.
 */
size_t RedLock_StatsText(RedLock *rl,
                         char *text,
                         size_t size);

/**
 * Sets whether the logger is told what becomes of locks, at level 3: one line for each event, made of key=value with a
 * blank in between, such as
 * event=acquired resource="invoice:42" duration_ms=1.204 attempts=1.
 * The events are acquired, refused, extended, not_extended, released, not_released, lost, adopted, detached, renewed, not_renewed
 * and kept_lost; outcome= says why something did not succeed. Lines are told as all others are: see RedLock_SetLogger and RedLock_KeepLog. Where more
 * come than can be told, the oldest are left out, and their number is told.
 *
 * The name of a resource may be nobody's business: messages and log lines hold none, unless REDLOCK_TRACE_RESOURCES asks for it. There
 * it stands in quotes, of several the first, with \xNN for what cannot be printed, and is cut after 256 bytes. Never a token.
 *
 * @param rl     the manager.
 * @param events REDLOCK_TRACE_OFF, the default, REDLOCK_TRACE_EVENTS or REDLOCK_TRACE_RESOURCES, for calls that begin from now on.
 * @return REDLOCK_OK or REDLOCK_INVALID_ARGUMENT.
 */
RedLockStatus RedLock_SetTracing(RedLock *rl,
                                 int32_t events);

/**
 * Sets whether locks come with a fencing token: a number that is greater than those of all locks of the same
 * resource before. Hand it to what the lock protects with each write, and have it refuse a number that is less
 * than the greatest it has seen, as a database does with UPDATE ... WHERE fence <= :token. Then a holder that
 * was paused beyond the end of its lock cannot undo what the next holder wrote.
 *
 * To draw tokens, each server keeps a counter for the resource, in the key that is named as the resource with :f
 * behind it. So do not lock a resource of such a name. The counter has a TTL of its own: an hour, or a hundred times that of
 * the lock if that is longer. The user needs the right to use it, and EVAL, TIME, GET, SET and PTTL. Taking a lock
 * needs a second round trip only if the counters of the servers differ, as after an outage of one.
 *
 * All who lock the resource must use this: locks that are taken without it draw no token, and a token only tells its
 * holder from those with other tokens. Tokens grow as long as no quorum of servers loses its memory
 * at once, with the restart guard on (RedLock_SetRestartGuard); and, where one server after another loses it, if
 * the servers' clocks differ by less than a second. The clocks of clients do not matter.
 *
 * @param rl      the manager.
 * @param enabled true: locks that are taken from now on have a token. false, the default: they have none.
 * @return REDLOCK_OK or REDLOCK_INVALID_ARGUMENT.
 */
RedLockStatus RedLock_SetFencing(RedLock *rl,
                                 bool enabled);

/**
 * The fencing token of the lock. It does not change when the lock is extended, and is there still when the lock
 * has expired or was lost, until the lease is unlocked or used for another lock. No I/O.
 *
 * @param lease a lease, or NULL.
 * @return a number above 0 and below 2^53, which a double holds exactly; 0 if the lease is empty, the lock was
 *         taken without one (RedLock_SetFencing), and for NULL.
 */
int64_t RedLockLease_FencingToken(const RedLockLease *lease);

/**
 * Sets whether calls that wait for a lock are told when it is released, by whatever process; and whether what this
 * manager releases is told to those that wait. That is so by default, and costs little: a lock that is held for long is
 * asked for seldom, and changes hands in a few round trips all the same. Servers need no configuration.
 *
 * Who waits (RedLock_TryLock, RedLock_Acquire and RedLock_SubmitAcquire with a wait_ms that is not 0) stands in a line on each
 * server: in the sorted set that is named as the resource with :w behind it, which ends by itself when nobody has waited
 * for a while. So do not lock a resource of such a name. It listens to a channel of its own, redlock:w: and 32 hexadecimal digits. A release
 * publishes to the channel of whoever has waited longest. The order is nearly that in which they came, and no promise.
 *
 * All of this is about when to ask: who has a lock does not depend on it. Where it is not to be had, a caller asks now and then,
 * as it does for locks that expire or that another kind of client releases: servers older than Redis 6.0, a user without the
 * right to the channel (Redis 7.0 gives new users none), to the key :w, or to HELLO, SUBSCRIBE, PUBLISH, EVAL, EXISTS, TIME, PTTL,
 * PEXPIRE and the commands of sorted sets. A line in the log says so.
 *
 * @param rl      the manager.
 * @param enabled true, the default, or false: this manager's callers ask now and then, and its releases are told to
 *                nobody. Set it before the first call that asks servers: connections that there are stay as they are.
 * @return REDLOCK_OK or REDLOCK_INVALID_ARGUMENT.
 */
RedLockStatus RedLock_SetWaking(RedLock *rl,
                                bool enabled);

/**
 * Sets the user and the password for servers whose URLs name none. A URL that names both, or a
 * password alone, is not affected; one that names a user alone gets the password. Connections that
 * are there stay as they are. Nothing needs to be escaped here, as it does in a URL.
 *
 * @param rl       the manager.
 * @param user     the name of an ACL user, or NULL for the default user. Not empty.
 * @param password the password, or NULL: with a user, for one that needs no password; with no user
 *                 either, for no log-in at all, which is the default. Not empty.
 * @return REDLOCK_OK, REDLOCK_INVALID_ARGUMENT, REDLOCK_FORKED.
 */
RedLockStatus RedLock_SetCredentials(RedLock *rl, const char *user, const char *password);

/**
 * RedLock_SetCredentials with what two variables of the environment hold, so that neither stands in
 * a program or on a command line. They are read now, and not again. In a program that has more rights
 * than its user (setuid, setgid, capabilities) none is read: whoever starts that could choose who it
 * is to the servers.
 *
 * @param rl                the manager.
 * @param user_variable     the name of the variable that holds the user, or NULL for the default
 *                          user.
 * @param password_variable the name of the variable that holds the password.
 * @return REDLOCK_OK; REDLOCK_INVALID_ARGUMENT if a variable is not set, or empty, or may not be
 *         read; REDLOCK_FORKED. The message tells which of the two, and never a name or what it holds.
 */
RedLockStatus RedLock_SetCredentialsFromEnv(RedLock *rl,
                                            const char *user_variable,
                                            const char *password_variable);

/**
 * Sets a function to be asked for the password of each server whose URL names none: when the server
 * is first connected to, and again when it did not accept the last answer, so a password may be
 * changed while the program runs. It is called only within calls to this library, on the thread
 * that made the call, with no mutex held, and never by two threads at once for one server.
 * RedLock_Lock and its like, and RedLock_Connect, ask before they begin; a call on a lock that is
 * held asks only if too few servers are connected. They wait for it, so it should be quick. It may
 * call this library, but not with the lease of the call that it is called in, which is in use; and on
 * this manager such a call waits for the answer in vain, up to the timeout for connecting. It may fork:
 * then the call ends in the child with REDLOCK_FORKED. It must not unwind (longjmp, throw) through the
 * library.
 *
 * @param rl        the manager.
 * @param user      as for RedLock_SetCredentials.
 * @param callback  the function, or NULL to ask nobody and log in nowhere.
 * @param user_data handed to the function as it is; may be NULL. It must stay valid for as long as that
 *                  of RedLock_SetLogger.
 * @return REDLOCK_OK, REDLOCK_INVALID_ARGUMENT, REDLOCK_FORKED.
 */
RedLockStatus RedLock_SetPasswordCallback(RedLock *rl,
                                          const char *user,
                                          RedLockPasswordCallback callback,
                                          void *user_data);

/**
 * RedLock_SetPasswordCallback with a function that is told when nobody uses user_data any more.
 *
 * @param rl        the manager.
 * @param user      as for RedLock_SetCredentials.
 * @param callback  as for RedLock_SetPasswordCallback.
 * @param user_data as for RedLock_SetPasswordCallback. It belongs to the manager from now on, also if
 *                  this function fails.
 * @param destroy   as for RedLock_SetLoggerWithDestroy; RedLock_SetCredentials, too, replaces the
 *                  callback.
 * @return as for RedLock_SetPasswordCallback.
 */
RedLockStatus RedLock_SetPasswordCallbackWithDestroy(RedLock *rl,
                                                     const char *user,
                                                     RedLockPasswordCallback callback,
                                                     void *user_data,
                                                     RedLockDestroy destroy);

/**
 * Sets who is trusted to say who a server is, for rediss:// servers. Connections that are there stay
 * as they are.
 *
 * @param rl      the manager.
 * @param ca_file the path of a PEM file with certificates, which is read now (a FIFO is waited for):
 *                those alone are trusted. NULL, the default: those whom the system trusts, where
 *                its OpenSSL looks for them, or in SSL_CERT_FILE and SSL_CERT_DIR of the
 *                environment. These are read by the first lock call. In a program that has more
 *                rights than its user (setuid, setgid, capabilities) both variables are ignored, as
 *                OpenSSL does.
 * @return REDLOCK_OK; REDLOCK_INVALID_ARGUMENT if the file is of no use (the message says why, but
 *         never the name: it might be the certificate or a key itself), or if this build has no TLS;
 *         REDLOCK_FORKED.
 */
RedLockStatus RedLock_SetTlsCa(RedLock *rl,
                               const char *ca_file);

/**
 * Sets the certificate for rediss:// servers that want to know who we are. Both files are read now;
 * set them again when they have changed. Connections that are there stay as they are.
 *
 * @param rl               the manager.
 * @param certificate_file the path of a PEM file with our certificate, followed by those that lead
 *                         up to one that the servers trust. NULL, the default, for none.
 * @param key_file         the path of a PEM file with its key, not encrypted. NULL if, and only if,
 *                         the other is.
 * @return as for RedLock_SetTlsCa.
 */
RedLockStatus RedLock_SetTlsCertificate(RedLock *rl,
                                        const char *certificate_file,
                                        const char *key_file);

/**
 * Sets the name that the certificates of rediss:// servers have to be for, where that is not the host
 * in their URLs: with a tunnel, say, or with one certificate for all. Connections that are there
 * stay as they are.
 *
 * @param rl   the manager.
 * @param name the name of a host, or an address. NULL, the default: for each server its own host.
 * @return REDLOCK_OK; REDLOCK_INVALID_ARGUMENT if it can be no host's, or this build has no TLS;
 *         REDLOCK_FORKED.
 */
RedLockStatus RedLock_SetTlsServerName(RedLock *rl,
                                       const char *name);

/**
 * Sets whether rediss:// servers are believed to be who they say they are, without any proof (a
 * certificate that cannot be read, or is not of version 3, is refused all the same). Then
 * whoever is on the way to them can read all, passwords and tokens, and answer in their place. It is
 * for trying things out: where the certificates are your own, name them with RedLock_SetTlsCa.
 *
 * @param rl   the manager.
 * @param skip true: nothing is verified. false, the default: everything is.
 * @return REDLOCK_OK; REDLOCK_INVALID_ARGUMENT if this build has no TLS; REDLOCK_FORKED.
 */
RedLockStatus RedLock_SetTlsInsecureSkipVerify(RedLock *rl,
                                               bool skip);

/**
 * Makes an empty lease.
 *
 * @return the lease, owned by the caller: free it with RedLockLease_Free. NULL if it could not
 *         be made. Any thread may call this.
 */
RedLockLease *RedLockLease_New(void);

/**
 * Frees the memory of a lease, and nothing else: a lock that it holds stays held until it
 * expires, and is kept no more if it was. A submitted call that uses the lease is cancelled; its event comes all the
 * same. Waits for nothing. In a child process it touches nothing of the parent's.
 *
 * @param lease a lease, or NULL, which is fine. Not to be used after this call, nor freed twice.
 */
void RedLockLease_Free(RedLockLease *lease);

/**
 * Whether the lock is held and valid now, by this machine's clock. No I/O.
 *
 * @param lease a lease, or NULL.
 * @return true while it is; false for NULL, and in a child process for a lock of its parent.
 */
bool RedLockLease_IsHeld(const RedLockLease *lease);

/**
 * How long the lock is valid from now on. Counts down, and never says more than the servers
 * would; if their clocks are set, once RedLock_Extend or RedLock_Confirm has asked them. No I/O.
 *
 * @param lease a lease, or NULL.
 * @return milliseconds, rounded down; 0 when the lock is not held, and for NULL.
 */
int64_t RedLockLease_RemainingMs(const RedLockLease *lease);

/**
 * How long the lock was valid when it was granted, or last extended with this lease. Does not count
 * down, and stays as it is when the lock ends by itself, or through another handle of it:
 * RedLockLease_RemainingMs tells what is left. No I/O.
 *
 * @param lease a lease, or NULL.
 * @return milliseconds; 0 if the lease is empty, and for NULL.
 */
int64_t RedLockLease_ValidityMs(const RedLockLease *lease);

/**
 * The resource of the last locking call on this lease; the first of several.
 *
 * @param lease a lease, or NULL.
 * @return a string of the lease, valid until the next call that changes the lease; empty if there
 *         was no such call yet, and for NULL.
 */
const char *RedLockLease_Resource(const RedLockLease *lease);

/**
 * How many bytes the resource has that RedLockLease_Resource returns: with one that holds NULs, the string
 * seems to end early. No I/O.
 *
 * @param lease a lease, or NULL.
 * @return bytes, without the NUL at the end; 0 for NULL.
 */
size_t RedLockLease_ResourceSize(const RedLockLease *lease);

/**
 * The token that stands on the servers as the value of the key: 40 upper-case hexadecimal digits,
 * 20 bytes from the operating system's random source. Keep it to yourself: who knows it can
 * release the lock.
 *
 * @param lease a lease, or NULL.
 * @return a string of the lease, valid until the next call that changes the lease. It stays when the
 *         lock ends by itself, is found out to be lost, or ends through another handle of it: then the
 *         lease may still be needed to clear up. Empty if the lease is, and for NULL.
 */
const char *RedLockLease_Token(const RedLockLease *lease);

/**
 * What the last locking call on this lease has to say. After a failure: what was wrong, or the
 * votes counted and what each server answered. After a success: which servers could not take
 * part, and why.
 *
 * @param lease a lease, or NULL.
 * @return words for a person, in a string of the lease, valid until the next call that changes
 *         the lease; empty after a success in which no server failed.
 */
const char *RedLockLease_ErrorMessage(const RedLockLease *lease);

/**
 * Copies what RedLockLease_ErrorMessage returns: for a lease that another thread may use at the same time, which
 * could change that string while it is read.
 *
 * @param lease   a lease, or NULL.
 * @param message receives the words, cut to what there is room for, and a NUL. May be NULL if size is 0.
 * @param size    bytes of room, with the NUL.
 * @return how many bytes the words have, without the NUL: if that is not less than size, they were cut.
 */
size_t RedLockLease_CopyErrorMessage(const RedLockLease *lease,
                                     char *message,
                                     size_t size);

/**
 * How many resources the last locking call on this lease was about. No I/O.
 *
 * @param lease a lease, or NULL.
 * @return 1, or how many there were in RedLockAcquireOptions.resources; 0 if there was no such call yet, and for NULL.
 */
size_t RedLockLease_ResourceCount(const RedLockLease *lease);

/**
 * One of the resources of the last locking call on this lease, in the order in which they were given. No I/O.
 *
 * @param lease a lease, or NULL.
 * @param index which: from 0, below RedLockLease_ResourceCount.
 * @return a string of the lease, valid until the next call that changes the lease; empty if there is no such
 *         resource, and for NULL.
 */
const char *RedLockLease_ResourceAt(const RedLockLease *lease,
                                    size_t index);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* REDLOCK_H */

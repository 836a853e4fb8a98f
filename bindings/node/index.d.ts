/// <reference types="node" />

/**
 * Locks that are held on a majority of independent Redis or Valkey servers, through the C library redlock.
 *
 *     const { Manager } = require('redlock-native');
 *
 *     const manager = new Manager(['10.0.0.1:6379', '10.0.0.2:6379', '10.0.0.3:6379']);
 *     await manager.using('report', { ttl: 10_000, keepAlive: true }, async (lease) => {
 *       await write(lease.signal);
 *     });
 *
 * A lock in Redis is a lease: it expires by itself after its ttl. All times are in milliseconds.
 *
 * Nothing blocks the event loop. The library has one thread for each manager, which starts with the first call. So
 * locks are kept alive even while a program computes and its event loop does not run. While a call is under way, or a
 * lock is kept alive, the process does not end by itself. Otherwise it does, even if managers are open and locks are
 * held.
 *
 * An argument of the wrong type causes a TypeError or RangeError that names the argument; functions that return
 * promises reject with it. Every other failure is a RedlockError.
 *
 * Each worker thread has its own managers. A process that is started by child_process or cluster has nothing of its
 * parent's.
 */

import { EventEmitter } from 'node:events';

/** The version of the C library that runs, such as "0.3.0". */
export const version: string;

export interface ManagerOptions {
  /** The log-in for servers whose URL names none. */
  username?: string;
  /**
   * A function is called before the first call, and before a call that begins a second or more after a server could
   * not take part, so the password may change. If the function throws the first time, so does the call, and it has
   * locked nothing. If it throws later, the old password remains in use, the logger is told, and a call that begins a
   * second or more later asks again. To end or renew a log-in at another time, see setCredentials.
   */
  password?: string | (() => string | Promise<string>);
  /** The names of environment variables that hold the user (optional) and the password. */
  credentialsFromEnv?: { username?: string; password: string };
  /** True, or TLS settings: servers that are given as host:port are reached over TLS, like those of rediss://. */
  tls?: boolean | TlsOptions;
  /** Mean pause between two tries; each pause is random. Default 200. */
  retryDelay?: number;
  /** Timeout for connecting to a server, including the log-in. Default 1500. */
  connectTimeout?: number;
  /** Timeout for a server's reply. Default 0: a twentieth of the ttl, at least 25 and at most 500. */
  replyTimeout?: number;
  /** How much faster a server's clock may run than this machine's. Default 0.01. */
  driftFactor?: number;
  /**
   * How the manager guards against servers that lose their memory, for example in a restart without their data. With
   * 'on', the default, such servers have no vote until the locks that they may have forgotten have ended. With
   * 'strict', servers that seem to be new also have no vote at first. With 'off' every server that can be reached has
   * a vote. With 'durable' it does, too, because the program vouches that no server ever forgets.
   */
  restartGuard?: 'on' | 'strict' | 'off' | 'durable';
  /** The longest ttl that any client uses on these servers. Default 0: the ttl that is noted on the servers. */
  longestTtl?: number;
  /** The longest time that a server stays without a vote. Default 0: 600,000. */
  guardCap?: number;
  /**
   * A master that Sentinels watch has a vote only while a majority of all its Sentinels names it as the master. So an
   * old master that was paused or cut off while another one was elected never votes beside its successor. With false,
   * one Sentinel that answers is enough, and a master keeps its vote while no Sentinel can be reached: then an old
   * master may vote beside its successor, and two clients may hold one lock. It has no effect on servers that no
   * Sentinel watches, nor if restartGuard is 'off' or 'durable'. Default true.
   */
  failoverGuard?: boolean;
  /**
   * Locks come with a fencing token: see Lease.fencingToken. All clients that lock the resource must set this. The
   * servers count in the key redlock:fence, so do not lock a resource with this name. Default false.
   */
  fencing?: boolean;
  /**
   * Waiting calls are woken when another process releases the lock, and releases wake waiting clients. With false,
   * waiting calls ask now and then. The wait queue is in the key that is named as the resource with :w appended, so
   * do not lock a resource with such a name. Default true.
   */
  waking?: boolean;
  /**
   * Is called when servers are lost, refuse or come back: a function, or an object such as console. While locks are
   * only kept alive, a server that is lost is noticed when a lock is next extended. A line contains
   * neither a password nor a token. An exception that it throws is an uncaught exception; it changes no call.
   */
  logger?: Logger;
  /**
   * The logger also receives the events of locks, at 'debug': one line of key=value pairs for each event.
   * 'resources': with resource names. Default: no events.
   */
  trace?: 'events' | 'resources';
}

/** An object needs debug() only with a trace. */
export type Logger =
  | ((level: 'warn' | 'info' | 'debug', line: string) => void)
  | { warn(line: string): void; info(line: string): void; debug?(line: string): void };

/** The number of calls of one kind, by outcome. */
export interface Outcomes {
  ok: number;
  taken: number;
  unreachable: number;
  tooSlow: number;
  lost: number;
  tooShort: number;
  cancelled: number;
  failed: number;
}

/** A histogram of durations. */
export interface Histogram {
  count: number;
  /** The sum of all durations, in milliseconds. */
  sum: number;
  /**
   * The number of durations in each bucket: at most the milliseconds at the same index in bounds, and more than the
   * bound before it. The last bucket has no bound.
   */
  buckets: number[];
  bounds: number[];
}

/** The counters of a manager. Counts only grow; waiting and kept are current numbers. */
export interface Stats {
  /** lock() and using() */
  acquire: Outcomes;
  extend: Outcomes;
  confirm: Outcomes;
  /** unlock(), except for an inner level */
  release: Outcomes;
  adopt: Outcomes;
  inspect: Outcomes;
  /** Locks that were given away. */
  detached: number;
  /** How often the servers were asked for a lock; all at once counts as one. */
  attempts: number;
  /** Calls that had to wait for a lock, even if only for a moment. */
  waits: number;
  /** Extensions of locks that are kept alive, and those that failed and were tried again. */
  renewed: number;
  notRenewed: number;
  /** Locks that could not be kept alive. */
  keptLost: number;
  /** Requests that were sent, to all servers together. */
  requests: number;
  connections: number;
  connectionsLost: number;
  connectionsFailed: number;
  /** How many calls are waiting for a lock now, and how many locks are kept alive now. */
  waiting: number;
  kept: number;
  /** How long it took to take a lock, for locks that were taken. */
  acquireTime: Histogram;
  /** The waiting time of calls that had to wait, whatever their result. */
  waitTime: Histogram;
  /** How long released locks were held. */
  holdTime: Histogram;
  /** From sending a request to reading its answer. */
  roundTrip: Histogram;
}

export interface TlsOptions {
  /** A PEM file with the trusted authorities; without it, the authorities that the system trusts. */
  ca?: string;
  /** PEM files with the client certificate and its key, for servers that ask for one. */
  certificate?: string;
  key?: string;
  /** The name that certificates must be for, if it is not the host. */
  serverName?: string;
  /** Any certificate is accepted. Use this only for experiments. */
  insecureSkipVerify?: boolean;
}

export interface LockOptions {
  /** How long the lock lasts unless it is extended, kept alive or released. */
  ttl: number;
  /** How long to wait at most for a lock that is not available. 0: one try. Infinity: no limit. Default 5000. */
  wait?: number;
  /** Instead of wait: the number of tries. */
  tries?: number;
  /**
   * Takes one permit of a semaphore with this number of permits, 1 to 256: so many callers can hold the resource at
   * the same time. All users of the resource must give the same number. If the numbers differ, the greatest applies.
   * A caller that locks the resource without it uses one permit.
   */
  permits?: number;
  /** The lock is kept alive: extended, again and again, until it is unlocked. See Lease. */
  keepAlive?: boolean;
  /**
   * Other callers that want the lock shared can hold it at the same time, and no caller can hold it exclusively.
   * While a caller waits for the exclusive lock, later callers that want it shared do not get it. A shared lock has
   * no fencing token. Besides the resource, the servers use the keys with :r and :i appended to its name, so do not
   * lock resources with such names.
   */
  shared?: boolean;
  /**
   * Ends the wait: the promise is rejected with the signal's reason when nothing is left of the call; with an AbortError
   * if the signal is of a kind that has no reasons. A lock that was taken at that moment is unlocked. Has no effect
   * once the promise is settled.
   */
  signal?: AbortSignal;
}

export interface CallOptions {
  /**
   * Ends the wait: the promise is rejected with the signal's reason. A held lock is still held. A lock that was being
   * extended may have its old expiry or the new one.
   */
  signal?: AbortSignal;
}

/** The state of a server. */
export interface Server {
  /** host:port, or the path of its socket. */
  name: string;
  isConnected: boolean;
  /** Whether its grants count. */
  votes: boolean;
  /** Why it is not connected, or does not vote. */
  words: string;
  /** How many milliseconds its last answer took; left out if there was none yet. */
  roundTrip?: number;
  /** How many milliseconds its clock is ahead of this machine's clock; left out if that is not known. */
  clockOffset?: number;
  /**
   * The program and its version. This field and the following ones are what the server said about itself when it was
   * last asked. They are empty if it did not say it, or if the user may not ask.
   */
  version: string;
  /** "primary", or "replica" or "sentinel", which cannot vote. */
  role: string;
  /** Changes with each start. */
  runId: string;
  /** Which of its data outlives its process: "log, synced always", ..., "no log". */
  keeps: string;
  /** Its maxmemory-policy. */
  eviction: string;
}

/** What the servers report about a resource. */
export interface Info {
  isLocked: boolean;
  /** How many milliseconds it is still held, if it is neither extended nor unlocked; Infinity: forever. */
  remaining: number;
  /** Whether several can hold it at the same time. */
  isShared: boolean;
  /** How many hold it. */
  readers: number;
  /** For a semaphore: how many permits are taken. It is locked if all are taken. */
  permitsTaken: number;
  /** Which servers could not answer, and why. */
  words: string;
}

/** The name of a resource. A string with half of a surrogate pair is refused: UTF-8 has no form for it. */
export type Resource = string | Uint8Array;

/** Takes locks on one set of servers. */
export class Manager {
  /**
   * @param servers host:port, or URLs such as redis://user:password@host:6379/0, rediss://host:6379 or
   *                unix:///run/redis.sock, or redis-sentinel://host,host2/master for a master that Sentinels watch.
   *                All programs that must exclude each other must name the same servers.
   */
  constructor(servers: readonly string[], options?: ManagerOptions);

  /**
   * Takes a lock. Callers that want one resource get it in the order in which they came.
   *
   * Rejects with the result of the last try: TakenError, UnreachableError or TooSlowError. Or rejects with
   * ClosedError, or with the reason of the signal. After that nothing of the call stays locked.
   *
   * @param resource 1 to 65536 bytes: the name of the key on the servers. A string is encoded as UTF-8. The names in
   *                 an array are locked at once, all or none, by one lock. It is extended and lost as a whole, and
   *                 excludes every caller that wants one of them. 1 to 128 different names in any order. The message
   *                 tells by its number which one was in the way.
   */
  lock(resource: Resource | readonly Resource[], options: LockOptions): Promise<Lease>;

  /**
   * Takes a lock, calls the function, and unlocks, however the function ends. Resolves to the result of the function,
   * and rejects with the exception of the function. Rejects with LostError if the function ended normally but the
   * lock had ended before.
   */
  using<T>(resource: Resource | readonly Resource[], options: LockOptions, action: (lease: Lease) => T | Promise<T>): Promise<T>;

  /**
   * Takes over a lock that was given away with detach(), in this process or another. The servers are asked whether
   * the lock is there. Rejects with LostError if the lock has ended. Rejects with UnreachableError if too few servers
   * answered, and the caller may try again. extend() without an argument makes the lock last as long as it lasted when
   * it was adopted.
   *
   * Adopt a ticket only once. A second adopter shares the lock, and the first to unlock it releases it for both. If
   * the signal is aborted meanwhile, the lock stays as it was, or is released if it was already adopted.
   */
  adopt(ticket: string, options?: { keepAlive?: boolean; signal?: AbortSignal }): Promise<Lease>;

  /**
   * Asks the servers whether any client holds the resource. The answer may be out of date when it arrives: to get a
   * lock, take it without asking first. The name must not contain a NUL. The call waits on a thread of Node.js, as
   * connect() does. Each manager makes one such call after the other.
   */
  isLocked(resource: string | Uint8Array, options?: CallOptions): Promise<boolean>;

  /**
   * Asks the servers whether any client holds the resource, and for how long it is still held. It finds the lock of
   * any client, and changes nothing. It waits as isLocked() does.
   *
   * With permits, the number of permits of a semaphore: also says how many permits are taken.
   */
  inspect(resource: string | Uint8Array, options?: CallOptions & { permits?: number }): Promise<Info>;

  /**
   * Connects now instead of at the first lock. Resolves when a quorum of the servers is connected, to a message about
   * the servers that are not connected: a name may be misspelled. The message is empty if all are connected. Without
   * a quorum it rejects with UnreachableError.
   *
   * @param timeout 0, the default: as long as connecting may take.
   */
  connect(timeout?: number, options?: CallOptions): Promise<string>;

  /**
   * What is known of each server, in the order in which the servers were given. No server is asked, and the call
   * does not wait.
   */
  servers(): Server[];

  /** The counters since the manager was made. No server is asked, and the call does not wait. */
  stats(): Stats;

  /** The counters and the state of each server as text for Prometheus; content type "text/plain; version=0.0.4". */
  statsText(): string;

  /** Sets the log-in for connections that are made from now on. Without both arguments: no log-in. */
  setCredentials(username?: string | null, password?: ManagerOptions['password'] | null): void;

  /**
   * Ends the calls that are under way: they reject with ClosedError at once, as all later calls do, and take no lock.
   * An unlock() runs to its own end. Resolves when nothing of all these calls is left; threads that isLocked(),
   * inspect() or connect() occupy may need their timeouts for that. Held locks can still be unlocked, and locks that
   * are kept alive are kept until then. The connections are closed with the last of these locks.
   */
  close(): Promise<void>;

  /** Whether the manager was closed. */
  readonly isClosed: boolean;

  /** As close(), for `await using`. Not in versions of Node.js without this symbol. */
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * A lock. Calls on it are made one after the other.
 *
 * A lock that is kept alive may still be lost: too few servers answer, or they have lost it. Then `signal` is
 * aborted, and "lost" is emitted, normally while at least a tenth of the ttl is left. The protected work must stop
 * within the remaining validity. The notice comes through the event loop: a program that blocks its event loop gets
 * it late.
 *
 * A lease that is garbage-collected while it is held is not unlocked: the lock expires after its ttl, and is no
 * longer kept alive. So keep a reference to the lease, or to its signal, for as long as you need the lock.
 */
export class Lease extends EventEmitter {
  private constructor();

  /** The locked resource, as it was given; the first of several. */
  readonly resource: Resource;
  /** All locked resources, as they were given: one, or several. */
  readonly resources: Resource[];
  /** Whether the lock is held and valid now, by this machine's clock. */
  readonly isHeld: boolean;
  /** How long the lock is valid from now on; 0 if it is not valid. */
  readonly remaining: number;
  /** Whether others can hold the lock at the same time. */
  readonly isShared: boolean;
  /** Whether the lock is kept alive. */
  readonly isKept: boolean;
  /**
   * Is aborted if the lock is kept alive and is lost; its reason is a LostError or an UnreachableError, with
   * `remaining`. It is not aborted when the lock is unlocked, nor when a lock that is not kept alive ends.
   */
  readonly signal: AbortSignal;
  /** The message of the last call. After a success: which servers could not take part, and why. */
  readonly message: string;
  /**
   * The value of the key on the servers; empty when the lock is released. Anybody who knows it can release the lock.
   * Nothing else shows it.
   */
  readonly token: string;
  /**
   * With `fencing: true`, a number that is greater than those of all earlier locks of the same resource; undefined
   * without. Pass it with each write to the system that the lock protects. That system must refuse a number that is
   * less than the greatest it has seen, as a database does with UPDATE ... WHERE fence <= :token. Then a holder that
   * was paused beyond the end of its lock cannot undo what the next holder wrote. The number does not change when the
   * lock is extended. It stays available when the lock has expired or was lost, until it is unlocked.
   */
  readonly fencingToken: number | undefined;

  /**
   * Makes the lock last for this many milliseconds from now on; without an argument for the ttl of lock(). If it lasts
   * longer than that, it is unchanged: an extension never shortens a lock. Rejects with LostError if the lock had
   * ended. Rejects with UnreachableError if too few servers answered; a valid lock then stays valid until its old
   * expiry.
   */
  extend(ttl?: number, options?: CallOptions): Promise<void>;

  /**
   * Makes an exclusive lock shared; no other client can have held it exclusively in between. The reverse is not
   * possible. Rejects with LostError if the lock had ended. Rejects with UnreachableError if too few servers
   * answered. The lock is then still held until its old expiry, as a shared lock if isShared says so, and the caller
   * may call this again.
   */
  downgrade(options?: CallOptions): Promise<void>;

  /** As extend(), but makes the lock valid for this many milliseconds longer than now. */
  extendBy(additional: number, options?: CallOptions): Promise<void>;

  /**
   * Asks the servers whether this lease still holds its lock, for at least that long. Use this right before a step
   * that cannot be undone. Rejects with LostError, TooShortError or UnreachableError.
   */
  confirm(least?: number, options?: CallOptions): Promise<void>;

  /**
   * Gives the lock away, and resolves to a ticket. Another process, or another manager, adopts it: see adopt(). The
   * lease then holds nothing. Until the lock is adopted, nobody extends it, and it expires after its ttl. No server
   * is asked. Rejects with LostError if the lock had ended.
   *
   * The ticket is as secret as the token, which it contains. Pass it through a pipe or the environment, not as an
   * argument of a program, which everybody can see.
   */
  detach(): Promise<string>;

  /** Keeps the lock alive from now on, with its last ttl. */
  keepAlive(): Promise<void>;

  /**
   * Adds a level to the lock: one more unlock() is then needed to release it. It is for a function that gets a lease
   * and uses it longer than its caller. Locking the same resource again is never such a level, because calls of one
   * program have no owner that could be identified. An inner level lasts no longer than the lock, so call extend() if
   * `remaining` is less than the level needs. Each unlock() reports a lost lock; the end of using() leaves all
   * levels. detach() refuses a lock that has several levels. Rejects with LostError if the lock is not held; then no
   * level was added. No server is asked.
   */
  retain(): Promise<void>;

  /** How many unlock() calls release the lock: 1 without retain(), 0 if it is released. */
  readonly levels: number;

  /**
   * Releases the lock; after retain() it leaves one level, and asks no server. Rejects with LostError if the lock had
   * already ended; no lock of another holder was changed. Rejects with UnreachableError if the release did not reach
   * some servers. There the lock expires, or another call of unlock() releases it.
   *
   * With holdAtLeast, this lease is unlocked, but others are kept out until so many milliseconds after the lock was
   * taken, its ttl at most. It is for a job that must run once on machines whose clocks differ: a machine that is late
   * finds the lock taken. Rejects with InvalidArgumentError, and the lock is still held, if the time is longer than the
   * ttl, or if the lock is shared or a permit.
   */
  unlock(options?: { holdAtLeast?: number }): Promise<void>;

  /** Unlocks, as the end of using() does. Not in versions of Node.js without this symbol. */
  [Symbol.asyncDispose](): Promise<void>;

  on(event: 'lost', listener: (remaining: number, reason: RedlockError) => void): this;
  once(event: 'lost', listener: (remaining: number, reason: RedlockError) => void): this;
}

/** A call that did not succeed. The message is for a person: the answer of each server, and the count of the votes.
 */
export class RedlockError extends Error {
  /** The name of the class in capitals: "TAKEN", "UNREACHABLE", "TOO_SLOW", "LOST", and so on. */
  readonly code: string;
  /** The number that the C library returned, if it was called. */
  readonly status?: number;
  /** For a lock that could not be kept alive: how long it was still valid. */
  readonly remaining?: number;
}

/** TAKEN: somebody else holds the lock. */
export class TakenError extends RedlockError {}
/** UNREACHABLE: too few servers answered in time. */
export class UnreachableError extends RedlockError {}
/** TOO_SLOW: the lock was granted, but no validity was left; everything was released. */
export class TooSlowError extends RedlockError {}
/** LOST: the lock is not held, or no longer held. */
export class LostError extends RedlockError {}
/** TOO_SHORT: the lock is held, but not for as long as requested. */
export class TooShortError extends RedlockError {}
/** CANCELLED: the library was told to end the call. The program gets a signal's reason, or ClosedError, instead. */
export class CancelledError extends RedlockError {}
/** CLOSED: the manager was closed. */
export class ClosedError extends RedlockError {}
/** INVALID_ARGUMENT: the library refuses a value, and names it. */
export class InvalidArgumentError extends RedlockError {}
/** NO_SERVERS: no server was given. */
export class NoServersError extends RedlockError {}
/** FORKED: the lease belongs to another process. */
export class ForkedError extends RedlockError {}
/** INTERNAL: a fault of the library, or the system gave no randomness or no thread. */
export class InternalError extends RedlockError {}

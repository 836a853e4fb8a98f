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
 * A lock in Redis is a lease: it ends by itself when its time is over. All times are milliseconds.
 *
 * Nothing blocks the event loop: the library has one thread for each manager, which begins with the first call. So locks
 * are kept, too, while a program computes and its event loop stands still.
 * While a call is under way, or a lock is kept, the process does not end by itself; otherwise it does, also if
 * managers are open and locks are held.
 *
 * What is of the wrong type is a TypeError or RangeError that names the argument; functions that return promises
 * reject with it. All else that can go wrong is a RedlockError.
 *
 * Each worker thread has managers of its own. A process that is started by child_process or cluster has nothing of
 * its parent's.
 */

import { EventEmitter } from 'node:events';

/** The version of the C library that runs, such as "0.2.0". */
export const version: string;

export interface ManagerOptions {
  /** The log-in for servers whose URL names none. */
  username?: string;
  /**
   * A function is asked before the first call, and before a call that begins a second or more after a server could
   * not take part: so a password may change. If it throws the first time, so does the call; later the old password is
   * used on. To end or renew a log-in at another time, see setCredentials.
   */
  password?: string | (() => string | Promise<string>);
  /** The names of environment variables that hold the user (optional) and the password. */
  credentialsFromEnv?: { username?: string; password: string };
  /** True, or more about it: servers that are given as host:port are spoken to over TLS, as those of rediss:// are. */
  tls?: boolean | TlsOptions;
  /** Mean pause between two tries, each of them random. Default 200. */
  retryDelay?: number;
  /** For connecting to a server, with the log-in. Default 1500. */
  connectTimeout?: number;
  /** For a server's reply. Default 0: a twentieth of the ttl, at least 25 and at most 500. */
  replyTimeout?: number;
  /** How much faster a server's clock may run than ours. Default 0.01. */
  driftFactor?: number;
  /**
   * What is done against servers that lose their memory, as in a restart without their data. With 'on', the default,
   * they have no vote until the locks that they may have forgotten have ended; with 'strict', servers that seem to be
   * new have none at first either. With 'off' every server that can be reached has a vote, and with 'durable' as well:
   * then the program vouches that no server ever forgets.
   */
  restartGuard?: 'on' | 'strict' | 'off' | 'durable';
  /** The longest ttl that any client uses on these servers. Default 0: what is noted on them. */
  longestTtl?: number;
  /** For how long a server is left without a vote at most. Default 0: 600,000. */
  guardCap?: number;
  /**
   * Locks come with a fencing token: see Lease.fencingToken. All who lock the resource must set this. The servers count
   * in the key with :f behind the name of the resource, so lock none of such a name. Default false.
   */
  fencing?: boolean;
  /**
   * Calls that wait are told when another process releases the lock, and releases tell those who wait; with false, they ask
   * now and then. Waiters stand in line in the key with :w behind the name of the resource, so lock none of such a name.
   * Default true.
   */
  waking?: boolean;
  /**
   * Is told of servers that are lost, refuse or come back: a function, or an object such as console. There is neither
   * a password nor a token in a line. What it throws is an uncaught exception.
   */
  logger?: Logger;
  /**
   * The logger is told what becomes of locks as well, at 'debug': one line for each event, as key=value. 'resources': with the
   * names of the resources. Default: it is not.
   */
  trace?: 'events' | 'resources';
}

/** An object needs debug() only where there is a trace. */
export type Logger =
  | ((level: 'warn' | 'info' | 'debug', line: string) => void)
  | { warn(line: string): void; info(line: string): void; debug?(line: string): void };

/** How many calls of a kind have come to what. */
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

/** How many took how long. */
export interface Histogram {
  count: number;
  /** How many milliseconds they took together. */
  sum: number;
  /**
   * How many took at most the milliseconds in bounds of that place, and more than those of the place before. The last one has
   * no bound.
   */
  buckets: number[];
  bounds: number[];
}

/** What a manager has counted. Counts only grow; waiting and kept are what there is now. */
export interface Stats {
  /** lock() and using() */
  acquire: Outcomes;
  extend: Outcomes;
  confirm: Outcomes;
  /** unlock(), but not of an inner level */
  release: Outcomes;
  adopt: Outcomes;
  inspect: Outcomes;
  /** Locks that were given away. */
  detached: number;
  /** How often the servers were asked for a lock, all at once. */
  attempts: number;
  /** Calls that had to wait for a lock, for a moment at least. */
  waits: number;
  /** Extensions of locks that are kept, and those that failed and were tried again. */
  renewed: number;
  notRenewed: number;
  /** Locks that could not be kept. */
  keptLost: number;
  /** What was sent, to all servers together. */
  requests: number;
  connections: number;
  connectionsLost: number;
  connectionsFailed: number;
  /** How many calls wait for a lock now, and how many locks are kept. */
  waiting: number;
  kept: number;
  /** How long it took to take a lock, of those that were taken. */
  acquireTime: Histogram;
  /** How long those waited that had to, whatever came of it. */
  waitTime: Histogram;
  /** How long locks were held that were released. */
  holdTime: Histogram;
  /** From the sending of a request to the reading of its answer. */
  roundTrip: Histogram;
}

export interface TlsOptions {
  /** A PEM file with those who are trusted; without it, they are those whom the system trusts. */
  ca?: string;
  /** PEM files with our own certificate and its key, for servers that want one. */
  certificate?: string;
  key?: string;
  /** The name that certificates have to be for, if it is not the host. */
  serverName?: string;
  /** Any certificate is believed. For trying things out. */
  insecureSkipVerify?: boolean;
}

export interface LockOptions {
  /** How long the lock lasts unless it is extended, kept or released. */
  ttl: number;
  /** How long to wait at most for a lock that cannot be had. 0: one try. Infinity: for ever. Default 5000. */
  wait?: number;
  /** In the place of wait: so many tries. */
  tries?: number;
  /**
   * One permit of a semaphore: so many, 1 to 256, may have the resource at the same time. All who use it have to say the
   * same number: else there are as many as the greatest of these. Who locks the resource without it uses one permit.
   */
  permits?: number;
  /** The lock is kept: extended, again and again, until it is unlocked. See Lease. */
  keepAlive?: boolean;
  /**
   * Others may have the lock at the same time that want it shared, too, and nobody can have it alone. While somebody waits
   * for that, nobody is let in that comes later to have it shared. Such a lock has no fencing token. Besides the resource,
   * the servers use the keys with :r and :i behind its name, so lock none of such names.
   */
  shared?: boolean;
  /**
   * Ends the waiting: the promise is rejected with its reason, when nothing is left of the call: a lock that was had
   * in that moment is unlocked. Of no effect once the promise is settled.
   */
  signal?: AbortSignal;
}

export interface CallOptions {
  /**
   * Ends the waiting: the promise is rejected with its reason. A lock that was held is held still; one that was being
   * extended may have its old end or the new one.
   */
  signal?: AbortSignal;
}

/** What is known of a server. */
export interface Server {
  /** host:port, or the path of its socket. */
  name: string;
  isConnected: boolean;
  /** Whether what it grants counts. */
  votes: boolean;
  /** Why it is not connected, or does not vote. */
  words: string;
  /** How many milliseconds its last answer took. */
  roundTrip?: number;
  /** By how many milliseconds its clock is ahead of this machine's; left out if that is not known. */
  clockOffset?: number;
  /** What program it is. This and what follows is what it said of itself when it was last asked; empty where it did not, or the user may not ask. */
  version: string;
  /** "primary", or "replica" or "sentinel", which cannot vote. */
  role: string;
  /** Another after each start. */
  runId: string;
  /** What outlives its process: "log, synced always", ..., "no log". */
  keeps: string;
  /** Its maxmemory-policy. */
  eviction: string;
}

/** What the servers say of a resource. */
export interface Info {
  isLocked: boolean;
  /** For how many milliseconds it is held still, if it is neither extended nor unlocked; Infinity: for ever. */
  remaining: number;
  /** Whether several may hold it at the same time. */
  isShared: boolean;
  /** How many do. */
  readers: number;
  /** Of a semaphore: how many permits somebody has. It is locked if all are taken. */
  permitsTaken: number;
  /** Which servers could not answer, and why. */
  words: string;
}

/** The name of a resource. */
export type Resource = string | Uint8Array;

/** Takes locks on one set of servers. */
export class Manager {
  /**
   * @param servers host:port, or URLs such as redis://user:password@host:6379/0, rediss://host:6379 or
   *                unix:///run/redis.sock, or redis-sentinel://host,host2/master for a master that Sentinels watch. All programs that are to exclude each other must name the same ones.
   */
  constructor(servers: readonly string[], options?: ManagerOptions);

  /**
   * Takes a lock. Callers that want one resource get it in the order in which they came.
   *
   * It rejects with what the last try has come to: TakenError, UnreachableError, TooSlowError; or with ClosedError,
   * or the reason of the signal. After that nothing of it stays locked.
   *
   * @param resource 1 to 65536 bytes: the name of the key on the servers. A string is taken as UTF-8. Of an array, all are
   *                 locked at once, or none, by one lock, which is extended and lost as a whole, and keeps out whoever wants
   *                 one of them: 1 to 128 names in any order, each different. Which one was in the way is told by its number.
   */
  lock(resource: Resource | readonly Resource[], options: LockOptions): Promise<Lease>;

  /**
   * Takes a lock, calls the function, and unlocks, however that ends. It resolves to what the function has come to,
   * and rejects with what that throws; with LostError if the function came to its end, and the lock had ended before.
   */
  using<T>(resource: Resource | readonly Resource[], options: LockOptions, action: (lease: Lease) => T | Promise<T>): Promise<T>;

  /**
   * Takes over a lock that was given away with detach(), in this process or another: the servers are asked whether it is
   * there. It rejects with LostError: it has ended; with UnreachableError: too few servers answered, and it may be
   * tried again. What extend() gives it without an argument is what it was valid for now.
   *
   * Adopt a ticket once: who adopts it again shares the lock, and the first to unlock it releases it for both. A
   * signal that is aborted meanwhile leaves the lock as it was, or released if it had been adopted by then.
   */
  adopt(ticket: string, options?: { keepAlive?: boolean; signal?: AbortSignal }): Promise<Lease>;

  /**
   * Asks the servers whether anybody holds the resource. To take a lock, take it: the answer may be out of date when it
   * arrives. The name may not hold a NUL. It waits on a thread of Node.js, as connect() does, one such call after the
   * other for each manager.
   */
  isLocked(resource: string | Uint8Array, options?: CallOptions): Promise<boolean>;

  /**
   * Asks the servers whether anybody holds the resource, and for how long still. It finds the lock of any client, and
   * changes nothing. It waits as isLocked() does.
   *
   * With permits: how many permits are taken of a semaphore that has so many.
   */
  inspect(resource: string | Uint8Array, options?: CallOptions & { permits?: number }): Promise<Info>;

  /**
   * Connects now rather than at the first lock; resolves when a quorum of the servers is up, to words about those that are
   * not: a name may be mis-spelled. They are empty if all are. Without a quorum it rejects with UnreachableError.
   *
   * @param timeout 0, the default: as long as connecting may take.
   */
  connect(timeout?: number, options?: CallOptions): Promise<string>;

  /** What is known of each server, in the order in which they were given. Nobody is asked, and nothing is waited for. */
  servers(): Server[];

  /** What was counted since the manager was made. Nobody is asked, and nothing is waited for. */
  stats(): Stats;

  /**
   * The same, and what is known of each server, as Prometheus reads it; content type "text/plain; version=0.0.4".
   */
  statsText(): string;

  /** Sets the log-in for connections that are made from now on. Neither: none. */
  setCredentials(username?: string | null, password?: ManagerOptions['password'] | null): void;

  /**
   * Ends the calls that are under way: they reject with ClosedError, as all later ones do. Those that unlock, isLocked(), inspect()
   * and connect() come to their own ends. Resolves when all have ended. Locks that are held can still be unlocked, and are kept until then if they are kept;
   * with the last of them the connections are closed.
   */
  close(): Promise<void>;

  /** Whether it was closed. */
  readonly isClosed: boolean;

  /** As close(), for `await using`. Not in versions of Node.js that have no such symbol. */
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * A lock. Calls on it are made one after the other.
 *
 * A lock that is kept may still be lost: too few servers answer, or they have lost it. Then, while at least a tenth of the
 * ttl is left as a rule, `signal` is aborted, and "lost" is emitted. What the lock guards has to stop within what is left.
 * That comes through the event loop: a program that blocks it hears of it late.
 *
 * A lease that is collected as garbage while it is held is not unlocked: the lock ends with its time, and is not kept
 * any more. So refer to the lease, or to its signal, for as long as you need the lock.
 */
export class Lease extends EventEmitter {
  private constructor();

  /** What is locked, as it was given; the first of several. */
  readonly resource: Resource;
  /** All that is locked, as it was given: one resource, or several. */
  readonly resources: Resource[];
  /** Whether the lock is held and valid now, by this machine's clock. */
  readonly isHeld: boolean;
  /** How long the lock is valid from now on; 0 when it is not. */
  readonly remaining: number;
  /** Whether others may have the lock at the same time. */
  readonly isShared: boolean;
  /** Whether the lock is kept. */
  readonly isKept: boolean;
  /**
   * Is aborted if the lock is kept and is lost; its reason is a LostError or an UnreachableError, with `remaining`. Not
   * when the lock is unlocked, nor when one that is not kept ends.
   */
  readonly signal: AbortSignal;
  /** What the last call has to say. After a success: which servers could not take part, and why. */
  readonly message: string;
  /**
   * What stands on the servers as the value of the key; empty when the lock is released. Who knows it can release the
   * lock. Nothing else shows it.
   */
  readonly token: string;
  /**
   * With `fencing: true`, a number that is greater than those of all locks of the same resource before; undefined
   * without. Hand it to what the lock guards with each write, and have it refuse a number that is less than the greatest it
   * has seen, as a database does with UPDATE ... WHERE fence <= :token: then a holder that was paused beyond the end of
   * its lock cannot undo what the next one wrote. It does not change when the lock is extended, and is there still when
   * the lock has expired or was lost, until it is unlocked.
   */
  readonly fencingToken: number | undefined;

  /**
   * Gives the lock a new ttl, counted from now; without an argument that of lock(). It rejects with LostError: it had
   * ended; with UnreachableError: too few servers answered, and what was valid stays valid until its old end.
   */
  extend(ttl?: number, options?: CallOptions): Promise<void>;

  /**
   * Makes a shared lock of one that was had alone, which nobody can have had alone in between. There is no way back. It
   * rejects with LostError: it had ended; with UnreachableError: too few servers answered, and it is held until its old end,
   * as a shared lock if isShared says so; then calling again is allowed.
   */
  downgrade(options?: CallOptions): Promise<void>;

  /** As extend(), for so many milliseconds longer than the lock is valid now. */
  extendBy(additional: number, options?: CallOptions): Promise<void>;

  /**
   * Asks the servers whether the lock is still this lease's, for so long at least: for the moment before a step that
   * cannot be undone. It rejects with LostError, TooShortError or UnreachableError.
   */
  confirm(least?: number, options?: CallOptions): Promise<void>;

  /**
   * Gives the lock away, and resolves to a ticket, by which another process, or manager, adopts it: see adopt(). The
   * lease holds nothing then. Until it is adopted nobody extends the lock, and it ends when its time is over. Nobody is
   * asked. It rejects with LostError: it had ended.
   *
   * The ticket is as secret as the token, which is in it: hand it over by a pipe or by the environment, not as an
   * argument of a program, which everybody can see.
   */
  detach(): Promise<string>;

  /** Has the lock kept from now on, with the ttl that it was given last. */
  keepAlive(): Promise<void>;

  /**
   * Adds a level to the lock: one more unlock() is needed until it is released. For a function that is handed a lease and
   * goes on with it beyond its caller. A lock is never taken again by itself: calls of one program have no owner that
   * could be known. An inner level lasts no longer than the lock, so extend() it where `remaining` is less than
   * the level needs. Each unlock() tells if the lock was lost; the end of using() leaves all levels. detach() refuses a lock
   * that has several. It rejects with LostError: it is not held, and has no level more. Nobody is asked.
   */
  retain(): Promise<void>;

  /** How many unlock() it takes: 1 without retain(), 0 if it is released. */
  readonly levels: number;

  /**
   * Releases the lock; after retain() it leaves one level, and asks nobody. It rejects with LostError: it had ended already, and nothing of anybody else's was touched; with
   * UnreachableError: some servers could not be told, where it ends with its time, or by another call of this.
   */
  unlock(): Promise<void>;

  /** Unlocks, as the end of using() does. Not in versions of Node.js that have no such symbol. */
  [Symbol.asyncDispose](): Promise<void>;

  on(event: 'lost', listener: (remaining: number, reason: RedlockError) => void): this;
  once(event: 'lost', listener: (remaining: number, reason: RedlockError) => void): this;
}

/** A call that did not succeed. The message is for a person: what each server answered, with the votes counted. */
export class RedlockError extends Error {
  /** The name of the class in capitals: "TAKEN", "UNREACHABLE", "TOO_SLOW", "LOST", and so on. */
  readonly code: string;
  /** The number that the C library gave, if it was asked. */
  readonly status?: number;
  /** For a lock that could not be kept: how long it was valid still. */
  readonly remaining?: number;
}

/** TAKEN: somebody else holds it. */
export class TakenError extends RedlockError {}
/** UNREACHABLE: too few servers answered in time. */
export class UnreachableError extends RedlockError {}
/** TOO_SLOW: granted, but too late to be of use; everything was released. */
export class TooSlowError extends RedlockError {}
/** LOST: it is not held, or no longer. */
export class LostError extends RedlockError {}
/** TOO_SHORT: it is held, but not for as long as was asked. */
export class TooShortError extends RedlockError {}
/** CANCELLED: the library was told to end the call. A signal's reason, or ClosedError, is what you will see. */
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

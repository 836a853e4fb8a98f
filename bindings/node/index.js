'use strict';

// Locks that are held on a majority of independent Redis or Valkey servers, through the C library redlock. index.d.ts
// is the documentation.

const { EventEmitter } = require('node:events');
const fs = require('node:fs');
const { createRequire } = require('node:module');
const path = require('node:path');
const { isUint8Array } = require('node:util').types;

const addon = loadAddon();

const OK = 0;
const TAKEN = 1;
const UNREACHABLE = 2;
const TOO_SLOW = 3;
const LOST = 4;
const CANCELLED = 5;
const TOO_SHORT = 7;
const INVALID_ARGUMENT = -1;
const NO_SERVERS = -2;
const FORKED = -3;
const INTERNAL = -4;

// The kinds of events that the addon reports.
const DONE_EVENT = 0;
const LOST_EVENT = 1;
const LOG_EVENT = -1;

// The index of each name is its number in C.
const GUARDS = ['on', 'strict', 'off', 'durable'];
const TRACES = [undefined, 'events', 'resources'];

const INT32_MAX = 2 ** 31 - 1;
const NUL = Buffer.alloc(1);
const UINT32_MAX = 2 ** 32 - 1;
const WAIT_MS = 5000;
const PERMITS_MAX = 256;
const INSPECT = Symbol.for('nodejs.util.inspect.custom');
// No other code has this symbol, so no other code makes leases.
const OWN = Symbol('redlock');

function loadAddon() {
  // A bundler may have put this file into an ECMAScript module, which has no __dirname.
  const here = typeof __dirname === 'undefined' ? process.cwd() : __dirname;
  const built = path.join(here, 'build', 'redlock.node');
  // An addon that was built on this machine is preferred to one that the package contains. build.js uses the same path.
  const brought = path.join(here, 'prebuilds', `${process.platform}-${process.arch}`, 'redlock.node');
  const file = path.resolve(process.env.REDLOCK_ADDON || [built, brought].find((it) => fs.existsSync(it)) || built);
  try {
    // A bundler replaces `require` where it does not know the path, and leaves this alone.
    return createRequire(file)(file);
  } catch (error) {
    const words = `cannot load the redlock addon (build it with node build.js): ${error.message}`;
    throw Object.assign(new Error(words, { cause: error }), { code: error.code });
  }
}

// --- Errors ---

class RedlockError extends Error {
  constructor(message, { code = 'ERROR', status, cause } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    if (status !== undefined) this.status = status;
  }

  get name() {
    return this.constructor.name;
  }
}

// A class for one status of the library.
function errorClass(name, code, status) {
  return { [name]: class extends RedlockError {
    constructor(message, options) {
      super(message, { status, ...options, code });
    }
  } }[name];
}

const TakenError = errorClass('TakenError', 'TAKEN', TAKEN);
const UnreachableError = errorClass('UnreachableError', 'UNREACHABLE', UNREACHABLE);
const TooSlowError = errorClass('TooSlowError', 'TOO_SLOW', TOO_SLOW);
const LostError = errorClass('LostError', 'LOST', LOST);
const CancelledError = errorClass('CancelledError', 'CANCELLED', CANCELLED);
const TooShortError = errorClass('TooShortError', 'TOO_SHORT', TOO_SHORT);
const InvalidArgumentError = errorClass('InvalidArgumentError', 'INVALID_ARGUMENT', INVALID_ARGUMENT);
const NoServersError = errorClass('NoServersError', 'NO_SERVERS', NO_SERVERS);
const ForkedError = errorClass('ForkedError', 'FORKED', FORKED);
const InternalError = errorClass('InternalError', 'INTERNAL', INTERNAL);
const ClosedError = errorClass('ClosedError', 'CLOSED', undefined);

const ERRORS = new Map([
  [TAKEN, TakenError], [UNREACHABLE, UnreachableError], [TOO_SLOW, TooSlowError], [LOST, LostError],
  [CANCELLED, CancelledError], [TOO_SHORT, TooShortError], [INVALID_ARGUMENT, InvalidArgumentError],
  [NO_SERVERS, NoServersError], [FORKED, ForkedError], [INTERNAL, InternalError],
]);

function failure(status, words) {
  const name = addon.statusName(status);
  const Class = ERRORS.get(status);
  // A status of a later version of the library.
  if (Class === undefined) return new RedlockError(words || name, { code: name.replace(/^REDLOCK_/, ''), status });
  return new Class(words || name);
}

function check(status, words) {
  if (status !== OK) throw failure(status, words());
}

function closed() {
  return new ClosedError('the manager is closed');
}

// --- Arguments ---

function shown(value) {
  return typeof value === 'string' ? 'a string' : value === null ? 'null' : Array.isArray(value) ? 'an array'
    : typeof value === 'number' || typeof value === 'boolean' || value === undefined ? String(value) : `a value of type ${typeof value}`;
}

// It never shows a string, which may be a password.
function wrongType(name, wanted, value) {
  return Object.assign(new TypeError(`${name} must be ${wanted}, not ${shown(value)}`), { code: 'ERR_INVALID_ARG_TYPE' });
}

function outOfRange(name, wanted, value) {
  return Object.assign(new RangeError(`${name} must be ${wanted}, not ${value}`), { code: 'ERR_OUT_OF_RANGE' });
}

function wrongValue(words) {
  return Object.assign(new TypeError(words), { code: 'ERR_INVALID_ARG_VALUE' });
}

// The string as UTF-8. Half of a surrogate pair has no form there: all of them would become the same character, and so
// different strings would become the same bytes.
function utf8(name, value) {
  const encoded = Buffer.from(value);
  if (encoded.toString() !== value) throw wrongValue(`${name} contains a lone surrogate`);
  return encoded;
}

function text(name, value) {
  if (typeof value !== 'string') throw wrongType(name, 'a string', value);
  // C would see only the part before the NUL.
  if (utf8(name, value).includes(0)) throw wrongValue(`${name} contains a NUL`);
  return value;
}

function optionalText(name, value) {
  return value === undefined || value === null ? null : text(name, value);
}

function truth(name, value) {
  if (value !== undefined && typeof value !== 'boolean') throw wrongType(name, 'a boolean', value);
  return value === true;
}

// Milliseconds as a whole number: a small value above zero never becomes zero.
function milliseconds(name, value, least = 0) {
  if (typeof value !== 'number') throw wrongType(name, 'a number of milliseconds', value);
  if (!(value >= least)) throw outOfRange(name, `at least ${least}`, value);
  return Math.min(Math.ceil(value), Number.MAX_SAFE_INTEGER);
}

// A TTL: the library checks its range.
function duration(name, value) {
  if (typeof value !== 'number') throw wrongType(name, 'a number of milliseconds', value);
  if (Number.isNaN(value)) throw outOfRange(name, 'a number', value);
  return Math.max(Math.min(Math.floor(value), Number.MAX_SAFE_INTEGER), Number.MIN_SAFE_INTEGER);
}

function options(name, value, known) {
  if (typeof value !== 'object' || value === null) throw wrongType(name, 'an object', value);
  for (const key of Object.keys(value)) {
    if (!known.includes(key)) throw wrongValue(`${name} has an unknown key: ${key}`);
  }
  return value;
}

// The bytes that are the name of the key.
function bytes(resource, name = 'resource') {
  if (typeof resource === 'string') return utf8(name, resource);
  // Not for a view of another type: its bytes depend on the machine. Not by instanceof: a test runner, or node:vm, has
  // a Uint8Array of its own.
  if (isUint8Array(resource)) return Buffer.from(resource);
  throw wrongType(name, 'a string or a Uint8Array', resource);
}

// For several resources: all names, each with a NUL, and their number. An array with one resource is the same as that
// resource.
function namesOf(resource) {
  if (!Array.isArray(resource)) return { name: bytes(resource), count: 0 };
  if (resource.length === 0) throw wrongValue('resource is an empty array');
  // Not the map of the array, which leaves out what a sparse array lacks.
  const names = Array.from(resource, (it, i) => bytes(it, `resource[${i}]`));
  if (names.length === 1) return { name: names[0], count: 0 };
  const wrong = names.findIndex((name) => name.includes(0));
  if (wrong >= 0) throw wrongValue(`resource[${wrong}] contains a NUL`);
  return { name: Buffer.concat(names.flatMap((name) => [name, NUL])), count: names.length };
}

function abortSignal(name, signal) {
  if (signal === undefined || signal === null) return undefined;
  const isOne = typeof signal === 'object' && typeof signal.aborted === 'boolean' &&
    typeof signal.addEventListener === 'function' && typeof signal.removeEventListener === 'function';
  if (!isOne) throw wrongType(name, 'an AbortSignal', signal);
  return signal;
}

// The signal of calls that have no other option.
function signalOf(given) {
  return abortSignal('signal', options('options', given, ['signal']).signal);
}

function demandOf(resource, given) {
  const { name, count } = namesOf(resource);
  const { ttl, wait, tries, permits, keepAlive, shared, signal } =
    options('options', given, ['ttl', 'wait', 'tries', 'permits', 'keepAlive', 'shared', 'signal']);
  if (tries !== undefined && wait !== undefined) {
    throw wrongValue('wait and tries exclude each other');
  }
  if (tries !== undefined) {
    if (typeof tries !== 'number') throw wrongType('tries', 'a number', tries);
    if (!Number.isInteger(tries) || tries < 1 || tries > INT32_MAX) throw outOfRange('tries', `a whole number from 1 to ${INT32_MAX}`, tries);
  }
  return {
    resources: Array.isArray(resource) ? [...resource] : [resource],
    name,
    count,
    ttl: duration('ttl', ttl),
    // For the library, less than 0 means no limit.
    wait: wait === Infinity ? -1 : milliseconds('wait', wait ?? WAIT_MS),
    tries: tries ?? 0,
    permits: permitsOf(permits),
    keepAlive: truth('keepAlive', keepAlive),
    shared: truth('shared', shared),
    signal: abortSignal('signal', signal),
  };
}

// 0: no semaphore.
function permitsOf(permits) {
  if (permits === undefined) return 0;
  if (typeof permits !== 'number') throw wrongType('permits', 'a number', permits);
  if (!Number.isInteger(permits) || permits < 1 || permits > PERMITS_MAX) {
    throw outOfRange('permits', `a whole number from 1 to ${PERMITS_MAX}`, permits);
  }
  return permits;
}

function adoptionOf(ticket, given) {
  const { keepAlive, signal } = options('options', given, ['keepAlive', 'signal']);
  return { ticket: Buffer.from(text('ticket', ticket)), keepAlive: truth('keepAlive', keepAlive), signal: abortSignal('signal', signal) };
}

// --- What is under way ---

// By their numbers: calls that wait, locks that are kept alive, and loggers. Leases in kept may be garbage-collected:
// then their locks are no longer kept alive.
const waiting = new Map();
const kept = new Map();
const loggers = new Map();
let lastId = 0;
let reasonsToStayAlive = 0;

function newId() {
  do {
    lastId = lastId % UINT32_MAX + 1;
  } while (waiting.has(lastId) || kept.has(lastId) || loggers.has(lastId));
  return lastId;
}

// While there is something to wait for, the process does not end by itself.
function stayAlive(count) {
  const before = reasonsToStayAlive;
  reasonsToStayAlive += count;
  if ((before === 0) !== (reasonsToStayAlive === 0)) addon.stayAlive(bridge, reasonsToStayAlive > 0);
}

function endKept(id) {
  if (kept.delete(id)) stayAlive(-1);
}

const collectedLeases = new FinalizationRegistry(({ core, state }) => {
  endKept(state.keptAs);
  core.forget(state);
});
const collectedManagers = new FinalizationRegistry((id) => loggers.delete(id));

// Functions of the program run in a turn of their own, so that their exceptions reach no code of this module.
function later(action) {
  process.nextTick(action);
}

const bridge = addon.newBridge((kind, status, id, remaining, line) => {
  if (kind === DONE_EVENT) {
    const resolve = waiting.get(id);
    waiting.delete(id);
    resolve?.(status);
  } else if (kind === LOST_EVENT) {
    const lease = kept.get(id)?.deref();
    endKept(id);
    lease?.[OWN].cannotBeKept(status, remaining);
  } else if (kind === LOG_EVENT) {
    const logger = loggers.get(id)?.deref();
    if (logger) later(() => logger.tell(status, line));
  }
});

// Submits a call of the library, and returns its result.
function submit(handle, begin) {
  const id = newId();
  const status = begin(handle, id);
  if (status !== OK) return status;
  return new Promise((resolve) => waiting.set(id, resolve));
}

// The calls that signals end, by the signals. Each signal has one listener, however many calls it ends, because
// Node.js warns of more than ten.
const endings = new WeakMap();

// Calls the function when the signal is aborted. Returns a function that undoes this.
function onAbort(signal, action) {
  if (signal === undefined) return () => {};
  let ending = endings.get(signal);
  if (ending === undefined) {
    const actions = new Set();
    ending = { actions, listener: () => actions.forEach((it) => it()) };
    endings.set(signal, ending);
    signal.addEventListener('abort', ending.listener, { once: true });
  }
  const { actions, listener } = ending;
  // A new function object, because the same function may be added twice.
  const own = () => action();
  actions.add(own);
  return () => {
    actions.delete(own);
    if (actions.size > 0 || endings.get(signal) !== ending) return;
    endings.delete(signal);
    signal.removeEventListener('abort', listener);
  };
}

function throwIfAborted(signal) {
  // Not the method of the signal, because not every implementation has it.
  if (signal?.aborted) throw reasonOf(signal);
}

// Not every implementation of signals has reasons. An error that is undefined looks like none.
function reasonOf(signal) {
  return signal.reason === undefined ? new DOMException('This operation was aborted', 'AbortError') : signal.reason;
}

// The result of the promise, or a rejection with the reason of the first aborted signal, whichever comes first.
async function unlessAborted(promise, ...signals) {
  const undo = [];
  const aborted = new Promise((resolve, reject) => {
    for (const signal of signals) {
      if (signal?.aborted) reject(reasonOf(signal));
      else undo.push(onAbort(signal, () => reject(reasonOf(signal))));
    }
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    undo.forEach((it) => it());
  }
}

// --- The manager ---

// The manager of the library with its current operations. A Manager and its leases share it.
class Core {
  // How much faster a server's clock may run than this machine's.
  drift = 0.01;
  // The number of the logger: a reference would keep all that the logger refers to for as long as a lease.
  loggerId = 0;
  #handle = addon.newManager(bridge);
  // Aborted when the manager is closed.
  #closing = new AbortController();
  #isFreed = false;
  // The current operations; each may have a function that cancels it.
  #operations = new Set();
  // Locks that may still have to be unlocked.
  #states = new Set();
  #whenIdle = [];
  // Calls that wait on other threads. There is one at a time, because the manager stores the message of the last one.
  #line = Promise.resolve();
  #user = null;
  #password = undefined;
  #asking = undefined;
  #askAgainAt = 0;

  get isClosed() {
    return this.#closing.signal.aborted;
  }

  // Whether the manager of the library was freed.
  get isFreed() {
    return this.#isFreed;
  }

  // Calls a function of the addon that changes a setting.
  set(name, ...values) {
    check(addon[name](this.#handle, ...values), () => addon.managerMessage(this.#handle));
  }

  // The counters.
  stats() {
    return addon.stats(this.#handle);
  }

  statsText() {
    return addon.statsText(this.#handle);
  }

  // The state of each server.
  servers() {
    return addon.servers(this.#handle);
  }

  newLease() {
    return addon.newLease(this.#handle);
  }

  checkOpen() {
    if (this.isClosed) throw closed();
  }

  // Keeps the manager, and the process, until the action has ended.
  async operate(action, cancel) {
    const operation = { cancel };
    this.#operations.add(operation);
    stayAlive(1);
    try {
      return await action();
    } finally {
      stayAlive(-1);
      this.#operations.delete(operation);
      this.#freeIfIdle();
    }
  }

  remember(state) {
    this.#states.add(state);
  }

  forget(state) {
    this.#states.delete(state);
    this.#freeIfIdle();
  }

  // For calls that begin or continue.
  checkWanted(signal) {
    throwIfAborted(signal);
    this.checkOpen();
  }

  // The result of the call, unless the signal or close() comes first.
  async whileWanted(call, signal) {
    try {
      return await unlessAborted(call, signal, this.#closing.signal);
    } catch (error) {
      // Each caller gets an error of its own.
      throw error === this.#closing.signal.reason ? closed() : error;
    }
  }

  // A call that waits on another thread. Returns its message and its answer.
  async wait(name, values, signal) {
    this.checkWanted(signal);
    return this.whileWanted(this.operate(async () => {
      if (this.mustAsk) await this.askForPassword(signal);
      const turn = this.#line.then(() => {
        // The caller no longer needs the answer.
        this.checkWanted(signal);
        return addon[name](this.#handle, ...values);
      });
      this.#line = turn.catch(() => {});
      const [status, words, answer] = await turn;
      this.note(status, words);
      check(status, () => words);
      return { words, answer };
    }), signal);
  }

  async close() {
    this.#closing.abort(closed());
    for (const { cancel } of this.#operations) cancel?.();
    if (this.#operations.size > 0) await new Promise((resolve) => this.#whenIdle.push(resolve));
    this.#freeIfIdle();
  }

  #freeIfIdle() {
    if (!this.isClosed || this.#operations.size > 0) return;
    this.#whenIdle.splice(0).forEach((resolve) => resolve());
    if (this.#states.size > 0 || this.#isFreed) return;
    this.#isFreed = true;
    addon.closeManager(this.#handle);
  }

  // Sets the log-in for the servers, or a function that provides the password.
  setCredentials(user, password) {
    this.#user = user;
    this.#password = password;
    this.#askAgainAt = 0;
    this.#asking = undefined;
    if (typeof password !== 'function') this.set('setCredentials', user, password);
  }

  get mustAsk() {
    return typeof this.#password === 'function';
  }

  // Asks for the password if that is due. The signal, and close(), end the wait.
  askForPassword(signal) {
    return this.operate(() => this.whileWanted(this.#logIn(), signal));
  }

  // Concurrent callers share one request.
  async #logIn() {
    if (this.#asking === undefined) {
      if (performance.now() < this.#askAgainAt) return;
      const asking = this.#ask(this.#askAgainAt === 0).finally(() => {
        if (this.#asking === asking) this.#asking = undefined;
      });
      this.#asking = asking;
    }
    await this.#asking;
  }

  async #ask(isFirst) {
    const ask = this.#password;
    try {
      const password = text('the result of password()', await ask());
      // Another log-in was set meanwhile, or none is needed any more.
      if (ask !== this.#password || this.#isFreed) return;
      this.set('setCredentials', this.#user, password);
      this.#askAgainAt = Infinity;
    } catch (error) {
      if (isFirst) throw error;
      if (ask !== this.#password) return;
      // The old password may still be valid.
      this.#askAgainAt = performance.now() + 1000;
      // Not its message, which may contain anything.
      const words = `the password function failed, the old password stays: ${error?.name}`;
      const logger = loggers.get(this.loggerId)?.deref();
      if (logger) later(() => logger.tell(WARN, words));
    }
  }

  // A server that could not take part may want another password by now.
  note(status, words) {
    // 0: the password must be requested before anything else.
    if (this.#askAgainAt === 0 || (status !== UNREACHABLE && words === '')) return;
    this.#askAgainAt = Math.min(this.#askAgainAt, performance.now() + 1000);
  }
}

// By the levels of the library.
const WARN = 1;
const LEVELS = { [WARN]: 'warn', 2: 'info', 3: 'debug' };

class Logger {
  #logger;

  constructor(logger) {
    this.#logger = logger;
  }

  tell(level, line) {
    const name = LEVELS[level] ?? 'info';
    if (typeof this.#logger === 'function') this.#logger(name, line);
    else this.#logger[name](line);
  }
}

class Manager {
  #core;
  #count;
  #logger;

  constructor(servers, given = {}) {
    if (!Array.isArray(servers)) throw wrongType('servers', 'an array of strings', servers);
    const { username, password, credentialsFromEnv, tls, retryDelay, connectTimeout, replyTimeout, driftFactor, restartGuard,
      longestTtl, guardCap, fencing, waking, logger, trace } =
      options('options', given, ['username', 'password', 'credentialsFromEnv', 'tls', 'retryDelay', 'connectTimeout',
        'replyTimeout', 'driftFactor', 'restartGuard', 'longestTtl', 'guardCap', 'fencing', 'waking', 'logger', 'trace']);
    const urls = servers.map((server, i) => text(`servers[${i}]`, server));
    if (urls.length === 0) throw new NoServersError('servers is empty');
    this.#core = new Core();
    this.#count = urls.length;
    this.#setTimes(retryDelay, connectTimeout, replyTimeout);
    if (driftFactor !== undefined) {
      if (typeof driftFactor !== 'number') throw wrongType('driftFactor', 'a number', driftFactor);
      this.#core.set('setDriftFactor', driftFactor);
      this.#core.drift = driftFactor;
    }
    this.#setRestartGuard(restartGuard, longestTtl, guardCap);
    this.#core.set('setFencing', truth('fencing', fencing));
    if (waking !== undefined) this.#core.set('setWaking', truth('waking', waking));
    this.#setCredentials(username, password, credentialsFromEnv);
    if (typeof tls !== 'boolean' && tls !== undefined) this.#setTls(tls);
    for (const url of urls) this.#core.set('addServer', url.includes('://') ? url : `${tls ? 'rediss' : 'redis'}://${url}`);
    this.#setTracing(trace);
    if (logger !== undefined) this.#setLogger(logger, trace !== undefined);
  }

  #setTimes(retryDelay = 200, connectTimeout = 1500, replyTimeout = 0) {
    const limited = (name, value) => Math.min(milliseconds(name, value), INT32_MAX);
    // Each call gives its own number of tries.
    this.#core.set('setRetry', 1, limited('retryDelay', retryDelay));
    this.#core.set('setTimeouts', milliseconds('connectTimeout', connectTimeout), milliseconds('replyTimeout', replyTimeout));
  }

  #setRestartGuard(mode = 'on', longestTtl = 0, guardCap = 0) {
    const number = GUARDS.indexOf(text('restartGuard', mode));
    if (number < 0) {
      const words = `restartGuard must be one of '${GUARDS.join("', '")}', not '${mode}'`;
      throw wrongValue(words);
    }
    this.#core.set('setRestartGuard', number, milliseconds('longestTtl', longestTtl), milliseconds('guardCap', guardCap));
  }

  #setCredentials(username, password, fromEnv) {
    if (fromEnv !== undefined) {
      if (username !== undefined || password !== undefined) {
        throw wrongValue('credentialsFromEnv and username or password exclude each other');
      }
      const { username: userName, password: passwordName } = options('credentialsFromEnv', fromEnv, ['username', 'password']);
      this.#core.set('setCredentialsFromEnv', optionalText('credentialsFromEnv.username', userName),
        text('credentialsFromEnv.password', passwordName));
    } else if (username !== undefined || password !== undefined) {
      this.setCredentials(username, password);
    }
  }

  #setTls(tls) {
    const { ca, certificate, key, serverName, insecureSkipVerify } =
      options('tls', tls, ['ca', 'certificate', 'key', 'serverName', 'insecureSkipVerify']);
    const file = (name, value) => optionalText(`tls.${name}`, value);
    if (ca !== undefined) this.#core.set('setTlsCa', file('ca', ca), null);
    if (certificate !== undefined || key !== undefined) {
      this.#core.set('setTlsCertificate', file('certificate', certificate), file('key', key));
    }
    if (serverName !== undefined) this.#core.set('setTlsServerName', file('serverName', serverName), null);
    if (truth('tls.insecureSkipVerify', insecureSkipVerify)) this.#core.set('setTlsInsecureSkipVerify', true);
  }

  #setTracing(trace) {
    const number = TRACES.indexOf(trace);
    if (number < 0) {
      const words = `trace must be 'events' or 'resources', not '${text('trace', trace)}'`;
      throw wrongValue(words);
    }
    this.#core.set('setTracing', number);
  }

  #setLogger(logger, isTraced) {
    const names = isTraced ? ['warn', 'info', 'debug'] : ['warn', 'info'];
    const isObject = typeof logger === 'object' && logger !== null && names.every((it) => typeof logger[it] === 'function');
    if (typeof logger !== 'function' && !isObject) throw wrongType('logger', `a function or an object with ${names.join(' and ')}`, logger);
    const id = newId();
    this.#logger = new Logger(logger);
    this.#core.loggerId = id;
    loggers.set(id, new WeakRef(this.#logger));
    collectedManagers.register(this, id);
    this.#core.set('setLogger', id);
  }

  setCredentials(username, password) {
    this.#core.checkOpen();
    const secret = typeof password === 'function' ? password : optionalText('password', password);
    this.#core.setCredentials(optionalText('username', username), secret);
  }

  async lock(resource, given) {
    return take(this.#core, demandOf(resource, given));
  }

  async using(resource, given, action) {
    if (typeof action !== 'function') throw wrongType('the third argument', 'a function', action);
    const lease = await take(this.#core, demandOf(resource, given));
    let result;
    try {
      result = await action(lease);
    } catch (error) {
      // The caller needs the exception of the action, not that of the unlock.
      await lease[OWN].end().catch(() => {});
      throw error;
    }
    await lease[OWN].end();
    return result;
  }

  async adopt(ticket, given = {}) {
    return take(this.#core, adoptionOf(ticket, given));
  }

  async isLocked(resource, given = {}) {
    return this.#askAbout('isLocked', resource, signalOf(given));
  }

  async inspect(resource, given = {}) {
    const { permits, signal } = options('options', given, ['permits', 'signal']);
    const info = await this.#askAbout('inspect', resource, abortSignal('signal', signal), permitsOf(permits));
    return { ...info, remaining: info.remaining < 0 ? Infinity : info.remaining };
  }

  async #askAbout(call, resource, signal, ...more) {
    const name = bytes(resource);
    // The library takes the name as a string that ends with a NUL.
    if (name.includes(0)) throw wrongValue('resource contains a NUL');
    const { answer } = await this.#core.wait(call, [name, ...more], signal);
    return answer;
  }

  async connect(timeout = 0, given = {}) {
    const { words } = await this.#core.wait('connect', [milliseconds('timeout', timeout)], signalOf(given));
    return words;
  }

  servers() {
    this.#core.checkOpen();
    const told = ({ roundTripUs, clockOffsetUs, ...server }) => ({
      ...server,
      roundTrip: roundTripUs < 0 ? undefined : roundTripUs / 1000,
      clockOffset: clockOffsetUs === null ? undefined : clockOffsetUs / 1000,
    });
    return this.#core.servers().map(told);
  }

  stats() {
    this.#core.checkOpen();
    const { boundsUs, ...stats } = this.#core.stats();
    const bounds = boundsUs.map((us) => us / 1000);
    for (const name of ['acquireTime', 'waitTime', 'holdTime', 'roundTrip']) {
      const { count, sumUs, buckets } = stats[name];
      stats[name] = { count, sum: sumUs / 1000, buckets, bounds };
    }
    return stats;
  }

  statsText() {
    this.#core.checkOpen();
    return this.#core.statsText();
  }

  async close() {
    await this.#core.close();
  }

  get isClosed() {
    return this.#core.isClosed;
  }

  [INSPECT](depth, inspectOptions, inspect) {
    return showAs(this, { servers: this.#count, isClosed: this.isClosed }, inspectOptions, inspect);
  }
}

function showAs(thing, fields, inspectOptions, inspect) {
  return inspect === undefined ? `${thing.constructor.name} {}` : `${thing.constructor.name} ${inspect(fields, inspectOptions)}`;
}

// --- The lease ---

async function take(core, demand) {
  core.checkWanted(demand.signal);
  if (core.mustAsk) {
    await core.askForPassword(demand.signal);
    core.checkWanted(demand.signal);
  }
  // Nothing waits between this line and the point where the signal is handled: an abort in between would be missed.
  const lease = new Lease(OWN, core, demand);
  await lease[OWN].take(demand);
  return lease;
}

// The inner part of a lease.
class Hold {
  #core;
  #handle;
  #ttl;
  // The last call: calls are made one after the other.
  #last = Promise.resolve();
  // Made when the program asks for the signal.
  #controller;
  #loss;
  // The lease, unless it was garbage-collected.
  #lease;
  // What to clean up when the lease is garbage-collected.
  #state = { keptAs: 0 };
  #isUnlocked = false;
  // How many unlocks have not had their turn yet.
  #leaving = 0;
  // The token as C reports it between two calls: during a call its string may change on another thread.
  #token = '';

  constructor(lease, core, { ttl }) {
    this.#core = core;
    this.#handle = core.newLease();
    this.#ttl = ttl;
    this.#lease = new WeakRef(lease);
    collectedLeases.register(lease, { core, state: this.#state });
  }

  // The signal refers to the lease: a program that keeps only the signal relies on the lock, so the lease must be
  // kept.
  get signal() {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      Object.defineProperty(this.#controller.signal, OWN, { value: this.#lease.deref() });
      if (this.#loss !== undefined) this.#controller.abort(this.#loss);
    }
    return this.#controller.signal;
  }

  get isHeld() {
    return addon.isHeld(this.#handle);
  }

  get isShared() {
    return addon.isShared(this.#handle);
  }

  get remaining() {
    return addon.remaining(this.#handle);
  }

  get token() {
    return this.#token;
  }

  // In C, 0 means no token.
  get fencingToken() {
    return addon.fencingToken(this.#handle) || undefined;
  }

  get message() {
    return addon.leaseMessage(this.#handle);
  }

  get isKept() {
    return kept.has(this.#state.keptAs);
  }

  async take(demand) {
    const { name, count, ttl, wait, tries, permits, keepAlive, shared, signal, ticket } = demand;
    const core = this.#core;
    const cancel = () => addon.cancel(this.#handle);
    const undo = onAbort(signal, cancel);
    let id;
    try {
      await core.operate(async () => {
        const begin = (handle, number) => {
          id = number;
          return ticket === undefined
            ? addon.acquire(handle, id, name, ttl, wait, tries, keepAlive, permits, count, shared)
            : addon.adopt(handle, id, ticket);
        };
        let status = await submit(this.#handle, begin);
        let words = this.message;
        core.note(status, words);
        const isWanted = !signal?.aborted && !core.isClosed;
        if (status === OK && !(isWanted && this.isHeld)) {
          // The lock was taken when it was no longer wanted, or this thread was late.
          await submit(this.#handle, addon.unlock);
          [status, words] = [TOO_SLOW, 'the lock expired before the program read the result of the call'];
        }
        core.checkWanted(signal);
        check(status, () => words);
        this.#token = addon.token(this.#handle);
        core.remember(this.#state);
        if (ticket !== undefined) this.#ttl = this.#ttlFor(this.remaining);
        if (!keepAlive) return;
        // The library keeps a lock that it takes from the start, but not one that it adopts. Nothing waits in between:
        // a failure would leave the adopted lock to nobody.
        if (ticket !== undefined) check(addon.keepAlive(this.#handle, id), () => this.message);
        this.#keepAs(id);
      }, cancel);
    } finally {
      undo();
    }
  }

  // The locked resources, as the library knows them.
  get resources() {
    const names = [];
    for (let name; (name = addon.resourceAt(this.#handle, names.length)) !== undefined;) names.push(name);
    return names.length === 1 ? [addon.resource(this.#handle)] : names;
  }

  detach() {
    return this.#inTurn(() => {
      if (this.#core.isFreed) throw closed();
      const ticket = addon.detach(this.#handle);
      if (typeof ticket !== 'string') check(ticket, () => this.message);
      this.#isUnlocked = true;
      this.#token = '';
      this.#forget();
      return ticket;
    });
  }

  extend(ttl = this.#ttl, given = {}) {
    const ms = duration('ttl', ttl);
    return this.#call((handle, id) => addon.extend(handle, id, ms), signalOf(given));
  }

  extendBy(additional, given = {}) {
    const more = duration('additional', additional);
    if (more < 1) throw outOfRange('additional', 'more than 0', additional);
    return this.#call((handle, id) => addon.extend(handle, id, this.#ttlFor(this.remaining + more)), signalOf(given));
  }

  // The ttl for this validity: with the allowance for drift, 2 ms for the precision of expiry, and a rounding.
  #ttlFor(validity) {
    return Math.min(Math.ceil((validity + 3) / (1 - this.#core.drift)), 1e15);
  }

  downgrade(given = {}) {
    return this.#call((handle, id) => addon.downgrade(handle, id), signalOf(given));
  }

  confirm(least = 0, given = {}) {
    const ms = milliseconds('least', least);
    return this.#call((handle, id) => addon.confirm(handle, id, ms), signalOf(given));
  }

  unlock(given = {}) {
    const { holdAtLeast } = options('options', given, ['holdAtLeast']);
    const least = holdAtLeast === undefined ? undefined : milliseconds('holdAtLeast', holdAtLeast);
    if (this.levels - this.#leaving <= 1) this.#isUnlocked = true;
    this.#leaving += 1;
    return this.#inTurn(async () => {
      this.#leaving -= 1;
      // A program that closes the manager may still unlock its locks, until the manager is freed.
      if (this.#core.isFreed) throw closed();
      await this.#core.operate(async () => {
        const { status, words } = await this.#submit(least === undefined ? addon.unlock
          : (handle, id) => addon.unlockAfter(handle, id, least));
        // A lock that some servers still have can be unlocked again.
        if (status === UNREACHABLE) endKept(this.#state.keptAs);
        else if (!this.isHeld) this.#forget();
        if (status === INVALID_ARGUMENT) this.#isUnlocked = false;
        check(status, () => words);
      });
    });
  }

  // How many unlocks release the lock.
  get levels() {
    return addon.levels(this.#handle);
  }

  retain() {
    return this.#inTurn(() => check(addon.retain(this.#handle), () => this.message));
  }

  keepAlive() {
    return this.#inTurn(() => {
      this.#core.checkOpen();
      const id = newId();
      check(addon.keepAlive(this.#handle, id), () => this.message);
      this.#keepAs(id);
    });
  }

  // For the end of a block: rejects if the block ran without the lock.
  async end() {
    if (this.#isUnlocked) return;
    // While an unlock has its turn, nobody can tell whether it is counted already.
    await this.#last;
    if (this.#isUnlocked) return;
    try {
      // Leaves all levels.
      for (let left = Math.max(this.levels, 1); left > 0; left--) await this.unlock();
    } catch (error) {
      // The block held the lock to its end. On a server that the release did not reach, the lock expires.
      if (!(error instanceof UnreachableError)) throw error;
      this.#forget();
    }
  }

  // The library cannot keep the lock alive.
  cannotBeKept(status, remaining) {
    const words = status === UNREACHABLE ? 'too few servers answer' : 'too few servers still have the lock';
    this.#lose(failure(status, `the lock could not be kept alive: ${words}`), remaining);
  }

  #lose(error, remaining) {
    if (this.#loss !== undefined) return;
    this.#loss = error;
    error.remaining = remaining;
    const lease = this.#lease.deref();
    later(() => {
      this.#controller?.abort(error);
      lease?.emit('lost', remaining, error);
    });
  }

  #keepAs(id) {
    endKept(this.#state.keptAs);
    this.#state.keptAs = id;
    kept.set(id, this.#lease);
    stayAlive(1);
  }

  // Returns the result of a call, as a number and as a message.
  async #submit(begin) {
    const status = await submit(this.#handle, begin);
    const words = this.message;
    this.#token = addon.token(this.#handle);
    this.#core.note(status, words);
    return { status, words };
  }

  // There is nothing left to unlock.
  #forget() {
    endKept(this.#state.keptAs);
    this.#core.forget(this.#state);
  }

  // A call on a held lock, which the signal or close() may end.
  #call(begin, signal) {
    const core = this.#core;
    const turn = this.#inTurn(async () => {
      core.checkWanted(signal);
      const cancel = () => addon.cancel(this.#handle);
      const undo = onAbort(signal, cancel);
      try {
        await core.operate(async () => {
          const wasKept = this.isKept;
          const { status, words } = await this.#submit(begin);
          if (!this.isHeld) {
            if (wasKept && status === LOST) this.#lose(failure(status, words), 0);
            this.#forget();
          }
          check(status, () => words);
        }, cancel);
      } finally {
        undo();
      }
    });
    // An abort, or close(), reaches a caller that waits for its turn at once.
    return core.whileWanted(turn, signal);
  }

  // Calls on one lease are made one after the other, because the library refuses a second call at the same time.
  #inTurn(action) {
    const turn = this.#last.then(action);
    this.#last = turn.catch(() => {});
    return turn;
  }
}

class Lease extends EventEmitter {
  #hold;
  #resources;

  constructor(own, core, demand) {
    if (own !== OWN) throw new TypeError('create a Lease with lock() of a Manager');
    super();
    this.#hold = new Hold(this, core, demand);
    this.#resources = demand.resources;
  }

  get [OWN]() {
    return this.#hold;
  }

  get resource() {
    return this.#names[0];
  }

  get resources() {
    return [...this.#names];
  }

  get #names() {
    // For an adopted lock, the library knows the resources.
    this.#resources ??= this.#hold.resources.map(textOrBytes);
    return this.#resources;
  }

  get isHeld() {
    return this.#hold.isHeld;
  }

  get isShared() {
    return this.#hold.isShared;
  }

  get remaining() {
    return this.#hold.remaining;
  }

  get isKept() {
    return this.#hold.isKept;
  }

  get signal() {
    return this.#hold.signal;
  }

  get message() {
    return this.#hold.message;
  }

  get token() {
    return this.#hold.token;
  }

  get fencingToken() {
    return this.#hold.fencingToken;
  }

  async extend(ttl, given) {
    return this.#hold.extend(ttl, given);
  }

  async extendBy(additional, given) {
    return this.#hold.extendBy(additional, given);
  }

  async downgrade(given) {
    return this.#hold.downgrade(given);
  }

  async confirm(least, given) {
    return this.#hold.confirm(least, given);
  }

  async keepAlive() {
    return this.#hold.keepAlive();
  }

  async detach() {
    return this.#hold.detach();
  }

  async retain() {
    return this.#hold.retain();
  }

  get levels() {
    return this.#hold.levels;
  }

  async unlock(given) {
    return this.#hold.unlock(given);
  }

  toJSON() {
    const several = this.#names.length > 1 ? { resources: this.#names.map(String) } : {};
    return { resource: String(this.resource), ...several, remaining: this.remaining };
  }

  [INSPECT](depth, inspectOptions, inspect) {
    const { resource, resources, remaining } = this;
    const what = resources.length > 1 ? { resources } : { resource };
    return showAs(this, { ...what, remaining, isKept: this.isKept }, inspectOptions, inspect);
  }
}

function textOrBytes(name) {
  const text = name.toString();
  return Buffer.from(text).equals(name) ? text : name;
}

// Node.js before 18.18 has no such symbol.
if (typeof Symbol.asyncDispose === 'symbol') {
  Lease.prototype[Symbol.asyncDispose] = async function asyncDispose() {
    await this[OWN].end();
  };
  Manager.prototype[Symbol.asyncDispose] = async function asyncDispose() {
    await this.close();
  };
}

module.exports = {
  Manager, Lease, RedlockError, TakenError, UnreachableError, TooSlowError, LostError, CancelledError, TooShortError,
  InvalidArgumentError, NoServersError, ForkedError, InternalError, ClosedError, version: addon.version(),
};

'use strict';

const addon = require('../addon');
const { onAbort } = require('./abort');
const { duration, milliseconds, options, outOfRange, signalOf } = require('./arguments');
const {
  OK, UNREACHABLE, TOO_SLOW, LOST, INVALID_ARGUMENT, UnreachableError, failure, check, closed,
} = require('./errors');
const { OWN, kept, newId, stayAlive, endKept, collectedLeases, later, submit } = require('./events');

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

module.exports = { Hold };

'use strict';

const addon = require('../addon');
const { throwIfAborted, unlessAborted } = require('./abort');
const { text } = require('./arguments');
const { UNREACHABLE, check, closed } = require('./errors');
const { bridge, later, loggers, stayAlive } = require('./events');
const { WARN } = require('./logger');

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

module.exports = { Core };

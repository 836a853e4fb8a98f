'use strict';

const { EventEmitter } = require('node:events');

const { OWN } = require('./events');
const { Hold } = require('./hold');
const { INSPECT, showAs } = require('./inspect');

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

// Node.js before 18.18 has no such symbol.
if (typeof Symbol.asyncDispose === 'symbol') {
  Lease.prototype[Symbol.asyncDispose] = async function asyncDispose() {
    await this[OWN].end();
  };
}

module.exports = { Lease, take };

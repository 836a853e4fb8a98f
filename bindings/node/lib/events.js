'use strict';

// What is under way, and the events that end it.

const addon = require('../addon');
const { OK } = require('./errors');

// The kinds of events that the addon reports.
const DONE_EVENT = 0;
const LOST_EVENT = 1;
const LOG_EVENT = -1;

// No other code has this symbol, so no other code makes leases.
const OWN = Symbol('redlock');

const UINT32_MAX = 2 ** 32 - 1;

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

module.exports = {
  OWN, kept, loggers, newId, stayAlive, endKept, collectedLeases, collectedManagers, later, bridge, submit,
};

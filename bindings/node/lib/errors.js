'use strict';

// The errors, by the status of a call.

const addon = require('../addon');

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

module.exports = {
  OK, UNREACHABLE, TOO_SLOW, LOST, INVALID_ARGUMENT, RedlockError, TakenError, UnreachableError, TooSlowError,
  LostError, CancelledError, TooShortError, InvalidArgumentError, NoServersError, ForkedError, InternalError,
  ClosedError, failure, check, closed,
};

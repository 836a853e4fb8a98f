'use strict';

// Locks that are held on a majority of independent Redis or Valkey servers, through the C library redlock. index.d.ts
// is the documentation.

const addon = require('./addon');
const {
  RedlockError, TakenError, UnreachableError, TooSlowError, LostError, CancelledError, TooShortError,
  InvalidArgumentError, NoServersError, ForkedError, InternalError, ClosedError,
} = require('./lib/errors');
const { Lease } = require('./lib/lease');
const { Manager } = require('./lib/manager');

module.exports = {
  Manager, Lease, RedlockError, TakenError, UnreachableError, TooSlowError, LostError, CancelledError, TooShortError,
  InvalidArgumentError, NoServersError, ForkedError, InternalError, ClosedError, version: addon.version(),
};

'use strict';

// Arguments, as C takes them.

const { isUint8Array } = require('node:util').types;

const INT32_MAX = 2 ** 31 - 1;
const NUL = Buffer.alloc(1);
const WAIT_MS = 5000;
const PERMITS_MAX = 256;

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

module.exports = {
  INT32_MAX, wrongType, outOfRange, wrongValue, text, optionalText, truth, milliseconds, duration, options, bytes,
  abortSignal, signalOf, demandOf, permitsOf, adoptionOf,
};

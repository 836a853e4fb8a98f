'use strict';

const assert = require('node:assert/strict');
const { test } = require('node:test');
const vm = require('node:vm');
const { InvalidArgumentError, Lease, Manager, SERVERS, TTL, assertFree, failureOf, manager, nameFor } = require('./support');

// Fails with words that name the argument.
async function assertRefused(promise, Class, name) {
  const error = await failureOf(promise);
  assert.ok(error instanceof Class, error.stack);
  assert.ok(error.message.includes(name), error.message);
}

const assertType = (promise, name) => assertRefused(promise, TypeError, name);
const assertRange = (promise, name) => assertRefused(promise, RangeError, name);
const assertValue = (promise, name) => assertRefused(promise, InvalidArgumentError, name);

test('servers', async (t) => {
  for (const bad of [undefined, null, '127.0.0.1:6379', 6379, {}]) {
    await assertType((async () => new Manager(bad))(), 'servers');
  }
  await assertType((async () => new Manager([SERVERS[0], 6379]))(), 'servers[1]');
  await assertType((async () => new Manager(['a\0b:1']))(), 'servers[0]');
  for (const bad of ['', 'host:0', 'host:65536', 'http://host']) {
    await assertRefused((async () => new Manager([bad]))(), InvalidArgumentError, '');
  }
  assert.throws(() => new Manager([SERVERS[0], SERVERS[0]]), { code: 'INVALID_ARGUMENT', message: /already added/ });
  assert.throws(() => new Manager([]), { code: 'NO_SERVERS' });
  assert.throws(() => Manager(SERVERS), TypeError);
  assert.equal(manager(t, [`redis://${SERVERS[0]}/0`]).isClosed, false);
});

test('settings', async () => {
  const make = async (options) => new Manager(SERVERS, options);
  await assertType(make(null), 'options');
  await assertType(make(5), 'options');
  await assertType(make({ retrydelay: 5 }), 'retrydelay');
  for (const name of ['retryDelay', 'connectTimeout', 'replyTimeout']) {
    for (const bad of ['5', null, 5n]) await assertType(make({ [name]: bad }), name);
    for (const bad of [-1, -0.1, NaN]) await assertRange(make({ [name]: bad }), name);
  }
  await assertValue(make({ connectTimeout: 0 }), 'connectTimeout is 0 ms: it must be 1 ms to');
  // Which does not become 0.
  await make({ connectTimeout: 0.1 });
  await assertType(make({ driftFactor: '0' }), 'driftFactor');
  for (const bad of [1, -0.1, NaN]) await assertValue(make({ driftFactor: bad }), 'driftFactor is');
  for (const bad of [null, 1, 'always', 'toString']) await assertType(make({ restartGuard: bad }), 'restartGuard');
  for (const name of ['failoverGuard', 'fencing']) {
    for (const bad of [null, 1, 'yes']) await assertType(make({ [name]: bad }), name);
  }
  for (const name of ['longestTtl', 'guardCap']) {
    await assertType(make({ [name]: '5' }), name);
    await assertRange(make({ [name]: -0.1 }), name);
    await assertValue(make({ [name]: Infinity }), `${name} is 9007199254740991 ms: it must be 0 ms to`);
  }
  for (const name of ['username', 'password']) {
    await assertType(make({ [name]: 5 }), name);
    await assertType(make({ [name]: 'a\0b' }), name);
    await assertValue(make({ [name]: '' }), `${name} is empty`);
  }
  await assertType(make({ credentialsFromEnv: 'PASSWORD' }), 'credentialsFromEnv');
  await assertType(make({ credentialsFromEnv: {} }), 'credentialsFromEnv.password');
  await assertType(make({ credentialsFromEnv: { password: 'A' }, password: 'b' }), 'credentialsFromEnv');
  await assertValue(make({ credentialsFromEnv: { password: 'REDLOCK_TEST_NO_SUCH_VARIABLE' } }), 'credentialsFromEnv.password names');
  await assertType(make({ tls: 'yes' }), 'tls');
  await assertType(make({ tls: null }), 'tls');
  await assertType(make({ tls: { cert: 'a' } }), 'cert');
  await assertType(make({ tls: { ca: Buffer.from('a') } }), 'tls.ca');
  await assertType(make({ tls: { insecureSkipVerify: 1 } }), 'tls.insecureSkipVerify');
  for (const bad of [null, 'a file', {}, { warn() {} }]) await assertType(make({ logger: bad }), 'logger');
});

test('arrays of names', async (t) => {
  const [locker, name] = [manager(t), nameFor(t)];
  const options = { ttl: TTL, wait: 0 };
  await assertType(locker.lock([], options), 'resource');
  for (const [bad, index] of [[[, 'a'], 0], [[,], 0], [['a', , 'b'], 1], [['a', 5], 1], [['a', ['b']], 1], [new Array(3), 0]]) {
    await assertType(locker.lock(bad, options), `resource[${index}]`);
    await assertType(locker.using(bad, options, () => assert.fail()), `resource[${index}]`);
  }
  await assertType(locker.lock([name, 'a\0b'], options), 'resource[1] contains a NUL');
  await assertValue(locker.lock([name, name], options), 'resource 2 of 2');
  await assertValue(locker.lock(Array.from({ length: 129 }, (_, i) => name + i), options), 'resource');
});

// UTF-8 has no form for them: they all would be the same character.
test('half of a surrogate pair', async (t) => {
  const [locker, name] = [manager(t), nameFor(t)];
  for (const half of ['\ud800', '\udfff', '\ude00\ud83d']) {
    const words = 'contains a lone surrogate';
    for (const bad of [half, `${name}${half}`, [name, half]]) {
      await assertType(locker.lock(bad, { ttl: TTL }), words);
      await assertType(locker.using(bad, { ttl: TTL }, () => assert.fail()), words);
    }
    await assertType(locker.isLocked(half), words);
    await assertType(locker.inspect(half), words);
    await assertType(locker.adopt(half), words);
    await assertType((async () => new Manager([`redis://u:${half}@h`]))(), words);
    await assertType((async () => new Manager(SERVERS, { username: half, password: 'x' }))(), words);
    await assertType((async () => new Manager(SERVERS, { password: half }))(), words);
    await assertType(manager(t, SERVERS, { password: () => half }).connect(), words);
  }
  const whole = `${name}\ud83d\ude00`;
  const lease = await locker.lock(whole, { ttl: TTL });
  await assertType(locker.lock([whole, `${name}\ud83d`], { ttl: TTL }), 'resource[1]');
  assert.equal(await locker.isLocked(Buffer.from(whole)), true);
  await lease.unlock();
});

// A test runner, or node:vm, gives a program its own Array and Uint8Array.
test('values of another realm', async (t) => {
  const [locker, other, name] = [manager(t), manager(t), nameFor(t)];
  const foreign = vm.runInNewContext('(bytes) => Uint8Array.from(bytes)')([...Buffer.from(name)]);
  assert.ok(!(foreign instanceof Uint8Array));
  const lease = await locker.lock(foreign, { ttl: TTL });
  assert.equal(lease.resource, foreign);
  assert.equal(await other.isLocked(name), true);
  assert.equal((await other.inspect(foreign)).isLocked, true);
  await lease.unlock();
  const several = await locker.lock(vm.runInNewContext('(a, b) => [a, b]')(foreign, `${name}:b`), vm.runInNewContext(`({ ttl: ${TTL} })`));
  assert.deepEqual(await Promise.all([other.isLocked(name), other.isLocked(`${name}:b`)]), [true, true]);
  await several.unlock();
  for (const bad of ['new Uint16Array(2)', 'new ArrayBuffer(2)', '({ length: 1, 0: 65 })']) {
    await assertType(locker.lock(vm.runInNewContext(bad), { ttl: TTL }), 'resource');
  }
  await assertType(locker.lock(Object.create(Uint8Array.prototype), { ttl: TTL }), 'resource');
});

test('what is to be locked', async (t) => {
  const [locker, name] = [manager(t), nameFor(t)];
  for (const bad of [undefined, null, 5, {}, [1], new Uint16Array(2), Symbol('a'), new ArrayBuffer(2)]) {
    await assertType(locker.lock(bad, { ttl: TTL }), 'resource');
    await assertType(locker.using(bad, { ttl: TTL }, () => assert.fail()), 'resource');
    await assertType(locker.isLocked(bad), 'resource');
    await assertType(locker.inspect(bad), 'resource');
  }
  for (const bad of ['', Buffer.alloc(0), 'x'.repeat(65_537)]) {
    await assertValue(locker.lock(bad, { ttl: TTL }), 'resource');
    await assertValue(locker.isLocked(bad), 'resource');
    await assertValue(locker.inspect(bad), 'resource');
  }
  await assertType(locker.isLocked(`${name}\0`), 'resource');
  await assertType(locker.inspect(`${name}\0`), 'resource');
  await assertType(locker.isLocked(Buffer.from([65, 0])), 'resource');
});

test('how it is to be locked', async (t) => {
  const [locker, name] = [manager(t), nameFor(t)];
  for (const bad of [undefined, null, 5, 'ttl']) await assertType(locker.lock(name, bad), 'options');
  for (const bad of [undefined, null, '10', 10n, {}]) await assertType(locker.lock(name, { ttl: bad }), 'ttl');
  await assertRange(locker.lock(name, { ttl: NaN }), 'ttl');
  for (const bad of [0, -1, 0.9, 1, Infinity, -Infinity, 1e300]) await assertValue(locker.lock(name, { ttl: bad }), 'ttl');
  for (const bad of ['1', true, {}]) await assertType(locker.lock(name, { ttl: TTL, wait: bad }), 'wait');
  for (const bad of [-1, -0.1, NaN, -Infinity]) await assertRange(locker.lock(name, { ttl: TTL, wait: bad }), 'wait');
  await assertType(locker.lock(name, { ttl: TTL, tries: '1' }), 'tries');
  for (const bad of [0, -1, 1.5, NaN, Infinity, 2 ** 31]) await assertRange(locker.lock(name, { ttl: TTL, tries: bad }), 'tries');
  await assertType(locker.lock(name, { ttl: TTL, tries: 1, wait: 1 }), 'tries');
  for (const bad of [1, 'yes', null]) await assertType(locker.lock(name, { ttl: TTL, keepAlive: bad }), 'keepAlive');
  for (const bad of [1, {}, 'x', { aborted: false }, { aborted: false, addEventListener() {} }]) await assertType(locker.lock(name, { ttl: TTL, signal: bad }), 'signal');
  await assertType(locker.lock(name, { ttl: TTL, keepalive: true }), 'keepalive');
  await assertType(locker.using(name, { ttl: TTL }), 'third argument');
  for (const good of [0, 0.1, 1e300, Infinity, undefined]) await (await locker.lock(name, { ttl: TTL + 0.5, wait: good })).unlock();
  await (await locker.lock(name, { ttl: TTL, wait: undefined, tries: 2 })).unlock();
  await assertFree(locker, name);
});

test('what a lease is asked', async (t) => {
  const [locker, name] = [manager(t), nameFor(t)];
  const lease = await locker.lock(name, { ttl: TTL });
  await assertType(lease.extend('5'), 'ttl');
  await assertType(lease.extend(null), 'ttl');
  await assertRange(lease.extend(NaN), 'ttl');
  for (const bad of [0, -1, 1e300]) await assertValue(lease.extend(bad), 'ttl');
  await assertType(lease.confirm('5'), 'least');
  for (const bad of [-1, NaN]) await assertRange(lease.confirm(bad), 'least');
  for (const bad of [5, {}, { aborted: true }]) {
    await assertType(lease.extend(TTL, { signal: bad }), 'signal');
    await assertType(lease.confirm(0, { signal: bad }), 'signal');
    await assertType(locker.isLocked(name, { signal: bad }), 'signal');
    await assertType(locker.connect(0, { signal: bad }), 'signal');
  }
  await assertType(lease.extend(TTL, null), 'options');
  await assertType(lease.confirm(0, { Signal: undefined }), 'Signal');
  await assertType(locker.connect('5'), 'timeout');
  await assertRange(locker.connect(-1), 'timeout');
  assert.throws(() => new Lease(), TypeError);
  assert.throws(() => Lease.prototype.isHeld, TypeError);
  assert.throws(() => { 'use strict'; lease.resource = 'x'; }, TypeError);
  // None of it has harmed the lock.
  await lease.confirm();
  await lease.unlock();
  await assertFree(locker, name);
});

'use strict';

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { ClosedError, QUORUM, SERVERS, TTL, assertCode, assertFree, eventually, keys, manager, nameFor, silentServers, waysToServers } = require('./support');

test('after it everything says so', async (t) => {
  const [locker, name] = [manager(t), nameFor(t)];
  assert.equal(locker.isClosed, false);
  await locker.connect();
  await Promise.all([locker.close(), locker.close()]);
  assert.equal(await locker.close(), undefined);
  assert.equal(locker.isClosed, true);
  const calls = [
    () => locker.lock(name, { ttl: TTL }), () => locker.isLocked(name), () => locker.connect(),
    () => locker.using(name, { ttl: TTL }, () => {}),
  ];
  for (const begin of calls) assert.ok(await assertCode(begin(), 'CLOSED') instanceof ClosedError);
  assert.throws(() => locker.setCredentials(), { code: 'CLOSED' });
});

test('those who wait hear of it', async (t) => {
  const [locker, other, name] = [manager(t), manager(t), nameFor(t)];
  const lease = await other.lock(name, { ttl: TTL });
  const calls = Array.from({ length: 50 }, () => assertCode(locker.lock(name, { ttl: TTL, wait: Infinity }), 'CLOSED'));
  await new Promise(setImmediate);
  await locker.close();
  await Promise.all(calls);
  await lease.unlock();
  await assertFree(other, name);
});

test('who has just begun hears of it', async (t) => {
  const [other, name] = [manager(t), nameFor(t)];
  for (let turns = 0; turns < 30; turns++) {
    const locker = manager(t);
    const call = locker.lock(name, { ttl: TTL, wait: Infinity }).then((lease) => lease.unlock(), (error) => assert.equal(error.code, 'CLOSED'));
    for (let i = 0; i < turns; i++) await new Promise(setImmediate);
    await locker.close();
    await call;
  }
  await assertFree(other, name);
});

test('nobody has to wait for silent servers', async (t) => {
  const { addresses, connected } = await silentServers(t);
  const locker = manager(t, addresses, { connectTimeout: 3_600_000, replyTimeout: 3_600_000 });
  const call = assertCode(locker.lock(nameFor(t), { ttl: TTL, wait: Infinity }), 'CLOSED');
  await eventually('it is connected', () => connected.length >= QUORUM);
  await locker.close();
  await call;
});

test('a call that asks comes to its end', async (t) => {
  const [locker, name] = [manager(t), nameFor(t)];
  const answers = Promise.all([locker.isLocked(name), locker.isLocked(name), locker.connect()]);
  await locker.close();
  const [first, second, words] = await answers;
  assert.deepEqual([first, second, typeof words], [false, false, 'string']);
});

test('who extends a lock hears of it', async (t) => {
  const { addresses, stop, go } = await waysToServers(t);
  const name = nameFor(t);
  const locker = manager(t, addresses);
  const lease = await locker.lock(name, { ttl: TTL });
  stop();
  const calls = [lease.extend(), lease.confirm()].map((call) => assertCode(call, 'CLOSED'));
  await new Promise(setImmediate);
  await locker.close();
  await Promise.all(calls);
  assert.equal(lease.isHeld, true);
  go();
  await lease.unlock();
});

test('a lock that is held can be unlocked', async (t) => {
  const [locker, other, name] = [manager(t), manager(t), nameFor(t)];
  const lease = await locker.lock(name, { ttl: TTL });
  await locker.close();
  assert.equal(lease.isHeld, true);
  for (const begin of [() => lease.extend(), () => lease.confirm(), () => lease.keepAlive()]) await assertCode(begin(), 'CLOSED');
  await lease.unlock();
  await assertFree(other, name);
  // Now the manager of the library is freed.
  await assertCode(lease.unlock(), 'CLOSED');
  assert.deepEqual([lease.isHeld, lease.remaining], [false, 0]);
});

test('a function that has begun unlocks', async (t) => {
  const [locker, other, name] = [manager(t), manager(t), nameFor(t)];
  await locker.using(name, { ttl: TTL, keepAlive: true }, async (lease) => {
    await locker.close();
    assert.equal(lease.isKept, true);
    assert.ok(await keys(name) >= QUORUM);
  });
  await assertFree(other, name);
});

test('one that is unlocking comes to its end', async (t) => {
  const [locker, other, name] = [manager(t), manager(t), nameFor(t)];
  const lease = await locker.lock(name, { ttl: TTL });
  const call = lease.unlock();
  await locker.close();
  await call;
  await assertFree(other, name);
});

test('while the password is asked for', async (t) => {
  let answer;
  const locker = manager(t, SERVERS, { password: () => new Promise((resolve) => { answer = resolve; }) });
  const calls = [locker.lock(nameFor(t), { ttl: TTL }), locker.isLocked('x'), locker.connect()].map((call) => assertCode(call, 'CLOSED'));
  await eventually('it is asked', () => answer !== undefined);
  // No answer is necessary.
  await locker.close();
  await Promise.all(calls);
  answer('secret');
  await new Promise(setImmediate);
});

'use strict';

const assert = require('node:assert/strict');
const { test } = require('node:test');
const {
  ClosedError, QUORUM, SERVERS, TTL, askAll, assertCode, assertEndsWell, assertFree, eventually, keys, manager, nameFor, program,
  silentServers, waysToServers,
} = require('./support');

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

test('a call that asks hears of it, and its thread comes to its end', async (t) => {
  const { addresses, connected } = await silentServers(t);
  const locker = manager(t, addresses, { connectTimeout: 500, replyTimeout: 500 });
  // The first is on a thread, and the others are behind it.
  const calls = [locker.isLocked('x'), locker.inspect('x'), locker.connect()];
  await eventually('it is connected', () => connected.length >= QUORUM);
  let isClosed = false;
  const closing = locker.close().then(() => { isClosed = true; });
  const errors = await Promise.all(calls.map((call) => assertCode(call, 'CLOSED')));
  assert.equal(isClosed, false);
  assert.equal(new Set(errors).size, calls.length);
  await closing;
});

test('who waits behind an unlock hears of it', async (t) => {
  const { addresses, stop, go } = await waysToServers(t);
  const [locker, name] = [manager(t, addresses), nameFor(t)];
  const lease = await locker.lock(name, { ttl: TTL });
  stop();
  const unlocked = lease.unlock();
  const behind = assertCode(lease.extend(), 'CLOSED');
  await new Promise(setImmediate);
  const closing = locker.close();
  await behind;
  go();
  await Promise.all([unlocked, closing]);
  await assertFree(manager(t), name);
});

test('who adopts a lock at that moment has it, or nobody has', async (t) => {
  const [other, name] = [manager(t), nameFor(t)];
  const ticket = await (await other.lock(name, { ttl: TTL })).detach();
  const locker = manager(t);
  // The call stops listening when it has the lock.
  const signal = { aborted: false, addEventListener() {}, removeEventListener() { locker.close(); } };
  const lease = await locker.adopt(ticket, { keepAlive: true, signal }).catch(() => undefined);
  assert.equal(lease?.isKept, await keys(name) >= QUORUM ? true : undefined);
  await lease?.unlock();
  await assertFree(other, name);
});

test('a lock that did not reach all servers can be unlocked again', async (t) => {
  const { addresses, stop, go } = await waysToServers(t);
  const [other, name] = [manager(t), nameFor(t)];
  const locker = manager(t, addresses, { replyTimeout: 200, connectTimeout: 200 });
  const lease = await locker.lock(name, { ttl: TTL, wait: Infinity, keepAlive: true });
  stop();
  await locker.close();
  await assertCode(lease.unlock(), 'UNREACHABLE');
  assert.deepEqual([lease.isHeld, lease.isKept], [false, false]);
  go();
  // Or a late release has done it.
  await eventually('it is unlocked', () => lease.unlock().then(() => true, ({ code }) => code === 'LOST' || assert.equal(code, 'UNREACHABLE')));
  await assertFree(other, name);
  await assertCode(lease.unlock(), 'CLOSED');
});

test('a function whose lock could not be unlocked holds no closed manager', async (t) => {
  const { addresses, stop } = await waysToServers(t);
  const locker = manager(t, addresses, { replyTimeout: 200, connectTimeout: 200 });
  let lease;
  await locker.using(nameFor(t), { ttl: TTL, wait: Infinity }, async (it) => {
    lease = it;
    stop();
    await locker.close();
  });
  // The manager of the library is freed.
  await assertCode(lease.unlock(), 'CLOSED');
  await askAll('DEL', lease.resource);
});

test('nothing stays open', async (t) => {
  await assertEndsWell(program(t, `
    const fs = require('node:fs');
    const files = () => fs.readdirSync('/proc/self/fd').length;
    const use = async (i) => {
      const manager = newManager();
      await manager.using(NAME + i, { ttl: TTL, keepAlive: true }, () => {});
      await manager.connect();
      await manager.close();
    };
    const before = files();
    for (let i = 1; i < 10; i++) await use(i);
    // Threads of the library may still be closing some. If one stays, this does not end.
    while (files() > before) await turn();
    console.log('the end');`, { name: nameFor(t) }), 'the end\n');
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

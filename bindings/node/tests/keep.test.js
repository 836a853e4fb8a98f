'use strict';

const assert = require('node:assert/strict');
const { once } = require('node:events');
const { test } = require('node:test');
const {
  LostError, SERVERS, TTL, UnreachableError, ask, askAll, assertCode, assertFree, eventually, failureOf, keys, manager, nameFor, waysToServers,
} = require('./support');

// It is extended every second.
const SHORT = 3000;

async function isRenewed(lease) {
  let before = lease.remaining;
  await eventually('it is renewed', () => {
    const [last, now] = [before, lease.remaining];
    before = now;
    return now > last;
  });
}

for (const [how, take] of [
  ['from the start', (locker, name) => locker.lock(name, { ttl: SHORT, keepAlive: true })],
  ['later', async (locker, name) => {
    const lease = await locker.lock(name, { ttl: SHORT });
    assert.equal(lease.isKept, false);
    await lease.keepAlive();
    return lease;
  }],
]) {
  test(`a lock that is kept ${how}`, async (t) => {
    const [locker, name] = [manager(t), nameFor(t)];
    const lease = await take(locker, name);
    lease.on('lost', () => assert.fail('it is lost'));
    assert.equal(lease.isKept, true);
    // Longer than its TTL.
    for (let i = 0; i < 4; i++) await isRenewed(lease);
    await lease.confirm();
    assert.equal(lease.signal.aborted, false);
    await lease.unlock();
    assert.equal(lease.isKept, false);
    await assertFree(locker, name);
    assert.equal(lease.signal.aborted, false);
  });
}

test('a lock is kept while JavaScript is busy', async (t) => {
  const [locker, name] = [manager(t), nameFor(t)];
  const lease = await locker.lock(name, { ttl: SHORT, keepAlive: true });
  const deadline = performance.now() + 60_000;
  // Longer than its TTL, and nothing of this program runs meanwhile.
  for (let [renewals, before] = [0, lease.remaining]; renewals < 4;) {
    const now = lease.remaining;
    if (now > before) renewals++;
    before = now;
    assert.ok(performance.now() < deadline && lease.isHeld);
  }
  await lease.confirm();
  await lease.unlock();
});

test('others see that it is kept', async (t) => {
  const [locker, name] = [manager(t), nameFor(t)];
  const lease = await locker.lock(name, { ttl: SHORT, keepAlive: true });
  const left = async () => Number((await ask(SERVERS[0], 'PTTL', name)).slice(1));
  let before = await left();
  await eventually('a server has more time for it than before', async () => {
    const [last, now] = [before, await left()];
    before = now;
    return now > last;
  });
  await lease.unlock();
});

test('a lock that the servers have lost', async (t) => {
  const [locker, name] = [manager(t), nameFor(t)];
  const lease = await locker.lock(name, { ttl: SHORT, keepAlive: true });
  const { signal } = lease;
  const lost = once(lease, 'lost');
  await askAll('DEL', name);
  const [remaining, reason] = await lost;
  assert.ok(reason instanceof LostError && reason.code === 'LOST');
  assert.equal(reason.remaining, remaining);
  assert.deepEqual([signal.aborted, signal.reason, lease.isKept], [true, reason, false]);
  await failureOf(lease.unlock());
  await assertFree(locker, name);
});

test('a lock whose servers are gone', async (t) => {
  const { addresses, cut } = await waysToServers(t);
  const [other, name] = [manager(t), nameFor(t)];
  // No later event may report less.
  const locker = manager(t, addresses, { connectTimeout: 200, replyTimeout: 200 });
  const lease = await locker.lock(name, { ttl: 2 * SHORT, wait: Infinity, keepAlive: true });
  const lost = once(lease.signal, 'abort');
  cut();
  await lost;
  const { reason } = lease.signal;
  assert.ok(reason instanceof UnreachableError, reason.stack);
  assert.equal(typeof reason.remaining, 'number');
  // It ends by itself.
  await eventually('the lock expired', async () => await keys(name) === 0);
  await assertFree(other, name);
});

test('a lock is kept, and can be unlocked, after an inner unlock', async (t) => {
  const name = nameFor(t);
  for (const keepAlive of [true, false]) {
    const locker = manager(t);
    const lease = await locker.lock(name, { ttl: TTL, keepAlive });
    await lease.retain();
    await lease.unlock();
    await locker.close();
    assert.deepEqual([lease.isHeld, lease.isKept], [true, keepAlive]);
    await lease.unlock();
    await assertFree(manager(t), name);
  }
  const lease = await manager(t).lock(name, { ttl: SHORT, keepAlive: true });
  await lease.retain();
  await lease.unlock();
  const lost = once(lease, 'lost');
  await askAll('DEL', name);
  await lost;
});

test('a call finds out that a kept lock is lost', async (t) => {
  const [locker, name] = [manager(t), nameFor(t)];
  const lease = await locker.lock(name, { ttl: TTL, keepAlive: true });
  const lost = once(lease, 'lost');
  await askAll('DEL', name);
  await assertCode(lease.extend(), 'LOST');
  const [remaining, reason] = await lost;
  assert.deepEqual([remaining, reason.code, lease.signal.reason, lease.isKept], [0, 'LOST', reason, false]);
});

test('who asks for the signal late finds it aborted', async (t) => {
  const [locker, name] = [manager(t), nameFor(t)];
  const lease = await locker.lock(name, { ttl: TTL, keepAlive: true });
  await askAll('DEL', name);
  await assertCode(lease.extend(), 'LOST');
  assert.equal(lease.signal.reason.code, 'LOST');
  await assertCode(lease.keepAlive(), 'LOST');
});

test('nothing is told of a lock that was unlocked', async (t) => {
  const [locker, name] = [manager(t), nameFor(t)];
  const lease = await locker.lock(name, { ttl: SHORT, keepAlive: true });
  lease.on('lost', () => assert.fail('it is lost'));
  await lease.unlock();
  const next = await locker.lock(name, { ttl: SHORT, keepAlive: true });
  await isRenewed(next);
  await next.unlock();
});

test('work that stops in time', async (t) => {
  const [locker, name] = [manager(t), nameFor(t)];
  const work = locker.using(name, { ttl: SHORT, keepAlive: true }, async ({ signal }) => {
    await askAll('DEL', name);
    await once(signal, 'abort');
    throw signal.reason;
  });
  await assertCode(work, 'LOST');
});

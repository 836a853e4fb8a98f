'use strict';

const assert = require('node:assert/strict');
const { AsyncLocalStorage } = require('node:async_hooks');
const { test } = require('node:test');
const { TTL, TakenError, assertCode, eventually, failureOf, manager, nameFor } = require('./support');

test('so many have a permit, and no more', async (t) => {
  const [ours, theirs, name] = [manager(t), manager(t), nameFor(t)];
  const wanted = { ttl: TTL, wait: 0, permits: 2 };
  const one = await ours.lock(name, wanted);
  const two = await theirs.lock(name, wanted);
  assert.ok(one.isHeld && two.isHeld);
  assert.equal(two.resource, name);
  const info = await ours.inspect(name, { permits: 2 });
  assert.deepEqual([info.isLocked, info.permitsTaken], [true, 2]);
  const refused = await assertCode(ours.lock(name, wanted), 'TAKEN');
  assert.ok(refused instanceof TakenError);
  assert.match(refused.message, /all 2 permits taken/);
  await one.unlock();
  await two.extend(2 * TTL);
  assert.ok(two.remaining > TTL);
  assert.equal(await ours.using(name, wanted, (lease) => lease.isHeld), true);
  await two.unlock();
  assert.equal((await theirs.inspect(name, { permits: 2 })).permitsTaken, 0);
});

test('who locks the resource uses a permit', async (t) => {
  const [ours, name] = [manager(t), nameFor(t)];
  const lease = await ours.lock(name, { ttl: TTL });
  await assertCode(ours.lock(name, { ttl: TTL, wait: 0, permits: 1 }), 'TAKEN');
  const permit = await ours.lock(name, { ttl: TTL, wait: 0, permits: 2 });
  await permit.unlock();
  await lease.unlock();
});

test('calls share the permits', async (t) => {
  const [ours, name] = [manager(t), nameFor(t)];
  let inside = 0;
  let most = 0;
  const work = async () => {
    for (let time = 0; time < 10; time += 1) {
      await ours.using(name, { ttl: TTL, wait: Infinity, permits: 3 }, async () => {
        most = Math.max(most, inside += 1);
        await null;
        inside -= 1;
      });
    }
  };
  await Promise.all(Array.from({ length: 8 }, work));
  assert.ok(most >= 1 && most <= 3, `${most}`);
});

test('a permit is released wherever its function ends', async (t) => {
  const [ours, name] = [manager(t), nameFor(t)];
  const contexts = Array.from({ length: 3 }, () => new AsyncLocalStorage());
  const ends = [];
  const uses = contexts.map((context, i) => context.run(i, () => ours.using(name, { ttl: TTL, permits: 3, keepAlive: true },
    () => new Promise((resolve) => { ends[i] = resolve; }))));
  await eventually('all have one', () => ends.filter(Boolean).length === 3);
  for (const [i, end] of ends.entries()) {
    contexts[(i + 1) % 3].run(i, () => setImmediate(end));
    await uses[i];
    assert.equal((await ours.inspect(name, { permits: 3 })).permitsTaken, 2 - i);
  }
  assert.equal(ours.stats().kept, 0);
});

test('what is no number of permits is said', async (t) => {
  const [ours, name] = [manager(t), nameFor(t)];
  for (const permits of [0, -1, 257, 1.5, NaN]) {
    const failure = await failureOf(ours.lock(name, { ttl: TTL, permits }));
    assert.ok(failure instanceof RangeError, `${permits}`);
    assert.ok(await failureOf(ours.inspect(name, { permits })) instanceof RangeError);
  }
  assert.ok(await failureOf(ours.lock(name, { ttl: TTL, permits: '2' })) instanceof TypeError);
  const fencing = manager(t, undefined, { fencing: true });
  await assertCode(fencing.lock(name, { ttl: TTL, permits: 2 }), 'INVALID_ARGUMENT');
});

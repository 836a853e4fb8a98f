'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const { test } = require('node:test');
const { TTL, assertFree, manager, nameFor, program, assertEndsWell } = require('./support');

test('a thousand promises for a hundred resources', async (t) => {
  const [locker, name] = [manager(t), nameFor(t)];
  const holders = new Array(100).fill(0);
  let count = 0;
  await Promise.all(Array.from({ length: 1000 }, (_, i) => locker.using(`${name}:${i % 100}`, { ttl: TTL, wait: Infinity }, async () => {
    assert.equal(++holders[i % 100], 1);
    await new Promise(setImmediate);
    holders[i % 100]--;
    count++;
  })));
  assert.equal(count, 1000);
  await assertFree(locker, `${name}:0`);
});

test('a thousand locks at once', async (t) => {
  const [locker, name] = [manager(t), nameFor(t)];
  const take = (i) => locker.lock(`${name}:${i}`, { ttl: TTL, wait: Infinity, keepAlive: i % 2 === 0 });
  const leases = await Promise.all(Array.from({ length: 1000 }, (_, i) => take(i)));
  assert.ok(leases.every((lease) => lease.isHeld));
  await Promise.all(leases.map((lease) => lease.unlock()));
  await assertFree(locker, `${name}:999`);
});

test('threads', { skip: !fs.existsSync('/proc/self/task') }, async (t) => {
  // In its own process, because others have threads, too.
  await assertEndsWell(program(t, `
    const fs = require('node:fs');
    const threads = () => fs.readdirSync('/proc/self/task').length;
    // Node.js starts its threads for waiting work with their first work.
    await Promise.all(Array.from({ length: 8 }, () => fs.promises.stat('.')));
    const before = threads();
    const manager = newManager();
    let most = 0;
    await Promise.all(Array.from({ length: 1000 }, (_, i) => manager.using(NAME + i % 100, { ttl: TTL, wait: Infinity }, async () => {
      most = Math.max(most, threads());
      if (i % 100 === 0) await manager.isLocked(NAME);
    })));
    console.log(most > before, most - before <= 4 || most - before);
    await manager.close();`, { name: nameFor(t) }), 'true true\n');
});

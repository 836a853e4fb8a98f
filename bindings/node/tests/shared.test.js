'use strict';

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { TTL, assertCode, assertFree, manager, nameFor } = require('./support');

test('readers share, and a writer is alone', async (t) => {
  const [locker, other, name] = [manager(t), manager(t), nameFor(t)];
  const shared = { ttl: TTL, shared: true };
  const leases = [await locker.lock(name, shared), await locker.lock(name, shared), await other.lock(name, shared)];
  assert.ok(leases.every((lease) => lease.isHeld && lease.isShared));
  const info = await other.inspect(name);
  assert.deepEqual([info.isLocked, info.isShared, info.readers], [true, true, 3]);
  await assertCode(other.lock(name, { ttl: TTL, wait: 0 }), 'TAKEN');
  await leases[0].extend(2 * TTL);
  assert.ok(leases[0].remaining > TTL);
  await leases[2].confirm(1);
  for (const lease of leases) await lease.unlock();
  await assertFree(other, name);
  const writer = await locker.lock(name, { ttl: TTL });
  assert.equal(writer.isShared, false);
  await assertCode(other.lock(name, { ...shared, wait: 0 }), 'TAKEN');
  await writer.unlock();
});

test('a writer becomes a reader', async (t) => {
  const [locker, other, name] = [manager(t), manager(t), nameFor(t)];
  const lease = await locker.lock(name, { ttl: TTL });
  assert.equal(await lease.downgrade(), undefined);
  assert.equal(lease.isShared, true);
  const beside = await other.lock(name, { ttl: TTL, shared: true });
  await lease.unlock();
  await beside.unlock();
  await assertCode(lease.downgrade(), 'LOST');
  await assert.rejects(locker.lock(name, { ttl: TTL, shared: 1 }), TypeError);
});

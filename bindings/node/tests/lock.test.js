'use strict';

const assert = require('node:assert/strict');
const { test } = require('node:test');
const {
  Lease, LostError, QUORUM, RedlockError, SERVERS, TTL, TakenError, TooShortError, ask, askAll, assertCode, assertFree, eventually, failureOf, keys,
  manager, nameFor, version,
} = require('./support');

test('the life of a lock', async (t) => {
  const [locker, other, name] = [manager(t), manager(t), nameFor(t)];
  const lease = await locker.lock(name, { ttl: TTL });
  assert.ok(lease instanceof Lease);
  assert.equal(lease.resource, name);
  assert.equal(lease.isHeld, true);
  assert.ok(lease.remaining > 0 && lease.remaining < TTL);
  assert.match(lease.token, /^[0-9A-F]{40}$/);
  assert.ok(await keys(name) >= QUORUM);
  assert.equal(await other.isLocked(name), true);
  assert.equal(await lease.extend(2 * TTL), undefined);
  assert.ok(lease.remaining > TTL);
  assert.equal(await lease.confirm(), undefined);
  assert.equal(await lease.confirm(TTL), undefined);
  assert.equal(await lease.unlock(), undefined);
  assert.deepEqual([lease.isHeld, lease.remaining, lease.token], [false, 0, '']);
  await assertFree(other, name);
  assert.ok(await assertCode(lease.unlock(), 'LOST') instanceof LostError);
  assert.ok(await assertCode(lease.extend(), 'LOST') instanceof RedlockError);
});

test('an adopted lock is extended by what it lasted', async (t) => {
  const locker = manager(t, SERVERS, { driftFactor: 0.2 });
  const given = await locker.lock(nameFor(t), { ttl: TTL });
  const lease = await locker.adopt(await given.detach());
  const lasted = lease.remaining;
  await eventually('some of it has passed', () => lease.remaining < lasted - 100);
  const start = performance.now();
  await lease.extend();
  const left = lease.remaining;
  assert.ok(left >= lasted - (performance.now() - start) - 10, `${lasted}, ${left}`);
  await lease.unlock();
});

test('others are kept out for a time', async (t) => {
  const [locker, other, name] = [manager(t), manager(t), nameFor(t)];
  const lease = await locker.lock(name, { ttl: TTL, keepAlive: true });
  await assertCode(lease.unlock({ holdAtLeast: TTL + 1 }), 'INVALID_ARGUMENT');
  await assert.rejects(lease.unlock({ holdAtLeast: -1 }), RangeError);
  await assert.rejects(lease.unlock({ holdAtLeast: '5' }), TypeError);
  assert.deepEqual([lease.isHeld, lease.isKept], [true, true]);
  await lease.confirm();
  await lease.unlock({ holdAtLeast: TTL / 2 });
  assert.deepEqual([lease.isHeld, lease.isKept, locker.stats().kept], [false, false, 0]);
  assert.ok((await other.inspect(name)).remaining <= TTL / 2);
  await assertCode(other.lock(name, { ttl: TTL, wait: 0 }), 'TAKEN');
  await askAll('DEL', name);
  // The end of using() releases a lock of which the time was refused.
  await locker.using(name, { ttl: TTL }, (it) => assertCode(it.unlock({ holdAtLeast: TTL + 1 }), 'INVALID_ARGUMENT'));
  await assertFree(other, name);
  await locker.using(name, { ttl: TTL, shared: true }, (it) => assertCode(it.unlock({ holdAtLeast: 1 }), 'INVALID_ARGUMENT'));
  await assertFree(other, name);
});

test('a function gives its lock away', async (t) => {
  const [locker, name] = [manager(t), nameFor(t)];
  const ticket = await locker.using(name, { ttl: TTL, keepAlive: true }, (lease) => lease.detach());
  assert.equal(locker.stats().kept, 0);
  await (await locker.adopt(ticket)).unlock();
  await assertFree(locker, name);
});

test('a key that has no end is held for ever', async (t) => {
  const [locker, name] = [manager(t), nameFor(t)];
  await askAll('SET', name, 'by hand');
  const { isLocked, remaining } = await locker.inspect(name);
  assert.deepEqual([isLocked, remaining], [true, Infinity]);
  await askAll('DEL', name);
});

// Each has another value, as far as that can be.
test('each number is the one that its name says', async (t) => {
  const [locker, name] = [manager(t), nameFor(t)];
  const held = await locker.lock(name, { ttl: TTL, keepAlive: true });
  const waiter = locker.using(name, { ttl: TTL, wait: Infinity }, () => {});
  const other = `${name}:b`;
  const given = await locker.lock(other, { ttl: TTL });
  for (let i = 0; i < 2; i++) await locker.inspect(other);
  for (let i = 0; i < 4; i++) await given.confirm();
  await assertCode(given.confirm(2 * TTL), 'TOO_SHORT');
  const taken = await locker.adopt(await given.detach());
  for (let i = 0; i < 3; i++) await taken.extend();
  await taken.unlock();
  const kept = await locker.lock(other, { ttl: 1_000, keepAlive: true });
  await eventually('it is renewed', () => locker.stats().renewed > 1);
  await askAll('DEL', other);
  await eventually('it is lost', () => !kept.isKept);
  await failureOf(kept.unlock());
  await eventually('it waits', () => locker.stats().waiting === 1);
  let before;
  let after;
  // Nothing was counted between the two, because the next ones are the same.
  await eventually('they agree', () => {
    [before, after] = [after, [locker.stats(), numbersOf(locker.statsText())]];
    return before !== undefined && JSON.stringify(before[0]) === JSON.stringify(after[0]);
  });
  const [stats, told] = before;
  const kinds = { acquire: 'acquisitions', extend: 'extensions', confirm: 'confirmations', release: 'releases', adopt: 'adoptions', inspect: 'inspections' };
  const numbers = {
    detached: 'lock_detachments_total', attempts: 'lock_attempts_total', waits: 'lock_waits_total', renewed: 'lock_renewals_total',
    notRenewed: 'lock_renewal_failures_total', keptLost: 'lock_kept_lost_total', waiting: 'locks_waiting', kept: 'locks_kept',
    requests: 'server_requests_total', connections: 'server_connections_total', connectionsLost: 'server_connections_lost_total',
    connectionsFailed: 'server_connections_failed_total',
  };
  for (const [here, there] of Object.entries(kinds)) {
    for (const [outcome, count] of Object.entries(stats[here])) {
      const inText = outcome.replace(/[A-Z]/g, (it) => `_${it.toLowerCase()}`);
      assert.deepEqual([here, outcome, count], [here, outcome, told.get(`lock_${there}_total ${inText}`) ?? 0]);
    }
  }
  for (const [here, there] of Object.entries(numbers)) assert.deepEqual([here, stats[here]], [here, told.get(there) ?? 0]);
  assert.deepEqual([stats.acquire.ok, stats.confirm.ok, stats.confirm.tooShort, stats.inspect.ok, stats.detached], [3, 4, 1, 2, 1]);
  await held.unlock();
  await waiter;
});

// By the names, without the prefix, and with the outcome; those of all servers together.
function numbersOf(text) {
  const numbers = new Map();
  for (const [, name, outcome, count] of text.matchAll(/^redlock_(\w+)(?:\{(?:outcome="(\w+)"|server="[^"]*")\})? (\d+)$/gm)) {
    const key = outcome === undefined ? name : `${name} ${outcome}`;
    numbers.set(key, (numbers.get(key) ?? 0) + Number(count));
  }
  return numbers;
}

test('for how long it is held is told', async (t) => {
  const [locker, other, name] = [manager(t), manager(t), nameFor(t)];
  const { words, ...free } = await other.inspect(name);
  assert.deepEqual(free, { isLocked: false, remaining: 0, isShared: false, readers: 0, permitsTaken: 0 });
  const lease = await locker.lock(name, { ttl: 60_000 });
  const info = await other.inspect(name);
  assert.deepEqual([info.isLocked, info.isShared, info.readers], [true, false, 0]);
  assert.ok(info.remaining > 30_000 && info.remaining <= 60_000, `${info.remaining}`);
  await lease.unlock();
});

test('a lock is extended by more than is left', async (t) => {
  for (const driftFactor of [undefined, 0.2]) {
    const lease = await manager(t, SERVERS, { driftFactor }).lock(nameFor(t), { ttl: 100_000 });
    for (let i = 0; i < 20; i++) {
      const [start, before] = [performance.now(), lease.remaining];
      await lease.extendBy(50_000);
      const after = lease.remaining;
      // Some of it has passed by now.
      const least = before + 50_000 - (performance.now() - start) - 10;
      assert.ok(after >= least && after <= before + 50_100, `${before}, ${after}`);
    }
    await assertCode(lease.extendBy(1e12), 'INVALID_ARGUMENT');
    await assert.rejects(lease.extendBy(0), RangeError);
    await lease.unlock();
    await assertCode(lease.extendBy(1_000), 'LOST');
  }
});

test('what happens is counted, and told where that is wanted', async (t) => {
  const name = nameFor(t);
  const lines = [];
  const logger = (level, line) => { if (level === 'debug') lines.push(line.replace(/ \w+_ms=[\d.]+/g, '')); };
  const [locker, other] = [manager(t, SERVERS, { logger, trace: 'resources' }), manager(t)];
  assert.equal(locker.stats().acquire.ok, 0);
  const lease = await locker.lock(name, { ttl: TTL });
  await assertCode(other.lock(name, { ttl: TTL, tries: 1 }), 'TAKEN');
  await lease.extend();
  await lease.unlock();
  const stats = locker.stats();
  assert.deepEqual([stats.acquire.ok, stats.extend.ok, stats.release.ok, stats.attempts, stats.waits], [1, 1, 1, 1, 0]);
  assert.deepEqual([stats.acquireTime.count, stats.holdTime.count], [1, 1]);
  assert.ok(stats.acquireTime.sum > 0 && stats.holdTime.sum > 0);
  assert.equal(stats.roundTrip.buckets.reduce((sum, it) => sum + it), stats.roundTrip.count);
  assert.deepEqual([stats.roundTrip.bounds.length, stats.roundTrip.bounds[0]], [stats.roundTrip.buckets.length - 1, 0.025]);
  assert.equal(other.stats().acquire.taken, 1);
  assert.match(locker.statsText(), /^redlock_lock_acquisitions_total\{outcome="ok"\} 1$/m);
  const told = `resource="${name.replaceAll('"', '\\"')}"`;
  while (lines.length < 3) await new Promise((resolve) => setTimeout(resolve, 2));
  assert.deepEqual(lines, [`event=acquired ${told} attempts=1`, `event=extended ${told}`, `event=released ${told}`]);
  assert.throws(() => manager(t, SERVERS, { trace: 'all' }), { code: 'ERR_INVALID_ARG_VALUE' });
  assert.throws(() => manager(t, SERVERS, { trace: 'events', logger: { warn() {}, info() {} } }), { code: 'ERR_INVALID_ARG_TYPE' });
  await other.close();
  assert.throws(() => other.stats(), { code: 'CLOSED' });
  assert.throws(() => other.statsText(), { code: 'CLOSED' });
});

test('a lock that is retained takes more unlocks', async (t) => {
  const [locker, other, name] = [manager(t), manager(t), nameFor(t)];
  const lease = await locker.lock(name, { ttl: TTL });
  assert.equal(lease.levels, 1);
  await lease.retain();
  await lease.retain();
  assert.equal(lease.levels, 3);
  await assertCode(lease.detach(), 'INVALID_ARGUMENT');
  for (let left = 2; left > 0; left--) {
    await lease.unlock();
    assert.deepEqual([lease.levels, lease.isHeld], [left, true]);
    await assertCode(other.lock(name, { ttl: TTL, wait: 0 }), 'TAKEN');
  }
  await lease.unlock();
  assert.deepEqual([lease.levels, lease.isHeld], [0, false]);
  await assertFree(other, name);
  await assertCode(lease.retain(), 'LOST');
  await assertCode(lease.unlock(), 'LOST');
  // The end of using() leaves all levels.
  await locker.using(name, { ttl: TTL, keepAlive: true }, (it) => it.retain());
  await assertFree(other, name);
  await locker.using(name, { ttl: TTL }, async (it) => {
    await it.retain();
    await Promise.all([it.unlock(), it.unlock()]);
  });
  // One unlock has begun, and has its turn before or while the function ends.
  for (let turns = 0; turns < 30; turns++) {
    await locker.using(name, { ttl: TTL }, async (it) => {
      await it.retain();
      await it.retain();
      it.unlock();
      for (let i = 0; i < turns; i++) await undefined;
    });
  }
  await assertFree(other, name);
  // The loss of a lock is reported at every level.
  const lost = await locker.lock(name, { ttl: TTL });
  await lost.retain();
  await askAll('DEL', name);
  await assertCode(lost.extend(), 'LOST');
  for (let i = 0; i < 2; i++) await assertCode(lost.unlock(), 'LOST');
  await locker.close();
});

test('several are locked at once', async (t) => {
  const [locker, other] = [manager(t), manager(t)];
  const names = [nameFor(t), `${nameFor(t)}:b`, Buffer.from(`${nameFor(t)}:c`)];
  const lease = await locker.lock(names, { ttl: TTL, keepAlive: true });
  assert.deepEqual([lease.resource, lease.resources, lease.isHeld], [names[0], names, true]);
  for (const name of names) {
    await assertCode(other.lock(name, { ttl: TTL, wait: 0 }), 'TAKEN');
    await assert.rejects(other.lock([`${names[0]}:x`, name], { ttl: TTL, wait: 0 }), /resource 2 of 2 held/);
  }
  assert.ok(JSON.stringify(lease).includes(names[1]));
  await lease.extend(2 * TTL);
  const ticket = await lease.detach();
  const taker = await other.adopt(ticket);
  assert.deepEqual(taker.resources, names.map(String));
  taker.resources.pop();
  assert.deepEqual(taker.resources, names.map(String));
  // For what was left.
  await taker.extend();
  await taker.unlock();
  for (const name of names) await assertFree(other, name);
  const one = await locker.lock([names[0]], { ttl: TTL });
  assert.deepEqual(one.resources, [names[0]]);
  await one.unlock();
  await locker.using(names, { ttl: TTL }, (used) => assert.ok(used.isHeld));
  for (const bad of [['a', 'a'], ['a', ''], Array(129).fill('a')]) await assertCode(locker.lock(bad, { ttl: TTL }), 'INVALID_ARGUMENT');
  for (const bad of [[], ['a', 'b\0'], ['a', 5]]) await assert.rejects(locker.lock(bad, { ttl: TTL }), TypeError);
});

test('a lock changes hands', async (t) => {
  const [locker, other, name] = [manager(t), manager(t), nameFor(t)];
  const giver = await locker.lock(name, { ttl: TTL, keepAlive: true });
  const { token } = giver;
  const ticket = await giver.detach();
  assert.ok(ticket.includes(token));
  assert.deepEqual([giver.isHeld, giver.isKept, giver.token], [false, false, '']);
  await assertCode(giver.extend(), 'LOST');
  await assertCode(giver.unlock(), 'LOST');
  await assertCode(giver.detach(), 'LOST');
  assert.equal(await other.isLocked(name), true);
  const taker = await other.adopt(ticket, { keepAlive: true });
  assert.deepEqual([taker.resource, taker.token, taker.isKept], [name, token, true]);
  assert.ok(taker.remaining > 0 && taker.remaining < TTL);
  await taker.extend(2 * TTL);
  await assertCode(locker.lock(name, { ttl: TTL, wait: 0 }), 'TAKEN');
  await taker.unlock();
  await assertFree(other, name);
  await assertCode(other.adopt(ticket), 'LOST');
  for (const bad of ['', 'no ticket', ticket.slice(1), `${ticket} `]) await assertCode(other.adopt(bad), 'INVALID_ARGUMENT');
  await assert.rejects(other.adopt(`${ticket}\0`), TypeError);
  await assert.rejects(other.adopt(5), TypeError);
});

test('the library is the one that was meant', () => {
  assert.equal(version, require('../package.json').version);
});

test('each restart guard', async (t) => {
  const name = nameFor(t);
  for (const restartGuard of ['on', 'strict', 'off', 'durable', undefined]) {
    for (const times of [{}, { longestTtl: 60_000, guardCap: 300_000 }]) {
      const locker = manager(t, SERVERS, { restartGuard, ...times });
      await locker.using(name, { ttl: TTL }, (lease) => assert.equal(lease.isHeld, true));
    }
  }
});

test('servers that no Sentinel watches have no failover guard', async (t) => {
  const name = nameFor(t);
  for (const failoverGuard of [true, false, undefined]) {
    const locker = manager(t, SERVERS, { failoverGuard });
    await locker.using(name, { ttl: TTL }, (lease) => assert.equal(lease.isHeld, true));
  }
});

test('fencing tokens grow', async (t) => {
  const name = nameFor(t);
  for (const options of [{}, { fencing: false }, { fencing: undefined }]) {
    await manager(t, SERVERS, options).using(name, { ttl: TTL }, (lease) => assert.equal(lease.fencingToken, undefined));
  }
  const locker = manager(t, SERVERS, { fencing: true });
  let last = 0;
  for (let i = 0; i < 3; i++) {
    const lease = await locker.lock(name, { ttl: TTL });
    const token = lease.fencingToken;
    assert.ok(Number.isSafeInteger(token) && token > last, `${token} after ${last}`);
    await lease.extend(2 * TTL);
    assert.equal(lease.fencingToken, token);
    await lease.unlock();
    assert.equal(lease.fencingToken, undefined);
    last = token;
  }
});

test('what is taken', async (t) => {
  const [locker, other, name] = [manager(t), manager(t), nameFor(t)];
  const lease = await locker.lock(name, { ttl: TTL });
  const third = manager(t);
  await assertCode(third.lock(name, { ttl: TTL, tries: 3 }), 'TAKEN');
  assert.equal(third.stats().attempts, 3);
  for (const options of [{ wait: 0 }, { wait: 20 }, { tries: 1 }, { tries: 3 }]) {
    const error = await assertCode(other.lock(name, { ttl: TTL, ...options }), 'TAKEN');
    assert.ok(error instanceof TakenError && error instanceof Error);
    assert.deepEqual([error.name, error.status], ['TakenError', 1]);
    assert.ok(error.message.includes(SERVERS[0]), error.message);
    // The stack names the place of the request, not the place where the event came from.
    assert.match(error.stack, /lock\.test\.js/);
  }
  await lease.unlock();
});

test('what is said while a call is under way is what was so before', async (t) => {
  const [locker, name] = [manager(t), nameFor(t)];
  const lease = await locker.lock(name, { ttl: TTL });
  const { token } = lease;
  const call = lease.unlock();
  // It begins in its own turn.
  for (let i = 0; i < 5; i++) await undefined;
  // The thread of the library ends the call while this thread stays busy.
  const deadline = performance.now() + 60_000;
  while (lease.isHeld) assert.ok(lease.token === token && performance.now() < deadline);
  for (let i = 0; i < 10_000; i++) assert.deepEqual([lease.token, typeof lease.message], [token, 'string']);
  await call;
  assert.equal(lease.token, '');
});

test('a lock that ends before the program is told of it is not had', async (t) => {
  const [locker, name, ttl] = [manager(t), nameFor(t), 200];
  await locker.connect();
  const call = locker.lock(name, { ttl, wait: 0 });
  // The thread of the library takes it, and nothing of this program runs meanwhile.
  const deadline = performance.now() + 60_000;
  while (locker.stats().acquire.ok === 0) assert.ok(performance.now() < deadline);
  for (const end = performance.now() + ttl; performance.now() < end;);
  await assertCode(call, 'TOO_SLOW');
  await assertFree(locker, name);
});

test('extend takes the ttl of the lock', async (t) => {
  const [locker, name] = [manager(t), nameFor(t)];
  const lease = await locker.lock(name, { ttl: TTL });
  await lease.extend(2 * TTL);
  await askAll('PEXPIRE', name, String(TTL / 2));
  await lease.extend();
  // The remaining time on a server is the new one.
  const left = Number((await ask(SERVERS[0], 'PTTL', name)).slice(1));
  assert.ok(left > TTL / 2, String(left));
  await lease.unlock();
});

test('what is confirmed', async (t) => {
  const [locker, name] = [manager(t), nameFor(t)];
  const lease = await locker.lock(name, { ttl: TTL });
  assert.ok(await assertCode(lease.confirm(2 * TTL), 'TOO_SHORT') instanceof TooShortError);
  assert.equal(lease.isHeld, true);
  await askAll('DEL', name);
  await assertCode(lease.confirm(), 'LOST');
  await failureOf(lease.unlock());
});

test('those who wait get it in their order', async (t) => {
  const [locker, name] = [manager(t), nameFor(t)];
  const first = await locker.lock(name, { ttl: TTL });
  const order = [];
  const others = Array.from({ length: 20 }, async (_, i) => {
    const lease = await locker.lock(name, { ttl: TTL, wait: Infinity });
    order.push(i);
    await lease.unlock();
  });
  await first.unlock();
  await Promise.all(others);
  assert.deepEqual(order, Array.from({ length: 20 }, (_, i) => i));
  await assertFree(locker, name);
});

// Each waits again before the next is let go, so none can overtake another by luck.
test('those who wait get it in their order and equally often', async (t) => {
  const [locker, name, waiters, rounds] = [manager(t), nameFor(t), 40, 10];
  const first = await locker.lock(name, { ttl: TTL });
  const order = [];
  const others = Array.from({ length: waiters }, async (_, i) => {
    for (let round = 0; round < rounds; round++) {
      await locker.using(name, { ttl: TTL, wait: Infinity }, async () => {
        order.push(i);
        const waiting = Math.min(waiters * rounds - order.length, waiters - 1);
        await eventually('all others wait', () => locker.stats().waiting === waiting);
      });
    }
  });
  await eventually('they wait', () => locker.stats().waiting === waiters);
  await first.unlock();
  await Promise.all(others);
  assert.deepEqual(order, Array.from({ length: waiters * rounds }, (_, i) => i % waiters));
  await assertFree(locker, name);
});

test('who waits is in the queue on the servers, unless it is not to be woken', async (t) => {
  const [locker, name] = [manager(t), nameFor(t)];
  const lease = await locker.lock(name, { ttl: TTL });
  for (const waking of [true, undefined, false]) {
    const [waiter, controller] = [manager(t, SERVERS, waking === undefined ? {} : { waking }), new AbortController()];
    const call = failureOf(waiter.lock(name, { ttl: TTL, wait: Infinity, signal: controller.signal }));
    if (waking === false) {
      await eventually('it asks now and then', () => waiter.stats().attempts > 2);
      assert.equal(await keys(`${name}:w`), 0);
    } else {
      await eventually('it is in the queue', async () => await keys(`${name}:w`) >= QUORUM);
    }
    controller.abort();
    await call;
    await askAll('DEL', `${name}:w`);
  }
  await lease.unlock();
  await assertFree(locker, name);
});

test('one manager hands over to another', async (t) => {
  const [locker, other, name] = [manager(t), manager(t), nameFor(t)];
  let holders = 0;
  const work = async (who) => {
    for (let i = 0; i < 10; i++) {
      const lease = await who.lock(name, { ttl: TTL, wait: Infinity });
      assert.equal(++holders, 1);
      await new Promise(setImmediate);
      holders--;
      await lease.unlock();
    }
  };
  await Promise.all([work(locker), work(other), work(locker), work(other)]);
  await assertFree(locker, name);
});

test('calls on one lease come one after the other', async (t) => {
  const [locker, name] = [manager(t), nameFor(t)];
  const lease = await locker.lock(name, { ttl: TTL });
  const calls = [lease.extend(), lease.confirm(), lease.confirm(2 * TTL), lease.extend(3 * TTL), lease.unlock(), lease.confirm()];
  const ends = await Promise.allSettled(calls);
  assert.deepEqual(ends.map((it) => it.reason?.code), [undefined, undefined, 'TOO_SHORT', undefined, undefined, 'LOST']);
  await assertFree(locker, name);
});

test('names are bytes', async (t) => {
  const [locker, name] = [manager(t), nameFor(t)];
  const names = [`${name}\0a`, `${name}\0b`, Buffer.from([...Buffer.from(name), 0, 255]), new Uint8Array(Buffer.from(`${name}ü€`)), name];
  const leases = await Promise.all(names.map((it) => locker.lock(it, { ttl: TTL, wait: 0 })));
  for (const it of names) assert.ok(await keys(it) >= QUORUM);
  await assertCode(locker.lock(Buffer.from(`${name}\0a`), { ttl: TTL, wait: 0 }), 'TAKEN');
  await assertCode(locker.lock(`${name}ü€`, { ttl: TTL, wait: 0 }), 'TAKEN');
  assert.equal(leases[2].resource, names[2]);
  await Promise.all(leases.map((lease) => lease.unlock()));
  for (const it of names) assert.equal(await keys(it), 0);
});

test('a function that uses a lock', async (t) => {
  const [locker, name] = [manager(t), nameFor(t)];
  const answer = await locker.using(name, { ttl: TTL }, async (lease) => {
    assert.equal(lease.isHeld, true);
    return 'done';
  });
  assert.equal(answer, 'done');
  assert.equal(await keys(name), 0);
  const wrong = new Error('of its own');
  assert.equal(await failureOf(locker.using(name, { ttl: TTL }, () => { throw wrong; })), wrong);
  assert.equal(await failureOf(locker.using(name, { ttl: TTL }, async (lease) => { await lease.unlock(); throw wrong; })), wrong);
  await locker.using(name, { ttl: TTL }, (lease) => lease.unlock());
  await assertCode(locker.using(name, { ttl: TTL }, () => askAll('DEL', name)), 'LOST');
  assert.equal(await failureOf(locker.using(name, { ttl: TTL }, async () => { await askAll('DEL', name); throw wrong; })), wrong);
  await assertFree(locker, name);
});

function usingSyntax() {
  try {
    return new Function('locker', 'name', 'ttl', 'seen', `return (async () => {
      await using lease = await locker.lock(name, { ttl });
      seen.push(lease.isHeld);
    })()`);
  } catch {
    return undefined;
  }
}

// Node.js has the syntax from version 24 on.
const isTooOld = Number(process.versions.node.split('.')[0]) < 24 && usingSyntax() === undefined;

test('await using', { skip: isTooOld && 'this version of Node.js has no such syntax' }, async (t) => {
  const [locker, name, seen] = [manager(t), nameFor(t), []];
  await usingSyntax()(locker, name, TTL, seen);
  assert.deepEqual(seen, [true]);
  assert.equal(await keys(name), 0);
});

test('what await using calls', { skip: Symbol.asyncDispose === undefined && 'this version of Node.js has no such symbol' }, async (t) => {
  const [locker, name] = [manager(t), nameFor(t)];
  let lease = await locker.lock(name, { ttl: TTL });
  await lease[Symbol.asyncDispose]();
  assert.equal(lease.isHeld, false);
  await lease[Symbol.asyncDispose]();
  lease = await locker.lock(name, { ttl: TTL });
  await askAll('DEL', name);
  await assertCode(lease[Symbol.asyncDispose](), 'LOST');
  await locker[Symbol.asyncDispose]();
  assert.equal(locker.isClosed, true);
});

test('without servers', async (t) => {
  // The ports are closed.
  const locker = manager(t, ['127.0.0.1:1', '127.0.0.1:2', '127.0.0.1:3']);
  for (const begin of [() => locker.lock('x', { ttl: TTL, wait: 0 }), () => locker.isLocked('x'), () => locker.connect()]) {
    const error = await assertCode(begin(), 'UNREACHABLE');
    assert.match(error.message, /127\.0\.0\.1:1\b/);
  }
});

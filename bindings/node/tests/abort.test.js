'use strict';

const assert = require('node:assert/strict');
const { getEventListeners } = require('node:events');
const { test } = require('node:test');
const {
  QUORUM, SERVERS, TTL, assertEndsWell, assertFree, eventually, failureOf, keys, manager, nameFor, program, silentServers, waysToServers,
} = require('./support');

const turn = () => new Promise(setImmediate);

test('before it begins', async (t) => {
  const [locker, name, reason] = [manager(t), nameFor(t), new Error('enough')];
  assert.equal(await failureOf(locker.lock(name, { ttl: TTL, signal: AbortSignal.abort(reason) })), reason);
  assert.equal(await keys(name), 0);
});

// As those of other implementations than that of Node.js.
class PlainSignal {
  aborted = false;
  #listeners = new Set();

  addEventListener(_, listener) {
    this.#listeners.add(listener);
  }

  removeEventListener(_, listener) {
    this.#listeners.delete(listener);
  }

  abort() {
    this.aborted = true;
    this.#listeners.forEach((it) => it());
  }
}

test('a signal that has no reason', async (t) => {
  const [locker, other, name] = [manager(t), manager(t), nameFor(t)];
  const lease = await other.lock(name, { ttl: TTL });
  const signals = Array.from({ length: 2 }, () => new PlainSignal());
  const calls = signals.map((signal) => failureOf(locker.lock(name, { ttl: TTL, wait: Infinity, signal })));
  await turn();
  signals.forEach((it) => it.abort());
  const [signal] = signals;
  calls.push(...[locker.lock(name, { ttl: TTL, signal }), locker.isLocked(name, { signal }), lease.extend(TTL, { signal })].map(failureOf));
  for (const call of calls) assert.equal((await call)?.name, 'AbortError');
  // A reason may be anything else.
  for (const reason of [null, 0, '', false]) {
    assert.equal(await failureOf(locker.lock(name, { ttl: TTL, signal: AbortSignal.abort(reason) })), reason);
  }
  await lease.unlock();
  await assertFree(locker, name);
});

test('while somebody else has it', async (t) => {
  const [locker, other, name] = [manager(t), manager(t), nameFor(t)];
  const lease = await other.lock(name, { ttl: TTL });
  const controllers = Array.from({ length: 3 }, () => new AbortController());
  // The first of them asks the servers, and the others are behind it.
  const calls = controllers.map(({ signal }) => failureOf(locker.lock(name, { ttl: TTL, wait: Infinity, signal })));
  await turn();
  for (const i of [1, 0, 2]) {
    // Whatever the reason is.
    controllers[i].abort(`enough of ${i}`);
    assert.equal(await calls[i], `enough of ${i}`);
  }
  assert.equal(lease.isHeld, true);
  await lease.confirm();
  await lease.unlock();
  await assertFree(locker, name);
});

test('one of those who wait, and the others get their turn', async (t) => {
  const [locker, name] = [manager(t), nameFor(t)];
  const lease = await locker.lock(name, { ttl: TTL });
  const controllers = Array.from({ length: 9 }, () => new AbortController());
  const calls = controllers.map(async ({ signal }, i) => {
    const own = await locker.lock(name, { ttl: TTL, wait: Infinity, signal });
    await own.unlock();
    return i;
  });
  const ends = Promise.allSettled(calls);
  [0, 4, 8].forEach((i) => controllers[i].abort(i));
  await lease.unlock();
  assert.deepEqual((await ends).map((it) => it.value ?? `not ${it.reason}`), ['not 0', 1, 2, 3, 'not 4', 5, 6, 7, 'not 8']);
  await assertFree(locker, name);
});

test('while nobody answers', async (t) => {
  const { addresses, connected } = await silentServers(t);
  const locker = manager(t, addresses, { connectTimeout: 3_600_000, replyTimeout: 3_600_000 });
  const controller = new AbortController();
  const call = failureOf(locker.lock(nameFor(t), { ttl: TTL, wait: Infinity, signal: controller.signal }));
  await eventually('it is connected', () => connected.length >= QUORUM);
  controller.abort();
  assert.equal((await call).name, 'AbortError');
});

test('calls on a lock that is held', async (t) => {
  const { addresses, stop, go } = await waysToServers(t);
  const [locker, name] = [manager(t, addresses), nameFor(t)];
  const lease = await locker.lock(name, { ttl: TTL });
  const controllers = Array.from({ length: 4 }, () => new AbortController());
  stop();
  const begin = [
    (signal) => lease.extend(2 * TTL, { signal }), (signal) => lease.confirm(0, { signal }), (signal) => lease.extend(undefined, { signal }),
    (signal) => lease.confirm(undefined, { signal }),
  ];
  // The first is in progress, and the others are behind it.
  const calls = controllers.map(({ signal }, i) => failureOf(begin[i](signal)));
  await turn();
  for (const i of [1, 0, 3, 2]) {
    controllers[i].abort(`enough of ${i}`);
    assert.equal(await calls[i], `enough of ${i}`);
  }
  const aborted = AbortSignal.abort('before');
  assert.equal(await failureOf(lease.extend(TTL, { signal: aborted })), 'before');
  assert.equal(await failureOf(lease.confirm(0, { signal: aborted })), 'before');
  go();
  // It is still held.
  await lease.confirm();
  await lease.extend(TTL, { signal: new AbortController().signal });
  await lease.unlock();
  await assertFree(manager(t), name);
});

test('calls that only ask', async (t) => {
  const { addresses } = await silentServers(t);
  // close() waits for them this long.
  const locker = manager(t, addresses, { connectTimeout: 500, replyTimeout: 500 });
  const [first, second, third] = Array.from({ length: 3 }, () => new AbortController());
  const calls = [
    locker.isLocked('x', { signal: first.signal }), locker.connect(0, { signal: second.signal }), locker.isLocked('y', { signal: third.signal }),
  ].map(failureOf);
  await turn();
  [second, first, third].forEach((it, i) => it.abort(i));
  assert.deepEqual(await Promise.all(calls), [1, 0, 2]);
  assert.equal(await failureOf(locker.isLocked('x', { signal: AbortSignal.abort('before') })), 'before');
  assert.equal(await failureOf(locker.connect(0, { signal: AbortSignal.abort('before') })), 'before');
  // They have harmed no later call.
  assert.equal((await failureOf(locker.isLocked('x'))).code, 'UNREACHABLE');
});

test('one signal for many calls', async (t) => {
  const [locker, name] = [manager(t), nameFor(t)];
  const lease = await locker.lock(name, { ttl: TTL });
  // Node.js prints a warning on the standard error for many listeners on one signal.
  await assertEndsWell(program(t, `
    const [manager, controller] = [newManager(), new AbortController()];
    const take = () => manager.lock(NAME, { ttl: TTL, wait: Infinity, signal: controller.signal });
    const calls = Promise.allSettled(Array.from({ length: 100 }, take));
    await (await manager.lock(NAME + 1, { ttl: TTL, signal: controller.signal })).unlock();
    controller.abort('enough');
    console.log(new Set((await calls).map((it) => it.reason)));
    await turn();`, { name }), "Set(1) { 'enough' }\n");
  await lease.unlock();
  await assertFree(locker, name);
});

test('nothing listens to a signal whose calls are over', async (t) => {
  const [locker, name, controller] = [manager(t), nameFor(t), new AbortController()];
  const { signal } = controller;
  for (let i = 0; i < 3; i++) {
    const leases = await Promise.all([1, 2, 3].map((it) => locker.lock(name + it, { ttl: TTL, signal })));
    await Promise.all(leases.map((lease) => lease.confirm(0, { signal })));
    await Promise.all(leases.map((lease) => lease.unlock()));
    await locker.isLocked(name, { signal });
    assert.equal(getEventListeners(signal, 'abort').length, 0);
  }
  // It still ends later calls.
  const lease = await locker.lock(name, { ttl: TTL });
  const call = failureOf(locker.lock(name, { ttl: TTL, wait: Infinity, signal }));
  await turn();
  controller.abort('enough');
  assert.equal(await call, 'enough');
  await lease.unlock();
});

test('by a time', async (t) => {
  const [locker, other, name] = [manager(t), manager(t), nameFor(t)];
  const lease = await other.lock(name, { ttl: TTL });
  const error = await failureOf(locker.lock(name, { ttl: TTL, wait: Infinity, signal: AbortSignal.timeout(20) }));
  assert.equal(error.name, 'TimeoutError');
  await lease.unlock();
});

test('at any moment', async (t) => {
  const [locker, name] = [manager(t), nameFor(t)];
  const seen = { had: 0, aborted: 0 };
  for (let i = 0; i < 100; i++) {
    const controller = new AbortController();
    const call = locker.lock(name, { ttl: TTL, wait: Infinity, signal: controller.signal });
    const end = call.then(async (lease) => {
      seen.had++;
      await lease.unlock();
    }, (error) => {
      assert.equal(error, controller.signal.reason);
      seen.aborted++;
    });
    for (let turns = i % 40; turns > 0; turns--) await turn();
    controller.abort();
    await end;
    // Remains of aborted calls do not keep the next caller out.
    if (i % 20 === 0) await (await locker.lock(name, { ttl: TTL, wait: Infinity })).unlock();
  }
  assert.ok(seen.aborted > 0);
  await assertFree(locker, name);
});

test('when it is had already', async (t) => {
  const [locker, name, controller] = [manager(t), nameFor(t), new AbortController()];
  const lease = await locker.lock(name, { ttl: TTL, signal: controller.signal });
  controller.abort();
  await lease.confirm();
  await lease.unlock();
});

test('while the password is asked for', async (t) => {
  const controller = new AbortController();
  const locker = manager(t, SERVERS, { password: () => new Promise(() => {}) });
  const call = failureOf(locker.lock(nameFor(t), { ttl: TTL, signal: controller.signal }));
  await turn();
  controller.abort('enough');
  assert.equal(await call, 'enough');
});

'use strict';

const assert = require('node:assert/strict');
const { test } = require('node:test');
const util = require('node:util');
const v8 = require('node:v8');
const { QUORUM, SERVERS, TTL, assertFree, eventually, failureOf, manager, nameFor } = require('./support');

// Of the servers of the tests only the second one may be down. The last of these ports is closed.
const MISSPELT = '127.0.0.1:1';
const TWO_OF_THREE = [SERVERS[0], SERVERS[2], MISSPELT];
const PASSWORD = 's3same-0pen';

test('a server that is not there is named', async (t) => {
  const [locker, name] = [manager(t, TWO_OF_THREE), nameFor(t)];
  assert.ok((await locker.connect()).includes(MISSPELT));
  const lease = await locker.lock(name, { ttl: TTL });
  assert.ok(lease.message.includes(MISSPELT));
  await lease.unlock();
});

test('what is known of each server is told', async (t) => {
  const locker = manager(t, TWO_OF_THREE);
  await locker.connect();
  const [there, , absent] = locker.servers();
  assert.deepEqual([there.name, there.isConnected, there.votes, there.words], [SERVERS[0], true, true, '']);
  assert.deepEqual([there.role, there.runId.length], ['primary', 40]);
  assert.ok(there.version && there.roundTrip >= 0);
  assert.ok(Math.abs(there.clockOffset) < 3600e3); // the same machine's
  assert.deepEqual([absent.name, absent.isConnected, absent.votes], [MISSPELT, false, false]);
  assert.deepEqual([absent.role, absent.runId, absent.roundTrip, absent.clockOffset], ['', '', undefined, undefined]);
  assert.ok(absent.words);
  await locker.close();
  assert.throws(() => locker.servers());
});

test('nothing is said where all are there', async (t) => {
  const [locker, name] = [manager(t, [SERVERS[0]]), nameFor(t)];
  assert.equal(await locker.connect(), '');
  const lease = await locker.lock(name, { ttl: TTL });
  assert.equal(lease.message, '');
  await lease.unlock();
});

function allThatShows(thing) {
  const ways = [{}, { showHidden: true, depth: 9, getters: true }, { customInspect: false, showHidden: true, depth: 9, getters: false }];
  const shown = ways.map((way) => util.inspect(thing, way));
  shown.push(util.format('%s %o %j', thing, thing, thing), JSON.stringify(thing), JSON.stringify(Object.entries(thing)));
  try {
    shown.push(v8.serialize(thing).toString('latin1'));
  } catch (error) {
    shown.push(util.inspect(error));
  }
  return shown;
}

test('neither a token nor a password shows', async (t) => {
  const name = nameFor(t);
  const lines = [];
  const logger = (...line) => lines.push(line.join(' '));
  const guarded = manager(t, TWO_OF_THREE, { username: 'u', password: PASSWORD, logger });
  const byUrl = manager(t, TWO_OF_THREE.map((server) => `redis://u:${PASSWORD}@${server}`), { logger });
  const locker = manager(t);
  const lease = await locker.lock(name, { ttl: TTL, keepAlive: true });
  const secrets = [PASSWORD, lease.token];
  assert.equal(secrets[1].length, 40);
  const shown = [guarded, byUrl, locker, lease, lease.signal].flatMap(allThatShows);
  const errors = await Promise.all([
    failureOf(guarded.lock(name, { ttl: TTL, wait: 0 })), failureOf(byUrl.lock(name, { ttl: TTL, wait: 0 })),
    failureOf(locker.lock(name, { ttl: TTL, wait: 0 })), failureOf(lease.extend(0)), failureOf(lease.confirm(2 * TTL)),
    failureOf((async () => manager(t, [`redis://u:${PASSWORD}@host:x`]))()),
    failureOf((async () => manager(t, [`redis://u:${PASSWORD}\0@host:1`]))()),
    failureOf((async () => manager(t, SERVERS, { password: `${PASSWORD}\0` }))()),
    failureOf((async () => manager(t, SERVERS, { logger: PASSWORD }))()),
    failureOf((async () => manager(t, SERVERS, PASSWORD))()),
  ]);
  shown.push(...errors.flatMap((error) => [util.inspect(error, { showHidden: true }), String(error)]), lease.message);
  await eventually('something was logged', () => lines.length > 0);
  shown.push(...lines);
  for (const text of shown.filter((it) => it !== undefined)) {
    for (const secret of secrets) assert.ok(!text.includes(secret), 'a secret shows');
  }
  assert.ok(util.inspect(lease).includes(name));
  await lease.unlock();
});

test('a logger that is a function', async (t) => {
  const [name, lines] = [nameFor(t), []];
  const locker = manager(t, TWO_OF_THREE, { logger: (...line) => lines.push(line) });
  await (await locker.lock(name, { ttl: TTL })).unlock();
  await eventually('it is told', () => lines.some(([level, line]) => level === 'warn' && line.includes(MISSPELT)));
  assert.ok(lines.every(([level]) => level === 'warn' || level === 'info'));
});

test('a logger that is an object', async (t) => {
  const lines = [];
  const logger = { prefix: 'redlock:', warn(line) { lines.push(`${this.prefix} ${line}`); }, info() {} };
  const locker = manager(t, TWO_OF_THREE, { logger });
  await locker.connect();
  await eventually('it is told', () => lines.some((line) => line.startsWith('redlock:') && line.includes(MISSPELT)));
});

test('a logger may use the manager', async (t) => {
  const [name, answers] = [nameFor(t), []];
  const locker = manager(t, TWO_OF_THREE, { logger: () => answers.push(locker.isLocked(name)) });
  await locker.connect();
  await eventually('it is told', () => answers.length > 0);
  assert.equal(await answers[0], false);
});

test('a long message is told as a whole', async (t) => {
  const servers = Array.from({ length: 60 }, (_, i) => `unix:///nowhere/${'x'.repeat(70)}/${i}.sock`);
  const { message } = await failureOf(manager(t, servers).lock('x', { ttl: TTL, wait: 0 }));
  assert.ok(message.length > 4096, message);
  for (const server of servers) assert.ok(message.includes(server.slice('unix://'.length)), message);
});

test('errors of a call are those of its own', async (t) => {
  const [locker, name] = [manager(t, TWO_OF_THREE), nameFor(t)];
  const nobody = manager(t, ['127.0.0.1:1', '127.0.0.1:2', '127.0.0.1:3']);
  const leases = await Promise.all(Array.from({ length: 20 }, (_, i) => locker.lock(`${name}:${i}`, { ttl: TTL })));
  const errors = await Promise.all(leases.map((_, i) => failureOf((i % 2 ? locker : nobody).lock(`${name}:${i}`, { ttl: TTL, wait: 0 }))));
  assert.deepEqual(errors.map((error) => error.code), errors.map((_, i) => (i % 2 ? 'TAKEN' : 'UNREACHABLE')));
  assert.ok(errors.every(({ message }, i) => message.includes(i % 2 ? 'held' : 'not connected')), String(errors));
  await Promise.all(leases.map((lease) => lease.unlock()));
  for (let i = 0; i < 20; i++) await assertFree(locker, `${name}:${i}`);
  assert.ok(QUORUM > 1);
});

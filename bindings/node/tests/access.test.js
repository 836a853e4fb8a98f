'use strict';

const assert = require('node:assert/strict');
const { randomBytes } = require('node:crypto');
const { test } = require('node:test');
const { SERVERS, TTL, ask, askAll, assertCode, assertFree, eventually, failureOf, manager, nameFor } = require('./support');

async function newUser(t, password) {
  const user = `user-${randomBytes(6).toString('hex')}`;
  await letIn(user, password);
  t.after(() => askAll('ACL', 'DELUSER', user));
  return user;
}

function letIn(user, password) {
  return askAll('ACL', 'SETUSER', user, 'reset', 'on', `>${password}`, '~node:*', '+@all');
}

async function assertLocks(locker, name, options = {}) {
  await (await locker.lock(name, { ttl: TTL, ...options })).unlock();
}

test('a user and a password', async (t) => {
  const [name, username] = [nameFor(t), await newUser(t, 'first')];
  const locker = manager(t, SERVERS, { username, password: 'first' });
  await assertLocks(locker, name);
  // It may lock nothing else, so the log-in has taken effect.
  await failureOf(locker.lock(`other:${name}`, { ttl: TTL, wait: 0 }));
  const wrong = manager(t, SERVERS, { username, password: 'wrong-secret' });
  const error = await assertCode(wrong.lock(name, { ttl: TTL, wait: 0 }), 'UNREACHABLE');
  assert.doesNotMatch(error.message, /secret/);
  await assertCode(wrong.connect(), 'UNREACHABLE');
  await assertFree(locker, name);
});

test('a logger is told of a lost server while a lock is only kept', async (t) => {
  const [name, username, lines] = [nameFor(t), await newUser(t, 'first'), []];
  const logger = (level, line) => lines.push(`${level} ${line}`);
  const locker = manager(t, SERVERS, { username, password: 'first', logger });
  // It is extended every second.
  const lease = await locker.lock(name, { ttl: 3000, keepAlive: true });
  lines.length = 0;
  await askAll('CLIENT', 'KILL', 'USER', username);
  // No call is made meanwhile.
  await eventually('it is told', () => lines.some((line) => /^warn .*connection lost/.test(line)));
  // While servers come back, an unlock may have to be repeated, or a late release has done it.
  await eventually('it is unlocked', () => lease.unlock().then(() => true, ({ code }) => code === 'LOST' || assert.equal(code, 'UNREACHABLE')));
  await assertFree(locker, name);
});

test('variables of the environment', async (t) => {
  const [name, username] = [nameFor(t), await newUser(t, 'first')];
  Object.assign(process.env, { NODE_TEST_USER: username, NODE_TEST_PASSWORD: 'first' });
  const locker = manager(t, SERVERS, { credentialsFromEnv: { username: 'NODE_TEST_USER', password: 'NODE_TEST_PASSWORD' } });
  await assertLocks(locker, name);
  await failureOf(locker.lock(`other:${name}`, { ttl: TTL, wait: 0 }));
});

for (const [kind, answer] of [['at once', (it) => it], ['later', async (it) => it]]) {
  test(`a password that is told ${kind} and changes`, async (t) => {
    const [name, username] = [nameFor(t), await newUser(t, 'first')];
    let [password, asked] = ['first', 0];
    const locker = manager(t, SERVERS, { username, password: () => { asked++; return answer(password); } });
    await Promise.all([assertLocks(locker, name), assertLocks(locker, name), locker.isLocked(name)]);
    assert.equal(asked, 1);
    password = 'second';
    await letIn(username, password);
    await askAll('CLIENT', 'KILL', 'USER', username);
    await eventually('it asks again', () => locker.lock(name, { ttl: TTL, wait: 0 }).then((lease) => lease.unlock()).then(() => true, () => false));
    assert.ok(asked > 1);
    await assertFree(locker, name);
  });
}

test('who does not know the password', async (t) => {
  const [name, reason] = [nameFor(t), new Error('no vault')];
  const locker = manager(t, SERVERS, { password: () => { throw reason; } });
  assert.equal(await failureOf(locker.lock(name, { ttl: TTL })), reason);
  assert.equal(await failureOf(locker.connect()), reason);
  const odd = manager(t, SERVERS, { password: async () => 5 });
  assert.match((await failureOf(odd.isLocked(name))).message, /password\(\)/);
});

test('who does not know the new password is asked again', async (t) => {
  const [name, username, lines] = [nameFor(t), await newUser(t, 'second'), []];
  const answers = [() => 'first', () => { throw new EvalError('the secret of the vault'); }, async () => 5, () => 'second'];
  const locker = manager(t, SERVERS, { username, password: () => answers.shift()(), logger: (...line) => lines.push(line) });
  await eventually('it is let in', () => assertLocks(locker, name, { wait: 0 }).then(() => true, (error) => assert.equal(error.code, 'UNREACHABLE')));
  assert.equal(answers.length, 0);
  const told = ['EvalError', 'TypeError'].map((it) => ['warn', `the password function failed, the old password stays: ${it}`]);
  assert.deepEqual(lines.filter(([, line]) => line.startsWith('the password')), told);
  await assertFree(locker, name);
});

test('who gives up in the moment in which the password is told', async (t) => {
  const [other, name, username] = [manager(t), nameFor(t), await newUser(t, 'first')];
  const lease = await other.lock(name, { ttl: TTL });
  for (let turns = 0; turns < 20; turns++) {
    const controller = new AbortController();
    const give = async () => {
      for (let i = 0; i < turns; i++) await undefined;
      controller.abort('enough');
    };
    const locker = manager(t, SERVERS, { username, password: () => { give(); return 'first'; } });
    assert.equal(await failureOf(locker.lock(name, { ttl: TTL, wait: Infinity, signal: controller.signal })), 'enough');
    await locker.close();
  }
  await lease.unlock();
  await assertFree(other, name);
});

test('after a call in which a server could not take part, the password is asked for again', async (t) => {
  const [name, username] = [nameFor(t), await newUser(t, 'first')];
  let asked = 0;
  // The last of these ports is closed.
  const servers = [SERVERS[0], SERVERS[2], '127.0.0.1:1'];
  const locker = manager(t, servers, { username, password: () => { asked++; return 'first'; } });
  await assertLocks(locker, name);
  assert.equal(asked, 1);
  await eventually('it asks again', () => assertLocks(locker, name).then(() => asked > 1));
  await assertFree(locker, name);
});

test('a password is asked for once a second at most', async (t) => {
  const [name, username] = [nameFor(t), await newUser(t, 'first')];
  let asked = 0;
  const start = performance.now();
  const locker = manager(t, SERVERS, { username, password: () => { asked++; return 'wrong'; } });
  for (let i = 0; i < 200; i++) await assertCode(locker.lock(name, { ttl: TTL, wait: 0 }), 'UNREACHABLE');
  const seconds = (performance.now() - start) / 1000;
  assert.ok(asked <= 1 + seconds, `${asked} times in ${seconds} s`);
});

test('an answer that comes after another log-in was set is not used', async (t) => {
  const [name, username] = [nameFor(t), await newUser(t, 'first')];
  let answer;
  const locker = manager(t, SERVERS, { username, password: () => new Promise((resolve) => { answer = resolve; }) });
  const early = assertLocks(locker, name);
  await eventually('it is asked', () => answer !== undefined);
  locker.setCredentials(username, 'first');
  answer('wrong');
  await early;
  // It logs in again.
  await askAll('CLIENT', 'KILL', 'USER', username);
  await eventually('it is let in', () => assertLocks(locker, name, { wait: 0 }).then(() => true, (error) => assert.equal(error.code, 'UNREACHABLE')));
  await assertFree(locker, name);
});

test('a failure that comes after another log-in was set does not count', async (t) => {
  const [name, username] = [nameFor(t), await newUser(t, 'first')];
  let [give, asked] = [undefined, 0];
  const answers = [() => 'first', () => new Promise((resolve, reject) => { give = reject; })];
  const servers = [SERVERS[0], SERVERS[2], '127.0.0.1:1'];
  const locker = manager(t, servers, { username, password: () => answers.shift()() });
  const calls = [];
  await eventually('it is asked again', () => {
    calls.push(assertLocks(locker, name, { wait: Infinity }));
    return give !== undefined;
  });
  locker.setCredentials(username, () => { asked++; return 'first'; });
  give(new Error('no vault'));
  await Promise.all(calls);
  await assertLocks(locker, name);
  assert.ok(asked > 0);
  await assertFree(locker, name);
});

test('another log-in is set while the password is asked for', async (t) => {
  const [name, username] = [nameFor(t), await newUser(t, 'first')];
  const answers = [];
  const locker = manager(t, SERVERS, { username, password: () => new Promise((resolve) => answers.push(resolve)) });
  const early = assertLocks(locker, name);
  await eventually('it is asked', () => answers.length === 1);
  locker.setCredentials(username, async () => 'first');
  // It does not wait for an answer that is no longer needed.
  await assertLocks(locker, name);
  answers[0]('wrong');
  await early;
  await assertFree(locker, name);
});

test('a log-in that is set later', async (t) => {
  const [name, username] = [nameFor(t), await newUser(t, 'first')];
  const locker = manager(t, SERVERS, { username, password: 'wrong' });
  await assertCode(locker.lock(name, { ttl: TTL, wait: 0 }), 'UNREACHABLE');
  locker.setCredentials(username, 'first');
  await eventually('it is let in', () => assertLocks(locker, name, { wait: 0 }).then(() => true, () => false));
  assert.throws(() => locker.setCredentials(username, 5), TypeError);
  assert.throws(() => locker.setCredentials('', 'x'), { code: 'INVALID_ARGUMENT' });
});

// rediss:// URLs of servers that require certificates from their clients, and the necessary files. Without them
// the library has no TLS.
const URLS = (process.env.REDLOCK_TEST_TLS_SERVERS ?? '').split(',').filter((url) => url !== '');
const [ca, certificate, key] = ['CA', 'CERTIFICATE', 'KEY'].map((it) => process.env[`REDLOCK_TEST_TLS_${it}`]);

test('a library without TLS says so', { skip: URLS.length > 0 }, async (t) => {
  for (const tls of [{ serverName: 'localhost' }, { insecureSkipVerify: true }]) {
    assert.throws(() => manager(t, SERVERS, { tls }), { code: 'INVALID_ARGUMENT', message: /TLS/ });
  }
});

test('a lock over TLS', { skip: URLS.length === 0 }, async (t) => {
  const name = nameFor(t);
  const other = manager(t, URLS, { tls: { ca, certificate, key, serverName: 'localhost' } });
  for (const servers of [URLS, URLS.map((url) => url.replace('rediss://', ''))]) {
    const locker = manager(t, servers, { tls: { ca, certificate, key } });
    await locker.using(name, { ttl: TTL }, async (lease) => {
      await lease.extend();
      await lease.confirm();
      await assertCode(other.lock(name, { ttl: TTL, wait: 0 }), 'TAKEN');
    });
    assert.equal(await other.isLocked(name), false);
  }
});

test('a crowd over TLS', { skip: URLS.length === 0 }, async (t) => {
  const [locker, name] = [manager(t, URLS, { tls: { ca, certificate, key } }), nameFor(t)];
  let count = 0;
  await Promise.all(Array.from({ length: 50 }, () => locker.using(name, { ttl: TTL, wait: Infinity }, () => { count++; })));
  assert.equal(count, 50);
});

test('who is not trusted', { skip: URLS.length === 0 }, async (t) => {
  const name = nameFor(t);
  // The system does not know this authority. The servers require a client certificate. Their certificates have
  // another name.
  for (const tls of [true, {}, { ca }, { ca, certificate, key, serverName: 'another.example' }]) {
    await assertCode(manager(t, URLS, { tls }).lock(name, { ttl: TTL, wait: 0 }), 'UNREACHABLE');
  }
  await assertLocks(manager(t, URLS, { tls: { certificate, key, insecureSkipVerify: true } }), name);
  for (const tls of [{ ca: '/nowhere/ca.pem' }, { ca: key }, { certificate }, { key }, { certificate, key: ca }, { serverName: '' }]) {
    assert.throws(() => manager(t, URLS, { tls }), { code: 'INVALID_ARGUMENT' });
  }
  assert.equal(await ask(SERVERS[0], 'EXISTS', name), ':0');
});

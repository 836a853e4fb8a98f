'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { test } = require('node:test');
const { QUORUM, SERVERS, TTL, askAll, assertEndsWell, assertFree, eventually, keys, manager, nameFor, program, version } = require('./support');

test('a process that does nothing more ends by itself', async (t) => {
  const [locker, name] = [manager(t), nameFor(t)];
  // The manager is open, and a lock is held.
  await assertEndsWell(program(t, `
    const manager = newManager();
    await manager.connect();
    globalThis.lease = await manager.lock(NAME, { ttl: TTL });
    await globalThis.lease.confirm();
    console.log('the end');`, { name }), 'the end\n');
  assert.ok(await keys(name) >= QUORUM);
  await askAll('DEL', name);
  await assertFree(locker, name);
});

test('a process lives while a call is under way or a lock is kept', async (t) => {
  const [locker, name] = [manager(t), nameFor(t)];
  const lease = await locker.lock(name, { ttl: TTL });
  const running = program(t, `
    const manager = newManager();
    process.on('exit', () => console.log('the end'));
    process.stdin.unref();
    console.log('it waits');
    const lease = await manager.lock(NAME, { ttl: TTL, wait: Infinity, keepAlive: true });
    console.log('it has it');
    process.stdin.on('data', () => lease.unlock().then(() => console.log('it is unlocked')));
    process.stdin.unref();`, { name });
  await running.says('it waits');
  await lease.unlock();
  await running.says('it has it');
  // Only the kept lock holds the process.
  assert.ok(await keys(name) >= QUORUM);
  running.child.stdin.write('x');
  const ended = await running.ended;
  assert.deepEqual(ended, { code: 0, signal: null, stdout: 'it waits\nit has it\nit is unlocked\nthe end\n', stderr: '' });
  await assertFree(locker, name);
});

test('a process ends when a lock that was kept in two ways is unlocked', async (t) => {
  const [locker, name] = [manager(t), nameFor(t)];
  await assertEndsWell(program(t, `
    const lease = await newManager().lock(NAME, { ttl: TTL, keepAlive: true });
    await lease.keepAlive();
    await lease.unlock();
    console.log(lease.isKept);`, { name }), 'false\n');
  await assertFree(locker, name);
});

test('a process ends in the midst of calls', async (t) => {
  const [locker, name] = [manager(t), nameFor(t)];
  const script = `
    const managers = [newManager(), newManager()];
    for (let i = 0; i < 100; i++) {
      const use = () => managers[i % 2].using(NAME + i % 10, { ttl: TTL, wait: Infinity, keepAlive: i % 3 === 0 }, () => {}).then(use, () => {});
      use();
      managers[i % 2].isLocked(NAME).catch(() => {});
    }
    for (let i = process.pid % 50; i > 0; i--) await turn();
    process.exit(7);`;
  const programs = Array.from({ length: 4 }, () => program(t, script, { name }));
  for (const running of programs) {
    const { code, signal, stderr } = await running.ended;
    assert.deepEqual([code, signal, stderr], [7, null, '']);
  }
  for (let i = 0; i < 10; i++) {
    await askAll('DEL', `${name}${i}`);
    await assertFree(locker, `${name}${i}`);
  }
});

test('what a listener throws is an uncaught exception', async (t) => {
  const name = nameFor(t);
  const running = program(t, `
    const lease = await newManager().lock(NAME, { ttl: TTL, keepAlive: true });
    lease.on('lost', () => { throw new Error('of a listener'); });
    console.log('it is held');
    await once(process.stdin, 'data');
    process.stdin.destroy();
    await lease.extend().catch(() => {});`, { name });
  await running.says('it is held');
  await askAll('DEL', name);
  running.child.stdin.write('x');
  const { code, stderr } = await running.ended;
  assert.equal(code, 1);
  assert.match(stderr, /of a listener/);
});

test('what a logger throws is an uncaught exception, and changes no call', async (t) => {
  const name = nameFor(t);
  const running = program(t, `
    const thrown = [];
    process.on('uncaughtException', (error) => thrown.push(error));
    process.on('unhandledRejection', (error) => thrown.push(error));
    const { Manager } = require(MODULE);
    for (const logger of [() => { throw 'of a logger'; }, async () => { throw 'of a logger'; }]) {
      const manager = new Manager(SERVERS, { ...OPTIONS, logger, trace: 'events' });
      const lease = await manager.lock(NAME, { ttl: TTL, keepAlive: true });
      await lease.extend();
      await lease.confirm();
      await lease.unlock();
      while (thrown.length < 3) await turn();
      await manager.close();
      console.log(new Set(thrown.splice(0)));
    }`, { name });
  await assertEndsWell(running, "Set(1) { 'of a logger' }\n".repeat(2));
  await assertFree(manager(t), name);
});

test('a lease that is collected is not unlocked', async (t) => {
  const [locker, name] = [manager(t), nameFor(t)];
  // Kept or not, it no longer holds the process.
  await assertEndsWell(program(t, `
    const manager = newManager();
    let collected = 0;
    const registry = new FinalizationRegistry(() => collected++);
    const take = async (name, keepAlive) => registry.register(await manager.lock(name, { ttl: TTL, keepAlive }));
    await take(NAME, true);
    await take(NAME + 1, false);
    while (collected < 2) { gc(); await turn(); }
    console.log('collected');`, { name, flags: ['--expose-gc'] }), 'collected\n');
  for (const it of [name, `${name}1`]) {
    assert.ok(await keys(it) >= QUORUM);
    await askAll('DEL', it);
    await assertFree(locker, it);
  }
});

test('a lease that is collected is not kept', async (t) => {
  const name = nameFor(t);
  const running = program(t, `
    const manager = newManager();
    let collected = 0;
    const registry = new FinalizationRegistry(() => collected++);
    const take = async () => registry.register(await manager.lock(NAME, { ttl: 3000, keepAlive: true }));
    await take();
    while (collected < 1) { gc(); await turn(); }
    console.log('collected');
    await once(process.stdin, 'data');
    process.stdin.destroy();`, { name, flags: ['--expose-gc'] });
  await running.says('collected');
  await eventually('it ends by itself', async () => await keys(name) === 0);
  running.child.stdin.write('x');
  await assertEndsWell(running, 'collected\n');
});

test('who has the signal has the lock', async (t) => {
  const [locker, name] = [manager(t), nameFor(t)];
  await assertEndsWell(program(t, `
    const manager = newManager();
    let collected = false;
    const registry = new FinalizationRegistry(() => { collected = true; });
    const take = async () => {
      const lease = await manager.lock(NAME, { ttl: TTL, keepAlive: true });
      registry.register(lease);
      return lease.signal;
    };
    let signal = await take();
    for (let i = 0; i < 20; i++) { gc(); await turn(); }
    console.log(collected, signal.aborted);
    signal = null;
    while (!collected) { gc(); await turn(); }
    console.log(collected);`, { name, flags: ['--expose-gc'] }), 'false false\ntrue\n');
  await askAll('DEL', name);
  await assertFree(locker, name);
});

test('managers that nobody refers to', async (t) => {
  await assertEndsWell(program(t, `
    const fs = require('node:fs');
    const redlocks = () => fs.readdirSync('/proc/self/task')
      .filter((id) => { try { return fs.readFileSync('/proc/self/task/' + id + '/comm', 'utf8') === 'redlock\\n'; } catch { return false; } }).length;
    const use = (i) => newManager().using(NAME + i, { ttl: TTL, wait: Infinity }, () => {});
    await Promise.all(Array.from({ length: 20 }, (_, i) => use(i)));
    console.log(redlocks() > 0);
    while (redlocks() > 0) { gc(); await turn(); }
    console.log(redlocks());`, { name: nameFor(t), flags: ['--expose-gc'] }), 'true\n0\n');
});

test('a logger is not collected while its manager is in use', async (t) => {
  await assertEndsWell(program(t, `
    const { Manager } = require(MODULE);
    let told = false;
    // The last of these ports is closed.
    const manager = new Manager([SERVERS[0], SERVERS[2], '127.0.0.1:1'], { ...OPTIONS, logger: () => { told = true; } });
    for (let i = 0; i < 20; i++) { gc(); await turn(); }
    await manager.connect();
    while (!told) await turn();
    console.log(manager.isClosed);`, { flags: ['--expose-gc'] }), 'false\n');
});

test('a closed manager ends with the last of its leases, also if that is collected', async (t) => {
  const [locker, name] = [manager(t), nameFor(t)];
  await assertEndsWell(program(t, `
    const fs = require('node:fs');
    const redlocks = () => fs.readdirSync('/proc/self/task')
      .filter((id) => { try { return fs.readFileSync('/proc/self/task/' + id + '/comm', 'utf8') === 'redlock\\n'; } catch { return false; } }).length;
    globalThis.manager = newManager();
    const take = async () => { await globalThis.manager.lock(NAME, { ttl: TTL }); };
    await take();
    await globalThis.manager.close();
    console.log(redlocks());
    while (redlocks() > 0) { gc(); await turn(); }
    console.log(globalThis.manager.isClosed);`, { name, flags: ['--expose-gc'] }), '1\ntrue\n');
  await askAll('DEL', name);
  await assertFree(locker, name);
});

test('the module is loaded twice', async (t) => {
  const [locker, name] = [manager(t), nameFor(t)];
  // As test runners do: its files are evaluated again, and the addon is not.
  await assertEndsWell(program(t, `
    const first = require(MODULE);
    Object.keys(require.cache).filter((it) => it.endsWith('.js')).forEach((it) => { delete require.cache[it]; });
    const second = require(MODULE);
    const managers = [first, second].map((it) => new it.Manager(SERVERS, OPTIONS));
    const work = (manager) => manager.using(NAME, { ttl: TTL, wait: Infinity, keepAlive: true }, turn);
    await Promise.all(managers.flatMap((it) => [work(it), work(it)]));
    console.log(first === second);`, { name }), 'false\n');
  await assertFree(locker, name);
});

test('the module is imported', async (t) => {
  await assertEndsWell(program(t, `
    const { Manager, TakenError, version } = await import(require('node:url').pathToFileURL(require.resolve(MODULE)));
    console.log(Manager === require(MODULE).Manager, TakenError.name, version === require(MODULE).version);`), 'true TakenError true\n');
});

test('the module is in a bundle', async (t) => {
  const addon = process.env.REDLOCK_ADDON ?? path.join(MODULE, 'build', 'redlock.node');
  // Bundlers leave only the modules of Node.js to `require`, and __dirname is missing in an ECMAScript module.
  const running = (environment) => program(t, `
    const fs = require('node:fs');
    const { createRequire } = require('node:module');
    delete globalThis.__dirname;
    const builtin = (id) => { if (!id.startsWith('node:')) throw new Error('a bundle has no ' + id); return require(id); };
    const bundled = new Map();
    const evaluate = (file) => {
      if (!bundled.has(file)) {
        const part = { exports: {} };
        bundled.set(file, part);
        const inner = (id) => id.startsWith('.') ? evaluate(createRequire(file).resolve(id)) : builtin(id);
        new Function('require', 'module', fs.readFileSync(file, 'utf8'))(inner, part);
      }
      return bundled.get(file).exports;
    };
    try {
      console.log(evaluate(require.resolve(MODULE)).version);
    } catch (error) {
      console.log(error.message);
    }`, { environment });
  await assertEndsWell(running({ REDLOCK_ADDON: addon }), `${version}\n`);
  const { stdout } = await running({ REDLOCK_ADDON: '/nowhere/redlock.node' }).ended;
  assert.match(stdout, /cannot load the redlock addon.*Cannot find module '\/nowhere\/redlock.node'/);
});

// Libraries that do not match, each with words: path=words. A user of the addon may have another library than
// it was built with. Only node.rs makes them.
const STRANGERS = (process.env.REDLOCK_TEST_STRANGERS ?? '').split(',').filter((it) => it !== '');

test('a library that is no match', { skip: STRANGERS.length === 0 && 'there is none' }, async (t) => {
  for (const stranger of STRANGERS) {
    const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'redlock-'));
    t.after(() => fs.rmSync(directory, { recursive: true }));
    const soname = `libredlock.so.${version.split('.').slice(0, 2).join('.')}`;
    fs.copyFileSync(stranger.split('=')[0], path.join(directory, soname));
    const running = program(t, `
      try {
        require(MODULE);
      } catch (error) {
        console.log(error.message);
      }`, { environment: { LD_LIBRARY_PATH: directory } });
    const { code, stdout, stderr } = await running.ended;
    assert.deepEqual([code, stderr], [0, '']);
    assert.match(stdout, /cannot load the redlock addon.*RedLock_/s);
  }
});

const WORK = `
  const { workerData: { MODULE, SERVERS, OPTIONS, name, TTL }, parentPort } = require('node:worker_threads');
  const { Manager } = require(MODULE);
  const manager = new Manager(SERVERS, OPTIONS);`;

// With a worker that runs the code. No other code in that process uses the module.
function withWorkers(code, script) {
  return `
    const start = (name) => new Worker(${JSON.stringify(`${WORK}\n(async () => {${code}})();`)},
      { eval: true, workerData: { MODULE, SERVERS, OPTIONS, name, TTL } });
    ${script}`;
}

test('workers exclude each other', async (t) => {
  const [locker, name] = [manager(t), nameFor(t)];
  const code = `for (let i = 0; i < 5; i++) await manager.using(name, { ttl: TTL, wait: Infinity }, () => {});`;
  await assertEndsWell(program(t, withWorkers(code, `
    const ends = await Promise.all([1, 2, 3, 4].map(() => once(start(NAME), 'exit')));
    console.log(String(ends));`), { name }), '0,0,0,0\n');
  await assertFree(locker, name);
});

test('a worker that ends while the library works', async (t) => {
  const [locker, name] = [manager(t), nameFor(t)];
  const code = `
    for (let i = 0; i < 50; i++) {
      const use = () => manager.using(name + i % 10, { ttl: TTL, wait: Infinity, keepAlive: i % 2 === 0 }, () => {}).then(use);
      use();
    }
    manager.isLocked(name);
    await manager.lock(name + 'own' + Math.random(), { ttl: 3000, keepAlive: true });
    parentPort.postMessage('it works');`;
  await assertEndsWell(program(t, withWorkers(code, `
    for (let i = 0; i < 5; i++) {
      const workers = [start(NAME + i), start(NAME + i)];
      await Promise.all(workers.map((worker) => once(worker, 'message')));
      await Promise.all(workers.map((worker) => worker.terminate()));
    }
    console.log('the end');`), { name }), 'the end\n');
  for (let i = 0; i < 5; i++) {
    for (let k = 0; k < 10; k++) await askAll('DEL', `${name}${i}${k}`);
  }
  await assertFree(locker, name);
});

test('the main thread goes on when a worker has ended', async (t) => {
  const [locker, name] = [manager(t), nameFor(t)];
  await assertEndsWell(program(t, withWorkers(`await (await manager.lock(name + 1, { ttl: TTL })).unlock();`, `
    const manager = newManager();
    const lease = await manager.lock(NAME, { ttl: TTL, keepAlive: true });
    await once(start(NAME), 'exit');
    await lease.confirm();
    await lease.unlock();
    console.log('the end', SERVERS.length);`), { name }), `the end ${SERVERS.length}\n`);
  await assertFree(locker, name);
});

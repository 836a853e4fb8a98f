'use strict';

// Needs REDLOCK_TEST_SERVERS=host:port,host:port,... (real servers, of which the second may be down), and
// REDLOCK_ADDON, unless the addon is built where addon.js looks for it.

const assert = require('node:assert/strict');
const { spawn } = require('node:child_process');
const { randomBytes } = require('node:crypto');
const { once } = require('node:events');
const net = require('node:net');
const path = require('node:path');
const { setTimeout: sleep } = require('node:timers/promises');

const MODULE = path.resolve(__dirname, '..');
const redlock = require(MODULE);

const SERVERS = process.env.REDLOCK_TEST_SERVERS.split(',');
const QUORUM = Math.floor(SERVERS.length / 2) + 1;
// An event that has not happened after this time counts as missing.
const PATIENCE_MS = 60_000;
// With one server down, a call needs both of the others, on a machine that may be busy.
const PATIENT = { retryDelay: 4, connectTimeout: 20_000, replyTimeout: 20_000 };
// Longer than any test.
const TTL = 600_000;

// A promise that is never settled is a failure, too.
setTimeout(() => {
  console.error('these tests do not come to their end');
  process.exit(1);
}, 10 * PATIENCE_MS).unref();

// A manager that is closed when the test ends.
function manager(t, servers = SERVERS, options = {}) {
  const made = new redlock.Manager(servers, { ...PATIENT, ...options });
  t.after(() => made.close());
  return made;
}

function nameFor(t) {
  return `node:${t.name}:${randomBytes(8).toString('hex')}`;
}

// The first line of a server's answer; nothing if it is down.
async function ask(server, ...words) {
  const [host, port] = server.split(':');
  const socket = net.connect(Number(port), host);
  try {
    await once(socket, 'connect');
    const parts = words.map((word) => Buffer.from(word));
    socket.write(`*${parts.length}\r\n`);
    for (const part of parts) socket.write(Buffer.concat([Buffer.from(`$${part.length}\r\n`), part, Buffer.from('\r\n')]));
    let answer = '';
    for await (const data of socket) {
      answer += data;
      if (answer.includes('\r\n')) break;
    }
    return answer.split('\r\n')[0];
  } catch (error) {
    // Whoever looks for a free port listens on the port of a server that is down, for a moment.
    if (['ECONNREFUSED', 'ECONNRESET', 'EPIPE'].includes(error.code)) return undefined;
    throw error;
  } finally {
    socket.destroy();
  }
}

function askAll(...words) {
  return Promise.all(SERVERS.map((server) => ask(server, ...words)));
}

// How many servers have the key.
async function keys(name) {
  return (await askAll('EXISTS', name)).filter((answer) => answer === ':1').length;
}

async function eventually(what, isTrue) {
  const deadline = performance.now() + PATIENCE_MS;
  while (!await isTrue()) {
    assert.ok(performance.now() < deadline, `never came true: ${what}`);
    await sleep(2);
  }
}

// A late server undoes its grant while the manager is in use.
async function assertFree(user, name) {
  await eventually(`${String(name)} is free`, async () => {
    try {
      return !await user.isLocked(name) && await keys(name) === 0;
    } catch (error) {
      // While a lock ends on one server after another and a third is down, the answer is unknown.
      if (error.code === 'UNREACHABLE') return false;
      throw error;
    }
  });
}

async function failureOf(promise) {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  return assert.fail('it did not fail');
}

async function assertCode(promise, code) {
  const error = await failureOf(promise);
  assert.equal(error.code, code, error.stack);
  return error;
}

// Servers that accept connections and send nothing.
async function silentServers(t, count = 3) {
  const connected = [];
  const servers = await Promise.all(Array.from({ length: count }, async () => {
    const server = net.createServer((socket) => {
      connected.push(socket);
      socket.on('error', () => {});
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    return server;
  }));
  t.after(() => {
    connected.forEach((socket) => socket.destroy());
    servers.forEach((server) => server.close());
  });
  return { addresses: servers.map((server) => `127.0.0.1:${server.address().port}`), connected };
}

// Proxies to the servers. All of them can be cut, or stopped and resumed.
async function waysToServers(t) {
  const sockets = new Set();
  const servers = await Promise.all(SERVERS.map(async (address) => {
    const [host, port] = address.split(':');
    const server = net.createServer((near) => {
      const far = net.connect(Number(port), host);
      for (const [socket, other] of [[near, far], [far, near]]) {
        sockets.add(socket);
        socket.on('error', () => {}).on('close', () => other.destroy()).pipe(other);
      }
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    return server;
  }));
  const cut = () => {
    servers.forEach((server) => server.close());
    sockets.forEach((socket) => socket.destroy());
  };
  // Data that is written then stays where it is.
  const stop = () => sockets.forEach((socket) => socket.pause());
  const go = () => sockets.forEach((socket) => socket.resume());
  t.after(cut);
  return { addresses: servers.map((server) => `127.0.0.1:${server.address().port}`), cut, stop, go };
}

// A separate program, which has the module, the servers, and a manager if it wants one. It is ended with the
// test.
function program(t, script, { name = '', flags = [], environment = {} } = {}) {
  const before = `
    const { once } = require('node:events');
    const { Worker } = require('node:worker_threads');
    const turn = () => new Promise(setImmediate);
    const [MODULE, SERVERS, NAME, TTL, OPTIONS] = ${JSON.stringify([MODULE, SERVERS, name, TTL, PATIENT])};
    const newManager = (servers = SERVERS) => new (require(MODULE).Manager)(servers, OPTIONS);
    (async () => {`;
  const child = spawn(process.execPath, [...flags, '-e', `${before}\n${script}\n})();`],
    { stdio: ['pipe', 'pipe', 'pipe'], env: { ...process.env, ...environment } });
  t.after(() => child.kill('SIGKILL'));
  const said = { stdout: '', stderr: '' };
  for (const stream of ['stdout', 'stderr']) child[stream].setEncoding('utf8').on('data', (data) => { said[stream] += data; });
  // A program that does not end is killed, and the signal shows that.
  const limit = setTimeout(() => child.kill('SIGKILL'), 2 * PATIENCE_MS);
  child.once('close', () => clearTimeout(limit));
  const ended = once(child, 'close').then(([code, signal]) => ({ code, signal, ...said }));
  return { child, said, ended, says: (words) => eventually(`it says ${words}: ${JSON.stringify(said)}`, () => said.stdout.includes(words) || child.exitCode !== null) };
}

async function assertEndsWell(running, stdout) {
  assert.deepEqual(await running.ended, { code: 0, signal: null, stdout, stderr: '' });
}

module.exports = {
  ...redlock, MODULE, PATIENT, QUORUM, SERVERS, TTL, ask, askAll, assertCode, assertEndsWell, assertFree, eventually, failureOf, keys,
  manager, nameFor, program, silentServers, waysToServers,
};

'use strict';

// Servers with names get other addresses: see moving_names.rs. The arguments: where the lock is kept, in the "main"
// thread or in a "worker", and the task.

const fs = require('node:fs');
const path = require('node:path');
const { setTimeout: sleep } = require('node:timers/promises');
const { Worker, isMainThread, parentPort } = require('node:worker_threads');

const SERVERS = process.env.REDLOCK_TEST_SERVERS.split(',');

function newManager() {
  const { Manager } = require(path.resolve(__dirname, '..'));
  // A server that writes to its disk beside others may be slow.
  return new Manager(SERVERS, { replyTimeout: 20_000 });
}

function take(manager) {
  return manager.lock('r', { ttl: 8000, keepAlive: true });
}

function say(word) {
  fs.writeSync(1, `${word}\n`);
}

async function inputEnds() {
  for await (const data of process.stdin) data.fill(0);
}

async function keep() {
  const manager = newManager();
  const lease = await take(manager);
  say('kept');
  await inputEnds();
  if (!lease.isHeld) throw new Error('the lock is lost');
  await lease.unlock();
  await manager.close();
}

async function wait() {
  const manager = newManager();
  const ended = manager.lock('r', { ttl: 8000, wait: Infinity }).then(() => 'OK', (error) => error.code);
  say('waiting');
  await inputEnds();
  await manager.close();
  if (await ended !== 'CLOSED') throw new Error(`the call has ended with ${await ended}`);
}

// The lock is kept in a worker, which ends while the resolver says nothing.
async function endWorker() {
  const worker = new Worker(__filename);
  await new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject));
  say('kept');
  await inputEnds();
  await worker.terminate();
}

// The threads of the library.
function threads() {
  return fs.readdirSync('/proc/self/task').filter((id) => {
    try {
      return fs.readFileSync(`/proc/self/task/${id}/comm`, 'utf8').startsWith('redlock');
    } catch {
      return false; // it has ended by now
    }
  }).length;
}

async function main(where, task) {
  if (where === 'worker') await endWorker();
  else await { keep, wait, close: keep }[task]();
  if (task !== 'close') return;
  say('closed');
  while (threads() > 0) await sleep(1);
}

async function work() {
  globalThis.lease = await take(newManager());
  parentPort.postMessage('kept');
}

if (isMainThread) main(...process.argv.slice(2));
else work();

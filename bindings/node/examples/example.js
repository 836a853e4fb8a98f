'use strict';

// Three people want to write the same report, and each waits a second for it. The first writes at once, the second
// after the first, and the third gives up.
//
//     node build.js && node examples/example.js [host:port ...]

const { setTimeout: sleep } = require('node:timers/promises');
const { Manager, RedlockError } = require('..');

const servers = process.argv.slice(2);
const manager = new Manager(servers.length > 0 ? servers : ['127.0.0.1:6379', '127.0.0.1:6380', '127.0.0.1:6381']);

async function write(name) {
  try {
    await manager.using('example:report', { ttl: 10_000, wait: 1000 }, async (lease) => {
      for (const page of [1, 2, 3]) {
        console.log(`${name} holds the lock for ${lease.remaining} ms and writes page ${page}`);
        await sleep(200); // instead of real work
        await lease.extend();
      }
    });
  } catch (error) {
    if (!(error instanceof RedlockError)) throw error;
    if (error.code === 'TAKEN') {
      console.log(`${name} gives up waiting`);
    } else {
      console.error(`${name} stops: ${error.message}`);
      process.exitCode = 1;
    }
  }
}

// Other programs with the same servers, in whatever language, are excluded in the same way.
Promise.all(['Ada', 'Ben', 'Cleo'].map(write));

/*
 * Makes many promises wait for locks at once, as waiters/go/main.go does with goroutines.
 *
 *     waiters.cjs WAITERS RESOURCES ROUNDS KEY PORT...
 */
"use strict";

const fs = require("node:fs");
const readline = require("node:readline");
const { setTimeout: sleep } = require("node:timers/promises");
const { Manager, RedlockError } = require("../../../bindings/node");

const TTL_MS = 30_000;
const PATIENCE_MS = 60_000;

/** Acquires and releases the lock, `rounds` times. Resolves to how long each acquire took. */
async function wait(manager, resource, rounds) {
  const waits = [];
  try {
    for (let i = 0; i < rounds; i++) {
      const start = performance.now();
      const lease = await manager.lock(resource, { ttl: TTL_MS, wait: PATIENCE_MS });
      waits.push(performance.now() - start);
      await lease.unlock();
    }
  } catch (error) {
    if (!(error instanceof RedlockError)) throw error;
  }
  return waits;
}

/**
 * Starts as many promises as will wait later, and all threads of libuv's pool. The threads after that belong to the
 * runtime itself.
 */
async function warmUp(waiters) {
  const files = Array.from({ length: 64 }, () => fs.promises.stat("/"));
  await Promise.all([...files, ...Array.from({ length: waiters }, () => sleep(20))]);
}

function report(waits, rounds, seconds) {
  const starved = waits.filter((own) => own.length < rounds).length;
  const all = waits.flat().sort((a, b) => a - b);
  let words = `starved=${starved} locks=${all.length} seconds=${seconds.toFixed(6)}`;
  if (all.length > 0) {
    const [middle, most] = [all[all.length >> 1], all.at(-1)].map((ms) => (ms * 1000).toFixed(0));
    words += ` wait_p50_us=${middle} wait_most_us=${most}`;
  }
  console.log(words);
}

async function main() {
  const [waiters, resources, rounds] = process.argv.slice(2, 5).map(Number);
  const [key, ...ports] = process.argv.slice(5);
  if (ports.length === 0) {
    console.error("waiters.cjs WAITERS RESOURCES ROUNDS KEY PORT...");
    process.exitCode = 2;
    return;
  }
  await warmUp(waiters);
  const input = readline.createInterface({ input: process.stdin });
  console.log("ready");
  const { done } = await input[Symbol.asyncIterator]().next();
  input.close();
  if (done) return;
  const manager = new Manager(ports.map((port) => `127.0.0.1:${port}`));
  const start = performance.now();
  const waits = await Promise.all(
    Array.from({ length: waiters }, (_, i) => wait(manager, `${key}:${i % resources}`, rounds)),
  );
  report(waits, rounds, (performance.now() - start) / 1000);
  await manager.close();
  process.exit();
}

main();

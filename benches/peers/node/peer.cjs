/*
 * Measures redlock for Node in the same way as the bench's own programs measure this library.
 *
 *     peer.cjs cycles|contend WORKERS KEY WARM_MS RUN_MS PORT...
 *
 * The exchange with the bench: the program prints "ready" after the warm-up, and any line from the bench
 * starts the measurement. It prints "running" when that starts, and the figures as key=value at its end.
 * Workers are asynchronous tasks.
 */
"use strict";

const readline = require("node:readline");
const { setTimeout: sleep } = require("node:timers/promises");
const Redis = require("ioredis").default ?? require("ioredis");
const Redlock = require("redlock").default;

const TTL_MS = 30000;
const HOLD_MS = 1;
const PERCENTS = [
  1, 5, 10, 20, 30, 40, 50, 60, 70, 75, 80, 85, 90, 93, 95, 97, 98, 99, 99.5, 99.7, 99.9, 99.95,
];

const nowMs = () => performance.now();

/** Notes which worker held the contended resource last. */
class Board {
  last = null;
  inside = 0;
  overlaps = 0;
  handovers = 0;

  enter(worker) {
    if (this.inside++ > 0) this.overlaps++;
    if (this.last !== worker) this.handovers++;
    this.last = worker;
  }

  leave() {
    this.inside--;
  }
}

class Worker {
  constructor(redlock, board, resource) {
    this.redlock = redlock;
    this.board = board;
    this.resources = [resource];
    this.clear();
  }

  clear() {
    this.locks = [];
    this.unlocks = [];
    this.cycles = 0;
    this.failed = 0;
    this.heldMs = 0;
  }

  /** Resolves to null if the lock was not acquired. Any exception of the library counts as that. */
  async acquire(settings) {
    const start = nowMs();
    const lock = await this.redlock.acquire(this.resources, TTL_MS, settings).catch((why) => {
      console.error(String(why));
      return null;
    });
    this.locks.push(nowMs() - start);
    return lock;
  }

  async release(lock) {
    const start = nowMs();
    const done = await lock.release().then(
      () => true,
      () => false,
    );
    this.unlocks.push(nowMs() - start);
    return done;
  }

  async cycle(end) {
    while (nowMs() < end) {
      const lock = await this.acquire();
      const done = lock !== null && (await this.release(lock));
      this.cycles++;
      if (!done) this.failed++;
    }
  }

  async contend(end) {
    while (nowMs() < end) {
      const lock = await this.acquire({ retryCount: -1 });
      const locked = nowMs();
      if (lock !== null && locked < end) {
        this.board.enter(this);
        await sleep(HOLD_MS);
        this.cycles++;
        this.board.leave();
        this.heldMs += nowMs() - locked;
      }
      const done = lock !== null && (await this.release(lock));
      if (!done) this.failed++;
    }
  }
}

function percentiles(name, samples) {
  samples.sort((a, b) => a - b);
  const told = PERCENTS.filter(
    (p) => samples.length > 0 && (p <= 50 || (samples.length * p) / 100 < samples.length - 1),
  );
  const at = (p) => samples[Math.floor((samples.length * p) / 100)] * 1000;
  return told.map((p) => `${name}_p${p}_us=${at(p).toFixed(2)}`);
}

function figures(workers, board, mode, seconds, busyUs) {
  const sum = (pick) => workers.reduce((all, w) => all + pick(w), 0);
  const cycles = sum((w) => w.cycles);
  const words = [
    `cycles=${cycles} failed=${sum((w) => w.failed)}`,
    `busy_us=${busyUs} seconds=${seconds.toFixed(6)}`,
  ];
  if (mode === "contend") {
    const shares = workers.map((w) => w.cycles);
    words.push(`handovers=${board.handovers} overlaps=${board.overlaps}`);
    words.push(`least=${Math.min(...shares)} most=${Math.max(...shares)}`);
    if (cycles > 0) words.push(`hold_us=${((sum((w) => w.heldMs) * 1000) / cycles).toFixed(1)}`);
  }
  words.push(...percentiles("lock", workers.flatMap((w) => w.locks)));
  words.push(...percentiles("unlock", workers.flatMap((w) => w.unlocks)));
  return words.join(" ");
}

async function runAll(workers, mode, runMs) {
  const end = nowMs() + runMs;
  await Promise.all(workers.map((w) => (mode === "contend" ? w.contend(end) : w.cycle(end))));
}

async function main() {
  const [mode, count, key, warmMs, runMs, ...ports] = process.argv.slice(2);
  const clients = ports.map((port) => new Redis(Number(port), "127.0.0.1"));
  clients.forEach((client) => client.on("error", () => {}));
  const redlock = new Redlock(clients);
  redlock.on("error", () => {});
  const board = new Board();
  const workers = Array.from({ length: Number(count) }, (_, i) => {
    return new Worker(redlock, board, `${key}:${mode === "contend" ? 0 : i}`);
  });

  await runAll(workers, mode, Number(warmMs));
  console.log("ready");
  const input = readline.createInterface({ input: process.stdin });
  const asked = (await input[Symbol.asyncIterator]().next()).done === false;
  if (!asked) process.exit();
  console.log("running");
  workers.forEach((w) => w.clear());
  board.handovers = 0;
  const start = nowMs();
  const before = process.cpuUsage();
  await runAll(workers, mode, Number(runMs));
  const { user, system } = process.cpuUsage(before);
  const seconds = (mode === "contend" ? Number(runMs) : nowMs() - start) / 1000;
  console.log(figures(workers, board, mode, seconds, user + system));
  process.exit();
}

main();

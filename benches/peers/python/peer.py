"""Measures a Python library in the same way as the bench's own programs measure their contenders.

    peer.py NAME cycles|contend WORKERS KEY WARM_MS RUN_MS PORT...

The exchange with the bench: the program prints "ready" after the warm-up, and any line from the bench starts the
measurement. It prints "running" when that starts, and the figures as key=value at its end.
"""

import sys
import threading
import time

from clients import BY_NAME

HOLD_S = 0.001
PERCENTS = (1, 5, 10, 20, 30, 40, 50, 60, 70, 75, 80, 85, 90, 93, 95, 97, 98, 99, 99.5, 99.7, 99.9)


class Board:
    """Which worker held the contended resource last."""

    def __init__(self):
        self.last = None
        self.inside = 0
        self.overlaps = 0
        self.handovers = 0

    def enter(self, worker):
        self.overlaps += self.inside != 0
        self.inside += 1
        self.handovers += self.last is not worker
        self.last = worker

    def leave(self):
        self.inside -= 1


class Worker:
    def __init__(self, client, board, contended):
        self._client = client
        self._board = board
        self._run = self._contend if contended else self._cycle
        self.clear()

    def clear(self):
        self.locks = []
        self.unlocks = []
        self.cycles = self.failed = 0
        self.held_s = 0.0

    def run(self, run_s):
        end = time.perf_counter() + run_s
        while time.perf_counter() < end:
            self._run(end)

    def _cycle(self, _end):
        held = timed(self._client.acquire, self.locks) and timed(self._client.release, self.unlocks)
        self.cycles += 1
        self.failed += not held

    def _contend(self, end):
        held = timed(self._client.wait, self.locks)
        locked = time.perf_counter()
        if held and locked < end:
            self._board.enter(self)
            time.sleep(HOLD_S)
            self.cycles += 1
            self._board.leave()
            self.held_s += time.perf_counter() - locked
        held = held and timed(self._client.release, self.unlocks)
        self.failed += not held


def timed(call, samples):
    """Returns whether the call succeeded. An exception counts as a failure."""
    start = time.perf_counter()
    try:
        return call()
    except Exception as why:
        print(f"{type(why).__name__}: {why}", file=sys.stderr)
        return False
    finally:
        samples.append(time.perf_counter() - start)


def run_all(workers, run_s):
    """The first worker is the main thread, so a single worker has no other threads beside it."""
    threads = [threading.Thread(target=w.run, args=(run_s,), daemon=True) for w in workers[1:]]
    for thread in threads:
        thread.start()
    workers[0].run(run_s)
    for thread in threads:
        thread.join()


def percentiles(name, samples):
    samples.sort()
    for percent in PERCENTS:
        below = len(samples) * percent / 100
        if samples and (percent <= 50 or below < len(samples) - 1):
            yield f"{name}_p{percent:g}_us={samples[int(below)] * 1e6:.2f}"


def figures(workers, board, contended, seconds, busy_s):
    cycles = sum(w.cycles for w in workers)
    failed = sum(w.failed for w in workers)
    yield f"cycles={cycles} failed={failed} busy_us={busy_s * 1e6:.0f} seconds={seconds:.6f}"
    if contended:
        shares = [w.cycles for w in workers]
        yield f"handovers={board.handovers} overlaps={board.overlaps}"
        yield f"least={min(shares)} most={max(shares)}"
        if cycles:
            yield f"hold_us={sum(w.held_s for w in workers) * 1e6 / cycles:.1f}"
    yield from percentiles("lock", [us for w in workers for us in w.locks])
    yield from percentiles("unlock", [us for w in workers for us in w.unlocks])


def main():
    name, mode, count, key, warm_ms, run_ms, *ports = sys.argv[1:]
    contended = mode == "contend"
    board = Board()
    library = BY_NAME[name]
    shared = library.connect([int(port) for port in ports])
    resources = [f"{key}:{0 if contended else i}" for i in range(int(count))]
    workers = [Worker(library(shared, r), board, contended) for r in resources]

    run_all(workers, int(warm_ms) / 1000)
    print("ready", flush=True)
    if not sys.stdin.readline():
        return
    print("running", flush=True)
    for worker in workers:
        worker.clear()
    board.handovers = 0
    start, busy = time.perf_counter(), time.process_time()
    run_all(workers, int(run_ms) / 1000)
    seconds, busy = time.perf_counter() - start, time.process_time() - busy
    seconds = int(run_ms) / 1000 if contended else seconds
    print(" ".join(figures(workers, board, contended, seconds, busy)), flush=True)


main()

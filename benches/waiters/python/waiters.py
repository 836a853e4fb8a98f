"""Measures how many asyncio tasks wait for locks at once, as waiters/go/main.go does with goroutines.

waiters.py WAITERS RESOURCES ROUNDS KEY PORT...
"""

from __future__ import annotations

import asyncio
import sys
import time

import redlock

TTL = 30
PATIENCE = 60


async def wait(manager: redlock.Manager, resource: str, rounds: int) -> list[float]:
    """Takes the lock and releases it, so often; returns how long each took to be had."""
    waits: list[float] = []
    for _ in range(rounds):
        start = time.monotonic()
        try:
            async with manager.alock(resource, ttl=TTL, wait=PATIENCE):
                waits.append(time.monotonic() - start)
        except redlock.Error:
            break
    return waits


async def measure(waiters: int, resources: int, rounds: int, key: str, ports: list[str]) -> None:
    with redlock.Manager(*(f"127.0.0.1:{port}" for port in ports)) as manager:
        start = time.monotonic()
        tasks = (wait(manager, f"{key}:{i % resources}", rounds) for i in range(waiters))
        waits = await asyncio.gather(*tasks)
        seconds = time.monotonic() - start
    starved = sum(len(own) < rounds for own in waits)
    every = sorted(one for own in waits for one in own)
    words = f"starved={starved} locks={len(every)} seconds={seconds:.6f}"
    if every:
        middle, most = (one * 1e6 for one in (every[len(every) // 2], every[-1]))
        words += f" wait_p50_us={middle:.0f} wait_most_us={most:.0f}"
    print(words, flush=True)


async def warm_up(waiters: int) -> None:
    """As many tasks as are to wait: what the runtime has after that is its own."""
    await asyncio.gather(*(asyncio.sleep(0.02) for _ in range(waiters)))


def main() -> int:
    if len(sys.argv) < 6:
        print(__doc__, file=sys.stderr)
        return 2
    waiters, resources, rounds = map(int, sys.argv[1:4])
    asyncio.run(warm_up(waiters))
    print("ready", flush=True)
    if sys.stdin.readline():
        asyncio.run(measure(waiters, resources, rounds, sys.argv[4], sys.argv[5:]))
    return 0


if __name__ == "__main__":
    sys.exit(main())

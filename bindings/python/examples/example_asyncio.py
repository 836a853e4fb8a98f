"""Three people want to write the same report, as tasks of one loop, and each waits a second for it.

The first writes at once, the second after the first, and the third gives up. The lock is kept alive
while somebody writes, so the task need not extend it. If the lock is lost, the writing is stopped.

    python3 example_asyncio.py [host:port ...]
"""

from __future__ import annotations

import asyncio
import sys

import redlock

SERVERS = sys.argv[1:] or ["127.0.0.1:6379", "127.0.0.1:6380", "127.0.0.1:6381"]


async def write(manager: redlock.Manager, name: str) -> int:
    try:
        async with manager.alock("example:report", ttl=10, wait=1, keep_alive=True) as lease:
            for page in (1, 2, 3):
                if lease.lost.is_set():
                    print(f"{name} has lost the lock and stops", file=sys.stderr, flush=True)
                    return 1
                print(
                    f"{name} holds the lock for {lease.remaining} s and writes page {page}",
                    flush=True,
                )
                await asyncio.sleep(0.2)  # instead of real work
    except redlock.Taken:
        print(f"{name} gives up waiting", flush=True)
    except redlock.Error as error:
        print(f"{name} stops: {error}", file=sys.stderr, flush=True)
        return 1
    return 0


async def main() -> int:
    """Tasks exclude each other as threads and processes do; one manager works for all of them."""
    with redlock.Manager(*SERVERS) as manager:
        return max(await asyncio.gather(*(write(manager, name) for name in ("Ada", "Ben", "Cleo"))))


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))

"""Three people want to write the same report, and each waits a second for it.

The first writes at once, the second after the first, and the third gives up.

    python3 example.py [host:port ...]
"""

from __future__ import annotations

import os
import sys
import time

import redlock

SERVERS = sys.argv[1:] or ["127.0.0.1:6379", "127.0.0.1:6380", "127.0.0.1:6381"]
MANAGER = redlock.Manager(*SERVERS)


def write(name: str) -> int:
    try:
        with MANAGER.lock("example:report", ttl=10, wait=1) as lease:
            for page in (1, 2, 3):
                print(
                    f"{name} holds the lock for {lease.remaining} s and writes page {page}",
                    flush=True,
                )
                time.sleep(0.2)  # instead of real work
                lease.extend()
    except redlock.Taken:
        print(f"{name} gives up waiting", flush=True)
    except redlock.Error as error:
        print(f"{name} stops: {error}", file=sys.stderr, flush=True)
        return 1
    return 0


def main() -> int:
    """Processes exclude each other as threads do; one manager works in all of them."""
    children = []
    for name in ("Ada", "Ben", "Cleo"):
        child = os.fork()
        if child == 0:
            os._exit(write(name))
        children.append(child)
    return max(os.waitpid(child, 0)[1] for child in children) and 1


if __name__ == "__main__":
    sys.exit(main())

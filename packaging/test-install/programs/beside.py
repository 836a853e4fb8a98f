"""redlock-py and redlock_native in one process, on the same servers: whoever has the lock, the other one has not."""

import sys

import redlock
import redlock_native

ports = sys.argv[1:]
theirs = redlock.Redlock([{"host": "127.0.0.1", "port": int(port)} for port in ports], retry_count=1)
ours = redlock_native.Manager(*[f"127.0.0.1:{port}" for port in ports])
said = []


def is_ours() -> bool:
    try:
        with ours.lock("beside", ttl=10, wait=0):
            return True
    except redlock_native.Taken:
        return False


lock = theirs.lock("beside", 10_000)
if lock and not is_ours():
    said.append("theirs")
theirs.unlock(lock)
with ours.lock("beside", ttl=10):
    if not theirs.lock("beside", 10_000):
        said.append("ours")
if theirs.lock("beside", 10_000):
    said.append("theirs")
print(*said, sep=", ")

"""What servers report about themselves and about a resource."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ._structures import _SHARED


class Server:
    """The state of one server, from Manager.servers."""

    name: str  # host:port, or the path of its socket
    connected: bool
    votes: bool  # whether its grants count
    words: str  # why it is not connected, or does not vote
    round_trip: float | None  # seconds that its last answer took
    clock_offset: float | None  # seconds by which its clock is ahead of this machine's; None if not known
    # What the server said about itself when it was last asked. Empty if it did not say it, or if the user
    # may not ask.
    version: str
    role: str  # "primary", or "replica" or "sentinel", which cannot vote
    run_id: str  # changes with each start
    keeps: str  # which of its data outlives its process: "log, synced always", ..., "no log"
    eviction: str  # its maxmemory-policy

    def __init__(self, info: Any) -> None:
        for name in ("name", "words", "version", "role", "run_id", "keeps", "eviction"):
            setattr(self, name, getattr(info, name).decode("utf-8", "replace"))
        self.connected, self.votes = bool(info.connected), bool(info.votes)
        self.round_trip = None if info.round_trip_us < 0 else info.round_trip_us / 1e6
        is_known = info.clock_offset_us != -(2**63)
        self.clock_offset = info.clock_offset_us / 1e6 if is_known else None

    def __repr__(self) -> str:
        state = "a voter" if self.votes else self.words or "no voter"
        return f"<redlock.Server {self.name}: {state}>"


class Info(NamedTuple):
    """What the servers report about a resource, from Manager.inspect."""

    locked: bool
    remaining: float
    """How many seconds it is still held, if it is neither extended nor unlocked; inf: forever."""
    shared: bool
    """Whether several can hold it at the same time."""
    readers: int
    """How many hold it."""
    words: str
    """Which servers could not answer, and why."""
    permits_taken: int = 0
    """For a semaphore: how many permits are taken. It is locked if all are taken."""


def _read_info(info: Any) -> Info:
    ms = info.remaining_ms
    return Info(
        locked=bool(info.locked),
        remaining=math.inf if ms < 0 else ms / 1000,
        shared=info.mode == _SHARED,
        readers=info.readers,
        words=info.words.decode("utf-8", "replace"),
        permits_taken=info.permits_taken,
    )

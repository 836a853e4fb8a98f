"""The counters of a manager."""

from __future__ import annotations

from typing import NamedTuple


class Outcomes(NamedTuple):
    """The number of calls of one kind, by outcome."""

    ok: int
    taken: int
    unreachable: int
    too_slow: int
    lost: int
    too_short: int
    cancelled: int
    failed: int


class Histogram(NamedTuple):
    """A histogram of durations."""

    count: int  # type: ignore[assignment]  # a tuple counts its elements
    sum: float
    """The sum of all durations, in seconds."""
    buckets: tuple[int, ...]
    """The number of durations in each bucket: at most the bound at its index, and more than the one before.

    The last bucket has no bound.
    """
    bounds: tuple[float, ...]
    """Seconds."""


class Stats(NamedTuple):
    """The counters of a manager since it was made. Counts only grow; waiting and kept are current numbers."""

    acquire: Outcomes
    extend: Outcomes
    confirm: Outcomes
    release: Outcomes
    adopt: Outcomes
    inspect: Outcomes
    detached: int
    """Locks that were given away."""
    attempts: int
    """How often the servers were asked for a lock; all at once counts as one."""
    waits: int
    """Calls that had to wait for a lock, even if only for a moment."""
    renewed: int
    """Extensions of locks that are kept alive."""
    not_renewed: int
    """Extensions that failed, and were tried again as long as there was time."""
    kept_lost: int
    """Locks that could not be kept alive."""
    requests: int
    """Requests that were sent, to all servers together."""
    connections: int
    """Connections that could be used."""
    connections_lost: int
    connections_failed: int
    """Attempts to connect that failed."""
    waiting: int
    """How many calls are waiting for a lock now."""
    kept: int
    """How many locks are kept alive now."""
    acquire_time: Histogram
    """How long it took to take a lock, for locks that were taken."""
    wait_time: Histogram
    """The waiting time of calls that had to wait, whatever their result."""
    hold_time: Histogram
    """How long released locks were held."""
    round_trip: Histogram
    """From sending a request to reading its answer."""

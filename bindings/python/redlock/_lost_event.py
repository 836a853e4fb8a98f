"""Whether a lock can no longer be kept alive."""

from __future__ import annotations

import math
import time
import weakref
from typing import TYPE_CHECKING

from ._arguments import _seconds
from ._errors import Forked
from ._events import _Events
from ._threads import _is_patched, _pause
from ._types import Seconds

if TYPE_CHECKING:
    from ._lease import Lease


class LostEvent:
    """Tells whether a lock that is kept alive can no longer be kept. Use it like a threading.Event."""

    # Another thread may take the event, and cannot wake this thread. So this thread checks now and then,
    # and calls C only if there is an event to take.
    _SLICE = 0.05

    _is_set = False

    def __init__(self, lease: Lease) -> None:
        self._lease = weakref.ref(lease)

    def is_set(self) -> bool:
        """Also False if the lock is not kept alive, or was unlocked."""
        self._look()
        return self._is_set

    def wait(self, timeout: Seconds | None = None) -> bool:
        """Waits until it is set.

        Also returns, with False, when the timeout has passed or the lock is not kept alive.
        """
        seconds = math.inf if timeout is None else _seconds(timeout, "timeout")
        deadline = time.monotonic() + seconds
        events = self._look()
        while not self._is_set and events is not None:
            left = deadline - time.monotonic()
            if left <= 0:
                break
            if _is_patched():
                _pause(min(left, self._SLICE))  # another may wait for the descriptor, which must be alone
                events = self._look()
            else:
                is_due = events.wait(min(left, self._SLICE))
                events = self._look() if is_due else self._source()
        return self._is_set

    def __repr__(self) -> str:
        return f"<redlock.LostEvent, {'set' if self._is_set else 'not set'}>"

    def _look(self) -> _Events | None:
        """Returns the source of the event, if one may come."""
        events = self._source()
        if events is not None:
            events.take()
        return events

    def _source(self) -> _Events | None:
        lease = self._lease()
        kept = lease._kept if lease is not None else None
        if kept is None:
            return None
        if not kept[0].is_ours:
            raise Forked("the lease belongs to the parent process", -3)
        return kept[0]

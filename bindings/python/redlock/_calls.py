"""Calls for which no thread waits in C."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Callable

from ._handles import _CLease
from ._library import _c

if TYPE_CHECKING:
    import asyncio

    from ._async_lease import AsyncLease
    from ._events import _Events
    from ._lease_base import _Held

# The calls on a lease that wait, and the functions that begin them.
_SUBMITS = (
    (_c.RedLock_Acquire, _c.RedLock_SubmitAcquire),
    (_c.RedLock_Adopt, _c.RedLock_SubmitAdopt),
    (_c.RedLock_Downgrade, _c.RedLock_SubmitDowngrade),
    (_c.RedLock_Extend, _c.RedLock_SubmitExtend),
    (_c.RedLock_Confirm, _c.RedLock_SubmitConfirm),
    (_c.RedLock_Unlock, _c.RedLock_SubmitUnlock),
    (_c.RedLock_UnlockAfter, _c.RedLock_SubmitUnlockAfter),
)


def _call_in_loop(
    loop: asyncio.AbstractEventLoop, function: Callable[..., object], *arguments: Any
) -> bool:
    """Calls the function on the thread of the loop; at once, if that is this thread.

    Returns whether the loop is open.
    """
    import asyncio

    try:
        is_here = asyncio.get_running_loop() is loop
    except RuntimeError:
        is_here = False
    try:
        if not is_here:
            loop.call_soon_threadsafe(function, *arguments)
    except RuntimeError:
        return False
    if is_here:
        function(*arguments)
    return True


def _set_done(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


class _Submitted:
    """A call that no thread waits for in C: it is under way until its event is taken."""

    loop: asyncio.AbstractEventLoop | None = None  # the one whose task waits for it
    status: int | None = None
    words = ""
    _is_submitted = False
    _is_abandoned = False

    def __init__(self, lease: _Held, events: _Events, function: Callable[..., int]) -> None:
        self._lease = lease
        self._events = events
        self._function = function
        self._number = 0

    def submit(self, number: int, arguments: tuple[Any, ...]) -> bool:
        """Returns whether the call is under way. If not, it has ended."""
        self._number = number
        self._events.begin(number, self)
        _c.RedLockLease_SetDoneEvents(self._lease._handle, True)
        status = self._function(self._events.handle, *arguments, number)
        self._is_submitted = status == 0
        if status != 0:
            self.words = self._read_words()
            self.status = status
            self._wake()
        elif self.takes and self._events.is_closed:
            _c.RedLock_Cancel(self._events.handle, self.lease_handle)
        return self._is_submitted

    def end(self, status: int) -> None:
        """Called on the thread that has taken the event."""
        self.words = self._read_words()
        self.status = status
        if not self._wake_waiter():
            self._is_abandoned = True
            self._events._calls.pop(self._number, None)
        # Who abandons the call sets this flag first, and reads the status after that.
        if self._is_abandoned:
            self._undo()

    def abandon(self) -> None:
        """Nobody waits for the call any more. This does not wait either, because it cannot."""
        if not self._events.is_ours:
            return
        self._is_abandoned = True
        if self.status is not None:
            self._undo()
        elif not self.is_unlock:
            _c.RedLock_Cancel(self._events.handle, self.lease_handle)
        if not self._is_submitted:
            self._events._calls.pop(self._number, None)
        self._events.take()  # sends the releases

    @property
    def lease_handle(self) -> _CLease:
        return self._lease._handle

    @property
    def is_unlock(self) -> bool:
        return self._function in (_c.RedLock_SubmitUnlock, _c.RedLock_SubmitUnlockAfter)

    @property
    def takes(self) -> bool:
        return self._function in (_c.RedLock_SubmitAcquire, _c.RedLock_SubmitAdopt)

    def _undo(self) -> None:
        """Releases a lock that came too late. Nobody waits for that event."""
        if self.takes and self.status == 0:
            _c.RedLock_SubmitUnlock(self._events.handle, self.lease_handle, 0)

    def _read_words(self) -> str:
        words = _c.RedLockLease_ErrorMessage(self.lease_handle)
        return str(words.decode("utf-8", "replace"))

    def _wake_waiter(self) -> bool:
        """Has _wake called where the call is waited for. Returns whether that is possible."""
        self._wake()
        return True

    def _wake(self) -> None:
        self._events.end(self._number, self)


class _Call(_Submitted):
    """A call of a task."""

    def __init__(self, lease: AsyncLease, events: _Events, function: Callable[..., int]) -> None:
        super().__init__(lease, events, function)
        self.loop: asyncio.AbstractEventLoop = lease._loop
        self.over: asyncio.Future[None] = self.loop.create_future()

    def _wake_waiter(self) -> bool:
        return _call_in_loop(self.loop, self._wake)

    def _wake(self) -> None:
        super()._wake()
        _set_done(self.over)


class _GreenCall(_Submitted):
    """A call of what has taken the place of a thread. It is waited for in Python: see _is_patched."""

    def __init__(self, lease: _Held, events: _Events, function: Callable[..., int]) -> None:
        super().__init__(lease, events, function)
        self.roused = threading.Event()

    def wait(self, arguments: tuple[Any, ...]) -> int:
        """Returns the status of the call at its end. The lock is as before if this ends otherwise."""
        try:
            if self.submit(self._events.number(), arguments):
                self._events.await_end(self)
        except BaseException:
            self.abandon()
            raise
        return -4 if self.status is None else self.status

    def _wake(self) -> None:
        super()._wake()
        self.roused.set()

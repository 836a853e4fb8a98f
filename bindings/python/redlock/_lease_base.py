"""The common part of leases of threads and of tasks."""

from __future__ import annotations

import collections
import ctypes
import functools
import itertools
import math
import operator
import os
from typing import TYPE_CHECKING, Any, Callable, NoReturn

from ._arguments import _given, _ms, _seconds, _string
from ._calls import _SUBMITS, _GreenCall
from ._errors import Error, InvalidArgument, Nested, _check
from ._events import _Events
from ._handles import _CLease, _CManager, _make
from ._library import _c
from ._structures import _CANCELLED, _NO_EVENT, _SHARED, _CAcquireOptions
from ._threads import _SLICE, _is_patched, _Mutex
from ._types import Name, Names, Seconds
from ._weak import _Weak

if TYPE_CHECKING:
    import asyncio

    from ._manager import Manager


def _spent() -> NoReturn:
    """Enters a lease that has used its with block, or was unlocked."""
    raise RuntimeError("a lease can be used in one with block only, and not after it was unlocked")


class _Held:
    """The common part of leases of threads and of tasks."""

    _enter: Callable[[], Any] = staticmethod(_spent)  # for a with block, once: returns the lease
    _leave: Callable[[], object] = int  # does nothing
    _loop: asyncio.AbstractEventLoop | None = None

    _permits = 0  # of the semaphore, if it is one
    _levels: _Weak[int, Any]  # of a lock that its owner may take again

    def __init__(
        self, manager: Manager, resource: Names, ttl: Seconds, shared: bool = False
    ) -> None:
        self._wants_shared = bool(shared)
        self.resources: tuple[Name, ...] = _given(resource)
        """All locked names, as they were given: one, or several."""
        self.resource: Name = self.resources[0]
        """The locked name, as it was given; the first of several."""
        self._manager = manager
        self._names = tuple(_string(name, "resource") for name in self.resources)
        self._ttl = ttl
        self._ttl_ms = _ms(ttl, "ttl")
        self._unlocked = False
        self._words = ""
        self._process = os.getpid()
        # Where the lock is kept alive, and under which number, if it is.
        self._kept: tuple[_Events, int] | None = None
        self._calling = _Mutex()  # held for a call and the reading of its message
        self._handle = _make(_CLease, _c.RedLockLease_New)
        self._owner: _CManager | None = manager._open_handle()
        self._events: _Events | None = manager._open_events()
        # Who must release the lock: the caller, while the lease is in this list; the with block, once it
        # has taken the lease out.
        self._callers: list[Any] = []
        self._enter = self._callers.pop
        self._leave = self._release_in_c(self._owner, self._handle, self._callers)

    @property
    def shared(self) -> bool:
        """Whether others can hold the lock at the same time."""
        return int(_c.RedLockLease_Mode(self._handle)) == _SHARED

    @property
    def remaining(self) -> float:
        """How many seconds the lock is valid from now on; 0 if it is not valid."""
        return float(_c.RedLockLease_RemainingMs(self._handle)) / 1000

    @property
    def held(self) -> bool:
        """Whether the lock is held and valid now, by this machine's clock."""
        return bool(_c.RedLockLease_IsHeld(self._handle))

    @property
    def message(self) -> str:
        """The message of the last call on this lease.

        After a success: which servers could not take part, and why; empty if all could. After a failure:
        the message of the exception.
        """
        return self._words

    @property
    def token(self) -> str:
        """The value of the key on the servers; empty if the lease holds no lock.

        Keep it secret: anybody who knows it can release the lock. Nothing else shows it.
        """
        with self._calling.now():
            return str(_c.RedLockLease_Token(self._handle).decode())

    @property
    def fencing_token(self) -> int | None:
        """With fencing=True, a number greater than those of all earlier locks of the same resource.

        None without fencing. Pass it with each write to the system that the lock protects. That system
        must refuse a number that is less than the greatest it has seen, as a database does with UPDATE
        ... WHERE fence <= :token. Then a holder that was paused beyond the end of its lock cannot undo
        what the next holder wrote. The number does not change when the lock is extended. It stays
        available when the lock has expired or was lost, until it is unlocked.
        """
        return int(_c.RedLockLease_FencingToken(self._handle)) or None

    def __repr__(self) -> str:
        what = self.resource if len(self.resources) == 1 else self.resources
        return f"<redlock.{type(self).__name__} of {what!r}, valid for {self.remaining} s>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"a redlock.{type(self).__name__} cannot be pickled: detach it, and adopt the ticket")

    # The finalizer: does what is left to do when nothing refers to the lease any more. If the caller must
    # release the lock, the lease is only freed.
    __del__ = property(operator.attrgetter("_leave"))

    @staticmethod
    def _release_in_c(
        manager: _CManager, handle: _CLease, callers: list[Any]
    ) -> Callable[[], object]:
        """Returns a C function that releases a held lock, once, unless the caller must release it."""
        held = itertools.compress([(manager, handle)], map(_c.RedLockLease_IsHeld, [handle]))
        steps = itertools.chain(iter(callers), itertools.starmap(_c.RedLock_Unlock, held))
        return functools.partial(next, steps, None)

    def _end(self) -> None:
        """Called when the lock is no longer held."""
        self._end_keeping()
        self._enter = _spent
        self._callers = []
        self._leave = int
        self._owner = None
        self._events = None

    def _keep(self, events: _Events) -> int:
        """Prepares the keep-alive. Returns the number under which C reports that the lock cannot be kept.
        """
        self._end_keeping()
        number = events.number()
        self._kept = events, number
        events.keep(number, self)
        return number

    def _end_keeping(self) -> None:
        kept, self._kept = self._kept, None
        if kept is not None:
            events, number = kept
            events.end_keeping(number, self)

    def _keep_alive(self) -> None:
        self._manager._start_background_thread()
        number = self._keep(self._manager._open_events())
        # It may be kept alive again, for example after servers were away for a while.
        was_lost = self._set_lost(False)
        try:
            self._call(_c.RedLock_KeepAlive, self._handle, number)
        except Error:
            self._end_keeping()
            self._set_lost(was_lost)
            raise

    def _ttl_for_more(self, additional: Seconds) -> int:
        """Returns the ttl for a validity that is longer than now by this time."""
        more_ms = _ms(additional, "additional")
        if more_ms <= 0:
            raise InvalidArgument("additional must be more than 0", -1)
        return self._ttl_for(int(_c.RedLockLease_RemainingMs(self._handle)) + more_ms)

    def _ttl_for(self, validity_ms: int) -> int:
        """Returns the ttl for this validity: with the allowance for drift, 2 ms for the precision of
        expiry, and a rounding.
        """
        return int(min((validity_ms + 3) / (1 - self._manager._drift) + 1, 1e15))

    def _detach(self) -> str:
        size = 128 + (sum(len(name) + 2 for name in self._names) + 2) // 3 * 4
        room = ctypes.create_string_buffer(size)
        self._call(_c.RedLock_Detach, self._handle, room, size, leaving=True)
        self._unlocked = True
        self._end()
        return room.value.decode()

    def _note_adopted(self) -> None:
        """Fills in what is known of the lock since it was adopted."""
        count = _c.RedLockLease_ResourceCount(self._handle)
        if count == 1:
            address = _c.RedLockLease_Resource(self._handle)
            self._names = (ctypes.string_at(address, _c.RedLockLease_ResourceSize(self._handle)),)
        else:
            at = _c.RedLockLease_ResourceAt
            self._names = tuple(bytes(at(self._handle, index)) for index in range(count))
        self.resources = tuple(self._as_text(name) for name in self._names)
        self.resource = self.resources[0]
        self._ttl_ms = self._ttl_for(int(_c.RedLockLease_ValidityMs(self._handle)))
        self._ttl = self._ttl_ms / 1000

    @staticmethod
    def _as_text(name: bytes) -> Name:
        try:
            return name.decode()
        except UnicodeDecodeError:
            return name

    def _options(self, wait_ms: int, keep_alive: bool = False) -> _CAcquireOptions:
        """Returns the options for taking the lock. C reads the names while this object lives."""
        options = _CAcquireOptions(
            size=ctypes.sizeof(_CAcquireOptions),
            ttl_ms=self._ttl_ms,
            wait_ms=wait_ms,
            mode=_SHARED if self._wants_shared else 0,
            permits=self._permits,
            keep_alive=keep_alive,
        )
        if len(self._names) == 1:
            options.resource = self._names[0]
        else:
            options.resources = (ctypes.c_char_p * len(self._names))(*self._names)
            options.resource_count = len(self._names)
        return options

    def _set_lost(self, is_lost: bool) -> bool:
        """Returns the previous value."""
        raise NotImplementedError

    def _note_lost(self, number: int) -> None:
        """The lock with this number cannot be kept alive. Called on the thread that has taken the event.
        """
        raise NotImplementedError

    def _is_kept(self, number: int) -> bool:
        """Whether the lock is still kept alive under this number, and not under a newer one."""
        return self._kept is not None and self._kept[1] == number

    @property
    def _is_ours(self) -> bool:
        """Whether the with block, and not the caller, must release the lock."""
        return self._enter is not _spent and not self._callers

    @staticmethod
    def _waiting_time(wait: Seconds | None) -> float:
        seconds = math.inf if wait is None else _seconds(wait, "wait")
        if seconds < 0:
            raise InvalidArgument("wait is negative", -1)
        return seconds

    def _nested(self, name: bytes) -> Nested:
        words = f"the with block around this call already holds {self._as_text(name)!r}"
        return Nested(f"{words}: set reentrant=True on both calls to take it again", 1)

    def _call(self, function: Callable[..., int], *arguments: Any, leaving: bool = False) -> None:
        handle = (self._owner if leaving else None) or self._manager._open_handle()
        was_held = self.held
        try:
            with self._calling.now():
                status = self._status(handle, function, arguments)
                words = _c.RedLockLease_ErrorMessage(self._handle).decode("utf-8", "replace")
                self._words = words
            self._check(status, words)
        finally:
            self._manager._tell(handle)
        if not leaving:
            self._be_in_time(was_held)

    @staticmethod
    def _least(hold_at_least: Seconds | None) -> tuple[int, ...]:
        """The milliseconds that a call has to be told, if any."""
        return () if hold_at_least is None else (_ms(hold_at_least, "hold_at_least"),)

    def _check(self, status: int, words: str) -> None:
        if status == _CANCELLED:
            self._manager._open_handle()  # the manager was closed: raises that
        _check(status, words)

    def _status(
        self, handle: _CManager, function: Callable[..., int], arguments: tuple[Any, ...]
    ) -> int:
        """The status of a call at its end."""
        if _is_patched():
            for waiting, submit in _SUBMITS:
                if waiting is function:
                    events = self._events or self._manager._open_events()
                    return _GreenCall(self, events, submit).wait(arguments)
        if function is _c.RedLock_Acquire:
            return self._wait_in_slices(handle, arguments)
        return int(function(handle, *arguments))

    def _wait_in_slices(self, handle: _CManager, arguments: tuple[Any, ...]) -> int:
        """The status of a call that takes a lock. The interpreter handles signals between two slices.

        The call goes on between them, and keeps its place among those that wait.
        """
        manager, events = self._manager, self._manager._open_events()
        slice_ms = _ms(_SLICE, "a slice")
        give_up = self._giving_up(handle)
        number = events.number()
        events.waiting[number] = self._handle
        try:
            _c.RedLockLease_SetDoneEvents(self._handle, False)  # no other thread can take the end
            status = int(_c.RedLock_SubmitAcquire(handle, *arguments, 0))
            if status != 0:
                return status
            if events.is_closed:
                _c.RedLock_Cancel(handle, self._handle)
            while True:
                status = int(_c.RedLock_Wait(handle, self._handle, slice_ms))
                if status != _NO_EVENT:
                    return status
                manager._tell(handle)
                manager._renew_log_in()
                events.look_up_if_due()
        except BaseException:
            give_up()
            raise
        finally:
            events.waiting.pop(number, None)

    def _giving_up(self, handle: _CManager) -> Callable[[], object]:
        """Returns a C function that ends a submitted call, so that no exception comes in between. If the
        lock was granted before, the lease has it.
        """
        steps = itertools.chain(
            itertools.starmap(_c.RedLock_Cancel, [(handle, self._handle)]),
            itertools.starmap(_c.RedLock_Wait, [(handle, self._handle, -1)]),
        )
        return functools.partial(collections.deque, steps, 0)

    def _be_in_time(self, was_held: bool) -> None:
        """A lock counts only if it is held when its caller gets the result. C cannot see how long the logger takes.

        The lease of a lock that another thread has released meanwhile has no token.
        """
        with self._calling.now():
            if self.held or not _c.RedLockLease_Token(self._handle):
                return
            self._words = "the lock ended before the program read the result of the call"
        _check(4 if was_held else 3, self._words)

"""A resource that several callers can hold."""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
import weakref
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable

from ._arguments import _WAIT, _count
from ._async_lease import AsyncLease, _Locking
from ._errors import InvalidArgument, Taken
from ._lease import Lease
from ._types import Name, Seconds

if TYPE_CHECKING:
    from ._manager import Manager


class _Entered:
    """What was entered and must be left by callers who are no block: the last one at the end."""

    def __init__(self) -> None:
        self._things: list[tuple[object, Any]] = []

    def put(self, thing: Any) -> None:
        self._things.append((self._caller(), thing))

    def take(self) -> Any:
        """Returns what this thread or task has entered last; otherwise what any other has entered last."""
        caller, things = self._caller(), self._things
        last_first = things[::-1]
        for entered in sorted(last_first, key=lambda it: it[0] != caller):
            try:
                things.remove(entered)
            except ValueError:
                continue  # another thread has just taken it
            return entered[1]
        raise RuntimeError("no with block has taken a permit")

    @staticmethod
    def _caller() -> tuple[int, object]:
        task = None
        if "asyncio" in sys.modules:
            import asyncio

            with contextlib.suppress(RuntimeError):  # no loop runs here
                task = asyncio.current_task()
        return threading.get_ident(), task


class _Visit:
    """What one block has entered. The block owns it, so it is released when the block is gone."""

    is_of_block = False

    def __init__(self) -> None:
        self._things: list[Any] = []

    def begin(self, entered: _Entered, thing: Any) -> None:
        if self.is_of_block:
            self._things.append(thing)
        else:
            entered.put(thing)

    def finish(self, entered: _Entered) -> Any:
        return self._things.pop() if self._things else entered.take()


class _Last(threading.local):
    """The edge of a block that this thread has looked up last, while the look-up of the other may follow."""

    edge: object = None
    of: object = None
    function: Callable[[], functools.partial[Any] | None] = type(None)  # a weak reference


class _Edge:
    """The beginning or the end of a block, as a special method.

    A block may be left on another thread, or in another task, than it was entered: those of generators
    are, which web frameworks and test frameworks run. So what a block has entered is found by the block.
    A with statement, and whoever does the same (contextlib.ExitStack), looks up both methods, one right
    after the other, calls the first, and keeps the second. So these two get the same visit.
    """

    _other: Any
    _last = _Last()

    def __init__(self, method: Callable[..., Any], begins: bool) -> None:
        self._method = method
        self._begins = begins

    @classmethod
    def pair(cls, begin: Callable[..., Any], finish: Callable[..., Any]) -> tuple[_Edge, _Edge]:
        edges = first, second = cls(begin, True), cls(finish, False)
        first._other, second._other = second, first
        return edges

    def __get__(self, thing: object, kind: type | None = None) -> Callable[..., Any]:
        last = self._last
        other = last.function() if last.edge is self._other and last.of == id(thing) else None
        visit = _Visit() if other is None else other.args[0]
        visit.is_of_block = other is not None
        function = functools.partial(self._call, visit, *(() if thing is None else (thing,)))
        # Before Python 3.14 a block looks up its end last, and from then on its beginning. So a beginning may
        # have found an end that somebody keeps, and the end of its block may still come.
        last.edge = None if other is not None and not self._begins else self
        last.of, last.function = id(thing), weakref.ref(function)
        return function

    def _call(self, visit: _Visit, thing: Any, *arguments: Any) -> Any:
        return self._method(thing, visit, *arguments)


class Semaphore:
    """A resource that this number of callers can hold at the same time, as Manager.semaphore returns it.

    Threads and tasks may share it, and each of them may hold several permits. A permit is a lease, and
    has all functions of a Lease. In a with statement it is unlocked at the end of the block.
    """

    def __init__(
        self, manager: Manager, resource: Name, permits: int, ttl: Seconds, keep_alive: bool = False
    ) -> None:
        self.resource: Name = resource
        """The name, as it was given."""
        self.permits = _count(permits)
        """The number of permits."""
        if self.permits < 1:
            raise InvalidArgument(f"permits is {permits}: it must be 1 to 256", -1)
        self._manager = manager
        self._ttl = ttl
        self._keep_alive = bool(keep_alive)
        self._entered = _Entered()

    def acquire(self, wait: Seconds | None = _WAIT) -> Lease:
        """Takes a permit, and returns it. wait and the exceptions are as for Manager.lock."""
        lease = self._take(wait)
        lease._callers[:] = [lease]  # must be the last call: see Lease.__enter__
        return lease

    def _take(self, wait: Seconds | None) -> Lease:
        """Takes a permit that is released when nothing refers to it."""
        lease = Lease(self._manager, self.resource, self._ttl)
        lease._permits = self.permits
        try:
            lease._acquire(wait)
            if self._keep_alive:
                lease.keep_alive()
            return lease
        except BaseException:
            lease._release()
            raise

    def try_acquire(self) -> Lease | None:
        """As acquire with one attempt, but returns None if all permits are taken."""
        try:
            return self.acquire(wait=0)
        except Taken:
            return None

    async def atry_acquire(self) -> AsyncLease | None:
        """As try_acquire, for a task of asyncio."""
        try:
            return await self.aacquire(wait=0)
        except Taken:
            return None

    def aacquire(self, wait: Seconds | None = _WAIT, cancel_when_lost: bool = False) -> _Locking:
        """As acquire, for a task of asyncio: await it, or enter it with async with. See Manager.alock."""
        locking = _Locking(
            AsyncLease,
            self._manager,
            self.resource,
            self._ttl,
            wait,
            self._keep_alive,
            cancel_when_lost,
        )
        locking._permits = self.permits
        return locking

    def taken(self) -> int:
        """Asks the servers how many permits are taken. The answer may be out of date when it arrives."""
        return self._manager.inspect(self.resource, self.permits).permits_taken

    async def ataken(self) -> int:
        """As taken, for a task of asyncio."""
        return (await self._manager.ainspect(self.resource, self.permits)).permits_taken

    def _begin(self, visit: _Visit) -> Lease:
        """Takes a permit for a with block, and waits for it as long as acquire does."""
        lease = self._take(_WAIT)
        visit.begin(self._entered, lease)
        return lease

    def _finish(
        self,
        visit: _Visit,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        visit.finish(self._entered).__exit__(kind, error, trace)

    async def _abegin(self, visit: _Visit) -> AsyncLease:
        locking = self.aacquire()
        lease = await locking.__aenter__()
        visit.begin(self._entered, locking)
        return lease

    async def _afinish(
        self,
        visit: _Visit,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await visit.finish(self._entered).__aexit__(kind, error, trace)

    if TYPE_CHECKING:

        def __enter__(self) -> Lease: ...

        def __exit__(
            self,
            kind: type[BaseException] | None,
            error: BaseException | None,
            trace: TracebackType | None,
        ) -> None: ...

        async def __aenter__(self) -> AsyncLease: ...

        async def __aexit__(
            self,
            kind: type[BaseException] | None,
            error: BaseException | None,
            trace: TracebackType | None,
        ) -> None: ...

    else:
        __enter__, __exit__ = _Edge.pair(_begin, _finish)
        __aenter__, __aexit__ = _Edge.pair(_abegin, _afinish)

    def __repr__(self) -> str:
        return f"<redlock.Semaphore {self.resource!r} of {self.permits} permits>"

"""The lock of a task of asyncio."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import math
import weakref
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Generator

from ._arguments import _ms
from ._calls import _Call
from ._errors import Error, InvalidArgument, Lost, Unreachable
from ._lease_base import _Held
from ._library import _c
from ._types import Names, Seconds

if TYPE_CHECKING:
    import asyncio

    from ._manager import Manager


class AsyncLease(_Held):
    """One lock of a task, as Manager.alock returns it.

    Otherwise as a Lease. Tasks of one loop may share it: a call waits for the previous one. A task that
    is cancelled in a call does not wait for the end of the call. The lock is then as before the call, or
    as after it.
    """

    _block: _Block | None = None

    def __init__(
        self,
        manager: Manager,
        resource: Names,
        ttl: Seconds,
        cancels: bool = False,
        shared: bool = False,
    ) -> None:
        import asyncio

        super().__init__(manager, resource, ttl, shared)
        self._cancels = cancels
        self._loop: asyncio.AbstractEventLoop = asyncio.get_running_loop()
        self._task: Callable[[], object] = lambda: None
        self._blocks: list[_Block] = []  # the blocks of its levels
        self._underway: _Call | None = None
        self.lost = asyncio.Event()
        """Set when a lock that is kept alive can no longer be kept."""

    async def extend(self, ttl: Seconds | None = None) -> None:
        """As Lease.extend."""
        ttl_ms = _ms(self._ttl if ttl is None else ttl, "ttl")
        await self._ask(_c.RedLock_SubmitExtend, self._handle, ttl_ms)

    async def extend_by(self, additional: Seconds) -> None:
        """As Lease.extend_by."""
        await self._turn()
        await self._ask(_c.RedLock_SubmitExtend, self._handle, self._ttl_for_more(additional))

    async def downgrade(self) -> None:
        """As Lease.downgrade."""
        await self._ask(_c.RedLock_SubmitDowngrade, self._handle)

    async def confirm(self, least: Seconds = 0) -> None:
        """As Lease.confirm."""
        await self._ask(_c.RedLock_SubmitConfirm, self._handle, _ms(least, "least"))

    async def unlock(self, hold_at_least: Seconds | None = None) -> None:
        """As Lease.unlock. If the task is cancelled meanwhile, the lock is still released."""
        least = self._least(hold_at_least)
        self._unlocked = True
        try:
            unlock = _c.RedLock_SubmitUnlockAfter if least else _c.RedLock_SubmitUnlock
            await self._ask(unlock, self._handle, *least, leaving=True)
        except InvalidArgument:
            self._unlocked = False
            raise
        finally:
            if not self.held:
                self._end()

    async def detach(self) -> str:
        """As Lease.detach. It asks no server, but waits for a call that is under way."""
        await self._turn()
        return self._detach()

    async def keep_alive(self) -> None:
        """As Lease.keep_alive. It asks no server, but waits for a call that is under way."""
        await self._turn()
        self._keep_alive()

    async def __aenter__(self) -> AsyncLease:
        lease: AsyncLease = self._enter()  # from now on the block must release it
        lease._enter_block()
        return lease

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        is_stopped = self._end_block(kind)
        try:
            if kind is None:
                if not self._unlocked:
                    await self.unlock()
            elif self.held and kind is not GeneratorExit:  # then nothing may be awaited
                await self._leave_block()
        except Unreachable:
            pass  # the block held the lock to its end
        except Error:
            if kind is None:
                raise
        finally:
            self._let_go()
        if is_stopped:
            words = f"the lock on {self.resource!r} could not be kept alive, the block was cancelled"
            raise Lost(words, 4) from error

    async def _acquire(self, wait: Seconds | None, keep_alive: bool) -> None:
        import asyncio

        seconds = self._waiting_time(wait)
        manager = self._manager
        leases, task = manager._leases_of_tasks, asyncio.current_task()
        for name in self._names if self._permits == 0 else ():
            outer = leases.find(name)
            if outer is None or not (outer._is_ours and outer.held and outer._task() is task):
                continue
            if not (self._wants_shared and outer.shared):
                raise self._nested(name)
        manager._renew_log_in()
        if keep_alive:
            manager._start_background_thread()
        options = self._options(-1 if seconds == math.inf else _ms(seconds, "wait"), keep_alive)
        try:
            await self._ask(
                _c.RedLock_SubmitAcquire, ctypes.byref(options), self._handle, keeps=keep_alive
            )
        except Unreachable:
            manager._some_server_failed()
            raise
        manager._open_handle()  # a manager that was closed meanwhile gives no lock
        if self._words:
            manager._some_server_failed()
        self._belong_to_task()

    def _belong_to_task(self) -> None:
        import asyncio

        task = asyncio.current_task()
        if task is not None:
            self._task = weakref.ref(task)
        for name in self._names if self._permits == 0 else ():
            self._manager._leases_of_tasks.put(name, self)

    async def _turn(self) -> None:
        """Waits until no other call is under way."""
        import asyncio

        if asyncio.get_running_loop() is not self._loop:
            raise RuntimeError(f"{self!r} belongs to another event loop")
        while self._underway is not None and not self._underway.over.done():
            await asyncio.shield(self._underway.over)

    async def _ask(
        self,
        function: Callable[..., int],
        *arguments: Any,
        leaving: bool = False,
        keeps: bool = False,
    ) -> None:
        import asyncio

        await self._turn()
        events = (self._events if leaving else None) or self._manager._open_events()
        call = self._underway = _Call(self, events, function)
        was_held = self.held
        try:
            if call.submit(self._keep(events) if keeps else events.number(), arguments):
                await asyncio.shield(call.over)
        except Error as error:
            self._words = str(error)
            raise
        except BaseException:
            call.abandon()
            raise
        self._words = call.words
        self._check(-4 if call.status is None else call.status, call.words)
        if not leaving:
            self._be_in_time(was_held)

    def _set_lost(self, is_lost: bool) -> bool:
        was_lost = self.lost.is_set()
        (self.lost.set if is_lost else self.lost.clear)()
        return was_lost

    def _note_lost(self, number: int) -> None:
        # Never at once: a task may be running, and a task must be waiting when it is cancelled.
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._tell_loss, number)

    def _tell_loss(self, number: int) -> None:
        if self._is_kept(number):
            self._end_keeping()
            self._set_lost(True)
            for block in [self._block, *self._blocks]:
                if block is not None:
                    block.cancel()

    def _enter_block(self) -> None:
        import asyncio

        task = asyncio.current_task()
        if self._cancels and task is not None:
            self._block = _Block(task)
            if self.lost.is_set():
                self._loop.call_soon(self._block.cancel)

    def _end_block(self, kind: type[BaseException] | None) -> bool:
        """Ends the cancellation. Returns whether the block ended because of it."""
        block, self._block = self._block, None
        return block is not None and block.end(kind)

    def _end(self) -> None:
        super()._end()
        for name in self._names:
            self._manager._leases_of_tasks.drop(name, self)

    async def _leave_block(self) -> None:
        await self._ask(_c.RedLock_SubmitUnlock, self._handle, leaving=True)

    def _let_go(self) -> None:
        """Releases the lock if it is still held. Does not wait."""
        events, call = self._events, self._underway
        if events is None or not events.is_ours:
            return
        is_leaving = False
        if call is not None and call.status is None:
            is_leaving = call.is_unlock
            call.abandon()
        # If this is refused, __del__ releases the lock.
        unlock = functools.partial(_c.RedLock_SubmitUnlock, events.handle, self._handle, 0)
        if is_leaving or not self.held or unlock() == 0:
            self._end()
        events.take()  # sends the release


class _Block:
    """A task in a block that is cancelled when the lock is lost."""

    def __init__(self, task: asyncio.Task[Any]) -> None:
        self._task = task
        # From Python 3.11 on, a task counts its cancellations.
        self._others = getattr(task, "cancelling", int)()
        self._is_cancelled = self._is_over = False

    def cancel(self) -> None:
        if not self._is_over:
            self._is_cancelled = True
            self._task.cancel()

    def end(self, kind: type[BaseException] | None) -> bool:
        """Returns whether the block ended because of this cancellation only, and not also because of
        another one.
        """
        import asyncio

        self._is_over = True
        if not self._is_cancelled:
            return False
        others = getattr(self._task, "uncancel", int)()
        return others <= self._others and kind is asyncio.CancelledError


class _Locking:
    """A lock to await, or to enter, once."""

    def __init__(
        self,
        kind: type[AsyncLease],
        manager: Manager,
        resource: Names,
        ttl: Seconds,
        wait: Seconds | None,
        keep_alive: bool,
        cancel_when_lost: bool,
        shared: bool = False,
    ) -> None:
        self._kind = kind
        self._manager = manager
        self._arguments = resource, ttl, bool(cancel_when_lost), bool(shared)
        self._options = wait, bool(keep_alive or cancel_when_lost)
        self._permits = 0
        self._is_used = False
        self._lease: AsyncLease | None = None

    def __await__(self) -> Generator[Any, None, AsyncLease]:
        return self._take_for_caller().__await__()

    async def __aenter__(self) -> AsyncLease:
        self._lease = await self._take()
        self._lease._enter_block()
        return self._lease

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        lease, self._lease = self._lease, None
        if lease is not None:
            await lease.__aexit__(kind, error, trace)

    async def _take_for_caller(self) -> AsyncLease:
        lease = await self._take()
        lease._callers[:] = [lease]
        return lease

    async def _take(self) -> AsyncLease:
        if self._is_used:
            raise RuntimeError("call alock again for each lock: this one was already used")
        self._is_used = True
        lease = self._kind(self._manager, *self._arguments)
        lease._permits = self._permits
        try:
            await lease._acquire(*self._options)
        except BaseException:
            lease._let_go()
            raise
        return lease

"""A lock that its thread, or its task, may take again."""

from __future__ import annotations

import contextlib
import functools
import itertools
import operator
import os
from typing import TYPE_CHECKING, Any, Callable

from ._arguments import _refuse_both
from ._async_lease import AsyncLease
from ._calls import _Call
from ._errors import Error, InvalidArgument, Lost, _check
from ._handles import _CLease, _CManager, _make
from ._lease import Lease
from ._library import _c
from ._threads import _is_patched
from ._types import Seconds
from ._weak import _Weak


class _Levels:
    """The common part of the levels of one lock, of a thread or of a task."""

    # The status of RedLock_Retain, which is called once for each level except the first. 0 while the
    # level must still be left, otherwise another number.
    _entered: list[int]
    _core: Any = None
    _handle: _CLease
    # Leaves the level, once, and returns the status. None: it was left before.
    _once: Callable[[], Any]
    if TYPE_CHECKING:
        # Those of the lease that is the level.
        _callers: list[Any]
        _leave: Callable[[], object]

    def _find_core(self, leases: _Weak[bytes, Any]) -> Any:
        """Returns the lock that its owner already holds, if any.

        A lost lock counts, too, while one of its blocks is still running.
        """
        names: tuple[bytes, ...] = self._names  # type: ignore[attr-defined]
        core = leases.find(names[0])
        if core is None or core._process != os.getpid() or not hasattr(core, "_levels"):
            return None
        if not set(names) <= set(core._names):
            return None
        return core if core.held or any(it._is_ours for it in core._levels.all()) else None

    def _be_level_of(self, core: Any) -> None:
        """Makes this lease a level of that lock. The level is not entered yet."""
        self._core = core
        self._handle = core._handle
        self._calling = core._calling
        self.lost = core.lost
        self._entered = []
        core._levels.put(id(self), self)
        manager = core._manager._open_handle()
        is_entered = map(operator.not_, self._entered)
        # A C function, as for other leases: the level is left once, whatever comes in between.
        steps = itertools.compress([(manager, self._handle)], is_entered)
        unlocks = itertools.starmap(_c.RedLock_Unlock, steps)
        self._once = functools.partial(next, unlocks, None)
        calls: list[Callable[[], object]] = [self._once]
        self._leave = functools.partial(
            next, itertools.chain(iter(self._callers), map(_call_it, calls)), None
        )

    def _needs_extension(self, core: Any) -> bool:
        ttl_ms: int = self._ttl_ms  # type: ignore[attr-defined]
        is_kept = core._kept is not None and not core.lost.is_set() and ttl_ms <= core._ttl_ms
        return not is_kept and int(_c.RedLockLease_RemainingMs(self._handle)) < ttl_ms

    def _retain(self) -> None:
        with self._core._calling.now():
            # In C, so that no exception comes in between.
            self._entered.extend(map(_c.RedLock_Retain, [self._handle]))
            words = _c.RedLockLease_ErrorMessage(self._handle).decode("utf-8", "replace")
        self._words = words
        _check(self._entered[0], words)

    def _leave_core(self) -> None:
        """The level is left. With the last level the lock ends. From now on this lease holds nothing."""
        core = self._core
        if core is None or core._handle is not self._handle:
            return
        core._levels.drop(id(self), self)
        if not core._levels.all():
            core._end()
        self._handle = _make(_CLease, _c.RedLockLease_New)


_call_it = operator.methodcaller("__call__")


class Level(_Levels, Lease):
    """One of the leases of a lock that its thread may take again, as Manager.lock returns it.

    Otherwise as a Lease. extend, confirm and keep_alive act on the lock, and so on all levels.
    """

    def downgrade(self) -> None:
        """Is refused: a lock that its thread may take again cannot be shared."""
        _refuse_both(reentrant=True, shared=True)

    def keep_alive(self) -> None:
        """As Lease.keep_alive, until the last level is unlocked."""
        self._core.keep_alive()

    def unlock(self, hold_at_least: Seconds | None = None) -> None:
        """Leaves this level; the last level is unlocked as by Lease.unlock.

        Lost: the lock had already ended.
        """
        least = self._least(hold_at_least)
        self._unlocked = True
        if _is_patched():
            self._unlock_in_python(least)
            return
        handle = self._owner or self._manager._open_handle()
        try:
            with self._calling.now():
                status = self._unlock_in_c(handle, *least)
                self._words = _c.RedLockLease_ErrorMessage(self._handle).decode("utf-8", "replace")
            if status is None:
                raise Lost("the lock was already unlocked", 4)
            _check(status, self._words)
        except InvalidArgument:
            self._unlocked = False
            raise
        finally:
            if self._unlocked:
                if self._core is not None:
                    self._once()  # if a signal handler raised an exception before
                self._end()
            self._manager._tell(handle)

    def _unlock_in_c(self, handle: _CManager, *least: int) -> int | None:
        """Returns the status; None: the level was left before."""
        if self._core is None:
            return None
        if not least:
            status: int | None = self._once()
            return status
        if self._entered != [0]:
            return None
        # In C, so that no exception comes in between. A call that is refused leaves the level entered.
        statuses = map(_c.RedLock_UnlockAfter, [handle], [self._handle], least)
        self._entered[:] = map((1).__add__, statuses)
        return self._entered[0] - 1

    def _unlock_in_python(self, least: tuple[int, ...] = ()) -> None:
        if self._core is None or self._entered != [0]:
            raise Lost("the lock was already unlocked", 4)
        self._entered[0] = 4  # this call leaves the level, and nothing leaves it again
        try:
            unlock = _c.RedLock_UnlockAfter if least else _c.RedLock_Unlock
            self._call(unlock, self._handle, *least, leaving=True)
        except InvalidArgument:
            self._entered[0] = 0
            self._unlocked = False
            raise
        finally:
            if self._entered != [0]:
                self._end()

    def _release_in_python(self) -> None:
        if not self._callers and self._core is not None and self._entered == [0]:
            with contextlib.suppress(Error):
                self._unlock_in_python()

    def _acquire(self, wait: Seconds | None) -> None:
        leases = self._manager._here.leases
        core = self._find_core(leases)
        if core is not None:
            self._waiting_time(wait)
            self._be_level_of(core)
            if self._needs_extension(core):
                self._call(_c.RedLock_Extend, self._handle, self._ttl_ms)
            self._retain()
            return
        core = Lease(self._manager, list(self.resources), self._ttl)
        core._levels = _Weak()
        try:
            core._acquire(wait)
            self._be_level_of(core)
            self._words = core._words
            self._entered.append(0)
            core._leave = int  # the levels release the lock
        except BaseException:
            if not self._core or not self._entered:
                core._release()
            raise

    def _end(self) -> None:
        super()._end()
        self._leave_core()


class AsyncLevel(_Levels, AsyncLease):
    """One of the leases of a lock that its task may take again, as Manager.alock returns it."""

    # Calls on the lock are made one after the other, whichever level makes them.
    @property
    def _underway(self) -> _Call | None:
        return self._core._underway if self._core is not None else None

    @_underway.setter
    def _underway(self, call: _Call | None) -> None:
        if self._core is not None:
            self._core._underway = call

    async def downgrade(self) -> None:
        """As Level.downgrade."""
        _refuse_both(reentrant=True, shared=True)

    async def keep_alive(self) -> None:
        """As Level.keep_alive."""
        await self._core.keep_alive()

    async def unlock(self, hold_at_least: Seconds | None = None) -> None:
        """As Level.unlock. If the task is cancelled meanwhile, the level is still left."""
        least = self._least(hold_at_least)
        self._unlocked = True
        await self._turn()
        if self._core is None or self._entered != [0]:
            raise Lost("the lock was already unlocked", 4)
        self._entered[0] = 4  # this call leaves the level, and nothing leaves it again
        try:
            unlock = _c.RedLock_SubmitUnlockAfter if least else _c.RedLock_SubmitUnlock
            await self._ask(unlock, self._handle, *least, leaving=True)
        except InvalidArgument:
            self._entered[0] = 0
            self._unlocked = False
            raise
        finally:
            if self._entered != [0]:
                self._end()

    async def _leave_block(self) -> None:
        await self.unlock()

    async def _acquire(self, wait: Seconds | None, keep_alive: bool) -> None:
        import asyncio

        manager, task = self._manager, asyncio.current_task()
        core = self._find_core(manager._leases_of_tasks)
        if core is not None and core._task() is task:
            self._waiting_time(wait)
            self._be_level_of(core)
            self._task = core._task
            if self._needs_extension(core):
                await self._ask(_c.RedLock_SubmitExtend, self._handle, self._ttl_ms)
            await self._turn()
            self._retain()
            if keep_alive:
                await self.keep_alive()
            return
        core = AsyncLease(manager, list(self.resources), self._ttl)
        core._levels = _Weak()
        try:
            await core._acquire(wait, keep_alive)
            self._be_level_of(core)
            self._task = core._task
            self._words = core._words
            self._entered.append(0)
            core._leave = int  # the levels release the lock
        except BaseException:
            if not self._core or not self._entered:
                core._let_go()
            raise

    def _enter_block(self) -> None:
        super()._enter_block()
        if self._block is not None:
            self._core._blocks.append(self._block)

    def _let_go(self) -> None:
        events = self._events
        if events is None or not events.is_ours:
            return
        call = self._underway
        if call is not None and call.status is None and call._lease is self:
            call.abandon()
        if self._core is not None and self._entered == [0]:
            if _c.RedLock_SubmitUnlock(events.handle, self._handle, 0) != 0:
                return  # __del__ does it
            self._entered[0] = 4
        self._end()
        events.take()  # sends the release

    def _end(self) -> None:
        super()._end()
        self._leave_core()

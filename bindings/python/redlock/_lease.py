"""The lock of a thread."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import math
import operator
import os
from types import TracebackType
from typing import TYPE_CHECKING

from ._arguments import _ms
from ._errors import Error, InvalidArgument, Unreachable
from ._lease_base import _Held
from ._library import _c
from ._lost_event import LostEvent
from ._threads import _is_patched
from ._types import Names, Seconds

if TYPE_CHECKING:
    from ._manager import Manager


class Lease(_Held):
    """One lock, as Manager.lock returns it.

    It expires by itself, so check remaining, or call confirm, before a step that must not happen without
    the lock. Threads may share it.
    """

    def __init__(
        self, manager: Manager, resource: Names, ttl: Seconds, shared: bool = False
    ) -> None:
        super().__init__(manager, resource, ttl, shared)
        self.lost = LostEvent(self)
        """Set when a lock that is kept alive can no longer be kept."""

    def extend(self, ttl: Seconds | None = None) -> None:
        """Makes the lock last for ttl seconds from now on; by default for its present ttl.

        If it lasts longer than that, it is unchanged: an extension never shortens a lock.

        Lost: the lock had ended. Unreachable: too few servers answered, and a valid lock stays valid
        until its old expiry.
        """
        self._call(_c.RedLock_Extend, self._handle, _ms(self._ttl if ttl is None else ttl, "ttl"))

    def extend_by(self, additional: Seconds) -> None:
        """As extend, but makes the lock valid for this many seconds longer than now.

        In redis-py this is extend without replace_ttl. With it, redis-py may also shorten a lock, which
        no call does here.
        """
        self._call(_c.RedLock_Extend, self._handle, self._ttl_for_more(additional))

    def downgrade(self) -> None:
        """Makes an exclusive lock shared; no other client can have held it exclusively in between.

        The reverse is not possible. Lost: the lock had ended. Unreachable: too few servers answered. The
        lock is then still held until its old expiry, as a shared lock if shared says so, and the caller
        may call this again.
        """
        self._call(_c.RedLock_Downgrade, self._handle)

    def confirm(self, least: Seconds = 0) -> None:
        """Asks the servers whether this lease still holds its lock, for at least so many seconds.

        Lost: the lock is not held. TooShort: it is held, but not for that long.
        """
        self._call(_c.RedLock_Confirm, self._handle, _ms(least, "least"))

    def unlock(self, hold_at_least: Seconds | None = None) -> None:
        """Releases the lock.

        Lost: the lock had already ended, and no lock of another holder was changed. Unreachable: the
        release did not reach some servers; the lock expires there.

        With hold_at_least, this lease is unlocked, but others are kept out until so many seconds after
        the lock was taken, its ttl at most. It is for a job that must run once on machines whose clocks
        differ: a machine that is late finds the lock taken. InvalidArgument, and the lock is still held:
        the time is longer than the ttl, or the lock is shared or a permit.
        """
        least = self._least(hold_at_least)
        self._unlocked = True
        try:
            unlock = _c.RedLock_UnlockAfter if least else _c.RedLock_Unlock
            self._call(unlock, self._handle, *least, leaving=True)
        except InvalidArgument:
            self._unlocked = False
            raise
        finally:
            if not self.held:
                self._end()

    def detach(self) -> str:
        """Gives the lock away and returns a ticket. Another process, or another manager, adopts it.

        See Manager.adopt. The lease then holds nothing, and a with block releases nothing. Until the lock
        is adopted, nobody extends it, and it expires after its ttl. No server is asked. Lost: the lock
        had ended.

        The ticket is as secret as the token, which it contains. Pass it through a pipe or the
        environment, not as an argument of a program, which everybody can see.
        """
        return self._detach()

    def keep_alive(self) -> None:
        """Keeps the lock alive: extends it again and again, by its ttl, until it is unlocked.

        A thread of the library does this, whatever the Python threads do. A forked child has no such
        thread. The keep-alive ends with the process, or when nothing refers to the lease any more; then
        the lock lasts for at most one ttl.

        If too few servers extend the lock, or somebody has taken it away, lost is set, and the lock is no
        longer extended. In the first case, a tenth of the ttl or more is left then. Lost is raised if the
        lock had already ended.
        """
        self._keep_alive()

    if TYPE_CHECKING:

        def __enter__(self) -> Lease: ...

    else:
        # The exception of a signal handler can come at the beginning of any Python function. Here it
        # would lose a lock that nobody could release any more. So this is a C function: it returns the
        # lease, and from then on the lock is released, at the latest by __del__. The wrapper keeps no
        # results. It is there because it is a C function that becomes a method, which whoever enters the
        # lease through its class needs, as contextlib.ExitStack does.
        __enter__ = functools.lru_cache(maxsize=0)(operator.methodcaller("_enter"))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None and not self._unlocked:
                self.unlock()  # raises Lost if the block ran without the lock
        except Unreachable:
            pass  # the block held the lock to its end
        finally:
            self._release()

    def _end(self) -> None:
        super()._end()
        for name in self._names:
            self._manager._here.leases.drop(name, self)

    def _set_lost(self, is_lost: bool) -> bool:
        was_lost, self.lost._is_set = self.lost._is_set, is_lost
        return was_lost

    def _note_lost(self, number: int) -> None:
        if self._is_kept(number):
            self._set_lost(True)

    def _acquire(self, wait: Seconds | None) -> None:
        self._refuse_nested()
        seconds = self._waiting_time(wait)
        manager = self._manager
        manager._renew_log_in()
        options = self._options(-1 if seconds == math.inf else _ms(seconds, "wait"))
        try:
            self._call(_c.RedLock_Acquire, ctypes.byref(options), self._handle)
        except Unreachable:
            manager._some_server_failed()
            raise
        manager._open_handle()  # a manager that was closed meanwhile gives no lock
        if self._words:
            manager._some_server_failed()

    def _refuse_nested(self) -> None:
        if self._permits > 0:
            return  # a thread may hold several permits
        leases = self._manager._here.leases
        for name in self._names:
            outer = leases.find(name)
            if outer is not None and outer._is_ours and outer.held:
                if self._wants_shared and outer.shared:
                    return  # leases.find still finds the outer lease
                raise self._nested(name)
        for name in self._names:
            leases.put(name, self)

    def _release(self) -> None:
        """Releases the lock if it is held. If a signal handler raises an exception first, __del__ does
        it.
        """
        if _is_patched():
            self._release_in_python()
        else:
            with self._calling.now():
                self._leave()
        self._end()

    def _release_in_python(self) -> None:
        if not self._callers and self.held and self._process == os.getpid():
            with contextlib.suppress(Error):
                self._call(_c.RedLock_Unlock, self._handle, leaving=True)

"""The events of a manager, and to whom they go."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import itertools
import os
import threading
import weakref
from typing import TYPE_CHECKING

from ._calls import _call_in_loop, _GreenCall, _set_done, _Submitted
from ._errors import Internal
from ._handles import _CLease, _CManager
from ._library import _c
from ._structures import _DONE, _LOST, _NONE, _CEvent
from ._threads import _SLICE, _is_patched, _pause, _system_threads, _wait_readable
from ._weak import _Weak

if TYPE_CHECKING:
    import asyncio

    from ._lease_base import _Held
    from ._manager import Manager


class _Events:
    """The calls and kept locks of this process for which no thread waits in C.

    Any thread may take an event, and hands it to its call or lease.
    """

    def __init__(self, manager: Manager, handle: _CManager) -> None:
        self._manager = weakref.ref(manager)
        self.handle = handle
        self._process = os.getpid()
        self._numbers = itertools.count(1)  # passed to C as user_data
        self._calls: dict[int, _Submitted] = {}
        self._kept: _Weak[int, _Held] = _Weak()
        self._looks = 0
        self.is_closed = False
        self.waiting: dict[int, _CLease] = {}  # the leases of calls that threads wait for in C
        self._teller: threading.Thread | None = None  # tells the logger while locks are only kept alive
        self._telling_loops: set[asyncio.AbstractEventLoop] = set()  # these do the same
        self._looker: _GreenCall | None = None  # the call that looks for all that wait in Python
        self._resolvers: list[bool] = []  # not empty while a thread looks up names
        # The futures that end when the manager is closed. Nobody waits for their calls then.
        self._questions: dict[asyncio.Future[None], asyncio.AbstractEventLoop] = {}
        # What each loop waits for: calls by their numbers, kept locks by their negative numbers. The loop
        # watches the descriptor while its set is not empty. So the descriptor, which belongs to C, is
        # never closed while a loop knows it.
        self._loops: dict[asyncio.AbstractEventLoop, set[int]] = {}

    @property
    def is_ours(self) -> bool:
        return self._process == os.getpid()

    def number(self) -> int:
        return next(self._numbers)

    def begin(self, number: int, call: _Submitted) -> None:
        self._calls[number] = call
        if call.loop is not None:
            self._watch(call.loop, number)

    def end(self, number: int, call: _Submitted) -> None:
        """Called on the thread of its loop, if it has one."""
        self._calls.pop(number, None)
        if call.loop is not None:
            self._unwatch(call.loop, number)

    def begin_question(self, loop: asyncio.AbstractEventLoop) -> asyncio.Future[None]:
        closing = loop.create_future()
        self._questions[closing] = loop
        if self.is_closed:
            closing.set_result(None)
        return closing

    def end_question(self, closing: asyncio.Future[None]) -> None:
        self._questions.pop(closing, None)

    def close(self) -> None:
        """Ends all calls that wait for locks, and the waiting for answers. New ones see that it is closed."""
        self.is_closed = True
        leases = [call.lease_handle for call in list(self._calls.values()) if call.takes]
        for lease in [*leases, *list(self.waiting.values())]:
            _c.RedLock_Cancel(self.handle, lease)
        for closing, loop in list(self._questions.items()):
            _call_in_loop(loop, _set_done, closing)
        if leases:
            self.take()

    def keep(self, number: int, lease: _Held) -> None:
        self._kept.put(number, lease)
        if lease._loop is not None:
            self._watch(lease._loop, -number)  # the call that takes the lock has the positive number
        self.tell_meanwhile()

    def end_keeping(self, number: int, lease: _Held) -> None:
        self._kept.drop(number, lease)
        if lease._loop is not None:
            self._leave(lease._loop, -number)

    def tell_meanwhile(self) -> None:
        """Has the logger told of servers, and the function for passwords asked, while locks are kept alive
        and nobody makes a call. C calls neither of them.
        """
        manager = self._manager()
        if manager is None or not manager._is_told or not self.is_ours:
            return
        loops = {lease._loop for lease in self._kept.all()}
        for loop in loops - self._telling_loops:
            if loop is not None and _call_in_loop(loop, self._tell_in_loop, loop):
                self._telling_loops.add(loop)
        if None in loops and self._teller is None:
            body = functools.partial(_tell_until_told_no_more, weakref.ref(self))
            self._teller = threading.Thread(target=body, name="redlock", daemon=True)
            with contextlib.suppress(RuntimeError):  # the interpreter ends
                self._teller.start()

    def _tell_in_loop(self, loop: asyncio.AbstractEventLoop) -> None:
        if self.tell_kept(loop):
            loop.call_later(_SLICE, self._tell_in_loop, loop)
        else:
            self._telling_loops.discard(loop)

    def tell_kept(self, loop: asyncio.AbstractEventLoop | None) -> bool:
        """Tells what there is to be told. Returns whether there may be more: locks of that loop, or of
        threads, are kept alive.
        """
        manager = self._manager()
        if manager is None or not manager._is_told or not self.is_ours:
            return False
        self._read()
        return any(lease._loop is loop for lease in self._kept.all())

    def take(self) -> None:
        """Does the work that is due, and hands on all events. Does not wait."""
        manager = self._manager()
        # Without its manager, the event is a temporary one: no thread can hand on the same event again.
        event = manager._here.event if manager else _CEvent(ctypes.sizeof(_CEvent), _NONE)
        while self.is_ours:
            if event.kind != _NONE:
                # A copy, because a signal handler may run in between, and take the next event.
                self._hand_on(_CEvent.from_buffer_copy(event))
                event.kind = _NONE
            if _c.RedLock_NextEvent(self.handle, 0, ctypes.byref(event)) != 0:
                break
        self._throw_out()
        if manager is not None:
            manager._tell(self.handle)
        self.look_up_if_due()

    def look_up_if_due(self) -> None:
        """Begins to look up the names of servers that may have moved, in a thread that ends with that: nobody
        here may wait for the system's resolver. A thread that keeps locks alive does it by itself.
        """
        manager = self._manager()
        if manager is None or manager._has_background_thread or self._resolvers or not self.is_ours:
            return
        if self.is_closed or not _c.RedLock_IsLookUpDue(self.handle):
            return
        is_over = self._resolvers.clear
        body = functools.partial(_look_up, self.handle, self._resolvers)
        try:
            self._resolvers.append(True)
            if _is_patched():
                _system_threads.begin(body, is_over)
            else:
                threading.Thread(target=body, name="redlock-names", daemon=True).start()
        except BaseException as error:
            is_over()
            # The interpreter ends, or there are too many threads: a later step tries it again.
            if not isinstance(error, RuntimeError):
                raise

    def wait(self, seconds: float) -> bool:
        """Waits until there may be an event, at most this long. Returns whether there may be one."""
        return _wait_readable(self._descriptor(), seconds)

    def await_end(self, call: _GreenCall) -> None:
        """Waits in Python for a call. One of those that wait looks for all of them."""
        try:
            while call.status is None:
                if self._looker in (None, call):
                    self._looker = call
                    self.wait(_SLICE)
                    self._read()
                else:
                    call.roused.wait(4 * _SLICE)
                    call.roused.clear()
        finally:
            # Also if this call was roused to look, and does not.
            if self._looker in (None, call):
                self._looker = None
                for other in list(self._calls.values()):
                    if isinstance(other, _GreenCall) and other.status is None and other is not call:
                        other.roused.set()
                        break

    def _read(self) -> None:
        """A loop calls this when the descriptor is readable. Does the work that is due."""
        self.take()
        manager = self._manager()
        if manager is not None and not manager.closed:
            manager._renew_log_in()

    def _hand_on(self, event: _CEvent) -> None:
        """Hands on the event. It is harmless to do this twice."""
        number = event.user_data or 0
        if event.kind == _DONE:
            call = self._calls.get(number)
            if call is not None:
                call.end(event.status)
        elif event.kind == _LOST:
            lease = self._kept.find(number)
            if lease is not None:
                lease._note_lost(number)

    def _throw_out(self) -> None:
        """Forgets calls and locks that nobody can wait for any more. It runs at a rate that makes its
        cost negligible.
        """
        for loop in list(self._loops):
            if loop.is_closed():
                for number in self._loops.pop(loop, set()):
                    call = self._calls.get(number)
                    if call is not None:
                        call.abandon()
        self._looks += 1
        if self._looks > len(self._kept):
            self._looks = 0
            for number in self._kept.throw_out():
                for loop in list(self._loops):
                    self._leave(loop, -number)

    def _descriptor(self) -> int:
        descriptor = int(_c.RedLock_Descriptor(self.handle))
        if descriptor < 0:
            raise Internal("cannot create file descriptors", -4)
        return descriptor

    def _watch(self, loop: asyncio.AbstractEventLoop, number: int) -> None:
        numbers = self._loops.get(loop)
        if numbers is None:
            loop.add_reader(self._descriptor(), self._read)
            numbers = self._loops[loop] = set()
        numbers.add(number)

    def _leave(self, loop: asyncio.AbstractEventLoop, number: int) -> None:
        if self.is_ours and not _call_in_loop(loop, self._unwatch, loop, number):
            self._loops.pop(loop, None)

    def _unwatch(self, loop: asyncio.AbstractEventLoop, number: int) -> None:
        numbers = self._loops.get(loop)
        if numbers is None:
            return
        numbers.discard(number)
        if not numbers:
            loop.remove_reader(self._descriptor())
            self._loops.pop(loop, None)


def _look_up(handle: _CManager, resolvers: list[bool]) -> None:
    """The body of a thread. No exception of a signal handler comes here. The interpreter does not wait for it."""
    try:
        _c.RedLock_LookUp(handle)
    finally:
        resolvers.clear()
    # For what is due since then, a waiting thread may have found this look-up still under way.
    if _c.RedLock_IsLookUpDue(handle):
        _c.RedLock_LookUp(handle)


def _tell_until_told_no_more(reference: weakref.ref[_Events]) -> None:
    """The body of a thread. It keeps nothing alive while it waits."""
    while True:
        _pause(_SLICE)
        events = reference()
        if events is None or not events.is_ours:
            return
        if not events.tell_kept(None):
            events._teller = None
            events.tell_meanwhile()  # if a lock came meanwhile
            return
        del events

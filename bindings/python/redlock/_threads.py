"""Threads, and what may have taken their place."""

from __future__ import annotations

import ctypes
import functools
import itertools
import math
import os
import select
import threading
import time
from types import BuiltinFunctionType
from typing import Any, Callable, Generic, TypeVar

_T = TypeVar("_T")

# How many seconds a thread waits at a time: the exceptions of signal handlers must wait for the end.
_SLICE = 0.25


def _is_patched() -> bool:
    """Whether others than threads wait here, as greenlets do once gevent has patched these modules.

    No call of them may wait in C, because that would stop all the others. A module may be patched at any
    time, so this is asked each time.
    """
    return not (_is_native(select.select) and _are_threads_native())


def _are_threads_native() -> bool:
    allocate_lock = getattr(threading, "_allocate_lock", len)
    return _is_native(threading.get_ident) and _is_native(allocate_lock)


def _is_native(function: object) -> bool:
    return type(function) is BuiltinFunctionType


def _wait_readable(descriptor: int, seconds: float | None) -> bool:
    """Waits until the descriptor is readable, at most this long. Returns whether it is."""
    if _is_native(select.select) and not _are_threads_native():
        return _wait_readable_by_looking(descriptor, seconds)
    if not hasattr(select, "poll"):  # for example, eventlet has taken it away
        return bool(select.select([descriptor], [], [], seconds)[0])
    # Also for a descriptor above 1023, which select cannot wait for.
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(None if seconds is None else math.ceil(seconds * 1000)))


def _wait_readable_by_looking(descriptor: int, seconds: float | None) -> bool:
    """As _wait_readable, where only threads are patched."""
    end = math.inf if seconds is None else time.monotonic() + seconds
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    while not poll.poll(0):
        left = end - time.monotonic()
        if left <= 0:
            return False
        _pause(min(left, 0.005))
    return True


def _pause(seconds: float) -> None:
    """Lets others run. time.sleep may not be patched."""
    threading.Event().wait(seconds)


class _SystemThreads:
    """Runs calls that wait in C, in threads that the system makes. Those of Python may be greenlets."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._jobs: dict[int, Callable[[], object]] = {}
        kind = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
        self._body = kind(self._serve)  # never freed, because a thread returns to it

    def run(self, call: Callable[[], _T]) -> _T:
        results: list[_T] = []
        reader, writer = os.pipe()

        def job() -> None:
            try:
                results.append(call())
            finally:
                os.close(writer)  # who waits for the reader is woken

        try:
            self.begin(job, functools.partial(os.close, writer))
            _wait_readable(reader, None)
        finally:
            os.close(reader)
        return results[0]

    def begin(self, job: Callable[[], object], undo: Callable[[], object]) -> None:
        """Has the job done, without waiting for it. If that is not possible, undo is called instead."""
        number = next(self._numbers)
        self._jobs[number] = job
        try:
            c = ctypes.CDLL(None)
            thread = ctypes.c_void_p()
            if c.pthread_create(ctypes.byref(thread), None, self._body, ctypes.c_void_p(number)) != 0:
                raise RuntimeError("cannot start a thread")
            c.pthread_detach(thread)
        except BaseException:
            if self._jobs.pop(number, None) is not None:
                undo()
            raise

    def _serve(self, number: int) -> None:
        self._jobs.pop(number)()


_system_threads = _SystemThreads()


class _Mutex:
    """A mutex for threads, or for what has taken their place since.

    In a forked child it is another one: a thread that does not exist there may hold the old one.
    """

    _lock: Any
    _kind: object = None

    def now(self) -> Any:
        """Returns the mutex itself, to be entered."""
        kind = os.getpid(), _is_patched()
        if self._kind != kind:
            self._kind, self._lock = kind, threading.RLock()
        return self._lock


class _PerThread(Generic[_T]):
    """A thing for each thread, or for each of what has taken their place since."""

    _local: Any
    _kind: object = None

    def __init__(self, make: Callable[[], _T]) -> None:
        self._make = make

    def get(self) -> _T:
        kind = _is_patched()
        if self._kind != kind:
            self._kind, self._local = kind, threading.local()
        thing: _T | None = getattr(self._local, "thing", None)
        if thing is None:
            thing = self._local.thing = self._make()
        return thing

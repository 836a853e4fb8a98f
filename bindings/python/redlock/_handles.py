"""Objects that C makes, and that are freed when nothing refers to them."""

from __future__ import annotations

import ctypes
import functools
import sys
from typing import Callable, TypeVar

from ._library import _c

_T = TypeVar("_T")


# The exception of a signal handler comes between two steps in Python, never within a C function. In a
# finalizer that is written in Python it would be lost. So the finalizers here are C functions.


class _Made(int):
    """The address of an object that C made, and that is freed when nothing refers to the address any
    more.

    The garbage collector does not track this address. So the object is freed only after the finalizers of
    all objects that refer to it have run.
    """

    __slots__ = ()


class _CManager(_Made):
    # Freeing it does no network I/O.
    __slots__ = ()
    __del__ = property(functools.partial(functools.partial, _c.RedLock_Free))


class _CLease(_Made):
    __slots__ = ()
    __del__ = property(functools.partial(functools.partial, _c.RedLockLease_Free))


def _hide_from_collector() -> Callable[[object], None]:
    """Returns a function that hides an object from the garbage collector.

    An object that refers to nothing needs no collector, and the collector calls finalizers in any order.
    """
    if sys.implementation.name != "cpython":
        return lambda _made: None  # others finalize referring objects first
    prototype = ctypes.PYFUNCTYPE(None, ctypes.py_object)
    return prototype(("PyObject_GC_UnTrack", ctypes.pythonapi))


_hide = _hide_from_collector()


def _make(kind: Callable[[int], _T], function: Callable[[], int | None]) -> _T:
    address = function()
    if address is None:
        raise MemoryError(f"{function!r} returned NULL")
    made = kind(address)
    _hide(made)
    return made

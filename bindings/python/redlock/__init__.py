"""Locks that are held on a majority of independent Redis or Valkey servers.

They are taken through the C library of the same name:

    manager = redlock.Manager("127.0.0.1:6379", "127.0.0.1:6380", "127.0.0.1:6381")
    with manager.lock("report", ttl=10) as lease:
        ...

All times are in seconds, and may be fractions or timedeltas. The library is the file that REDLOCK_LIBRARY
names, the file beside this one, or the file that the system's loader finds. This file needs Python 3.8 or
later, and no package.

Threads: while a thread waits for a lock, other threads run. Exceptions of signal handlers, such as
KeyboardInterrupt, end the wait within a quarter of a second, or when the current attempt ends: a call
waits for servers that do not answer as long as the timeouts allow. Such exceptions leave no lock behind.
(Before Python 3.11 there are moments in which they can, until the ttl of the lock expires.)

Threads of one manager that wait for a lock get it in the order of arrival.

gevent, and others that put something else in the place of threads: once the modules select or threading
are patched, a call waits in Python for a descriptor, and the others run meanwhile. They may be patched
before this file is imported, or later. connect, is_locked, inspect and taken then use a thread of the
system for the time of the call.

Names: a server that has been unreachable for 2 s may have got another address. Its name is looked up in a
thread named redlock-names, which ends with that, while a call waits or a lock is kept alive. Nothing waits
for it, neither close nor the end of the program.

Processes: a manager that was made before a fork (os.fork, multiprocessing) works in the parent and in its
children. A lock belongs to the process that took it. In a child, calls on it raise Forked, and neither an
exit nor the garbage collector releases it. A manager cannot be pickled: each spawned process must make
its own.

asyncio: alock does not block, and starts no thread, except for names (see above):

    async with manager.alock("report", ttl=10) as lease:
        await send_report()

A task that is cancelled while it waits, or in the block, leaves no lock behind. Loops in several threads
may share a manager. Each call that asks servers has a form for tasks, whose name begins with an a. Those
that take no lock (aconnect, ais_locked, ainspect, ataken) use a thread of the loop's pool. The other calls
return at once.

Keep-alive: with keep_alive=True a lock is extended again and again until it is unlocked, so its ttl can
be shorter than the work. A thread of the library does this, independently of Python: a thread that
computes, or a busy loop, does not lose the lock. If a lock cannot be kept alive, lease.lost is set while
some of the ttl is left: stop the protected work then. For tasks, cancel_when_lost does this.
"""

from __future__ import annotations

import collections
import contextlib
import ctypes
import ctypes.util
import functools
import itertools
import math
import operator
import os
import select
import sys
import threading
import time
import weakref
from datetime import timedelta
from types import BuiltinFunctionType, TracebackType
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Generator,
    Generic,
    Iterable,
    Iterator,
    Literal,
    Mapping,
    NamedTuple,
    NoReturn,
    Sequence,
    SupportsFloat,
    TypeVar,
    Union,
    cast,
)

if TYPE_CHECKING:
    import asyncio
    import logging

__all__ = [
    "TLS",
    "AsyncLease",
    "AsyncLevel",
    "Cancelled",
    "Closed",
    "Error",
    "Forked",
    "Histogram",
    "Info",
    "Internal",
    "InvalidArgument",
    "Lease",
    "Level",
    "Lost",
    "LostEvent",
    "Manager",
    "Nested",
    "NoServers",
    "Outcomes",
    "Semaphore",
    "Server",
    "Stats",
    "Taken",
    "TooShort",
    "TooSlow",
    "Unreachable",
]

Seconds = Union[SupportsFloat, timedelta]
Name = Union[str, bytes]
Names = Union[Name, Sequence[Name]]
Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]
Password = Union[Name, Callable[[], Name]]
Logger = Union["logging.Logger", Callable[[int, str], object]]
RestartGuard = Literal["on", "strict", "off", "durable"]
Trace = Literal["events", "resources"]
# How many seconds a thread waits at a time: the exceptions of signal handlers must wait for the end.
_SLICE = 0.25

# How many seconds a call waits for a lock if it does not say how long.
_WAIT = 5

_T = TypeVar("_T")
_Key = TypeVar("_Key")


class Server:
    """The state of one server, from Manager.servers."""

    name: str  # host:port, or the path of its socket
    connected: bool
    votes: bool  # whether its grants count
    words: str  # why it is not connected, or does not vote
    round_trip: float | None  # seconds that its last answer took
    clock_offset: float | None  # seconds by which its clock is ahead of this machine's; None if not known
    # What the server said about itself when it was last asked. Empty if it did not say it, or if the user
    # may not ask.
    version: str
    role: str  # "primary", or "replica" or "sentinel", which cannot vote
    run_id: str  # changes with each start
    keeps: str  # which of its data outlives its process: "log, synced always", ..., "no log"
    eviction: str  # its maxmemory-policy

    def __init__(self, info: Any) -> None:
        for name in ("name", "words", "version", "role", "run_id", "keeps", "eviction"):
            setattr(self, name, getattr(info, name).decode("utf-8", "replace"))
        self.connected, self.votes = bool(info.connected), bool(info.votes)
        self.round_trip = None if info.round_trip_us < 0 else info.round_trip_us / 1e6
        is_known = info.clock_offset_us != -(2**63)
        self.clock_offset = info.clock_offset_us / 1e6 if is_known else None

    def __repr__(self) -> str:
        state = "a voter" if self.votes else self.words or "no voter"
        return f"<redlock.Server {self.name}: {state}>"


class Info(NamedTuple):
    """What the servers report about a resource, from Manager.inspect."""

    locked: bool
    remaining: float
    """How many seconds it is still held, if it is neither extended nor unlocked; inf: forever."""
    shared: bool
    """Whether several can hold it at the same time."""
    readers: int
    """How many hold it."""
    words: str
    """Which servers could not answer, and why."""
    permits_taken: int = 0
    """For a semaphore: how many permits are taken. It is locked if all are taken."""


def _read_info(info: Any) -> Info:
    ms = info.remaining_ms
    return Info(
        locked=bool(info.locked),
        remaining=math.inf if ms < 0 else ms / 1000,
        shared=info.mode == _SHARED,
        readers=info.readers,
        words=info.words.decode("utf-8", "replace"),
        permits_taken=info.permits_taken,
    )


class Outcomes(NamedTuple):
    """The number of calls of one kind, by outcome."""

    ok: int
    taken: int
    unreachable: int
    too_slow: int
    lost: int
    too_short: int
    cancelled: int
    failed: int


class Histogram(NamedTuple):
    """A histogram of durations."""

    count: int  # type: ignore[assignment]  # a tuple counts its elements
    sum: float
    """The sum of all durations, in seconds."""
    buckets: tuple[int, ...]
    """The number of durations in each bucket: at most the bound at its index, and more than the one before.

    The last bucket has no bound.
    """
    bounds: tuple[float, ...]
    """Seconds."""


class Stats(NamedTuple):
    """The counters of a manager since it was made. Counts only grow; waiting and kept are current numbers."""

    acquire: Outcomes
    extend: Outcomes
    confirm: Outcomes
    release: Outcomes
    adopt: Outcomes
    inspect: Outcomes
    detached: int
    """Locks that were given away."""
    attempts: int
    """How often the servers were asked for a lock; all at once counts as one."""
    waits: int
    """Calls that had to wait for a lock, even if only for a moment."""
    renewed: int
    """Extensions of locks that are kept alive."""
    not_renewed: int
    """Extensions that failed, and were tried again as long as there was time."""
    kept_lost: int
    """Locks that could not be kept alive."""
    requests: int
    """Requests that were sent, to all servers together."""
    connections: int
    """Connections that could be used."""
    connections_lost: int
    connections_failed: int
    """Attempts to connect that failed."""
    waiting: int
    """How many calls are waiting for a lock now."""
    kept: int
    """How many locks are kept alive now."""
    acquire_time: Histogram
    """How long it took to take a lock, for locks that were taken."""
    wait_time: Histogram
    """The waiting time of calls that had to wait, whatever their result."""
    hold_time: Histogram
    """How long released locks were held."""
    round_trip: Histogram
    """From sending a request to reading its answer."""


class Error(Exception):
    """A call that did not succeed.

    The message is for a person: the answer of each server, and the count of the votes. The status is the
    number that the C library returned, or None if the library was not called.
    """

    def __init__(self, message: str = "", status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class Taken(Error):
    """Somebody else holds the lock."""


class Nested(Taken):
    """The with block around this call holds the lock, and not both calls asked for a reentrant lock."""


class Unreachable(Error):
    """Too few servers answered in time."""


class TooSlow(Error):
    """The lock was granted, but no validity was left."""


class Lost(Error):
    """The lock is not held, or no longer held."""


class TooShort(Error):
    """The lock is held, but not for as long as requested."""


class Cancelled(Error):
    """The call was cancelled, and nothing of it stays locked."""


class InvalidArgument(Error, ValueError):
    """The message names the fault."""


class NoServers(Error):
    """No server was given."""


class Forked(Error):
    """The lease belongs to the parent process."""


class Internal(Error):
    """The message says what happened."""


class Closed(Error):
    """The manager was closed."""


_ERRORS: dict[int, type[Error]] = {
    1: Taken,
    2: Unreachable,
    3: TooSlow,
    4: Lost,
    5: Cancelled,
    7: TooShort,
    -1: InvalidArgument,
    -2: NoServers,
    -3: Forked,
    -4: Internal,
}


class TLS(NamedTuple):
    """The TLS settings for rediss:// servers. The files are PEM."""

    ca: Path | None = None
    """The trusted authorities, if not those that the system trusts."""
    certificate: Path | None = None
    """The client certificate, for servers that ask for one."""
    key: Path | None = None
    """The key of the client certificate."""
    server_name: str | None = None
    """The name that certificates must be for, if it is not the host."""
    insecure_skip_verify: bool = False
    """Whether any certificate is accepted."""


# The interface version that this file needs. Below 1.0 the interface may change with the second number.
_INTERFACE = "0.2"
_NAMES = ("libredlock.so.0.2", "libredlock.so", "libredlock.dylib")

_HANDLE = ctypes.c_void_p
_STRING = ctypes.c_char_p
_MS = ctypes.c_int64
_INT = ctypes.c_int
_NUMBER = ctypes.c_void_p  # user_data: never dereferenced


class _CAcquireOptions(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("resource", ctypes.c_char_p),
        ("resource_size", ctypes.c_size_t),
        ("resources", ctypes.POINTER(ctypes.c_char_p)),
        ("resource_count", ctypes.c_size_t),
        ("ttl_ms", ctypes.c_int64),
        ("wait_ms", ctypes.c_int64),
        ("tries", ctypes.c_int32),
        ("mode", ctypes.c_int32),
        ("permits", ctypes.c_int32),
        ("keep_alive", ctypes.c_int32),
    ]


class _CEvent(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("kind", ctypes.c_int32),
        ("status", ctypes.c_int32),
        ("lease", ctypes.c_void_p),
        ("user_data", ctypes.c_void_p),
        ("remaining_ms", ctypes.c_int64),
    ]


class _CServerInfo(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("connected", ctypes.c_int32),
        ("votes", ctypes.c_int32),
        ("round_trip_us", ctypes.c_int64),
        ("clock_offset_us", ctypes.c_int64),
        ("name", ctypes.c_char * 256),
        ("words", ctypes.c_char * 512),
        ("version", ctypes.c_char * 32),
        ("role", ctypes.c_char * 16),
        ("run_id", ctypes.c_char * 48),
        ("keeps", ctypes.c_char * 32),
        ("eviction", ctypes.c_char * 32),
    ]


class _CInfo(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("locked", ctypes.c_int32),
        ("mode", ctypes.c_int32),
        ("remaining_ms", ctypes.c_int64),
        ("readers", ctypes.c_int64),
        ("words", ctypes.c_char * 1024),
        ("permits", ctypes.c_int32),
        ("permits_taken", ctypes.c_int32),
    ]


_BUCKETS = 21


class _COutcomes(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in Outcomes._fields]


class _CHistogram(ctypes.Structure):
    _fields_ = [
        ("count", ctypes.c_uint64),
        ("sum_us", ctypes.c_int64),
        ("buckets", ctypes.c_uint64 * _BUCKETS),
    ]


class _CStats(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        *[(name, _COutcomes) for name in Stats._fields[:6]],
        *[(name, ctypes.c_uint64) for name in Stats._fields[6:18]],
        *[(name, _CHistogram) for name in Stats._fields[18:]],
        ("bounds_us", ctypes.c_int64 * (_BUCKETS - 1)),
    ]


# Kinds of events. C writes the first two; the last one means that there is no event.
_DONE, _LOST, _NONE = 0, 1, -1

# RedLock_Cancel has ended the call.
_CANCELLED = 5

# RedLock_Wait: the call is still under way.
_NO_EVENT = 6

# The mode in which several callers may hold a lock.
_SHARED = 1
_PYTHON = 4  # REDLOCK_LANGUAGE_PYTHON

# These return a status. Other threads run during the call.
_CALLS: dict[str, tuple[Any, ...]] = {
    "RedLock_AddServerUrl": (_HANDLE, _STRING, _INT),
    "RedLock_Connect": (_HANDLE, _MS),
    "RedLock_LookUp": (_HANDLE,),
    "RedLock_SetRetry": (_HANDLE, _INT, _INT),
    "RedLock_SetTimeouts": (_HANDLE, _MS, _MS),
    "RedLock_SetClockDriftFactor": (_HANDLE, ctypes.c_double),
    "RedLock_SetRestartGuard": (_HANDLE, _INT, _MS, _MS),
    "RedLock_SetFencing": (_HANDLE, ctypes.c_bool),
    "RedLock_SetTracing": (_HANDLE, _INT),
    "RedLock_SetWaking": (_HANDLE, ctypes.c_bool),
    "RedLock_SetLanguage": (_HANDLE, _INT),
    "RedLock_SetTlsCa": (_HANDLE, _STRING),
    "RedLock_SetTlsCertificate": (_HANDLE, _STRING, _STRING),
    "RedLock_SetTlsServerName": (_HANDLE, _STRING),
    "RedLock_SetTlsInsecureSkipVerify": (_HANDLE, ctypes.c_bool),
    "RedLock_SetCredentials": (_HANDLE, _STRING, _STRING),
    "RedLock_KeepLog": (_HANDLE, _INT),
    "RedLock_Acquire": (_HANDLE, ctypes.POINTER(_CAcquireOptions), _HANDLE),
    "RedLock_Wait": (_HANDLE, _HANDLE, _MS),
    "RedLock_Downgrade": (_HANDLE, _HANDLE),
    "RedLock_Extend": (_HANDLE, _HANDLE, _MS),
    "RedLock_Confirm": (_HANDLE, _HANDLE, _MS),
    "RedLock_Unlock": (_HANDLE, _HANDLE),
    "RedLock_UnlockAfter": (_HANDLE, _HANDLE, _MS),
    "RedLock_IsLocked": (_HANDLE, _STRING, ctypes.POINTER(ctypes.c_bool)),
    "RedLock_Detach": (_HANDLE, _HANDLE, _STRING, ctypes.c_size_t),
    "RedLock_Adopt": (_HANDLE, _STRING, _HANDLE),
    "RedLock_Inspect": (_HANDLE, _STRING, ctypes.c_size_t, ctypes.POINTER(_CInfo)),
    "RedLock_KeepAlive": (_HANDLE, _HANDLE, _NUMBER),
    "RedLock_SetBackgroundThread": (_HANDLE, ctypes.c_bool),
    "RedLock_NextEvent": (_HANDLE, _MS, ctypes.POINTER(_CEvent)),
}

# These neither wait nor ask servers. To let other threads run would take longer than the calls
# themselves.
_LOOKS: dict[str, tuple[Any, ...]] = {
    "RedLock_New": (_HANDLE,),
    "RedLock_Free": (None, _HANDLE),
    "RedLock_ErrorMessage": (_STRING, _HANDLE),
    "RedLock_IsLookUpDue": (ctypes.c_bool, _HANDLE),
    "RedLock_TakeLogLine": (_INT, _HANDLE, _STRING, ctypes.c_size_t),
    "RedLock_SubmitAcquire": (_INT, _HANDLE, ctypes.POINTER(_CAcquireOptions), _HANDLE, _NUMBER),
    "RedLock_SubmitAdopt": (_INT, _HANDLE, _STRING, _HANDLE, _NUMBER),
    "RedLock_SubmitDowngrade": (_INT, _HANDLE, _HANDLE, _NUMBER),
    "RedLock_SubmitExtend": (_INT, _HANDLE, _HANDLE, _MS, _NUMBER),
    "RedLock_SubmitConfirm": (_INT, _HANDLE, _HANDLE, _MS, _NUMBER),
    "RedLock_SubmitUnlock": (_INT, _HANDLE, _HANDLE, _NUMBER),
    "RedLock_SubmitUnlockAfter": (_INT, _HANDLE, _HANDLE, _MS, _NUMBER),
    "RedLock_Cancel": (_INT, _HANDLE, _HANDLE),
    "RedLockLease_SetDoneEvents": (_INT, _HANDLE, ctypes.c_bool),
    "RedLock_Descriptor": (_INT, _HANDLE),
    "RedLock_Servers": (_INT, _HANDLE, ctypes.POINTER(_CServerInfo), ctypes.POINTER(ctypes.c_size_t)),
    "RedLock_GetStats": (_INT, _HANDLE, ctypes.POINTER(_CStats)),
    "RedLock_StatsText": (ctypes.c_size_t, _HANDLE, _STRING, ctypes.c_size_t),
    "RedLock_Retain": (_INT, _HANDLE),
    "RedLockLease_Levels": (_INT, _HANDLE),
    "RedLockLease_New": (_HANDLE,),
    "RedLockLease_Free": (None, _HANDLE),
    "RedLockLease_IsHeld": (ctypes.c_bool, _HANDLE),
    "RedLockLease_RemainingMs": (_MS, _HANDLE),
    "RedLockLease_ValidityMs": (_MS, _HANDLE),
    "RedLockLease_Resource": (ctypes.c_void_p, _HANDLE),
    "RedLockLease_ResourceSize": (ctypes.c_size_t, _HANDLE),
    "RedLockLease_ResourceCount": (ctypes.c_size_t, _HANDLE),
    "RedLockLease_ResourceAt": (_STRING, _HANDLE, ctypes.c_size_t),
    "RedLockLease_Token": (_STRING, _HANDLE),
    "RedLockLease_Mode": (_INT, _HANDLE),
    "RedLockLease_FencingToken": (ctypes.c_int64, _HANDLE),
    "RedLockLease_ErrorMessage": (_STRING, _HANDLE),
}


def _open_library() -> tuple[ctypes.CDLL, str]:
    named = os.environ.get("REDLOCK_LIBRARY")
    failures: list[str] = []
    for name in [named] if named else _names():
        try:
            return ctypes.CDLL(name), name
        except OSError as error:
            failures.append(str(error))
    words = "; ".join(failures)
    raise ImportError(
        f"redlock library not found: install it, or set REDLOCK_LIBRARY to its path: {words}"
    )


def _names() -> Iterator[str]:
    # A package contains the library.
    directory = os.path.dirname(os.path.abspath(__file__))
    yield from filter(os.path.exists, (os.path.join(directory, name) for name in _NAMES))
    yield from _NAMES
    found = ctypes.util.find_library("redlock")  # the last resort, because it runs programs
    if found:
        yield found


def _function(library: ctypes.CDLL, name: str, function: str, result: Any, *types: Any) -> Any:
    try:
        found = getattr(library, function)
    except AttributeError:
        words = f"{name} has no {function}: it is older than this file, or not redlock"
        raise ImportError(words) from None
    found.restype = result
    found.argtypes = types
    return found


class _C:
    """The C functions."""

    def __init__(self) -> None:
        library, name = _open_library()
        version = _function(library, name, "RedLock_Version", _STRING)().decode()
        if not version.startswith(f"{_INTERFACE}."):
            raise ImportError(f"{name} is redlock {version}, but this file needs {_INTERFACE}")
        for function, types in _CALLS.items():
            setattr(self, function, _function(library, name, function, _INT, *types))
        looks = ctypes.PyDLL(name, handle=library._handle)
        for function, types in _LOOKS.items():
            setattr(self, function, _function(looks, name, function, *types))

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Callable[..., Any]: ...


_c = _C()


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


def _check(status: int, words: str) -> str:
    if status != 0:
        raise _ERRORS.get(status, Error)(words, status)
    return words


# The index of each name is its number in C.
_GUARDS = ("on", "strict", "off", "durable")
_TRACES = (None, "events", "resources")

# The numbers of logging.WARNING, logging.INFO and logging.DEBUG, and the first two by the levels of the library.
_WARNING, _INFO, _DEBUG = 30, 20, 10
_LEVELS = {1: _WARNING, 2: _INFO}
# The number of lines that may wait during a long call. If there are more, the last ones are kept.
_LOG_LINES = 1000


def _string(text: Name, what: str) -> bytes:
    """Refuses a string that C would cut short: "a\\0b" must not lock "a"."""
    if isinstance(text, str):
        try:
            text = text.encode()
        except UnicodeEncodeError as error:
            reason = error.reason
        if isinstance(text, str):
            # Not within the except clause, because that error holds the text, which may be a password.
            raise InvalidArgument(f"{what} is not valid text: {reason}", -1)
    if not isinstance(text, bytes):
        raise TypeError(f"{what} must be a str or bytes, not {type(text).__name__}")
    if b"\0" in text:
        raise InvalidArgument(f"{what} contains a NUL byte", -1)
    return text


def _given(resource: Names) -> tuple[Name, ...]:
    """Returns one resource, or several, as a tuple."""
    if isinstance(resource, (str, bytes)):
        return (resource,)
    if not isinstance(resource, Iterable):
        raise TypeError(f"resource must be a str or bytes, not {type(resource).__name__}")
    several = tuple(cast("Iterable[Name]", resource))
    if not several:
        raise InvalidArgument("resource is empty: give at least one name", -1)
    return several
def _count(permits: int) -> int:
    """Limits the number to the range of a C int, and leaves it to the library to refuse it."""
    return max(-(2**31), min(operator.index(permits), 2**31 - 1))


def _optional(text: Name | None, what: str) -> bytes | None:
    return None if text is None else _string(text, what)


def _file(path: Path | None, what: str) -> bytes | None:
    return None if path is None else _string(os.fsencode(path), what)


def _seconds(value: Seconds, what: str) -> float:
    if isinstance(value, timedelta):
        return value.total_seconds()
    if not hasattr(type(value), "__float__"):
        raise TypeError(f"{what} must be a number of seconds, not {type(value).__name__}")
    try:
        seconds = float(value)
    except OverflowError:
        seconds = math.inf
    if math.isnan(seconds):
        raise InvalidArgument(f"{what} is not a number", -1)
    return seconds


def _ms(value: Seconds, what: str) -> int:
    """Returns milliseconds; a small value never becomes 0, because 0 has another meaning."""
    seconds = _seconds(value, what)
    ms = round(max(-(2.0**62), min(seconds * 1000, 2.0**62)))
    return int(math.copysign(1, seconds)) if ms == 0 and seconds != 0 else ms


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

# Those without a lease, which have no such function.
_QUESTIONS = (_c.RedLock_Connect, _c.RedLock_IsLocked, _c.RedLock_Inspect)


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


_managers: set[weakref.ref[Manager]] = set()


def _after_fork_in_child() -> None:
    for reference in list(_managers):
        manager = reference()
        if manager is not None:
            manager._begin_in_process()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


class _Weak(Generic[_Key, _T]):
    """A map of weak references, which keeps nothing alive.

    Dead references are removed now and then, not by a callback, because the exception of a signal handler
    would be lost in a callback.
    """

    def __init__(self) -> None:
        self._references: dict[_Key, weakref.ref[_T]] = {}
        self._limit = 100

    def find(self, key: _Key) -> _T | None:
        reference = self._references.get(key)
        return reference() if reference else None

    def put(self, key: _Key, thing: _T) -> None:
        self._references[key] = weakref.ref(thing)
        if len(self._references) > self._limit:
            self.throw_out()
            self._limit = 2 * len(self._references) + 100

    def drop(self, key: _Key, thing: _T) -> None:
        if self.find(key) is thing:
            self._references.pop(key, None)

    def throw_out(self) -> list[_Key]:
        """Removes dead references, and returns their keys."""
        gone = [key for key, it in list(self._references.items()) if it() is None]
        for key in gone:
            self._references.pop(key, None)
        return gone

    def all(self) -> list[_T]:
        things = [it() for it in list(self._references.values())]
        return [it for it in things if it is not None]

    def __len__(self) -> int:
        return len(self._references)


class _Here:
    """The state that a thread has for a manager."""

    def __init__(self) -> None:
        self.is_telling = False  # whether the thread is in the logger
        # The leases that the thread has taken, the last one for each name.
        self.leases: _Weak[bytes, Lease] = _Weak()
        # Where C writes an event for this thread. The event stays here until it has been handed on. If
        # the exception of a signal handler comes in between, the event is handed on again.
        self.event = _CEvent(size=ctypes.sizeof(_CEvent), kind=_NONE)


def _refuse_both(reentrant: bool, shared: bool) -> None:
    if reentrant and shared:
        raise InvalidArgument("shared and reentrant exclude each other", -1)


class Manager:
    """Takes locks on one set of servers.

    Threads may share it, and processes forked later may use it.

    Servers are host:port, or URLs such as redis://user:password@host:6379/0, rediss://host:6379 or
    unix:///run/redis.sock, or redis-sentinel://host,host2/master for a master that Sentinels watch. All
    programs that must exclude each other must name the same servers.

    user, password: log-in for servers whose URL has none. A password may be a function. It is called when
        the manager is made, in a forked child, and a second after a server failed, so the password may
        change. If it raises an Exception later than in the first of these calls, the old password stays,
        and the logger is told. Another exception ends the call, which then takes no lock. With asyncio it
        is called in the loop, so it should be quick.
    tls: True, or a TLS (or a mapping with its fields): servers that are given as host:port are reached
        over TLS, like those of rediss://.
    retry_delay: mean pause between two attempts; each pause is random. While locks change hands, the
        pauses are shorter.
    connect_timeout: timeout for connecting to a server.
    reply_timeout: timeout for a server's reply; 0 is a twentieth of the ttl, 0.025 to 0.5.
    drift_factor: how much faster a server's clock may run than this machine's.
    restart_guard: how the manager guards against servers that lose their memory, for example in a restart
        without their data. With "on" such servers have no vote until the locks that they may have
        forgotten have ended. With "strict", servers that seem to be new also have no vote at first. With
        "off" every server that can be reached has a vote. With "durable" it does, too, because the
        program vouches that no server ever forgets.
    longest_ttl: the longest ttl that any client uses on these servers; None: the ttl that is noted on the
        servers.
    guard_cap: the longest time that a server stays without a vote; None: 600.
    fencing: whether locks come with a fencing token: see Lease.fencing_token. All clients that lock the
        resource must use it. The servers count in the key redlock:fence, so do not lock a resource with
        this name.
    waking: whether waiting calls are woken when another process releases the lock, and whether releases
        wake waiting clients. If False, waiting calls ask now and then. The wait queue is in the key that
        is named as the resource with :w appended, so do not lock a resource with such a name.
    logger: as for set_logger.
    trace: "events": the logger also receives the events of locks, at DEBUG, one line of key=value pairs
        for each event. "resources": the same with resource names.
    """

    _handle: _CManager | None = None
    _events: _Events | None = None
    _logger: Callable[[int, str], object] | None = None

    def __init__(
        self,
        *servers: str,
        user: Name | None = None,
        password: Password | None = None,
        tls: bool | TLS | Mapping[str, Any] | None = None,
        retry_delay: Seconds = 0.2,
        connect_timeout: Seconds = 1.5,
        reply_timeout: Seconds = 0,
        drift_factor: float = 0.01,
        restart_guard: RestartGuard = "on",
        longest_ttl: Seconds | None = None,
        guard_cap: Seconds | None = None,
        fencing: bool = False,
        waking: bool = True,
        logger: Logger | None = None,
        trace: Trace | None = None,
    ) -> None:
        if not servers:
            raise NoServers("no server was given", -2)
        self._count = len(servers)
        self._user = _optional(user, "user")
        # A value that is not a function is passed on once and not stored, so that nobody can find it
        # here.
        self._ask = password if callable(password) else None
        self._renewal: float | None = None
        self._handle = _make(_CManager, _c.RedLock_New)
        self._begin_in_process()
        self._asking = _Mutex()  # C keeps the message of a call: one call at a time
        self._states = _PerThread(_Here)
        self._leases_of_tasks: _Weak[bytes, AsyncLease] = _Weak()  # the last one for each name
        _managers.add(weakref.ref(self, _managers.discard))

        self._call(_c.RedLock_SetLanguage, _PYTHON)
        self._call(_c.RedLock_SetRetry, 3, max(-1, min(_ms(retry_delay, "retry_delay"), 2**31 - 1)))
        timeouts = (_ms(connect_timeout, "connect_timeout"), _ms(reply_timeout, "reply_timeout"))
        self._call(_c.RedLock_SetTimeouts, *timeouts)
        self._call(_c.RedLock_SetClockDriftFactor, drift_factor)
        self._drift = float(drift_factor)
        if restart_guard not in _GUARDS:
            raise InvalidArgument(f"restart_guard is {restart_guard!r}: it must be one of {_GUARDS}", -1)
        longest_ms = 0 if longest_ttl is None else _ms(longest_ttl, "longest_ttl")
        cap_ms = 0 if guard_cap is None else _ms(guard_cap, "guard_cap")
        mode = _GUARDS.index(restart_guard)
        self._call(_c.RedLock_SetRestartGuard, mode, longest_ms, cap_ms)
        self._call(_c.RedLock_SetFencing, bool(fencing))
        if trace not in _TRACES:
            raise InvalidArgument(f"trace is {trace!r}: it must be one of {_TRACES}", -1)
        self._call(_c.RedLock_SetTracing, _TRACES.index(trace))
        self._call(_c.RedLock_SetWaking, bool(waking))
        if tls:
            self._use_tls(tls)
        if user is not None or password is not None:
            self._log_in(password)
        for server in servers:
            self._add(server, "rediss" if tls else "redis")
        self.set_logger(logger)

    def lock(
        self,
        resource: Names,
        *,
        ttl: Seconds,
        wait: Seconds | None = _WAIT,
        keep_alive: bool = False,
        reentrant: bool = False,
        shared: bool = False,
    ) -> Lease:
        """Takes the lock for ttl seconds, and returns it.

        In a with statement, the lock is released however the block ends. If the block ended normally but
        the lock had expired before, Lost is raised. Without a with statement, the caller must unlock it.

        wait is how many seconds to wait at most for a lock that is not available: 0 is one attempt, None
        means no limit. After that time, the result of the last attempt is raised: Taken, Unreachable or
        TooSlow.

        keep_alive: whether the lock is kept alive until it is unlocked; see Lease.keep_alive.

        shared: other callers that want the lock shared can hold it at the same time, and no caller can
        hold it exclusively. While a caller waits for the exclusive lock, later callers that want it
        shared do not get it. A shared lock has no fencing token. Besides the resource, the servers use
        the keys with :r and :i appended to its name, so do not lock resources with such names.

        resource may be several names, as in lock(["a", "b"], ttl=10). They are locked at once, all or
        none, by one lock. It is extended and lost as a whole, and excludes every caller that wants one of
        them. 1 to 128 different names in any order. The message tells by its number, not by its name,
        which resource was in the way.

        reentrant: whether this thread may take the lock again while it holds it, if that call asks for
        it, too. Each call returns its own lease; only the last unlock of them asks servers. An inner lock
        that needs more time than is left extends the lock, with one attempt. If the lock is kept alive
        and its ttl is long enough, no extension is needed. A lost lock raises Lost at every level.
        Without reentrant, a call in a with block for the lock of that block raises Nested at once, unless
        both are shared.
        """
        _refuse_both(reentrant, shared)
        lease = (Level if reentrant else Lease)(self, resource, ttl, shared)
        try:
            lease._acquire(wait)
            if keep_alive:
                lease.keep_alive()
            lease._callers[:] = [lease]  # must be the last call: see __enter__
            return lease
        except BaseException:
            lease._release()
            raise

    def try_lock(
        self,
        resource: Names,
        *,
        ttl: Seconds,
        keep_alive: bool = False,
        reentrant: bool = False,
        shared: bool = False,
    ) -> Lease | None:
        """As lock with one attempt, but returns None if the lock is held."""
        try:
            return self.lock(
                resource, ttl=ttl, wait=0, keep_alive=keep_alive, reentrant=reentrant, shared=shared
            )
        except Taken:
            return None

    def alock(
        self,
        resource: Names,
        *,
        ttl: Seconds,
        wait: Seconds | None = _WAIT,
        keep_alive: bool = False,
        cancel_when_lost: bool = False,
        reentrant: bool = False,
        shared: bool = False,
    ) -> _Locking:
        """As lock, for a task of asyncio. Await it, or enter it with async with:

            async with manager.alock("report", ttl=10) as lease:
                ...

            lease = await manager.alock("report", ttl=10)
            try:
                ...
            finally:
                await lease.unlock()

        To limit the waiting time, use wait and not asyncio.wait_for. Before Python 3.12, asyncio.wait_for
        may lose a lock that comes at that very moment, until the ttl of the lock expires.

        cancel_when_lost: keeps the lock alive. If it cannot be kept, the task is cancelled in its async
        with block, which then raises Lost, as asyncio.timeout does when its time has passed.

        Nested is raised if this task is in a block that holds the lock. With reentrant, the task, and no
        other, may take the lock again while it holds it.
        """
        _refuse_both(reentrant, shared)
        kind = AsyncLevel if reentrant else AsyncLease
        return _Locking(kind, self, resource, ttl, wait, keep_alive, cancel_when_lost, shared)

    async def atry_lock(
        self,
        resource: Names,
        *,
        ttl: Seconds,
        keep_alive: bool = False,
        reentrant: bool = False,
        shared: bool = False,
    ) -> AsyncLease | None:
        """As alock with one attempt, but returns None if the lock is held."""
        try:
            return await self.alock(
                resource, ttl=ttl, wait=0, keep_alive=keep_alive, reentrant=reentrant, shared=shared
            )
        except Taken:
            return None

    def semaphore(
        self, resource: Name, permits: int, *, ttl: Seconds, keep_alive: bool = False
    ) -> Semaphore:
        """A resource that several callers can hold at the same time, in all programs with the same
        servers.

            api = manager.semaphore("api", permits=8, ttl=10)
            with api.acquire() as lease:
                ...

        permits is how many callers can hold it at the same time. It is from 1 to 256, and must be the
        same for all users of the resource. If the numbers differ, the greatest applies. A caller that
        locks the resource uses one permit. Each permit lasts for ttl seconds unless it is extended or
        unlocked; with keep_alive it is kept alive until it is unlocked.
        """
        return Semaphore(self, resource, permits, ttl, keep_alive)

    def adopt(self, ticket: Name, keep_alive: bool = False) -> Lease:
        """Takes over a lock that was given away with Lease.detach, in this process or another.

        The servers are asked whether the lock is there. Lost: the lock has ended. Unreachable: too few
        servers answered, and the caller may try again. The lease is like one that lock returns, and may
        be used in a with statement. extend without an argument makes the lock last as long as it lasted
        when it was adopted.

        Adopt a ticket only once. A second adopter shares the lock, as threads that share a lease do, and
        the first to unlock it releases it for both.
        """
        lease = Lease(self, b"", 0)
        try:
            self._renew_log_in()
            lease._call(_c.RedLock_Adopt, _string(ticket, "ticket"), lease._handle)
            lease._note_adopted()
            for name in lease._names:
                self._here.leases.put(name, lease)
            if keep_alive:
                lease.keep_alive()
            lease._callers[:] = [lease]  # must be the last call: see __enter__
            return lease
        except BaseException:
            lease._release()
            raise

    async def aadopt(self, ticket: Name, keep_alive: bool = False) -> AsyncLease:
        """As adopt, for a task of asyncio.

        If the task is cancelled while it waits, the lock stays as it was, or is released if it was
        already adopted.
        """
        lease = AsyncLease(self, b"", 0)
        try:
            self._renew_log_in()
            text = _string(ticket, "ticket")
            await lease._ask(_c.RedLock_SubmitAdopt, text, lease._handle)
            lease._note_adopted()
            lease._belong_to_task()
            if keep_alive:
                await lease.keep_alive()
        except BaseException:
            lease._let_go()
            raise
        lease._callers[:] = [lease]
        return lease

    def is_locked(self, resource: Name) -> bool:
        """Asks the servers whether any client holds the resource.

        The answer may be out of date when it arrives: to get a lock, take it without asking first.
        """
        answer = ctypes.c_bool()
        self._question(_c.RedLock_IsLocked, _string(resource, "resource"), ctypes.byref(answer))
        return answer.value

    async def ais_locked(self, resource: Name) -> bool:
        """As is_locked, for a task of asyncio."""
        answer = ctypes.c_bool()
        arguments = _string(resource, "resource"), ctypes.byref(answer)
        await self._aquestion(_c.RedLock_IsLocked, *arguments)
        return answer.value

    def inspect(self, resource: Name, permits: int = 0) -> Info:
        """Asks the servers whether any client holds the resource, and for how long it is still held.

        This finds the lock of any client, and changes nothing. The answer may be out of date when it
        arrives: to get a lock, take it without asking first.

        permits: the number of permits, if the resource is a semaphore. The result then says how many are
        taken.
        """
        info = _CInfo(size=ctypes.sizeof(_CInfo), permits=_count(permits))
        arguments = _string(resource, "resource"), 0, ctypes.byref(info)
        self._question(_c.RedLock_Inspect, *arguments)
        return _read_info(info)

    async def ainspect(self, resource: Name, permits: int = 0) -> Info:
        """As inspect, for a task of asyncio."""
        info = _CInfo(size=ctypes.sizeof(_CInfo), permits=_count(permits))
        arguments = _string(resource, "resource"), 0, ctypes.byref(info)
        await self._aquestion(_c.RedLock_Inspect, *arguments)
        return _read_info(info)

    def servers(self) -> list[Server]:
        """What is known of each server, in the order in which the servers were given. No server is asked.
        """
        count = ctypes.c_size_t()
        self._set(_c.RedLock_Servers, None, ctypes.byref(count))
        infos = (_CServerInfo * count.value)()
        infos[0].size = ctypes.sizeof(_CServerInfo)
        self._set(_c.RedLock_Servers, infos, ctypes.byref(count))
        return [Server(info) for info in infos]

    def stats(self) -> Stats:
        """The counters since the manager was made. No server is asked."""
        counted = _CStats(size=ctypes.sizeof(_CStats))
        self._set(_c.RedLock_GetStats, ctypes.byref(counted))
        bounds = tuple(us / 1e6 for us in counted.bounds_us)

        def told(value: Any) -> Any:
            if isinstance(value, _COutcomes):
                return Outcomes(*(getattr(value, name) for name in Outcomes._fields))
            if isinstance(value, _CHistogram):
                return Histogram(value.count, value.sum_us / 1e6, tuple(value.buckets), bounds)
            return value

        return Stats(*(told(getattr(counted, name)) for name in Stats._fields))

    def stats_text(self) -> str:
        """The counters and the state of each server as text for Prometheus.

        The content type is "text/plain; version=0.0.4".
        """
        handle = self._open_handle()
        size = _c.RedLock_StatsText(handle, None, 0)
        while True:
            room = ctypes.create_string_buffer(size + 1)
            needed = _c.RedLock_StatsText(handle, room, size + 1)
            if needed <= size:
                return room.value.decode("utf-8", "replace")
            size = needed

    def connect(self, timeout: Seconds = 0) -> str:
        """Connects now instead of at the first lock; returns when a quorum is connected.

        Returns a message about the servers that are not connected, and why: a name may be misspelled. The
        message is empty if all are connected. If there is no quorum, Unreachable is raised.
        """
        return self._question(_c.RedLock_Connect, _ms(timeout, "timeout"))

    async def aconnect(self, timeout: Seconds = 0) -> str:
        """As connect, for a task of asyncio. If the task is cancelled, the manager goes on connecting."""
        return await self._aquestion(_c.RedLock_Connect, _ms(timeout, "timeout"))

    def set_logger(self, logger: Logger | None) -> None:
        """Sets the logger, which is called when servers are lost, refuse or come back; None: no logger.

        It is a logging.Logger, or a function of a level and a line of text. The levels are those of
        logging: WARNING for a server fault, INFO for a repaired fault. It is called on the thread whose
        call, or whose loop, met the fault, and may use this manager. While a lock of a thread is kept
        alive, it is also called, within a quarter of a second, on a thread named redlock, which ends with
        the last such lock. If it raises an Exception, the call
        goes on as without it, and the logger is told of that. Another exception, such as
        KeyboardInterrupt, ends the call, and nothing of a call that takes a lock stays locked. The text
        contains neither a password nor a token.
        """
        if logger is not None and not callable(logger):
            logger = logger.log  # a logging.Logger is not callable
        self._logger = logger
        self._call(_c.RedLock_KeepLog, _LOG_LINES if self._is_told else 0)
        self._open_events().tell_meanwhile()

    def close(self) -> None:
        """Closes the connections when the last lease is unlocked or gone; a new call raises Closed.

        Calls that wait for a lock, in other threads and tasks, raise Closed at once, and nothing of them
        stays locked. A manager that nothing refers to any more is closed, too.
        """
        events, self._handle, self._events = self._events, None, None  # leases still have them
        if events is not None:
            events.close()

    @property
    def closed(self) -> bool:
        return self._handle is None

    def __enter__(self) -> Manager:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<redlock.Manager of {self._count} servers{', closed' if self.closed else ''}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a redlock.Manager cannot be pickled: create one in each process")

    def _begin_in_process(self) -> None:
        """Also called in a forked child, because the parent's threads and loops do not exist there."""
        self._has_background_thread = False
        if self._handle is not None:
            self._events = _Events(self, self._handle)

    @property
    def _here(self) -> _Here:
        return self._states.get()

    def _open_handle(self) -> _CManager:
        handle = self._handle
        if handle is None:
            raise Closed("the manager is closed")
        return handle

    def _open_events(self) -> _Events:
        events = self._events
        if events is None:
            raise Closed("the manager is closed")
        return events

    def _start_background_thread(self) -> None:
        """Starts the library's thread that keeps locks alive. No Python thread is needed."""
        if not self._has_background_thread:
            self._set(_c.RedLock_SetBackgroundThread, True)
            self._has_background_thread = True

    def _call(self, function: Callable[..., int], *arguments: Any) -> str:
        """Returns the message of a successful call."""
        handle = self._open_handle()
        try:
            return _check(*self._answer(handle, function, arguments))
        finally:
            self._tell(handle)

    def _answer(
        self, handle: _CManager, function: Callable[..., int], arguments: tuple[Any, ...]
    ) -> tuple[int, str]:
        """Returns the status of a call, and its message."""

        def ask() -> tuple[int, str]:
            status = function(handle, *arguments)
            return status, _c.RedLock_ErrorMessage(handle).decode("utf-8", "replace")

        with self._asking.now():
            return _system_threads.run(ask) if function in _QUESTIONS and _is_patched() else ask()

    def _question(self, function: Callable[..., int], *arguments: Any) -> str:
        """As _call, for a call that asks servers."""
        self._renew_log_in()
        return self._call(function, *arguments)

    async def _aquestion(self, function: Callable[..., int], *arguments: Any) -> str:
        """As _question, for a task. C has no such call that does not wait, so another thread waits."""
        import asyncio

        handle, events, loop = self._open_handle(), self._open_events(), asyncio.get_running_loop()
        self._renew_log_in()
        answer = functools.partial(self._answer, handle, function, arguments)
        answering = loop.run_in_executor(None, answer)
        closing = events.begin_question(loop)
        first: set[asyncio.Future[Any]] = {answering, closing}
        try:
            await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
            if not answering.done():
                self._open_handle()  # raises Closed
            return _check(*answering.result())
        finally:
            events.end_question(closing)
            self._tell(handle)

    def _set(self, function: Callable[..., int], argument: Any, *more: Any) -> None:
        """Also for calls on a loop's thread: it does not wait for a call of another thread."""
        handle = self._open_handle()
        status = function(handle, argument, *more)
        if status != 0:
            _check(status, _c.RedLock_ErrorMessage(handle).decode("utf-8", "replace"))

    @property
    def _is_told(self) -> bool:
        """Whether anybody needs to know of failing servers: the logger, or the function for passwords."""
        return self._logger is not None or self._ask is not None

    def _tell(self, handle: _CManager) -> None:
        """Passes the lines that the library has kept to the logger.

        C does not call the logger. An exception of a signal handler would be lost there, and a thread
        that returns to an ending interpreter would be ended within the library.
        """
        if not self._is_told or self._here.is_telling:
            return
        self._here.is_telling = True
        try:
            line = ctypes.create_string_buffer(1024)
            while self._is_told:
                level = _c.RedLock_TakeLogLine(handle, line, len(line))
                if level == 0:
                    break
                if level == 1:
                    self._some_server_failed()
                self._log(_LEVELS.get(level, _DEBUG), line.value.decode("utf-8", "replace"))
        finally:
            self._here.is_telling = False

    def _log(self, level: int, text: str) -> None:
        """A lock does not depend on the logger, which is told of its own exception, once."""
        logger = self._logger
        if logger is None:
            return
        try:
            logger(level, text)
        except Exception as error:  # noqa: BLE001
            with contextlib.suppress(Exception):
                logger(_WARNING, f"the logger failed: {type(error).__name__}")

    def _add(self, server: str, scheme: str) -> None:
        if not isinstance(server, str):
            raise TypeError(f"server must be a str, not {type(server).__name__}")
        url = server if "://" in server else f"{scheme}://{server}"
        self._call(_c.RedLock_AddServerUrl, _string(url, "server"), 0)

    def _use_tls(self, tls: bool | TLS | Mapping[str, Any]) -> None:
        if isinstance(tls, bool):
            return
        if not isinstance(tls, TLS):
            tls = TLS(**tls)
        if tls.ca is not None:
            self._call(_c.RedLock_SetTlsCa, _file(tls.ca, "tls.ca"))
        if tls.certificate is not None or tls.key is not None:
            files = _file(tls.certificate, "tls.certificate"), _file(tls.key, "tls.key")
            self._call(_c.RedLock_SetTlsCertificate, *files)
        if tls.server_name is not None:
            self._call(_c.RedLock_SetTlsServerName, _string(tls.server_name, "tls.server_name"))
        if tls.insecure_skip_verify:
            self._call(_c.RedLock_SetTlsInsecureSkipVerify, True)

    def _log_in(self, password: Password | None) -> None:
        """Gives the library the password for log-ins from now on."""
        self._renewal = None
        self._told_in = os.getpid()
        password = password() if callable(password) else password
        self._set(_c.RedLock_SetCredentials, self._user, _optional(password, "password"))

    def _renew_log_in(self) -> None:
        """Asks again for a password that may have changed.

        It does so in a new process, and after a call in which a server could not take part, because that
        server may want another password by now. If no new password is available, the old one stays.
        """
        if self._ask is None:
            return
        is_due = self._renewal is not None and self._renewal <= time.monotonic()
        if is_due or self._told_in != os.getpid():
            try:
                self._log_in(self._ask)
            except BaseException as error:
                self._some_server_failed()  # it is asked again
                if not isinstance(error, Exception):
                    raise
                # Not its words, which may hold a password.
                self._log(_WARNING, f"the password function failed, the old password stays: {type(error).__name__}")

    def _some_server_failed(self) -> None:
        if self._renewal is None:
            self._renewal = time.monotonic() + 1


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
        body = functools.partial(_look_up, self.handle, is_over)
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


def _look_up(handle: _CManager, end: Callable[[], object]) -> None:
    """The body of a thread. No exception of a signal handler comes here. The interpreter does not wait for it."""
    try:
        _c.RedLock_LookUp(handle)
    finally:
        end()


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

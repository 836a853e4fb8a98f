"""Locks that are held on a majority of independent Redis or Valkey servers.

They are taken through the C library of that name:

    manager = redlock.Manager("127.0.0.1:6379", "127.0.0.1:6380", "127.0.0.1:6381")
    with manager.lock("report", ttl=10) as lease:
        ...

All times are seconds, and may be fractions or timedeltas. The library is the file that
REDLOCK_LIBRARY names, or the one that the system's loader finds. Python 3.8 or later, and no
package.

Threads: one that waits for a lock lets the others run. Exceptions of signal handlers, such as
KeyboardInterrupt, end the waiting within a quarter of a second, or when the attempt under way is
over: servers that do not answer are waited for as long as the timeouts allow. They leave no lock
behind (before Python 3.11 there are instants in which they can, until its ttl is over).

Processes: a manager that was made before a fork (os.fork, multiprocessing) serves the parent and
its children. A lock belongs to the process that took it: in a child, its calls raise Forked, and
neither an exit nor the garbage collector releases it. A manager cannot be pickled: where processes
are spawned, each makes its own.

asyncio: these calls block, so have a thread do all that is to be done under the lock, and the lock
is released also if the task is cancelled meanwhile:

    def send_report():
        with manager.lock("report", ttl=10):
            ...

    await asyncio.to_thread(send_report)
"""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import itertools
import math
import operator
import os
import sys
import threading
import time
import weakref
from datetime import timedelta
from types import TracebackType
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Iterator,
    Mapping,
    NamedTuple,
    NoReturn,
    SupportsFloat,
    TypeVar,
    Union,
)

if TYPE_CHECKING:
    import logging

__all__ = [
    "TLS",
    "Closed",
    "Error",
    "Forked",
    "Internal",
    "InvalidArgument",
    "Lease",
    "Lost",
    "Manager",
    "Nested",
    "NoServers",
    "Taken",
    "TooSlow",
    "Unreachable",
]

Seconds = Union[SupportsFloat, timedelta]
Name = Union[str, bytes]
Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]
Password = Union[Name, Callable[[], Name]]
Logger = Union["logging.Logger", Callable[[int, str], object]]
_T = TypeVar("_T")


class Error(Exception):
    """A call that did not succeed.

    The message is for a person: what each server answered, with the votes counted. The status is
    the number that the C library gave, or None if it was not asked.
    """

    def __init__(self, message: str = "", status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class Taken(Error):
    """Somebody else holds it."""


class Nested(Taken):
    """The with block around this call holds it: locks are not reentrant."""


class Unreachable(Error):
    """Too few servers answered in time."""


class TooSlow(Error):
    """Granted, but too late to be of use."""


class Lost(Error):
    """It is not held, or no longer."""


class InvalidArgument(Error, ValueError):
    """The message names what was wrong."""


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
    -1: InvalidArgument,
    -2: NoServers,
    -3: Forked,
    -4: Internal,
}


class TLS(NamedTuple):
    """How rediss:// servers are spoken to. The files are PEM."""

    ca: Path | None = None
    """Whose certificates are trusted, if not those that the system trusts."""
    certificate: Path | None = None
    """Our certificate, for servers that want one."""
    key: Path | None = None
    """The key of our certificate."""
    server_name: str | None = None
    """The name that certificates have to have, if not the host."""
    insecure_skip_verify: bool = False
    """Whether any certificate is believed."""


# The interface that this file is written for. Below 1.0 it may change with the second number.
_INTERFACE = "0.2"
_NAMES = ("libredlock.so.0.2", "libredlock.so", "libredlock.dylib")

_HANDLE = ctypes.c_void_p
_STRING = ctypes.c_char_p
_MS = ctypes.c_int64
_INT = ctypes.c_int

# These answer with a status. Other threads run while one of them does.
_CALLS: dict[str, tuple[Any, ...]] = {
    "RedLock_AddServerUrl": (_HANDLE, _STRING, _INT),
    "RedLock_Connect": (_HANDLE, _MS),
    "RedLock_SetRetry": (_HANDLE, _INT, _INT),
    "RedLock_SetTimeouts": (_HANDLE, _MS, _MS),
    "RedLock_SetClockDriftFactor": (_HANDLE, ctypes.c_double),
    "RedLock_SetTlsCa": (_HANDLE, _STRING),
    "RedLock_SetTlsCertificate": (_HANDLE, _STRING, _STRING),
    "RedLock_SetTlsServerName": (_HANDLE, _STRING),
    "RedLock_SetTlsInsecureSkipVerify": (_HANDLE, ctypes.c_bool),
    "RedLock_SetCredentials": (_HANDLE, _STRING, _STRING),
    "RedLock_KeepLog": (_HANDLE, _INT),
    "RedLock_TryLockSlice": (_HANDLE, _STRING, _MS, _MS, _MS, _HANDLE),
    "RedLock_Extend": (_HANDLE, _HANDLE, _MS),
    "RedLock_Confirm": (_HANDLE, _HANDLE, _MS),
    "RedLock_Unlock": (_HANDLE, _HANDLE),
    "RedLock_IsLocked": (_HANDLE, _STRING, ctypes.POINTER(ctypes.c_bool)),
}

# These neither wait nor ask anybody: giving way to other threads would take longer than they do.
_LOOKS: dict[str, tuple[Any, ...]] = {
    "RedLock_New": (_HANDLE,),
    "RedLock_Free": (None, _HANDLE),
    "RedLock_ErrorMessage": (_STRING, _HANDLE),
    "RedLock_TakeLogLine": (_INT, _HANDLE, _STRING, ctypes.c_size_t),
    "RedLockLease_New": (_HANDLE,),
    "RedLockLease_Free": (None, _HANDLE),
    "RedLockLease_IsHeld": (ctypes.c_bool, _HANDLE),
    "RedLockLease_RemainingMs": (_MS, _HANDLE),
    "RedLockLease_Token": (_STRING, _HANDLE),
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
    raise ImportError(f"no redlock library (REDLOCK_LIBRARY may name one): {words}")


def _names() -> Iterator[str]:
    yield from _NAMES
    found = ctypes.util.find_library("redlock")  # it runs programs: for when all else has failed
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
            raise ImportError(f"{name} is redlock {version}, and this file is for {_INTERFACE}")
        for function, types in _CALLS.items():
            setattr(self, function, _function(library, name, function, _INT, *types))
        looks = ctypes.PyDLL(name, handle=library._handle)
        for function, types in _LOOKS.items():
            setattr(self, function, _function(looks, name, function, *types))

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Callable[..., Any]: ...


_c = _C()


# What signal handlers raise comes in between two steps in Python, never within a function in C, and is lost
# in a finalizer that is in Python. So the finalizers here are functions in C.


class _Made(int):
    """The address of something that C has made, freed when nobody refers to it any more.

    That is after all who refer to it have had their own finalizers called, since the garbage
    collector does not know of it.
    """

    __slots__ = ()


class _CManager(_Made):
    # To free it does no network I/O.
    __slots__ = ()
    __del__ = property(functools.partial(functools.partial, _c.RedLock_Free))


class _CLease(_Made):
    __slots__ = ()
    __del__ = property(functools.partial(functools.partial, _c.RedLockLease_Free))


def _hide_from_collector() -> Callable[[object], None]:
    """An object that refers to nothing needs none, and a collector calls finalizers in any order."""
    if sys.implementation.name != "cpython":
        return lambda _made: None  # others call first those of objects that refer to others
    prototype = ctypes.PYFUNCTYPE(None, ctypes.py_object)
    return prototype(("PyObject_GC_UnTrack", ctypes.pythonapi))


_hide = _hide_from_collector()


def _make(kind: Callable[[int], _T], function: Callable[[], int | None]) -> _T:
    address = function()
    if address is None:
        raise MemoryError(f"{function!r} made nothing")
    made = kind(address)
    _hide(made)
    return made


def _check(status: int, words: str) -> str:
    if status != 0:
        raise _ERRORS.get(status, Error)(words, status)
    return words


# The numbers of logging.WARNING and logging.INFO.
_WARNING, _INFO = 30, 20
# So many lines wait to be told in the midst of a long call; of more, the last ones.
_LOG_LINES = 1000


def _string(text: Name, what: str) -> bytes:
    """Refuses what C would cut short: "a\\0b" must not lock "a"."""
    if isinstance(text, str):
        try:
            text = text.encode()
        except UnicodeEncodeError as error:
            reason = error.reason
        if isinstance(text, str):
            # Not from within the except clause: that error holds the text, which may be a password.
            raise InvalidArgument(f"{what} is no text: {reason}", -1)
    if not isinstance(text, bytes):
        raise TypeError(f"{what} is a str or bytes, not {type(text).__name__}")
    if b"\0" in text:
        raise InvalidArgument(f"{what} holds a NUL byte", -1)
    return text


def _optional(text: Name | None, what: str) -> bytes | None:
    return None if text is None else _string(text, what)


def _file(path: Path | None) -> bytes | None:
    return None if path is None else _string(os.fsencode(path), "a file")


def _seconds(value: Seconds, what: str) -> float:
    if isinstance(value, timedelta):
        return value.total_seconds()
    if not hasattr(type(value), "__float__"):
        raise TypeError(f"{what} is a number of seconds, not {type(value).__name__}")
    try:
        seconds = float(value)
    except OverflowError:
        seconds = math.inf
    if math.isnan(seconds):
        raise InvalidArgument(f"{what} is not a number", -1)
    return seconds


def _ms(value: Seconds, what: str) -> int:
    """Milliseconds; a little never becomes 0, which means something else."""
    seconds = _seconds(value, what)
    ms = round(max(-(2.0**62), min(seconds * 1000, 2.0**62)))
    return int(math.copysign(1, seconds)) if ms == 0 and seconds != 0 else ms


# A forked child finds their mutexes free, whoever held them in the parent.
_managers: set[weakref.ref[Manager]] = set()


def _after_fork_in_child() -> None:
    for reference in list(_managers):
        manager = reference()
        if manager is not None:
            manager._renew_mutex()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


class _Here(threading.local):
    """The leases that a thread has taken through a manager, the last one for each name.

    What is gone is thrown out now and then rather than by a callback: in one, the exception of a
    signal handler would be lost.
    """

    is_telling = False  # whether the thread is in the logger

    def __init__(self) -> None:
        self._leases: dict[bytes, weakref.ref[Lease]] = {}
        self._limit = 100

    def find(self, name: bytes) -> Lease | None:
        reference = self._leases.get(name)
        return reference() if reference else None

    def put(self, name: bytes, lease: Lease) -> None:
        self._leases[name] = weakref.ref(lease)
        if len(self._leases) > self._limit:
            self._leases = {key: it for key, it in self._leases.items() if it() is not None}
            self._limit = 2 * len(self._leases) + 100

    def drop(self, name: bytes, lease: Lease) -> None:
        if self.find(name) is lease:
            self._leases.pop(name, None)


class Manager:
    """Takes locks on one set of servers.

    Threads may share it, and processes forked later may use it.

    Servers are host:port, or URLs such as redis://user:password@host:6379/0, rediss://host:6379 or
    unix:///run/redis.sock. All programs that are to exclude each other must name the same ones.

    user, password: log-in for servers whose URL has none. A password may be a function: it is
        called when the manager is made, in a forked child, and a second after a server failed; so
        the password may change. What it raises comes out of the first of these calls only.
    tls: True, or a TLS (or a mapping with its fields), has servers that are given as host:port
        spoken to by TLS as those of rediss:// are.
    retry_delay: mean pause between two attempts, each of them random. While locks change hands,
        attempts are closer to each other.
    connect_timeout: for connecting to a server.
    reply_timeout: for a server's reply; 0 is a twentieth of the ttl, 0.025 to 0.5.
    drift_factor: how much faster a server's clock may run than ours.
    logger: as for set_logger.
    """

    _handle: _CManager | None = None
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
        logger: Logger | None = None,
    ) -> None:
        if not servers:
            raise NoServers("no server was given", -2)
        self._count = len(servers)
        self._user = _optional(user, "the user")
        # One that is no function is told once, and not kept: nobody finds it here.
        self._ask = password if callable(password) else None
        self._renewal: float | None = None
        self._renew_mutex()
        self._handle = _make(_CManager, _c.RedLock_New)
        self._here = _Here()
        _managers.add(weakref.ref(self, _managers.discard))

        self._call(_c.RedLock_SetRetry, 3, max(-1, min(_ms(retry_delay, "retry_delay"), 2**31 - 1)))
        timeouts = (_ms(connect_timeout, "connect_timeout"), _ms(reply_timeout, "reply_timeout"))
        self._call(_c.RedLock_SetTimeouts, *timeouts)
        self._call(_c.RedLock_SetClockDriftFactor, drift_factor)
        if tls:
            self._use_tls(tls)
        if user is not None or password is not None:
            self._log_in(password)
        for server in servers:
            self._add(server, "rediss" if tls else "redis")
        if logger is not None:
            self.set_logger(logger)

    def lock(self, resource: Name, ttl: Seconds, wait: Seconds | None = 5) -> Lease:
        """Takes the lock for ttl seconds, and returns it.

        In a with statement it is released however the block ends; where the block came to its end
        but the lock had run out before, Lost is raised. Otherwise it is the caller's to unlock.

        wait is how many seconds to wait at most for a lock that cannot be had: 0 is one attempt,
        None is for ever. What the last attempt said is then raised: Taken, Unreachable or TooSlow.

        Locks are not reentrant: who asks in a with block for the lock of that block gets Nested at
        once.
        """
        lease = Lease(self, resource, ttl)
        try:
            lease._acquire(wait)
            lease._callers[:] = [lease]  # no call may come after this: see __enter__
            return lease
        except BaseException:
            lease._release()
            raise

    def try_lock(self, resource: Name, ttl: Seconds) -> Lease | None:
        """As lock with one attempt, but returns None where the lock is held."""
        try:
            return self.lock(resource, ttl, wait=0)
        except Taken:
            return None

    def is_locked(self, resource: Name) -> bool:
        """Asks the servers whether anybody holds the resource.

        To take a lock, take it: the answer may be out of date when it arrives.
        """
        answer = ctypes.c_bool()
        self._renew_log_in()
        self._call(_c.RedLock_IsLocked, _string(resource, "the resource"), ctypes.byref(answer))
        return answer.value

    def connect(self, timeout: Seconds = 0) -> str:
        """Connects now rather than at the first lock; returns when a quorum is up.

        It returns words about the servers that are not up, and why: a name may be mis-spelled. They
        are empty if all are. Where there is no quorum, Unreachable is raised.
        """
        self._renew_log_in()
        return self._call(_c.RedLock_Connect, _ms(timeout, "timeout"))

    def set_logger(self, logger: Logger | None) -> None:
        """Sets who is told of servers that are lost, refuse or come back; None: nobody.

        It is a logging.Logger, or a function of a level and a line of text. The levels are those of
        logging: WARNING for a fault of a server, INFO for what is mended. It is called by the thread
        whose call met with it, at the end of that call, and may use this manager. The errors that it
        raises (of the class Exception) are ignored. Neither a password nor a token is in the text.
        """
        if logger is not None and not callable(logger):
            logger = logger.log  # Loggers of logging are not called themselves
        self._logger = logger
        self._call(_c.RedLock_KeepLog, 0 if logger is None else _LOG_LINES)

    def close(self) -> None:
        """Closes the connections when the last lease is unlocked, or gone; a new call raises Closed.

        A manager that nobody refers to any more is closed as well.
        """
        self._handle = None  # calls and leases that are under way have it still

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
        raise TypeError("a redlock.Manager belongs to its process: make one in the other")

    def _renew_mutex(self) -> None:
        self._asking = threading.RLock()  # the words of a call are kept in C: one call at a time

    def _open_handle(self) -> _CManager:
        handle = self._handle
        if handle is None:
            raise Closed("the manager was closed")
        return handle

    def _call(self, function: Callable[..., int], *arguments: Any) -> str:
        """Returns what there is to say after a success."""
        handle = self._open_handle()
        try:
            with self._asking:
                status = function(handle, *arguments)
                words = _c.RedLock_ErrorMessage(handle).decode("utf-8", "replace")
            return _check(status, words)
        finally:
            self._tell(handle)

    def _tell(self, handle: _CManager) -> None:
        """Tells the logger what the library has kept.

        C does not call it: what a signal handler raises would be lost there, and a thread that comes
        back to an interpreter at its end would be ended in the midst of the library.
        """
        if self._logger is None or self._here.is_telling:
            return
        self._here.is_telling = True
        try:
            line = ctypes.create_string_buffer(1024)
            while self._logger is not None:
                level = _c.RedLock_TakeLogLine(handle, line, len(line))
                if level == 0:
                    break
                try:
                    text = line.value.decode("utf-8", "replace")
                    self._logger(_WARNING if level == 1 else _INFO, text)
                except Exception:  # noqa: BLE001
                    pass  # a lock does not depend on it
        finally:
            self._here.is_telling = False

    def _add(self, server: str, scheme: str) -> None:
        if not isinstance(server, str):
            raise TypeError(f"a server is a str, not {type(server).__name__}")
        url = server if "://" in server else f"{scheme}://{server}"
        self._call(_c.RedLock_AddServerUrl, _string(url, "a server"), 0)

    def _use_tls(self, tls: bool | TLS | Mapping[str, Any]) -> None:
        if isinstance(tls, bool):
            return
        if not isinstance(tls, TLS):
            tls = TLS(**tls)
        if tls.ca is not None:
            self._call(_c.RedLock_SetTlsCa, _file(tls.ca))
        if tls.certificate is not None or tls.key is not None:
            self._call(_c.RedLock_SetTlsCertificate, _file(tls.certificate), _file(tls.key))
        if tls.server_name is not None:
            self._call(_c.RedLock_SetTlsServerName, _string(tls.server_name, "server_name"))
        if tls.insecure_skip_verify:
            self._call(_c.RedLock_SetTlsInsecureSkipVerify, True)

    def _log_in(self, password: Password | None) -> None:
        """Tells the library the password that it is to log in with from now on."""
        self._renewal = None
        self._told_in = os.getpid()
        password = password() if callable(password) else password
        self._call(_c.RedLock_SetCredentials, self._user, _optional(password, "the password"))

    def _renew_log_in(self) -> None:
        """Asks again for a password that may have changed.

        It does so in a new process, and after a call in which a server could not take part: it may
        want another one by now. If that cannot be had, the old one stays.
        """
        if self._ask is None:
            return
        is_due = self._renewal is not None and self._renewal <= time.monotonic()
        if is_due or self._told_in != os.getpid():
            try:
                self._log_in(self._ask)
            except Exception:  # noqa: BLE001
                return

    def _some_server_failed(self) -> None:
        if self._renewal is None:
            self._renewal = time.monotonic() + 1


class _Spent:
    """Stands where a lease was that has had its with block, or its unlock."""

    def pop(self) -> NoReturn:
        raise RuntimeError("a lease is good for one with block, before it is unlocked")


_SPENT = _Spent()


class Lease:
    """One lock, as Manager.lock returns it.

    It ends by itself when its time is over, so look at remaining, or confirm, before a step that
    must not happen without it. Threads may share it.
    """

    # How long C waits in one go: the exceptions of signal handlers have to wait for its end.
    _SLICE = 0.25

    _entry: list[Lease] | _Spent = _SPENT
    _leave: Callable[[], object] = int  # does nothing

    def __init__(self, manager: Manager, resource: Name, ttl: Seconds) -> None:
        self.resource: Name = resource
        """The name that is locked, as it was given."""
        self._manager = manager
        self._name = _string(resource, "the resource")
        self._ttl = ttl
        self._ttl_ms = _ms(ttl, "ttl")
        self._unlocked = False
        self._words = ""
        self._process = os.getpid()
        self._calling = threading.RLock()  # a call and the reading of its words belong together
        self._handle = _make(_CLease, _c.RedLockLease_New)
        self._owner: _CManager | None = manager._open_handle()
        # Who is to release: the caller, while the lease is in here; with, once it has taken it out.
        self._callers: list[Lease] = []
        self._entry = self._callers
        self._leave = self._release_in_c(self._owner, self._handle, self._callers)

    def extend(self, ttl: Seconds | None = None) -> None:
        """Gives the lock a new ttl, counted from now; by default the one that it had.

        Lost: it had ended. Unreachable: too few servers answered, and what was valid stays valid
        until its old end.
        """
        self._call(_c.RedLock_Extend, self._handle, _ms(self._ttl if ttl is None else ttl, "ttl"))

    def confirm(self, least: Seconds = 0) -> None:
        """Asks the servers whether the lock is still ours, for at least so many seconds.

        Lost: it is not.
        """
        self._call(_c.RedLock_Confirm, self._handle, _ms(least, "least"))

    def unlock(self) -> None:
        """Releases the lock.

        Lost: it had already ended, and nothing of anybody else's was touched. Unreachable: some
        servers could not be told; the lock expires there.
        """
        self._unlocked = True
        try:
            self._call(_c.RedLock_Unlock, self._handle, leaving=True)
        finally:
            if not self.held:
                self._end()

    @property
    def remaining(self) -> float:
        """How many seconds the lock is valid from now on; 0 when it is not."""
        return float(_c.RedLockLease_RemainingMs(self._handle)) / 1000

    @property
    def held(self) -> bool:
        """Whether the lock is held and valid now, by this machine's clock."""
        return bool(_c.RedLockLease_IsHeld(self._handle))

    @property
    def message(self) -> str:
        """What the last call on it has to say.

        After a success: which servers could not take part, and why; empty if all could. After a
        failure: the message of the exception.
        """
        return self._words

    @property
    def token(self) -> str:
        """What stands on the servers as the value of the key; empty if it holds no lock.

        Keep it to yourself: who knows it can release the lock. Nothing else shows it.
        """
        with self._mutex():
            return str(_c.RedLockLease_Token(self._handle).decode())

    if TYPE_CHECKING:

        def __enter__(self) -> Lease: ...

    else:
        # The exception of a signal handler can come at the beginning of any function in Python, and
        # would lose a lock here that nobody could release any more. So it is a function in C: it
        # returns the lease, and from then on it is released, at the latest by __del__.
        __enter__ = property(operator.attrgetter("_entry.pop"))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None and not self._unlocked:
                self.unlock()  # a block that came to its end is told if it ran without the lock
        except Unreachable:
            pass  # it had the lock to its end
        finally:
            self._release()

    def __repr__(self) -> str:
        return f"<redlock.Lease of {self.resource!r}, valid for {self.remaining} s>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a redlock.Lease belongs to its process")

    # What is left to do when nobody refers to it any more. A lease of the caller's is only freed.
    __del__ = property(operator.attrgetter("_leave"))

    @staticmethod
    def _release_in_c(
        manager: _CManager, handle: _CLease, callers: list[Lease]
    ) -> Callable[[], object]:
        """A function in C that releases, once, what is held, unless it is the caller's to release."""
        held = itertools.compress([(manager, handle)], map(_c.RedLockLease_IsHeld, [handle]))
        steps = itertools.chain(callers, itertools.starmap(_c.RedLock_Unlock, held))
        return functools.partial(next, steps, None)

    def _end(self) -> None:
        """For when it is not held any more."""
        self._entry = _SPENT
        self._callers = []
        self._leave = int
        self._owner = None
        self._manager._here.drop(self._name, self)

    @property
    def _is_ours(self) -> bool:
        """Whether it is not the caller who is to release it."""
        return self._entry is not _SPENT and not self._callers

    def _acquire(self, wait: Seconds | None) -> None:
        """Waits in slices: the interpreter heeds signals between two calls into C."""
        self._refuse_nested()
        deadline = math.inf if wait is None else time.monotonic() + self._waiting_time(wait)
        while True:
            left = max(0.0, deadline - time.monotonic())
            try:
                self._attempt(left)
                return
            except (Taken, Unreachable, TooSlow):
                if left <= self._SLICE:
                    raise

    @staticmethod
    def _waiting_time(wait: Seconds) -> float:
        seconds = _seconds(wait, "wait")
        if seconds < 0:
            raise InvalidArgument("wait is negative", -1)
        return seconds

    def _attempt(self, left: float) -> None:
        """One slice, in which C goes on with the wait that the one before has left off."""
        manager = self._manager
        manager._renew_log_in()
        times = -1 if left == math.inf else _ms(left, "wait"), _ms(self._SLICE, "a slice")
        try:
            self._call(_c.RedLock_TryLockSlice, self._name, self._ttl_ms, *times, self._handle)
        except Unreachable:
            manager._some_server_failed()
            raise
        if self._words:
            manager._some_server_failed()

    def _refuse_nested(self) -> None:
        here = self._manager._here
        outer = here.find(self._name)
        if outer is not None and outer._is_ours and outer.held:
            words = f"the with block around this call holds {self.resource!r}"
            raise Nested(f"{words}: locks are not reentrant", 1)
        here.put(self._name, self)

    def _release(self) -> None:
        """Releases what is held. If a signal handler raises something first, __del__ does it."""
        with self._mutex():
            self._leave()
        self._end()

    def _mutex(self) -> threading.RLock:
        """In a forked child the one of the lease may be that of a thread that is not there."""
        return self._calling if self._process == os.getpid() else threading.RLock()

    def _call(self, function: Callable[..., int], *arguments: Any, leaving: bool = False) -> None:
        handle = (self._owner if leaving else None) or self._manager._open_handle()
        try:
            with self._mutex():
                status = function(handle, *arguments)
                words = _c.RedLockLease_ErrorMessage(self._handle).decode("utf-8", "replace")
                self._words = words
            _check(status, words)
        finally:
            self._manager._tell(handle)

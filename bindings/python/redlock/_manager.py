"""The manager: the servers, and what is asked of them."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import time
import weakref
from typing import TYPE_CHECKING, Any, Callable, Mapping, NoReturn

from ._arguments import (
    _GUARDS,
    _TRACES,
    _WAIT,
    TLS,
    _count,
    _file,
    _ms,
    _optional,
    _refuse_both,
    _string,
)
from ._async_lease import AsyncLease, _Locking
from ._errors import Closed, InvalidArgument, NoServers, Taken, _check
from ._events import _Events
from ._handles import _CManager, _make
from ._lease import Lease
from ._library import _c
from ._reentrant import AsyncLevel, Level
from ._semaphore import Semaphore
from ._state import Info, Server, _read_info
from ._stats import Histogram, Outcomes, Stats
from ._structures import (
    _NONE,
    _PYTHON,
    _CEvent,
    _CHistogram,
    _CInfo,
    _COutcomes,
    _CServerInfo,
    _CStats,
)
from ._threads import _is_patched, _Mutex, _PerThread, _system_threads
from ._types import Logger, Name, Names, Password, RestartGuard, Seconds, Trace
from ._weak import _Weak

if TYPE_CHECKING:
    import asyncio

# The numbers of logging.WARNING, logging.INFO and logging.DEBUG, and the first two by the levels of the library.
_WARNING, _INFO, _DEBUG = 30, 20, 10
_LEVELS = {1: _WARNING, 2: _INFO}
# The number of lines that may wait during a long call. If there are more, the last ones are kept.
_LOG_LINES = 1000

# The calls without a lease that wait. C has no function that only begins them.
_QUESTIONS = (_c.RedLock_Connect, _c.RedLock_IsLocked, _c.RedLock_Inspect)

_managers: set[weakref.ref[Manager]] = set()


def _after_fork_in_child() -> None:
    for reference in list(_managers):
        manager = reference()
        if manager is not None:
            manager._begin_in_process()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


class _Here:
    """The state that a thread has for a manager."""

    def __init__(self) -> None:
        self.is_telling = False  # whether the thread is in the logger
        # The leases that the thread has taken, the last one for each name.
        self.leases: _Weak[bytes, Lease] = _Weak()
        # Where C writes an event for this thread. The event stays here until it has been handed on. If
        # the exception of a signal handler comes in between, the event is handed on again.
        self.event = _CEvent(size=ctypes.sizeof(_CEvent), kind=_NONE)


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
    failover_guard: whether a master that Sentinels watch has a vote only while a majority of all its
        Sentinels names it as the master. So an old master that was paused or cut off while another one
        was elected never votes beside its successor. If False, one Sentinel that answers is enough, and a
        master keeps its vote while no Sentinel can be reached: then an old master may vote beside its
        successor, and two clients may hold one lock. It has no effect on servers that no Sentinel watches,
        nor if restart_guard is "off" or "durable".
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
        failover_guard: bool = True,
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
        # From now on threads that wait for events leave the resolver to RedLock_LookUp.
        _c.RedLock_IsLookUpDue(self._handle)
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
        self._call(_c.RedLock_SetFailoverGuard, bool(failover_guard))
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

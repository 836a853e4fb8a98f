"""The common base of the tests.

They need REDLOCK_TEST_SERVERS=host:port,host:port,... (real servers, of which a minority may be down) and
REDLOCK_LIBRARY, unless the loader finds the library by itself.
"""

from __future__ import annotations

import asyncio
import logging
import os
import pickle
import secrets
import socket
import subprocess
import sys
import threading
import time
import unittest
from pathlib import Path
from typing import Any, Awaitable, Callable

BINDING = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(BINDING))

import redlock

SERVERS = os.environ["REDLOCK_TEST_SERVERS"].split(",")
PATIENCE = 60  # seconds after which something that should have happened has not


class RedlockTest(unittest.TestCase):
    def setUp(self) -> None:
        self.manager = manager()
        self.name = f"python:{self.id().rsplit('.', 1)[-1]}:{secrets.token_hex(8)}"

    def eventually(self, what: str, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            self.assertLess(time.monotonic(), deadline, f"never came true: {what}")
            time.sleep(0.002)

    def assert_free(self, name: Any = None, last_holder: Any = None) -> None:
        """A late server is released while the manager of the last holder is in use."""
        name = name or self.name
        self.eventually(
            f"{name!r} is free", lambda: self.is_gone(name, last_holder) and keys(name) == 0
        )

    def is_gone(self, name: Any, asked: Any = None) -> bool:
        """While a lock ends on one server after another and a third is down, the answer is unknown."""
        try:
            return not (asked or self.manager).is_locked(name)
        except redlock.Unreachable:
            return False

    def assert_fails(
        self, error: type[BaseException], call: Callable[..., Any], *args: Any, **words: Any
    ) -> Any:
        with self.assertRaises(error) as caught:
            call(*args, **words)
        self.assertIs(type(caught.exception), error)
        return caught.exception

    def run_threads(self, *bodies: Callable[[], Any]) -> None:
        """Runs them all at once, and fails if one does."""
        failures = []

        def run(body: Callable[[], Any]) -> None:
            try:
                body()
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=run, args=(body,)) for body in bodies]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([], failures)


class AsyncTest(RedlockTest, unittest.IsolatedAsyncioTestCase):
    def setUp(self) -> None:
        super().setUp()
        # On a busy machine everything is slow, and some tests throw away pending tasks on purpose.
        logger = logging.getLogger("asyncio")
        logger.setLevel(logging.CRITICAL)
        self.addCleanup(logger.setLevel, logging.NOTSET)

    async def assert_refused(
        self, error: type[BaseException], call: Callable[..., Awaitable[Any]], *args: Any, **words: Any
    ) -> Any:
        with self.assertRaises(error) as caught:
            await call(*args, **words)
        self.assertIs(type(caught.exception), error)
        return caught.exception

    async def until(self, what: str, condition: Callable[[], bool]) -> None:
        async def wait() -> None:
            while not condition():
                await asyncio.sleep(0.002)

        await asyncio.wait_for(wait(), PATIENCE)

    def assert_nothing_is_under_way(self, own: redlock.Manager | None = None) -> None:
        events = (own or self.manager)._events
        assert events is not None
        self.assertEqual(({}, {}), (events._calls, events._loops))

    async def assert_all_over(self, last_holder: Any = None) -> None:
        self.assert_free(last_holder=last_holder)
        await self.until("no loop looks any more", lambda: not self.manager._events._loops)
        self.assert_nothing_is_under_way()


def manager(*servers: str, **options: Any) -> redlock.Manager:
    # With one server down, a call needs both of the others, on a machine that may be busy.
    patient = {"retry_delay": 0.004, "connect_timeout": 20, "reply_timeout": 20}
    options = {**patient, **options}
    return redlock.Manager(*(servers or SERVERS), **options)


def ask(server: str, *words: Any) -> bytes | None:
    """The first line of a server's answer; None if it is down.

    Whoever looks for a free port listens on the port of that server for a moment.
    """
    host, port = server.split(":")
    parts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    request = b"*%d\r\n" % len(parts)
    request += b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)
    try:
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(request)
            with connection.makefile("rb") as reply:
                return reply.readline().strip() or None
    except ConnectionError:
        return None


def ask_all(*words: Any) -> None:
    for server in SERVERS:
        ask(server, *words)


def keys(name: Any) -> int:
    """How many servers have the key."""
    return sum(ask(server, "EXISTS", name) == b":1" for server in SERVERS)


def in_child(body: Callable[[], Any]) -> Any:
    """Runs it in a forked child, and returns what it returned or raised."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            answer = body()
        except BaseException as error:
            answer = error
        with os.fdopen(writer, "wb") as pipe:
            pipe.write(pickle.dumps(answer))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        answer = pickle.loads(pipe.read())
    os.waitpid(child, 0)
    return answer


def environment_with(*directories: Path) -> dict[str, str]:
    """The environment for a program that has the module, and those in the directories."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (BINDING, *directories)))}


def program(script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A separate program. It has the module, and a manager if it wants one."""
    head = f"import redlock, os, sys\nSERVERS = {SERVERS!r}\n"
    command = [sys.executable, "-W", "error", "-B", "-c", head + script]
    everything = {**environment_with(), **environment}
    return subprocess.run(command, env=everything, capture_output=True, text=True, timeout=PATIENCE, check=False)

"""Greenlets instead of threads. gevent puts them there, in a program of its own for each test."""

from __future__ import annotations

import subprocess
import sys
import threading
import unittest
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator

from support import PATIENCE, SERVERS, RedlockTest, environment_with, keys, manager, redlock

HERE = Path(__file__).resolve().parent


def python_with(*modules: str) -> str:
    """A Python that has these modules. The system's packages are for the system's Python."""
    imports = "import " + ", ".join(modules)
    for python in (sys.executable, "/usr/bin/python3"):
        run = subprocess.run([python, "-c", imports], capture_output=True, check=False)
        if run.returncode == 0:
            return python
    raise AssertionError(f"no Python has {modules} (Debian: python3-gevent, python3-gunicorn)")


# When the modules are patched: before the binding is imported, after that, and after a manager was made.
MOMENTS = {
    "before": """
from gevent import monkey; monkey.patch_all({options})
import redlock
""",
    "after": """
import redlock
from gevent import monkey; monkey.patch_all({options})
""",
    "later": """
import redlock
early = redlock.Manager(*SERVERS, connect_timeout=20, reply_timeout=20)
with early.lock(NAME, ttl=600, reentrant=True): pass
from gevent import monkey; monkey.patch_all({options})
""",
}

COMMON = """
import gc, os, sys, threading
import gevent
from proxies import proxies
def make(*servers, **options):
    options = {"connect_timeout": 20, "reply_timeout": 20, "retry_delay": 0.004, **options}
    return redlock.Manager(*(servers or proxies(SERVERS)), **options)
def all_of(*bodies):
    gevent.joinall([gevent.spawn(body) for body in bodies], raise_error=True)
def until(condition):
    while not condition():
        gevent.sleep(0.001)
def fails(kind, call, *arguments, **options):
    try:
        call(*arguments, **options)
    except kind as error:
        assert type(error) is kind, repr(error)
        return error
    raise AssertionError(f"{call} did not fail")
"""

ALL_CALLS = """
from support import ask_all
m = make(logger=lambda *_: None)
m.connect()
assert not m.is_locked(NAME)
with m.lock(NAME, ttl=600) as lease:
    lease.extend(700)
    lease.extend_by(1)
    lease.confirm()
    assert m.is_locked(NAME) and m.inspect(NAME).remaining > 600
    fails(redlock.Nested, m.lock, NAME, ttl=600)
    all_of(lambda: fails(redlock.Taken, m.lock, NAME, ttl=600, wait=0), lease.extend, lease.confirm, lease.extend)
    fails(redlock.Nested, m.lock, [NAME + ":b", NAME], ttl=600)
    lease.downgrade()
    ticket = lease.detach()
with m.adopt(ticket, keep_alive=True) as lease:
    assert lease.shared and not lease.lost.wait(0.1)
try:
    with m.lock([NAME, NAME + ":b"], ttl=600, keep_alive=True):
        raise KeyError
except KeyError:
    pass
assert not m.is_locked(NAME)
with m.lock(NAME, ttl=600, reentrant=True) as outer:
    with m.lock(NAME, ttl=900, reentrant=True) as inner:
        all_of(lambda: fails(redlock.Taken, m.lock, NAME, ttl=1, wait=0, reentrant=True))
    assert outer.remaining > 800 and not inner.held
try:
    with m.lock(NAME, ttl=600, reentrant=True), m.lock(NAME, ttl=600, reentrant=True):
        raise KeyError
except KeyError:
    pass
assert not m.is_locked(NAME)
with m.semaphore(NAME, 2, ttl=600) as permit, m.semaphore(NAME, 2, ttl=600).acquire():
    assert m.semaphore(NAME, 2, ttl=600).taken() == 2
    assert m.semaphore(NAME, 2, ttl=600).try_acquire() is None
lease = m.lock(NAME, ttl=600)
lease.unlock()
fails(redlock.Lost, lease.unlock)
for reentrant in (False, True):
    with m.lock(NAME + ":kept", ttl=600, reentrant=reentrant) as lease:
        fails(redlock.InvalidArgument, lease.unlock, hold_at_least=601)
        assert lease.held
    assert not lease.held and not m.is_locked(NAME + ":kept")
    with m.lock(NAME + ":kept", ttl=600, reentrant=reentrant) as lease:
        lease.unlock(hold_at_least=300)
        assert not lease.held
    assert 0 < m.inspect(NAME + ":kept").remaining <= 300
    ask_all("DEL", NAME + ":kept")
fails(redlock.InvalidArgument, m.lock, NAME, ttl=0)
fails(redlock.InvalidArgument, m.is_locked, "")
with m.lock(NAME, ttl=600, shared=True), m.lock(NAME, ttl=600, shared=True):
    pass
"""


class Greenlets(RedlockTest):
    def run_program(self, script: str, moment: str = "before", options: str = "") -> None:
        head = f"SERVERS, NAME, PATIENCE = {SERVERS!r}, {self.name!r}, {PATIENCE}\n"
        text = head + MOMENTS[moment].format(options=options) + COMMON + script + "\nprint('the end')\n"
        # gevent's own code has warnings.
        command = [python_with("gevent"), "-B", "-X", "faulthandler", "-c", text]
        try:
            run = subprocess.run(
                command, env=environment_with(HERE), capture_output=True, text=True, timeout=PATIENCE, check=False
            )
        except subprocess.TimeoutExpired as error:
            self.fail(f"it hangs ({moment}): {error.stdout!r} {error.stderr!r}")
        self.assertEqual((0, "the end\n"), (run.returncode, run.stdout), run.stderr)
        self.assert_free()

    def test_other_greenlets_run_while_one_waits(self) -> None:
        for moment in MOMENTS:
            self.run_program(
                """
holder, waiting = make(), globals().get("early") or make()
lease = holder.lock(NAME, ttl=600)
order = []
def wait(kept):
    with waiting.lock(NAME, ttl=600, wait=None, keep_alive=kept):
        order.append(kept)
def release():
    until(lambda: waiting.stats().waiting == 2)
    lease.unlock()
all_of(lambda: wait(False), lambda: wait(True), release)
assert len(order) == 2, order
""",
                moment,
            )

    def test_no_call_waits_in_c(self) -> None:
        for moment in MOMENTS:
            self.run_program(ALL_CALLS, moment)

    def test_where_only_threads_are_patched(self) -> None:
        self.run_program(ALL_CALLS, options="select=False")

    def test_they_get_the_lock_in_the_order_of_arrival(self) -> None:
        self.run_program(
            """
m, order, waiters = make(), [], []
lease = m.lock(NAME, ttl=600)
def wait(i):
    with m.lock(NAME, ttl=600, wait=None):
        order.append(i)
        gevent.sleep(0.02)
for i in range(40):
    waiters.append(gevent.spawn(wait, i))
    until(lambda: m.stats().waiting == i + 1)
lease.unlock()
gevent.joinall(waiters, raise_error=True)
assert order == list(range(40)), order
"""
        )

    def test_what_was_patched_later_tells_greenlets_apart(self) -> None:
        """A manager that is older than the patch does not take two greenlets for one thread."""
        self.run_program(
            """
def other():
    for reentrant in (False, True):
        fails(redlock.Taken, early.lock, NAME, ttl=600, wait=0, reentrant=reentrant)
for reentrant in (False, True):
    with early.lock(NAME, ttl=600, reentrant=reentrant):
        all_of(other)
inside = []
def lock(reentrant):
    for _ in range(10):
        with early.lock(NAME, ttl=600, wait=None, reentrant=reentrant):
            inside.append(1)
            assert len(inside) == 1
            gevent.sleep(0.001)
            inside.pop()
all_of(*[lambda: lock(False)] * 4, *[lambda: lock(True)] * 4)
""",
            "later",
        )

    def test_greenlets_that_are_killed_leave_nothing(self) -> None:
        self.run_program(
            """
import random
m, other = make(), make()
def lock():
    with m.lock(NAME, ttl=600, wait=None) as lease:
        lease.extend()
        gevent.sleep(0)
for _ in range(60):
    waiters = [gevent.spawn(lock) for _ in range(5)]
    for _ in range(random.randrange(30)):
        gevent.sleep(0)
    gevent.killall(random.sample(waiters, 3))
    gevent.joinall(waiters)
    del waiters
    with other.lock(NAME, ttl=600, wait=PATIENCE):
        pass
with other.lock(NAME, ttl=600):
    try:
        with gevent.Timeout(0.05):
            m.lock(NAME, ttl=600, wait=None)
        raise AssertionError
    except gevent.Timeout:
        pass
assert m._events._calls == {}, m._events._calls
"""
        )

    def test_a_manager_that_is_closed_while_they_wait(self) -> None:
        self.run_program(
            """
holder, closing = make(), make()
with holder.lock(NAME, ttl=600):
    waiters = [gevent.spawn(fails, redlock.Closed, closing.lock, NAME, ttl=600, wait=None) for _ in range(3)]
    until(lambda: closing.stats().waiting == 3)
    closing.close()
    gevent.joinall(waiters, raise_error=True)
"""
        )

    def test_descriptors_above_1023(self) -> None:
        """select.select cannot wait for them."""
        self.run_program(
            """
import resource
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
files = [os.open("/dev/null", os.O_RDONLY) for _ in range(1100)]
holder, waiting = make(*SERVERS), make(*SERVERS)
lease = holder.lock(NAME, ttl=600)
assert waiting._events._descriptor() > 1023
def wait():
    with waiting.lock(NAME, ttl=600, wait=None):
        assert waiting.is_locked(NAME)
def release():
    until(lambda: waiting.stats().waiting == 1)
    lease.unlock()
all_of(wait, release)
"""
        )

    def test_they_are_told_that_a_lock_is_lost(self) -> None:
        self.run_program(
            """
m = make(*SERVERS)
lease = m.lock(NAME, ttl=0.5, keep_alive=True)
losses = []
def wait():
    losses.append(lease.lost.wait())
def take_away():
    for server in SERVERS:
        host, port = server.split(":")
        try:
            with __import__("socket").create_connection((host, int(port))) as s:
                s.sendall(b"DEL %s\\r\\n" % NAME.encode())
                s.recv(100)
        except ConnectionError:
            pass
all_of(wait, wait, take_away)
assert losses == [True, True]
"""
        )


APPLICATION = """
import os, redlock
{manager}
def application(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    if environ["PATH_INFO"] == "/wait":
        with locker().lock({name!r}, ttl=600, wait=None, keep_alive=True):
            return [b"had it"]
    return [b"%d" % locker().stats().waiting]
"""
MADE_EARLY = """
made = redlock.Manager(*{servers!r})
def locker(): return made
"""
MADE_LATE = """
import functools
@functools.lru_cache
def locker(): return redlock.Manager(*{servers!r})
"""


class Gunicorn(RedlockTest):
    @contextmanager
    def serving(self, made: str, *options: str) -> Iterator[str]:
        """Yields the address of a web server whose worker runs greenlets."""
        python = python_with("gevent", "gunicorn")
        made = made.format(servers=SERVERS)
        text = APPLICATION.format(manager=made, name=self.name)
        with self.directory() as directory:
            (directory / "application.py").write_text(text)
            command = [python, "-B", "-m", "gunicorn", "-k", "gevent", "-w", "1", "-b", "127.0.0.1:0"]
            command += ["--worker-tmp-dir", str(directory), *options, "application:application"]
            server = subprocess.Popen(
                command, cwd=directory, env=environment_with(directory), stderr=subprocess.PIPE, text=True
            )
            try:
                yield self.address_of(server)
            finally:
                server.terminate()
                server.communicate(timeout=PATIENCE)

    @staticmethod
    @contextmanager
    def directory() -> Iterator[Path]:
        import tempfile

        with tempfile.TemporaryDirectory() as directory:
            yield Path(directory)

    def address_of(self, server: subprocess.Popen[str]) -> str:
        assert server.stderr is not None
        told = []
        for line in server.stderr:
            told.append(line)
            if "Listening at: " in line:
                return line.split("Listening at: ")[1].split()[0]
        self.fail("".join(told))

    def test_a_worker_answers_while_requests_wait(self) -> None:
        for made, options in ((MADE_LATE, ()), (MADE_EARLY, ()), (MADE_EARLY, ("--preload",))):
            with self.serving(made, *options) as address:

                def get(path: str, address: str = address) -> bytes:
                    with urllib.request.urlopen(address + path, timeout=PATIENCE) as answer:
                        return bytes(answer.read())

                lease = manager().lock(self.name, ttl=600)
                answers: list[bytes] = []
                wait = lambda get=get, answers=answers: answers.append(get("/wait"))
                waiters = [threading.Thread(target=wait) for _ in range(3)]
                for waiter in waiters:
                    waiter.start()
                self.eventually("all wait", lambda: get("/") == b"3")
                lease.unlock()
                for waiter in waiters:
                    waiter.join(PATIENCE)
                self.assertEqual([b"had it"] * 3, answers)
            self.assertEqual(0, keys(self.name))


class Unpatched(RedlockTest):
    def test_threads_wait_in_c(self) -> None:
        self.assertFalse(redlock._threads._is_patched())


if __name__ == "__main__":
    unittest.main()

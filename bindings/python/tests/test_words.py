from __future__ import annotations

import asyncio
import copy
import gc
import json
import logging
import os
import pickle
import pprint
import secrets
import threading
import time
import traceback
from typing import Any, Callable

from proxies import Proxy
from support import PATIENCE, SERVERS, RedlockTest, ask_all, in_child, keys, manager, program, redlock

# The port is closed. Of the servers, only the second one may be down.
MISSPELT = "127.0.0.1:1"
TWO_OF_THREE = (SERVERS[0], SERVERS[2], MISSPELT)


def two_of_three(**options: Any) -> redlock.Manager:
    return manager(*TWO_OF_THREE, **options)


class Words(RedlockTest):
    """The words after a success."""

    def test_a_server_that_is_not_there_is_named(self) -> None:
        locker = two_of_three()
        self.assertIn(MISSPELT, locker.connect())
        with locker.lock(self.name, ttl=60) as lease:
            self.assertIn(MISSPELT, lease.message)
            lease.extend()
            self.assertIn(MISSPELT, lease.message)

    def test_what_is_known_of_each_server(self) -> None:
        locker = two_of_three()
        locker.connect()
        there, _, absent = locker.servers()
        self.assertEqual((SERVERS[0], True, True, ""), (there.name, there.connected, there.votes, there.words))
        self.assertEqual(("primary", 40), (there.role, len(there.run_id)))
        self.assertTrue(there.version)
        self.assertGreaterEqual(there.round_trip, 0)
        self.assertLess(abs(there.clock_offset), 3600)  # the same machine's
        self.assertEqual((MISSPELT, False, False), (absent.name, absent.connected, absent.votes))
        self.assertEqual(("", "", None, None), (absent.role, absent.run_id, absent.round_trip, absent.clock_offset))
        self.assertTrue(absent.words)
        self.assertIn(absent.words, repr(absent))
        locker.close()
        with self.assertRaises(redlock.Closed):
            locker.servers()

    def test_nothing_is_said_where_all_are_there(self) -> None:
        locker = manager(SERVERS[0])
        self.assertEqual("", locker.connect())
        with locker.lock(self.name, ttl=60) as lease:
            self.assertEqual("", lease.message)

    def test_after_a_failure_it_is_the_message_of_the_exception(self) -> None:
        with self.manager.lock(self.name, ttl=60) as lease:
            error = self.assert_fails(redlock.InvalidArgument, lease.extend, 0)
            self.assertEqual(str(error), lease.message)
            self.assertNotEqual("", lease.message)


class Secrets(RedlockTest):
    def test_neither_a_token_nor_a_password_shows(self) -> None:
        password = "s3same-0pen"
        servers = [server.replace("127", f"redis://u:{password}@127", 1) for server in TWO_OF_THREE]
        lines: list[str] = []
        tell = lambda _, line: lines.append(line)
        guarded = two_of_three(user="u", password=password, logger=tell)
        by_url = manager(*servers)
        lease = self.manager.lock(self.name, ttl=60)
        secrets = [password, lease.token]
        self.assertRegex(lease.token, "^[0-9A-F]{40}$")
        for thing in (guarded, by_url, self.manager, lease):
            shown = [repr(thing), str(thing), f"{thing}", pprint.pformat(thing), self.deep(thing)]
            for serialize in (json.dumps, pickle.dumps, copy.copy, copy.deepcopy):
                shown.append(self.said_by(serialize, thing))
            self.assert_hidden(secrets, shown)
        calls = [
            lambda: guarded.lock("x", ttl=1, wait=0),
            lambda: by_url.lock("x", ttl=1, wait=0),
            lambda: manager("h:1", password=password + "\0"),
            lambda: manager("h:1", password=password + "\udc80"),
            lambda: manager(f"redis://u:{password}@h:x"),
            lambda: self.manager.lock(self.name, ttl=1, wait=0),
            lambda: lease.extend(0),
        ]
        self.assert_hidden(secrets, [self.said_by(call) for call in calls] + lines)
        self.assert_hidden([lease.token], [lease.message])
        lease.unlock()
        self.assertEqual("", lease.token)

    def deep(self, thing: Any) -> str:
        """All its contents, and the contents of its manager."""
        inner = {**vars(thing), **vars(getattr(thing, "_manager", thing))}
        return repr({name: it for name, it in inner.items() if name != "_handle"})

    def said_by(self, call: Any, *arguments: Any) -> str:
        """The error with all its causes, as a program sees it that looks inside."""
        try:
            return repr(call(*arguments))
        except Exception as error:
            words = "".join(str(error) + repr(error) for error in self.causes(error))
            return words + "".join(traceback.format_exception_only(type(error), error))

    def causes(self, error: BaseException | None) -> list[BaseException]:
        return [error, *self.causes(error.__context__), *self.causes(error.__cause__)] if error else []

    def assert_hidden(self, secrets: list[str], shown: list[str]) -> None:
        for text in shown:
            for secret in secrets:
                self.assertNotIn(secret, text)


class Loggers(RedlockTest):
    def setUp(self) -> None:
        super().setUp()
        self.lines: list[tuple[int, str]] = []

    def tell(self, level: int, line: str) -> None:
        self.lines.append((level, line))

    def test_a_fault_is_told_with_a_level_of_logging(self) -> None:
        locker = two_of_three(logger=self.tell)
        locker.lock(self.name, ttl=60).unlock()
        self.assertIn(logging.WARNING, [level for level, line in self.lines if MISSPELT in line])
        self.assertLessEqual({level for level, _ in self.lines}, {logging.WARNING, logging.INFO})

    def test_a_logger_of_logging_will_do(self) -> None:
        logger = logging.getLogger(self.name)
        for given in (logger, logger.log):
            locker = two_of_three()
            locker.set_logger(given)
            with self.assertLogs(logger, logging.WARNING) as told:
                locker.connect()
            self.assertIn(MISSPELT, "".join(told.output))

    def test_nobody_is_told_any_more(self) -> None:
        locker = two_of_three(logger=self.tell)
        locker.set_logger(None)
        locker.connect()
        self.assertEqual([], self.lines)

    def test_what_is_no_logger(self) -> None:
        self.assert_fails(AttributeError, self.manager.set_logger, "a file")

    def test_its_errors_do_not_matter_and_are_told(self) -> None:
        def fail(level: int, line: str) -> None:
            self.tell(level, line)
            raise OSError("no space left on device")

        locker = two_of_three(logger=fail)
        with locker.lock(self.name, ttl=60):
            pass
        self.assertIn((logging.WARNING, "the logger failed: OSError"), self.lines)
        self.assert_free()

    def logged_in(self, fail: Callable[[], None], **options: Any) -> redlock.Manager:
        """A manager that logs in. When it asks for the password again, because a server is down, this fails."""
        user = f"user-{secrets.token_hex(6)}"
        ask_all("ACL", "SETUSER", user, "reset", "on", ">s3same", "~*", "+@all")
        self.addCleanup(ask_all, "ACL", "DELUSER", user)
        asked: list[int] = []

        def password() -> str:
            if asked:
                fail()
            asked.append(1)
            return "s3same"

        return two_of_three(user=user, password=password, **options)

    def test_a_function_for_passwords_that_fails_is_told(self) -> None:
        """The old password stays. A secret in the words of the exception is not told. It is asked again later."""
        failures = [OSError("s3same is no more"), OSError("again"), OSError("and again")]

        def fail() -> None:
            if failures:
                raise failures.pop()

        locker = self.logged_in(fail, logger=self.tell)

        def has_asked() -> bool:
            locker.connect()
            return not failures

        self.eventually("it is asked again", has_asked)
        told = [line for _, line in self.lines if "password" in line]
        self.assertEqual(["the password function failed, the old password stays: OSError"] * 3, told)
        locker.lock(self.name, ttl=60, wait=PATIENCE).unlock()

    def test_a_function_for_passwords_is_asked_in_a_child(self) -> None:
        asked: list[int] = []
        locker = self.logged_in(lambda: asked.append(os.getpid()), logger=None)

        def ask() -> tuple[list[int], int]:
            del asked[:]
            locker.is_locked(self.name)
            return asked, os.getpid()

        children, child = in_child(ask)
        self.assertEqual([child], children)

    def test_a_function_for_passwords_that_is_interrupted_ends_the_call(self) -> None:
        def fail() -> None:
            raise KeyboardInterrupt

        locker = self.logged_in(fail)
        with self.manager.lock(self.name, ttl=600):
            self.assert_fails(KeyboardInterrupt, locker.lock, self.name, ttl=600, wait=None)
        self.assert_free()

    def test_a_program_that_only_keeps_a_lock_alive_is_told(self) -> None:
        """Nobody makes a call while the server is lost. The thread that tells ends with the lock."""
        for tell_first, tell_later in ((self.tell, self.tell), (None, self.tell)):
            proxy = Proxy(SERVERS[0])
            locker = manager(proxy.address, SERVERS[2], logger=tell_first)
            lease = locker.lock(self.name, ttl=2, keep_alive=True)
            locker.set_logger(tell_later)
            self.lines.clear()
            self.assertEqual(1, self.tellers())
            proxy.cut()
            told = lambda proxy=proxy: proxy.address in str(self.lines)
            self.eventually("it is told", told)
            lease._release()
            self.eventually("the thread ends", lambda: self.tellers() == 0)
            self.assert_free()
        with self.manager.lock(self.name, ttl=600, keep_alive=True):
            self.assertEqual(0, self.tellers(), "there is no logger")
        locker = manager(*SERVERS, logger=self.tell)
        kept = locker.lock(self.name, ttl=600, keep_alive=True)
        self.assertEqual(1, self.tellers())
        del locker, kept
        gc.collect()
        self.eventually("the thread ends with the manager", lambda: self.tellers() == 0)
        ask_all("DEL", self.name)

    def tellers(self) -> int:
        return [thread.name for thread in threading.enumerate()].count("redlock")

    def test_a_task_that_only_keeps_a_lock_alive_is_told(self) -> None:
        async def keep() -> None:
            proxy = Proxy(SERVERS[0])
            locker = manager(proxy.address, SERVERS[2], logger=self.tell)
            lease = await locker.alock(self.name, ttl=2, keep_alive=True)
            self.lines.clear()
            proxy.cut()
            deadline = time.monotonic() + PATIENCE
            while proxy.address not in str(self.lines):
                self.assertLess(time.monotonic(), deadline)
                await asyncio.sleep(0.01)
            self.assertEqual(0, self.tellers())
            lease._let_go()

        asyncio.run(keep())

    def outlasting(self, name: str) -> Callable[[int, str], None]:
        """A logger that runs, when it is told of the lock, until that lock has ended."""

        def tell(level: int, line: str) -> None:
            if name in line:
                self.eventually("the lock has ended", lambda: keys(name) == 0)

        return tell

    def test_a_lock_that_ends_while_it_runs_is_not_had(self) -> None:
        def taken(name: str, kind: str) -> Any:
            locker = manager(logger=self.outlasting(name), trace="resources")
            if kind == "permit":
                return locker.semaphore(name, 1, ttl=0.2).acquire(wait=0)
            if kind == "adopted":
                return locker.adopt(self.manager.lock(name, ttl=0.2).detach())
            return locker.lock(name, ttl=0.2, wait=0, shared=kind == "shared")

        for kind in ("lock", "shared", "permit", "adopted"):
            error = self.assert_fails(redlock.TooSlow, taken, f"{self.name}:{kind}", kind)
            self.assertIn("before the program read the result of the call", str(error))

    def test_a_lock_that_ends_while_it_runs_is_lost(self) -> None:
        locker = manager(trace="resources")
        lease = locker.lock(self.name, ttl=0.5)
        locker.set_logger(self.outlasting(self.name))
        self.assert_fails(redlock.Lost, lease.extend)

    def test_an_interruption_in_it_is_raised_and_leaves_nothing(self) -> None:
        def interrupt(level: int, line: str) -> None:
            raise KeyboardInterrupt

        locker = two_of_three(logger=interrupt)
        self.assert_fails(KeyboardInterrupt, locker.lock, self.name, ttl=60)
        self.assert_free()
        for take in (
            lambda own: own.lock(self.name, ttl=600, keep_alive=True),
            lambda own: own.try_lock(self.name, ttl=600),
            lambda own: own.lock(self.name, ttl=600, shared=True),
            lambda own: own.lock(self.name, ttl=600, reentrant=True),
            lambda own: own.lock([self.name, self.name + ":b"], ttl=600),
            lambda own: own.semaphore(self.name, 2, ttl=600).acquire(),
            lambda own: own.semaphore(self.name, 2, ttl=600).__enter__(),
        ):
            traced = manager(trace="events")
            traced.connect()
            traced.set_logger(interrupt)
            self.assert_fails(KeyboardInterrupt, take, traced)
            self.assert_free()
            self.assert_free(self.name + ":b")

    def test_it_may_use_the_manager(self) -> None:
        answers: list[bool] = []
        locker = two_of_three()
        locker.set_logger(lambda *_: answers.append(locker.is_locked(self.name)))
        with locker.lock(self.name, ttl=60):
            pass
        self.assertNotEqual([], answers)

    def test_it_is_not_called_by_itself(self) -> None:
        """Its own calls have lines, too. They are told when it has returned."""
        inside: list[int] = []

        def tell(level: int, line: str) -> None:
            if inside:
                self.fail(line)
            self.tell(level, line)
            if len(self.lines) == 1:
                inside.append(1)
                locker.lock(self.name + ":other", ttl=60).unlock()
                inside.pop()

        locker = manager(trace="resources")
        locker.connect()
        locker.set_logger(tell)
        locker.lock(self.name, ttl=60).unlock()
        told = [line.split()[0] for _, line in self.lines if "event=" in line]
        self.assertEqual(["event=acquired"] * 2 + ["event=released"] * 2, sorted(told))

    def test_threads_and_the_collector(self) -> None:
        def use() -> None:
            for _ in range(10):
                locker = two_of_three(logger=self.tell)
                locker.lock(self.name, ttl=60, wait=None).unlock()
                locker.set_logger(None if len(self.lines) % 2 else self.tell)
                del locker
                gc.collect()

        self.run_threads(*[use] * 4)
        self.assertNotEqual([], self.lines)
        self.assert_free()

    def test_threads_on_one_manager(self) -> None:
        names: set[str] = set()

        def tell(_level: int, _line: str) -> None:
            names.add(threading.current_thread().name)

        locker = two_of_three(logger=tell)
        self.run_threads(*[lambda: locker.lock(self.name, ttl=60, wait=None).unlock()] * 8)
        self.assertNotEqual(set(), names)
        self.assert_free()

    def test_a_child_tells_what_it_met_with_itself(self) -> None:
        locker = two_of_three(logger=self.tell)
        locker.lock(self.name, ttl=60).unlock()
        mine = len(self.lines)

        def use() -> list[tuple[int, str]]:
            locker.lock(self.name, ttl=60).unlock()
            return self.lines[mine:]

        self.assertIn(MISSPELT, str(in_child(use)))
        self.assertEqual(mine, len(self.lines))

    def test_daemon_threads_are_told_things_when_the_interpreter_ends(self) -> None:
        run = program(f"""
import threading, time
def use():
    while True:
        locker = redlock.Manager(*{TWO_OF_THREE!r}, logger=lambda *_: None)
        locker.lock({self.name!r}, ttl=600, wait=None).unlock()
threads = [threading.Thread(target=use, daemon=True) for _ in range(4)]
[thread.start() for thread in threads]
time.sleep(0.1)
print("the end")
""")
        self.assertEqual((0, "the end\n", ""), (run.returncode, run.stdout, run.stderr))
        self.eventually("the locks of killed threads end", lambda: self.free_in_the_end())

    def free_in_the_end(self) -> bool:
        """The test deletes the lock of a thread that was ended with the interpreter."""
        ask_all("DEL", self.name)
        return keys(self.name) == 0

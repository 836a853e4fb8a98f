from __future__ import annotations

import copy
import math
import os
import pickle
import re
import threading
import unittest
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

from support import PATIENCE, SERVERS, RedlockTest, keys, manager, program, redlock

HUGE = (math.inf, 1e300, 10**400)
NOT_TIMES = ("10", b"10", [], object())


class Arguments(RedlockTest):
    def test_ttls(self) -> None:
        for ttl in (0, -1, -0.0001, 0.0001, 0.001, -math.inf, -(10**400), math.nan, *HUGE):
            error = self.assert_fails(redlock.InvalidArgument, self.manager.lock, self.name, ttl=ttl)
            self.assertIsInstance(error, ValueError)
            self.assertEqual(-1, error.status)
            self.assertRegex(str(error), "^ttl is ")
        for ttl in (None, *NOT_TIMES):
            self.assert_fails(TypeError, self.manager.lock, self.name, ttl=ttl)
        for ttl in (10, 10.5, Decimal("10.5"), Fraction(21, 2), timedelta(seconds=10)):
            with self.manager.lock(self.name, ttl=ttl) as lease:
                self.assertTrue(5 < lease.remaining < 15)
        self.assert_free()

    def test_waits(self) -> None:
        for wait in (-1, -0.0001, math.nan):
            self.assert_fails(redlock.InvalidArgument, self.manager.lock, self.name, ttl=60, wait=wait)
        for wait in NOT_TIMES:
            self.assert_fails(TypeError, self.manager.lock, self.name, ttl=60, wait=wait)
        for wait in (None, 0, 0.0001, timedelta(milliseconds=1), *HUGE):
            self.manager.lock(self.name, ttl=60, wait=wait).unlock()
        self.assert_free()

    def test_a_ttl_is_given_by_its_name(self) -> None:
        """A program that was written for redlock-py would lock for 1000 seconds instead of 1000 milliseconds."""
        for call in (self.manager.lock, self.manager.try_lock, self.manager.alock):
            self.assert_fails(TypeError, call, self.name, 1000)
        self.assert_fails(TypeError, self.manager.atry_lock, self.name, 1000)
        self.assert_fails(TypeError, self.manager.semaphore, self.name, 2, 1000)
        self.assert_free()

    def test_what_a_lease_is_asked(self) -> None:
        with self.manager.lock(self.name, ttl=60) as lease:
            for ttl in (0, -1, 0.0001, math.nan, *HUGE):
                self.assert_fails(redlock.InvalidArgument, lease.extend, ttl)
            for least in (-1, math.nan):
                self.assert_fails(redlock.InvalidArgument, lease.confirm, least)
            for least in HUGE:
                self.assert_fails(redlock.TooShort, lease.confirm, least)
            self.assert_fails(TypeError, lease.confirm, None)
            lease.confirm(0.0001)

    def test_servers(self) -> None:
        for bad in ("", "host:0", "host:65536", "http://host", "a\0b:1"):
            self.assert_fails(redlock.InvalidArgument, redlock.Manager, bad)
        for bad in (None, 5, SERVERS):
            self.assert_fails(TypeError, redlock.Manager, bad)
        self.assert_fails(redlock.NoServers, redlock.Manager)

    def test_settings(self) -> None:
        for factor in (1, -0.1, math.nan):
            self.assert_fails(
                redlock.InvalidArgument, redlock.Manager, *SERVERS, drift_factor=factor
            )
        for time in ("retry_delay", "connect_timeout", "reply_timeout"):
            for value in (-1, -0.0001, math.nan):
                self.assert_fails(
                    redlock.InvalidArgument, redlock.Manager, *SERVERS, **{time: value}
                )
            self.assert_fails(TypeError, redlock.Manager, *SERVERS, **{time: None})
            redlock.Manager(*SERVERS, **{time: 0.0001})
        self.assert_fails(redlock.InvalidArgument, redlock.Manager, *SERVERS, connect_timeout=0)
        self.assert_fails(TypeError, redlock.Manager, *SERVERS, unknown=1)

    def test_restart_guards(self) -> None:
        for mode in ("on", "strict", "off", "durable"):
            for times in ({}, {"longest_ttl": 60, "guard_cap": timedelta(minutes=5)}):
                with manager(restart_guard=mode, **times).lock(self.name, ttl=60) as lease:
                    self.assertTrue(lease.held)
        for words, bad in (
            ("restart_guard is 'always'", {"restart_guard": "always"}),
            ("restart_guard is None", {"restart_guard": None}),
            ("longest_ttl is -0.001 s: it must be 0 s to", {"longest_ttl": -0.0001}),
            ("guard_cap is 4611686018427387.904 s: it must be", {"guard_cap": math.inf}),
            ("guard_cap is ", {"guard_cap": math.nan}),
        ):
            error = self.assert_fails(redlock.InvalidArgument, manager, **bad)
            self.assertIn(words, str(error))
        self.assert_fails(TypeError, manager, longest_ttl="60")

    # There is none here: with and without the setting, a lock is had.
    def test_servers_that_no_sentinel_watches_have_no_failover_guard(self) -> None:
        for failover_guard in (True, False):
            with manager(failover_guard=failover_guard).lock(self.name, ttl=60) as lease:
                self.assertTrue(lease.held)

    def test_fencing_tokens_grow(self) -> None:
        for plain in (self.manager, manager(fencing=False)):
            with plain.lock(self.name, ttl=60) as lease:
                self.assertIsNone(lease.fencing_token)
        fencing = manager(fencing=True)
        last = 0
        for _ in range(3):
            with fencing.lock(self.name, ttl=60) as lease:
                token = lease.fencing_token
                self.assertIsInstance(token, int)
                self.assertGreater(token, last)
                lease.extend(120)
                self.assertEqual(token, lease.fencing_token)
            self.assertIsNone(lease.fencing_token)
            last = token

    def test_a_taken_lock_is_tried_once_or_for_a_time(self) -> None:
        with self.manager.lock(self.name, ttl=600):
            for wait in (0, 0.1):
                error = self.assert_fails(
                    redlock.Taken, manager().lock, self.name, ttl=600, wait=wait
                )
                self.assertIsInstance(error, redlock.Error)
                self.assertEqual(1, error.status)
                self.assertTrue(str(error))

    def test_nothing_secret_is_shown(self) -> None:
        shown = repr(manager(user="somebody", password="sesame"))
        with self.manager.lock(self.name, ttl=600) as lease:
            shown += repr(lease)
        self.assertIsNone(re.search("sesame|[0-9A-F]{40}", shown), shown)

    def test_nothing_can_be_sent_elsewhere(self) -> None:
        with self.manager.lock(self.name, ttl=600) as lease:
            for thing in (self.manager, lease):
                for way in (pickle.dumps, copy.copy, copy.deepcopy):
                    self.assert_fails(TypeError, way, thing)


class Loading(RedlockTest):
    def test_there_are_no_warnings(self) -> None:
        run = program("with redlock.Manager(*SERVERS).lock('python:warnings', ttl=10): print('fine')")
        self.assertEqual((0, "fine\n", ""), (run.returncode, run.stdout, run.stderr))

    def test_a_library_that_is_not_there(self) -> None:
        run = program("", REDLOCK_LIBRARY="/nowhere/libredlock.so")
        self.assertIn("ImportError", run.stderr)
        self.assertIn("/nowhere/libredlock.so", run.stderr)

    def test_a_library_that_the_loader_finds(self) -> None:
        library = Path(os.environ["REDLOCK_LIBRARY"])
        run = program("print('found')", REDLOCK_LIBRARY="", LD_LIBRARY_PATH=str(library.parent))
        self.assertEqual((0, "found\n", ""), (run.returncode, run.stdout, run.stderr))

    def test_a_library_that_does_not_fit(self) -> None:
        """REDLOCK_TEST_STRANGERS has such libraries, and words of the error for each."""
        for stranger in os.environ["REDLOCK_TEST_STRANGERS"].split(","):
            library, expected = stranger.split("=")
            run = program("", REDLOCK_LIBRARY=library)
            for words in ("ImportError", library, expected):
                self.assertIn(words, run.stderr)


class Closing(RedlockTest):
    def test_after_the_end_everything_says_so(self) -> None:
        lease = self.manager.lock(self.name, ttl=600)
        for _ in range(2):
            self.manager.close()
        self.assertTrue(self.manager.closed)
        self.assert_fails(redlock.Closed, self.manager.lock, self.name, ttl=600)
        self.assert_fails(redlock.Closed, self.manager.is_locked, self.name)
        self.assert_fails(redlock.Closed, self.manager.connect)
        self.assert_fails(redlock.Closed, lease.extend)
        self.assert_fails(redlock.Closed, lease.confirm)
        lease.unlock()
        self.assert_fails(redlock.Closed, lease.unlock)
        self.eventually("it is released", lambda: keys(self.name) == 0)

    def test_a_block_that_has_begun_releases(self) -> None:
        with self.manager as closing, closing.lock(self.name, ttl=600) as lease:
            closing.close()
            self.assertTrue(lease.held)
        self.eventually("it is released", lambda: keys(self.name) == 0)

    def test_the_connections_are_closed(self) -> None:
        def sockets() -> int:
            links = (Path("/proc/self/fd") / file for file in os.listdir("/proc/self/fd"))
            return sum(
                os.readlink(link).startswith("socket") for link in links if link.is_symlink()
            )

        before = sockets()
        closing = manager()
        closing.connect()
        self.assertGreater(sockets(), before)
        lease = closing.lock(self.name, ttl=600)
        closing.close()
        self.assertGreater(sockets(), before)
        lease.unlock()
        self.assertEqual(before, sockets())

    def test_calls_that_have_begun_are_finished(self) -> None:
        for i in range(40):
            closing = manager()
            names = [f"{self.name}:{i}:{k}" for k in range(4)]
            threads = [
                threading.Thread(target=lock_until_closed, args=(closing, name)) for name in names
            ]
            for thread in threads:
                thread.start()
            closing.close()
            for thread in threads:
                thread.join(PATIENCE)
                self.assertFalse(thread.is_alive())
            for name in names:
                self.assert_free(name)


def lock_until_closed(closing: redlock.Manager, name: str) -> None:
    try:
        while True:
            with closing.lock(name, ttl=600):
                pass
    except redlock.Closed:
        return


if __name__ == "__main__":
    unittest.main()

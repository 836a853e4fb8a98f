"""Over TLS.

REDLOCK_TEST_TLS_SERVERS has rediss:// URLs of servers that require certificates from their clients.
REDLOCK_TEST_TLS_CA, _CERTIFICATE and _KEY name the necessary files. Without them the library has no TLS.
"""

from __future__ import annotations

import os
import unittest
from pathlib import Path
from typing import Any

from support import SERVERS, RedlockTest, in_child, manager, redlock

URLS = [url for url in os.environ.get("REDLOCK_TEST_TLS_SERVERS", "").split(",") if url]
ADDRESSES = [url.replace("rediss://", "") for url in URLS]
CA, CERTIFICATE, KEY = (
    os.environ.get(f"REDLOCK_TEST_TLS_{it}", "") for it in ("CA", "CERTIFICATE", "KEY")
)
ALL = redlock.TLS(ca=CA, certificate=CERTIFICATE, key=KEY)


def secure(tls: Any, servers: list[str] = URLS) -> redlock.Manager:
    return manager(*servers, tls=tls, connect_timeout=10)


class WithoutTls(RedlockTest):
    def test_it_says_so(self) -> None:
        for tls in (redlock.TLS(server_name="localhost"), redlock.TLS(insecure_skip_verify=True)):
            error = self.assert_fails(redlock.InvalidArgument, manager, *SERVERS, tls=tls)
            self.assertIn("TLS", str(error))


class Tls(RedlockTest):
    def test_a_lock_over_tls(self) -> None:
        words = {"ca": Path(CA), "certificate": CERTIFICATE, "key": KEY, "server_name": "localhost"}
        others = secure(words)
        for servers in (URLS, ADDRESSES):
            own = secure(ALL, servers)
            with own.lock(self.name, ttl=600) as lease:
                lease.extend()
                lease.confirm()
                self.assert_fails(redlock.Taken, others.lock, self.name, ttl=600, wait=0)
                refused = in_child(lambda own=own: own.lock(self.name, ttl=600, wait=0))
                self.assertIs(redlock.Taken, type(refused))
            self.assertFalse(others.is_locked(self.name))

    def test_threads_over_tls(self) -> None:
        own = secure(ALL)
        counter = 0

        def count() -> None:
            nonlocal counter
            with own.lock(self.name, ttl=600, wait=None):
                counter += 1

        self.run_threads(*[count] * 16)
        self.assertEqual(16, counter)

    def test_who_is_not_trusted(self) -> None:
        for tls in (
            True,  # the system knows nothing of this authority
            redlock.TLS(ca=CA),  # they want to know who we are
            ALL._replace(server_name="another.example"),
        ):
            self.assert_fails(redlock.Unreachable, secure(tls).lock, self.name, ttl=600, wait=0)
        blind = secure(ALL._replace(ca=None, insecure_skip_verify=True))
        blind.lock(self.name, ttl=600).unlock()

    def test_files_that_are_of_no_use(self) -> None:
        for words in (
            {"ca": "/nowhere/ca.pem"},
            {"ca": KEY},
            {"certificate": CERTIFICATE},
            {"key": KEY},
            {"certificate": CERTIFICATE, "key": CA},
            {"server_name": ""},
        ):
            self.assert_fails(redlock.InvalidArgument, secure, redlock.TLS(**words))
        self.assert_fails(TypeError, secure, {"cert": CERTIFICATE})


def load_tests(
    loader: unittest.TestLoader, _tests: unittest.TestSuite, _pattern: str
) -> unittest.TestSuite:
    return loader.loadTestsFromTestCase(Tls if URLS else WithoutTls)


if __name__ == "__main__":
    unittest.main()

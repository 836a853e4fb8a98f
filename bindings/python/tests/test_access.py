from __future__ import annotations

import os
import secrets
import unittest

from support import PATIENCE, RedlockTest, ask_all, in_child, manager, redlock


class LogIn(RedlockTest):
    """Users are made on the servers for these tests."""

    def setUp(self) -> None:
        super().setUp()
        self.user = f"user-{secrets.token_hex(6)}"
        self.let_in("first")

    def tearDown(self) -> None:
        ask_all("ACL", "DELUSER", self.user)

    def let_in(self, password: str) -> None:
        ask_all("ACL", "SETUSER", self.user, "reset", "on", f">{password}", "~python:*", "+@all")

    def test_a_user_and_a_password(self) -> None:
        with manager(user=self.user, password="first").lock(self.name, ttl=600):
            self.assertTrue(self.manager.is_locked(self.name))
        stranger = manager(user=self.user, password="wrong-secret")
        error = self.assert_fails(redlock.Unreachable, stranger.lock, self.name, ttl=600, wait=0)
        self.assertNotIn("secret", str(error))
        self.assert_fails(redlock.Unreachable, stranger.connect)
        self.assert_fails(redlock.InvalidArgument, manager, user=self.user, password="a\0b")
        self.assert_fails(redlock.InvalidArgument, manager, password="")
        self.assert_free()

    def test_a_password_that_changes_while_nobody_looks(self) -> None:
        passwords = ["first"]
        asked = 0

        def ask() -> str:
            nonlocal asked
            asked += 1
            return passwords[-1]

        own = manager(user=self.user, password=ask)
        own.lock(self.name, ttl=600).unlock()
        self.assertEqual(1, asked)
        passwords.append("second")
        self.let_in("second")
        ask_all("CLIENT", "KILL", "USER", self.user)
        # It finds out that it is refused, and asks again.
        own.lock(self.name, ttl=600, wait=PATIENCE).unlock()
        self.assertGreater(asked, 1)
        self.assert_free()

    def test_a_child_asks_for_itself(self) -> None:
        parent = os.getpid()
        own = manager(
            user=self.user, password=lambda: "first" if os.getpid() == parent else "second"
        )
        own.lock(self.name, ttl=600).unlock()
        self.let_in("second")
        self.assertIsNone(in_child(lambda: own.lock(self.name, ttl=600, wait=0).unlock()))
        self.assert_free()

    def test_who_cannot_say_the_password(self) -> None:
        answers = ["first"]
        own = manager(user=self.user, password=answers.pop)
        own.lock(self.name, ttl=600).unlock()
        self.assertIsNone(
            in_child(lambda: own.lock(self.name, ttl=600).unlock()), "the old one is good"
        )
        self.assert_fails(IndexError, manager, user=self.user, password=answers.pop)
        self.assert_free()


if __name__ == "__main__":
    unittest.main()

from __future__ import annotations

import contextlib
import gc
import time
import unittest
from typing import Iterator

from proxies import Proxy
from support import SERVERS, RedlockTest, ask_all, keys, manager, program, redlock


class Block(RedlockTest):
    def test_the_block_has_the_lock(self) -> None:
        with self.manager.lock(self.name, ttl=30) as lease:
            self.assertTrue(lease.held)
            self.assertTrue(0 < lease.remaining < 30)
            self.assertEqual(self.name, lease.resource)
            self.assertTrue(manager().is_locked(self.name))
        self.assertFalse(lease.held)
        self.assertFalse(self.manager.is_locked(self.name))

    def test_for_how_long_it_is_held_is_told(self) -> None:
        self.assertEqual((False, 0, False, 0), self.manager.inspect(self.name)[:4])
        with self.manager.lock(self.name, ttl=60):
            info = manager().inspect(self.name)
            self.assertTrue(info.locked and 30 < info.remaining <= 60)
            self.assertEqual((False, 0), (info.shared, info.readers))
        for bad in ("", "a\0b"):
            self.assert_fails(redlock.InvalidArgument, self.manager.inspect, bad)

    def test_several_are_locked_at_once(self) -> None:
        names = [self.name, self.name + ":b", (self.name + ":c").encode()]
        with self.manager.lock(names, ttl=30) as lease:
            self.assertEqual((self.name, tuple(names)), (lease.resource, lease.resources))
            for name in names:
                self.assertTrue(manager().is_locked(name))
                self.assertIsNone(manager().try_lock(name, ttl=30))
                self.assert_fails(redlock.Nested, self.manager.lock, name, ttl=30, wait=0)
            with self.assertRaisesRegex(redlock.Taken, "resource 2 of 2 held"):
                manager().lock([self.name + ":x", names[1]], ttl=30, wait=0)
            lease.extend(60)
            lease.confirm(30)
            self.assertIn(names[1], repr(lease))
        for name in names:
            self.assertFalse(self.manager.is_locked(name))
        with self.manager.adopt(self.manager.lock(names[::-1], ttl=30).detach()) as adopted:
            texts = [name if isinstance(name, str) else name.decode() for name in names]
            self.assertEqual(tuple(texts[::-1]), adopted.resources)
        other = manager().lock(names[1], ttl=1)
        with self.manager.lock(tuple(names), ttl=30, wait=60, keep_alive=True) as lease:
            self.assertFalse(lease.lost.is_set())
        self.assertFalse(other.held)
        for bad in ([], ["a", "a"], ["a", ""], ["a", "b\0"], ["a"] * 129):
            self.assert_fails(redlock.InvalidArgument, self.manager.lock, bad, ttl=30)
        for bad in (None, 7, ["a", 7]):
            self.assertRaises(TypeError, self.manager.lock, bad, ttl=30)

    def test_a_lock_is_extended_by_more_than_is_left(self) -> None:
        for drift in (0.2, 0.5):
            lease = manager(drift_factor=drift).lock(self.name, ttl=100)
            for _ in range(20):
                asked, before = time.monotonic(), lease.remaining
                lease.extend_by(50)
                after = lease.remaining
                # Some of it has passed by now. A server that answered late makes it a little shorter.
                self.assertGreater(after, before + 45 - (time.monotonic() - asked))
                self.assertLessEqual(after, before + 51)
            self.assert_fails(redlock.InvalidArgument, lease.extend_by, 0)
            self.assert_fails(redlock.InvalidArgument, lease.extend_by, 1e300)
            lease.unlock()
            self.assert_fails(redlock.Lost, lease.extend_by, 1)

    def test_a_lock_changes_hands(self) -> None:
        with self.manager.lock(self.name, ttl=30) as giver:
            token, ticket = giver.token, giver.detach()
            self.assertFalse(giver.held)
            self.assertIn(token, ticket)
            self.assert_fails(redlock.Lost, giver.extend)
            self.assert_fails(redlock.Lost, giver.detach)
        self.assertTrue(self.manager.is_locked(self.name), "the block released it")
        other = manager()
        with other.adopt(ticket, keep_alive=True) as taker:
            self.assertEqual((self.name, token), (taker.resource, taker.token))
            self.assertTrue(10 < taker.remaining < 30)
            taker.extend(60)
            self.assertTrue(taker.remaining > 30)
            self.assert_fails(redlock.Taken, self.manager.lock, self.name, ttl=1, wait=0)
        self.assert_free(last_holder=other)
        slow = manager(drift_factor=0.3)
        with slow.adopt(slow.lock(self.name, ttl=30).detach()) as taker:
            # What extend() asks for. The drift takes 30 % of it.
            self.assertGreaterEqual(taker._ttl_ms * 0.7, taker.remaining * 1000)
        self.assert_fails(redlock.Lost, other.adopt, ticket)
        for bad in ("", "no ticket", ticket[:-1], ticket + "\0", ticket + " "):
            self.assert_fails(redlock.InvalidArgument, other.adopt, bad)

    def test_a_ticket_has_room_for_long_names(self) -> None:
        names = [self.name + letter * 5000 for letter in "abc"]
        with self.manager.adopt(self.manager.lock(names, ttl=30).detach()) as taker:
            self.assertEqual(tuple(names), taker.resources)
        for name in names:
            self.assert_free(name)

    def test_an_exception_releases(self) -> None:
        for kind in (
            ZeroDivisionError,
            KeyboardInterrupt,
            SystemExit,
            GeneratorExit,
            redlock.Taken,
        ):
            with self.assertRaises(kind), self.manager.lock(self.name, ttl=600):
                raise kind
            self.assert_free()

    def test_a_stack_of_blocks(self) -> None:
        """A stack enters a lease through its class."""
        with contextlib.ExitStack() as stack:
            lease = stack.enter_context(self.manager.lock(self.name, ttl=600))
            self.assertTrue(lease.held)
        self.assertFalse(lease.held)
        self.assert_free()
        with self.assertRaises(RuntimeError), contextlib.ExitStack() as stack:
            stack.enter_context(lease)

    def test_break_and_continue_and_return_release(self) -> None:
        for _ in range(2):
            with self.manager.lock(self.name, ttl=600):
                continue
        for _ in range(2):
            with self.manager.lock(self.name, ttl=600):
                break
        self.assertEqual(5, self.returning())
        self.assert_free()

    def returning(self) -> int:
        with self.manager.lock(self.name, ttl=600):
            return 5

    def test_a_stack_that_overflows_releases(self) -> None:
        def overflow() -> int:
            return overflow() + 1

        with self.assertRaises(RecursionError), self.manager.lock(self.name, ttl=600):
            overflow()
        self.assert_free()

    def test_generators(self) -> None:
        def holding() -> Iterator[bool]:
            with self.manager.lock(self.name, ttl=600) as lease:
                yield lease.held
                yield lease.held

        self.assertEqual([True, True], list(holding()))
        self.assert_free()
        generator = holding()
        next(generator)
        generator.close()
        self.assert_free()
        generator = holding()
        next(generator)
        self.assertTrue(self.manager.is_locked(self.name))
        del generator
        gc.collect()
        self.assert_free()

    def test_a_block_may_release_early(self) -> None:
        with self.manager.lock(self.name, ttl=600) as lease:
            lease.unlock()
            self.assert_free()
            with self.manager.lock(self.name, ttl=600):
                pass  # not nested: the outer one is over

    def test_others_are_kept_out_for_a_time(self) -> None:
        for kind in ({}, {"reentrant": True}, {"keep_alive": True}):
            name = f"{self.name}:{kind}"
            with self.manager.lock(name, ttl=600, **kind) as lease:  # type: ignore[arg-type]
                for bad in (601, -1):
                    self.assert_fails(redlock.InvalidArgument, lease.unlock, hold_at_least=bad)
                self.assert_fails(TypeError, lease.unlock, hold_at_least="5")
                lease.confirm()
                lease.unlock(hold_at_least=300)
                self.assertFalse(lease.held or lease.lost.is_set())
                self.assert_fails(redlock.Lost, lease.confirm)
            self.assertTrue(0 < self.manager.inspect(name).remaining <= 300)
            self.assertIsNone(manager().try_lock(name, ttl=600))
            ask_all("DEL", name)
        self.assertEqual(0, self.manager.stats().kept)

    def test_a_time_of_zero_keeps_nobody_out(self) -> None:
        self.manager.lock(self.name, ttl=600).unlock(hold_at_least=0)
        self.assert_free()

    def test_the_block_releases_what_could_not_be_kept(self) -> None:
        for kind in ({}, {"reentrant": True}, {"shared": True}):
            for is_caught in (False, True):
                caught = contextlib.suppress(redlock.InvalidArgument)
                with caught, self.manager.lock(self.name, ttl=600, **kind) as lease:  # type: ignore[arg-type]
                    with caught if is_caught else contextlib.nullcontext():
                        lease.unlock(hold_at_least=700)
                    lease.confirm()
                self.assertFalse(lease.held)
                self.assert_free()
        with self.assertRaises(redlock.Lost):
            with self.manager.lock(self.name, ttl=600) as lease:
                self.assert_fails(redlock.InvalidArgument, lease.unlock, hold_at_least=700)
                ask_all("DEL", self.name)
        with self.manager.semaphore(self.name, 2, ttl=600) as permit:
            self.assert_fails(redlock.InvalidArgument, permit.unlock, hold_at_least=1)
            permit.confirm()
        self.assertEqual(0, self.manager.semaphore(self.name, 2, ttl=600).taken())

    def test_a_lock_that_ran_out_before_the_block_ended_is_lost(self) -> None:
        with self.assertRaises(redlock.Lost):
            with self.manager.lock(self.name, ttl=0.1):
                self.eventually("it expires", lambda: self.is_gone(self.name))
        with self.assertRaisesRegex(ValueError, "the block's own"):
            with self.manager.lock(self.name, ttl=0.1) as lease:
                self.eventually("it expires", lambda: not lease.held and self.is_gone(self.name))
                raise ValueError("the block's own")

    def test_a_block_that_ends_without_its_servers(self) -> None:
        """It held the lock to its end."""
        proxy = Proxy(SERVERS[0])
        with manager(proxy.address, SERVERS[2]).lock(self.name, ttl=600):
            proxy.cut()
        other = manager(proxy.address, SERVERS[2], connect_timeout=0.1)
        self.assert_fails(redlock.Unreachable, other.lock, self.name, ttl=600, wait=0)
        ask_all("DEL", self.name)

    def test_locks_are_not_reentrant(self) -> None:
        with self.manager.lock(self.name, ttl=600) as outer:
            for wait in (0, 30, None):
                error = self.assert_fails(
                    redlock.Nested, self.manager.lock, self.name, ttl=600, wait=wait
                )
                self.assertIsInstance(error, redlock.Taken)
                self.assertIn("set reentrant=True", str(error))
            self.assertIsNone(self.manager.try_lock(self.name, ttl=600))
            self.assert_fails(redlock.Nested, self.manager.lock, [self.name + ":a", self.name], ttl=600)
            with self.manager.lock(self.name + ":other", ttl=600):
                outer.confirm()
            lock = self.manager.lock
            self.run_threads(
                lambda: self.assert_fails(redlock.Taken, lock, self.name, ttl=600, wait=0)
            )
        with self.manager.lock(self.name, ttl=600):
            pass  # one after the other is another matter
        self.assert_free()

    def test_one_block_for_one_lease(self) -> None:
        lease = self.manager.lock(self.name, ttl=600)
        with lease as same:
            self.assertIs(lease, same)
            with self.assertRaises((RuntimeError, IndexError)), lease:
                self.fail("it was entered twice")
        with self.assertRaises(RuntimeError), lease:
            self.fail("it was entered after its end")
        self.assert_free()


class Explicit(RedlockTest):
    def test_the_lease_is_the_callers(self) -> None:
        lease = self.manager.lock(self.name, ttl=600)
        self.assertTrue(manager().is_locked(self.name))
        lease.unlock()
        for _ in range(2):
            self.assert_fails(redlock.Lost, lease.unlock)
        self.assertFalse(lease.held)
        self.assertEqual(0, lease.remaining)
        self.assert_free()

    def test_try_lock(self) -> None:
        lease = self.manager.try_lock(self.name, ttl=600)
        assert lease is not None
        self.assertIsNone(manager().try_lock(self.name, ttl=600))
        lease.unlock()
        with self.manager.try_lock(self.name, ttl=600) as lease:
            self.assertTrue(lease.held)
        self.assert_free()

    def test_names_are_text_or_any_bytes_but_nul(self) -> None:
        for odd in (f"{self.name}:Grüße, 東京 🎉", self.name.encode() + b"\xff\n\x80"):
            with self.manager.lock(odd, ttl=600) as lease:
                self.assertTrue(manager().is_locked(odd))
                self.assertGreater(keys(odd), len(SERVERS) // 2)
                self.assertEqual(odd, lease.resource)
            self.assert_free(odd)
        for bad in (self.name + "\0x", b"\0", "", "x" * 65537, "\ud800"):
            self.assert_fails(redlock.InvalidArgument, self.manager.lock, bad, ttl=600)
            self.assert_fails(redlock.InvalidArgument, self.manager.is_locked, bad)
        for bad in (None, 5, ["x", 5], bytearray(b"x")):
            self.assert_fails(TypeError, self.manager.lock, bad, ttl=600)

    def test_extend_and_confirm(self) -> None:
        with self.manager.lock(self.name, ttl=5) as lease:
            lease.extend(ttl=60)
            self.assertGreater(lease.remaining, 30)
            lease.confirm(least=30)
            error = self.assert_fails(redlock.TooShort, lease.confirm, least=90)
            self.assertEqual(7, error.status)
            lease.extend()

    def test_an_extension_never_shortens(self) -> None:
        with self.manager.lock(self.name, ttl=600) as lease:
            for shorter in (1, 100):
                lease.extend(shorter)
                self.assertGreater(lease.remaining, 300)
                lease.confirm(300)
            lease.extend_by(1)
            self.assertGreater(lease.remaining, 300)

    def test_what_has_ended_is_lost_and_the_next_holder_is_left_alone(self) -> None:
        lease = self.manager.lock(self.name, ttl=0.1)
        self.eventually("it expires", lambda: self.is_gone(self.name))
        with self.manager.lock(self.name, ttl=600) as theirs:
            self.assertEqual(4, self.assert_fails(redlock.Lost, lease.extend).status)
            self.assert_fails(redlock.Lost, lease.confirm)
            self.assert_fails(redlock.Lost, lease.unlock)
            theirs.confirm()

    def test_the_collector_only_frees(self) -> None:
        names = [f"{self.name}:{i}" for i in range(30)]
        for name in names:
            manager().lock(name, ttl=60)
        gc.collect()
        for name in names:
            self.assertTrue(self.manager.is_locked(name), f"the collector released {name}")
        ask_all("DEL", *names)

    def test_the_end_of_the_interpreter_only_frees(self) -> None:
        run = program(
            f"kept = redlock.Manager(*SERVERS)\nlease = kept.lock({self.name!r}, ttl=60)\nlease.cycle = lease"
        )
        self.assertEqual((0, "", ""), (run.returncode, run.stdout, run.stderr))
        self.assertTrue(self.manager.is_locked(self.name))
        ask_all("DEL", self.name)


if __name__ == "__main__":
    unittest.main()

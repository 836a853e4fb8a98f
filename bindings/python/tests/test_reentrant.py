from __future__ import annotations

import asyncio
import gc
import os
import signal
import time
import unittest

from support import RedlockTest, ask_all, keys, manager, redlock


class Threads(RedlockTest):
    def take(self, **options: object) -> redlock.Lease:
        return self.manager.lock(self.name, ttl=30, wait=0, reentrant=True, **options)  # type: ignore[arg-type]

    def refused(self) -> bool:
        return manager().try_lock(self.name, ttl=30) is None

    def test_the_thread_takes_it_again(self) -> None:
        def go_in(depth: int) -> None:
            with self.take() as lease:
                self.assertTrue(lease.held)
                if depth > 0:
                    go_in(depth - 1)
                self.assertTrue(lease.held)
                self.assertTrue(self.refused())

        go_in(4)
        self.assert_free()

    def test_the_last_unlock_releases_it_in_whichever_order(self) -> None:
        for order in ((0, 1, 2), (2, 1, 0), (1, 0, 2)):
            leases = [self.take() for _ in range(3)]
            self.assertEqual(1, len({lease.token for lease in leases}))
            for i, which in enumerate(order):
                self.assertTrue(self.refused())
                leases[which].unlock()
                self.assertFalse(leases[which].held)
                self.assertEqual(0, leases[which].remaining)
                self.assert_fails(redlock.Lost, leases[which].unlock)
                self.assertEqual(i < 2, any(lease.held for lease in leases))
            self.assert_free()

    def test_the_last_unlock_says_for_how_long_others_are_kept_out(self) -> None:
        outer, inner = self.take(), self.take()
        inner.unlock(hold_at_least=20)
        self.assert_fails(redlock.Lost, inner.unlock)
        self.assert_fails(redlock.Lost, inner.unlock, hold_at_least=20)
        self.assertTrue(outer.held)
        outer.unlock()
        self.assert_free()
        with self.take() as outer:
            with self.take() as inner:
                self.assert_fails(redlock.InvalidArgument, inner.unlock, hold_at_least=31)
                self.assertTrue(inner.held)
            self.assertTrue(outer.held and not inner.held)
            outer.unlock(hold_at_least=20)
        self.assertFalse(outer.held)
        self.assertTrue(0 < self.manager.inspect(self.name).remaining <= 20)
        ask_all("DEL", self.name)

    def test_others_wait(self) -> None:
        with self.take(), self.take():
            taken = []
            self.run_threads(
                lambda: taken.append(self.manager.try_lock(self.name, ttl=30, reentrant=True))
            )
            self.assertEqual([None], taken)
            self.assert_fails(redlock.Nested, self.manager.lock, self.name, ttl=30, wait=0)
        with self.manager.lock(self.name, ttl=30):
            self.assert_fails(redlock.Nested, self.take)
        self.assert_free()

    def test_an_inner_lock_has_the_time_that_it_needs(self) -> None:
        with self.manager.lock(self.name, ttl=100, reentrant=True) as outer:
            before = outer.remaining
            with self.take() as inner:
                self.assertLessEqual(inner.remaining, before)
            with self.manager.lock(self.name, ttl=500, reentrant=True) as inner:
                self.assertGreater(inner.remaining, 400)
            self.assertGreater(outer.remaining, 400)
        with self.take(keep_alive=True) as outer:
            time.sleep(0.01)
            before = outer.remaining
            with self.take() as inner:
                self.assertLessEqual(inner.remaining, before)
                self.assertFalse(inner.lost.is_set())
        self.assert_free()

    def test_a_kept_lock_whose_keeping_has_failed_is_extended(self) -> None:
        with self.manager.lock(self.name, ttl=30, reentrant=True, keep_alive=True) as outer:
            outer._core._set_lost(True)
            with self.take() as inner:
                self.assertTrue(inner.held)
            self.assertEqual(1, self.manager.stats().extend.ok)
            outer._core._set_lost(False)
            with self.take():
                self.assertEqual(1, self.manager.stats().extend.ok)

    def test_a_lock_of_more_names_is_another_lock(self) -> None:
        both = [self.name, self.name + ":b"]
        with self.take():
            self.assert_fails(redlock.Nested, self.manager.lock, both, ttl=30, wait=0, reentrant=True)
            self.assertEqual(0, keys(both[1]))
        with self.manager.lock(both, ttl=30, reentrant=True), self.take() as inner:
            self.assertTrue(inner.held)
        self.assert_free()
        self.assert_free(both[1])

    def test_a_lock_that_is_lost_is_told_at_every_level(self) -> None:
        with self.assertRaises(redlock.Lost), self.take() as outer:
            with self.assertRaises(redlock.Lost), self.take() as inner:
                ask_all("DEL", self.name)
                self.assert_fails(redlock.Lost, inner.extend)
                self.assertFalse(inner.held or outer.held)
                # It is not taken again in there.
                self.assert_fails(redlock.Lost, self.take)
            self.assertFalse(outer.held)
        with self.take() as lease:
            self.assertTrue(lease.held)
        self.assert_free()

    def test_what_is_dropped_is_left_as_other_leases_are(self) -> None:
        outer = self.take()
        with self.take():
            pass
        self.assertTrue(outer.held)
        try:
            with self.take():
                raise KeyError("in the block")
        except KeyError:
            pass
        self.assertTrue(outer.held)
        outer.unlock()
        self.assert_free()
        with self.manager as closed:
            lease = closed.lock(self.name, ttl=30, reentrant=True)
        self.assert_fails(redlock.Closed, closed.lock, self.name, ttl=30, reentrant=True)
        lease.unlock()
        self.manager = manager()
        self.assert_free()

    def test_it_is_kept_until_the_last_level_is_left(self) -> None:
        with self.manager.lock(self.name, ttl=2, reentrant=True) as outer:
            with self.manager.lock(self.name, ttl=2, reentrant=True, keep_alive=True) as inner:
                inner.keep_alive()
            begun = time.monotonic()
            while time.monotonic() - begun < 3:
                self.assertTrue(outer.held)
                time.sleep(0.05)
        self.assert_free()

    def test_exceptions_of_signal_handlers_leave_no_level_behind(self) -> None:
        class Alarm(Exception):
            pass

        def ring(*_: object) -> None:
            raise Alarm

        lock, name = self.manager.lock, self.name
        before = signal.signal(signal.SIGALRM, ring)
        try:
            with self.take() as outer:
                for i in range(150):
                    try:
                        signal.setitimer(signal.ITIMER_REAL, 0.00002 + i * 0.000004)
                        # Not by a Python function, because the exception could come between its end and with.
                        with lock(name, ttl=30, reentrant=True), lock(name, ttl=30, reentrant=True):
                            pass
                        signal.setitimer(signal.ITIMER_REAL, 0)
                    except Alarm:
                        pass
                    except redlock.Lost:
                        self.fail("the outer level was left")
                    finally:
                        signal.setitimer(signal.ITIMER_REAL, 0)
                    gc.collect()
                    self.assertTrue(outer.held)
                    self.assertEqual(1, redlock._library._c.RedLockLease_Levels(outer._handle), i)
        finally:
            signal.signal(signal.SIGALRM, before)
        self.assert_free()

    @unittest.skipUnless(hasattr(os, "fork"), "no fork")
    def test_a_child_holds_nothing(self) -> None:
        outer, inner = self.take(), self.take()
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                self.assertFalse(outer.held or inner.held)
                self.assert_fails(redlock.Forked, inner.unlock)
                self.assert_fails(redlock.Forked, outer.unlock)
                # To the child the lock belongs to another holder.
                self.assertIsNone(self.manager.try_lock(self.name, ttl=30, reentrant=True))
                status = 0
            finally:
                os._exit(status)
        self.assertEqual(0, os.waitpid(pid, 0)[1])
        self.assertTrue(outer.held and inner.held)
        inner.unlock()
        outer.unlock()
        self.assert_free()


class Tasks(RedlockTest):
    def take(self, **options: object) -> redlock._async_lease._Locking:
        return self.manager.alock(self.name, ttl=30, wait=0, reentrant=True, **options)  # type: ignore[arg-type]

    def test_the_task_takes_it_again(self) -> None:
        async def go_in(depth: int) -> None:
            async with self.take() as lease:
                self.assertTrue(lease.held)
                if depth > 0:
                    await go_in(depth - 1)
                self.assertTrue(lease.held)

        async def all_of_it() -> None:
            await go_in(3)
            self.assert_free()
            for order in ((0, 1, 2), (2, 0, 1)):
                leases = [await self.take() for _ in range(3)]
                for which in order:
                    self.assertIsNone(manager().try_lock(self.name, ttl=30))
                    await leases[which].unlock()
                    with self.assertRaises(redlock.Lost):
                        await leases[which].unlock()
                self.assert_free()

        asyncio.run(all_of_it())

    def test_other_tasks_wait(self) -> None:
        async def all_of_it() -> None:
            async with self.take():
                other = asyncio.ensure_future(
                    self.manager.atry_lock(self.name, ttl=30, reentrant=True)
                )
                self.assertIsNone(await other)
                self.assertIsNotNone(
                    lease := await self.manager.atry_lock(self.name, ttl=30, reentrant=True)
                )
                await lease.unlock()
            with self.assertRaises(redlock.Nested):
                async with self.manager.alock(self.name, ttl=30):
                    await self.take()
            self.assert_free()

        asyncio.run(all_of_it())

    def test_a_lock_that_is_lost_is_told_at_every_level(self) -> None:
        async def all_of_it() -> None:
            with self.assertRaises(redlock.Lost):
                async with self.take() as outer:
                    with self.assertRaises(redlock.Lost):
                        async with self.take() as inner:
                            ask_all("DEL", self.name)
                            with self.assertRaises(redlock.Lost):
                                await inner.extend()
                            with self.assertRaises(redlock.Lost):
                                await self.take()
                    self.assertFalse(outer.held)

        asyncio.run(all_of_it())
        self.assert_free()

    def test_a_task_that_is_cancelled_leaves_no_level_behind(self) -> None:
        async def work(steps: int) -> None:
            for _ in range(3):
                async with self.take():
                    for _ in range(steps):
                        await asyncio.sleep(0)

        async def outer(pause: float) -> None:
            task = asyncio.current_task()
            assert task is not None
            async with self.take() as lease:
                asyncio.get_running_loop().call_later(pause, task.cancel)
                with self.assertRaises(asyncio.CancelledError):
                    await work(100_000)
                getattr(task, "uncancel", int)()
                self.assertTrue(lease.held)
                # Levels that were left behind would still have to be left.
                self.assertEqual(1, redlock._library._c.RedLockLease_Levels(lease._handle))

        async def all_of_it() -> None:
            for i in range(60):
                await asyncio.ensure_future(outer(i * 0.0001))
                self.assert_free()

            async def cancelled() -> None:
                async with self.take(), self.take():
                    await asyncio.sleep(1000)

            task = asyncio.ensure_future(cancelled())
            while not keys(self.name):
                await asyncio.sleep(0.001)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            self.assert_free()

        asyncio.run(all_of_it())

    def test_a_block_is_cancelled_where_the_lock_is_lost(self) -> None:
        async def all_of_it() -> None:
            with self.assertRaises(redlock.Lost):
                async with self.manager.alock(self.name, ttl=1, reentrant=True):
                    async with self.manager.alock(
                        self.name, ttl=1, reentrant=True, cancel_when_lost=True
                    ):
                        ask_all("DEL", self.name)
                        await asyncio.sleep(1000)

        asyncio.run(all_of_it())
        self.assert_free()


if __name__ == "__main__":
    unittest.main()

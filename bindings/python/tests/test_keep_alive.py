from __future__ import annotations

import asyncio
import gc
import signal
import sys
import threading
import unittest
from typing import Any

from support import (
    PATIENCE,
    SERVERS,
    AsyncTest,
    RedlockTest,
    ask,
    ask_all,
    in_child,
    keys,
    manager,
    program,
    redlock,
)

TTL = 3  # of locks that are to be extended: long enough for a machine that is busy
SHORT = 1  # of locks that are to be lost


def is_extended(lease: Any) -> bool:
    """Returns when the remaining time has grown, or is over. Returns True if it has grown."""
    left = lease.remaining
    while left > 0:
        before, left = left, lease.remaining
        if left > before:
            return True
    return False


class Keeping(RedlockTest):
    def test_a_lock_is_extended_until_it_is_unlocked(self) -> None:
        with self.manager.lock(self.name, ttl=TTL, keep_alive=True) as lease:
            for _ in range(2):
                self.assertTrue(is_extended(lease))
            self.assertFalse(lease.lost.is_set())
            lease.confirm()
        self.assertFalse(lease.lost.is_set())
        self.assert_free()

    def test_from_later_on(self) -> None:
        lease = self.manager.lock(self.name, ttl=TTL)
        for _ in range(3):
            lease.keep_alive()
        self.assertTrue(is_extended(lease))
        lease.unlock()
        self.assert_fails(redlock.Lost, lease.keep_alive)
        self.assert_free()

    def test_with_the_ttl_that_it_was_given_last(self) -> None:
        with self.manager.lock(self.name, ttl=600, keep_alive=True) as lease:
            lease.extend(TTL)
            self.assertGreater(lease.remaining, TTL, "an extension shortens nothing")
        with self.manager.lock(self.name, ttl=SHORT) as lease:
            lease.extend(TTL)
            lease.keep_alive()
            self.assertTrue(is_extended(lease))
            self.assertGreater(lease.remaining, SHORT)

    def test_while_python_computes(self) -> None:
        """No Python thread runs meanwhile: the interval is longer than all of this."""
        interval = sys.getswitchinterval()
        with self.manager.lock(self.name, ttl=TTL, keep_alive=True) as lease:
            sys.setswitchinterval(10 * TTL)
            try:
                self.assertTrue(is_extended(lease))
            finally:
                sys.setswitchinterval(interval)

    def test_nobody_keeps_what_nobody_has(self) -> None:
        """If the collector takes the lease, the lock ends with its TTL."""
        lease = self.manager.lock(self.name, ttl=SHORT, keep_alive=True)
        lost = lease.lost
        del lease
        gc.collect()
        self.eventually("it has expired", lambda: keys(self.name) == 0)
        self.assertFalse(lost.wait())

    def test_no_thread_is_started_without_need(self) -> None:
        """In a program of its own: the tests before may have left threads that have not ended yet."""
        run = program(f"""
import threading
own = redlock.Manager(*SERVERS)
threads = lambda: len(os.listdir("/proc/self/task"))
with own.lock({self.name!r}, ttl=600):
    assert threads() == 1
with own.lock({self.name!r}, ttl=600, keep_alive=True):
    assert threads() == 2
    assert threading.active_count() == 1, "it is none of Python's"
own.close()
while threads() > 1:
    pass
""")
        self.assertEqual((0, "", ""), (run.returncode, run.stdout, run.stderr))

    def test_the_end_of_the_interpreter(self) -> None:
        run = program(f"""
kept = redlock.Manager(*SERVERS)
lease = kept.lock({self.name!r}, ttl=60, keep_alive=True)
import threading
threading.Thread(target=lease.lost.wait, daemon=True).start()
""")
        self.assertEqual((0, "", ""), (run.returncode, run.stdout, run.stderr))
        self.assertTrue(self.manager.is_locked(self.name))
        ask_all("DEL", self.name)


class Losing(RedlockTest):
    def test_one_that_somebody_has_deleted(self) -> None:
        with self.assertRaises(redlock.Lost):
            with self.manager.lock(self.name, ttl=SHORT, keep_alive=True) as lease:
                self.assertFalse(lease.lost.wait(0))
                ask_all("DEL", self.name)
                self.assertTrue(lease.lost.wait(PATIENCE))
                self.assertTrue(lease.lost.is_set())
        self.assertTrue(lease.lost.is_set())

    def test_one_that_the_servers_do_not_extend(self) -> None:
        if b"+OK" not in [ask(server, "CLIENT", "PAUSE", 1, "WRITE") for server in SERVERS]:
            self.skipTest("such servers cannot be paused")
        lease = self.manager.lock(self.name, ttl=SHORT, keep_alive=True)
        ask_all("CLIENT", "PAUSE", PATIENCE * 1000, "WRITE")
        try:
            self.assertTrue(lease.lost.wait(PATIENCE))
        finally:
            ask_all("CLIENT", "UNPAUSE")
        self.eventually("it ends", lambda: not lease.held)
        self.assert_free()

    def test_it_is_asked_by_any_thread(self) -> None:
        """One thread takes the events of all."""
        names = [f"{self.name}:{i}" for i in range(4)]
        leases = [self.manager.lock(name, ttl=SHORT, keep_alive=True) for name in names]

        def wait(lease: redlock.Lease) -> None:
            self.assertTrue(lease.lost.wait(PATIENCE))

        def look() -> None:
            self.eventually("the last is lost", leases[-1].lost.is_set)

        ask_all("DEL", *names)
        self.run_threads(look, *[lambda lease=lease: wait(lease) for lease in leases])

    def test_who_waits_hears_of_the_end(self) -> None:
        lease = self.manager.lock(self.name, ttl=600, keep_alive=True)
        begun, answers = threading.Event(), []

        def wait() -> None:
            begun.set()
            answers.append(lease.lost.wait())

        thread = threading.Thread(target=wait)
        thread.start()
        begun.wait()
        lease.unlock()
        thread.join(PATIENCE)
        self.assertEqual([False], answers)

    def test_one_that_is_kept_again(self) -> None:
        with self.manager.lock(self.name, ttl=600, keep_alive=True) as lease:
            (before,) = self.manager._events._kept._references
            self.manager._events._hand_on(lost_event(before))
            self.assertTrue(lease.lost.is_set())
            lease.keep_alive()
            lease._note_lost(before)
            self.assertFalse(lease.lost.is_set())
            lease.lost._is_set = True
            ask_all("DEL", self.name)
            self.assert_fails(redlock.Lost, lease.extend)
            self.assert_fails(redlock.Lost, lease.keep_alive)
            self.assertTrue(lease.lost.is_set())
            lease._unlocked = True  # the block need not say so again

    def test_one_that_is_not_kept(self) -> None:
        with self.manager.lock(self.name, ttl=600) as lease:
            self.assertFalse(lease.lost.is_set())
            self.assertFalse(lease.lost.wait())

    def test_an_alarm_ends_the_waiting(self) -> None:
        class Alarm(Exception):
            pass

        def ring(*_: object) -> None:
            raise Alarm

        old = signal.signal(signal.SIGALRM, ring)
        try:
            with self.manager.lock(self.name, ttl=600, keep_alive=True) as lease:
                with self.assertRaises(Alarm):
                    signal.setitimer(signal.ITIMER_REAL, 0.05)
                    lease.lost.wait()
        finally:
            signal.signal(signal.SIGALRM, old)
        self.assert_free()

    def test_an_event_that_an_alarm_comes_upon_is_told(self) -> None:
        """Between the C function that returns the event, and its recipient."""
        class Alarm(Exception):
            pass

        def interrupt(*_: object) -> None:
            raise Alarm

        with self.assertRaises(redlock.Lost), self.manager.lock(
            self.name, ttl=SHORT, keep_alive=True
        ) as lease:
            events = self.manager._events
            hand_on, events._hand_on = events._hand_on, interrupt
            ask_all("DEL", self.name)
            with self.assertRaises(Alarm):
                lease.lost.wait(PATIENCE)
            events._hand_on = hand_on
            self.assertTrue(lease.lost.is_set())


class Children(RedlockTest):
    def test_a_child_keeps_its_own(self) -> None:
        with self.manager.lock(self.name, ttl=600, keep_alive=True):

            def keep() -> bool:
                with self.manager.lock(self.name + ":other", ttl=TTL, keep_alive=True) as lease:
                    return is_extended(lease) and not lease.lost.is_set()

            self.assertIs(True, in_child(keep))
        self.assert_free()

    def test_a_child_hears_nothing_of_its_parents(self) -> None:
        with self.manager.lock(self.name, ttl=600, keep_alive=True) as lease:
            for call in (lease.lost.is_set, lease.lost.wait, lease.keep_alive):
                self.assertIs(redlock.Forked, type(in_child(call)))
            self.assertFalse(lease.lost.is_set())
            lease.confirm()

    def test_a_parent_keeps_on(self) -> None:
        with self.manager.lock(self.name, ttl=TTL, keep_alive=True) as lease:
            in_child(lambda: self.manager.close())
            self.assertTrue(is_extended(lease))


class Tasks(AsyncTest):
    async def test_a_lock_is_extended_until_it_is_unlocked(self) -> None:
        async with self.manager.alock(self.name, ttl=TTL, keep_alive=True) as lease:
            await self.extended(lease)
            self.assertFalse(lease.lost.is_set())
        self.assertFalse(lease.lost.is_set())
        await self.assert_all_over()

    async def extended(self, lease: redlock.AsyncLease) -> None:
        left = lease.remaining
        while lease.remaining <= left:
            left = lease.remaining
            self.assertGreater(left, 0, "it has expired")
            await asyncio.sleep(0.001)

    async def test_from_later_on(self) -> None:
        lease = await self.manager.alock(self.name, ttl=TTL)
        await asyncio.gather(lease.keep_alive(), lease.keep_alive())
        await self.extended(lease)
        await lease.unlock()
        with self.assertRaises(redlock.Lost):
            await lease.keep_alive()
        self.assertEqual({}, self.manager._events._loops)

    async def test_while_the_loop_is_busy(self) -> None:
        async with self.manager.alock(self.name, ttl=TTL, keep_alive=True) as lease:
            self.assertTrue(is_extended(lease))
            self.assertFalse(lease.lost.is_set())

    async def test_who_waits_for_the_loss(self) -> None:
        with self.assertRaises(redlock.Lost):
            async with self.manager.alock(self.name, ttl=SHORT, keep_alive=True) as lease:
                ask_all("DEL", self.name)
                await asyncio.wait_for(lease.lost.wait(), PATIENCE)
        self.assertEqual({}, self.manager._events._loops)

    async def test_an_event_that_a_thread_takes(self) -> None:
        async with self.manager.alock(self.name, ttl=600) as other:
            lease = await self.manager.alock(self.name + ":lost", ttl=SHORT, keep_alive=True)
            ask_all("DEL", self.name + ":lost")
            told: list[int] = []
            note, lease._note_lost = lease._note_lost, told.append

            def is_taken() -> bool:
                self.manager._events.take()
                return len(told) > 0

            def take() -> None:
                self.eventually("it is taken", is_taken)
                note(told[0])

            self.run_threads(take)  # the loop does nothing meanwhile
            self.assertFalse(lease.lost.is_set())
            await asyncio.wait_for(lease.lost.wait(), PATIENCE)
            await other.confirm()
            self.assertEqual({}, self.manager._events._loops)

    async def test_nobody_keeps_what_nobody_has(self) -> None:
        lease = await self.manager.alock(self.name, ttl=SHORT, keep_alive=True)
        del lease
        gc.collect()
        await self.until("it has expired", lambda: keys(self.name) == 0)
        # The manager finds that out when it is used.
        async with self.manager.alock(self.name, ttl=600):
            pass
        self.assertEqual({}, self.manager._events._loops)

    async def test_one_that_is_kept_again(self) -> None:
        """The loss is an old one: the current answers of the servers count."""
        async with self.manager.alock(self.name, ttl=600, keep_alive=True) as lease:
            (before,) = self.manager._events._kept._references
            self.manager._events._hand_on(lost_event(before))
            await asyncio.wait_for(lease.lost.wait(), PATIENCE)
            await lease.keep_alive()
            self.assertFalse(lease.lost.is_set())
            lease._note_lost(before)
            await asyncio.sleep(0.01)
            self.assertFalse(lease.lost.is_set())
            ask_all("DEL", self.name)
            with self.assertRaises(redlock.Lost):
                await lease.extend()
            await self.assert_refused(redlock.Lost, lease.keep_alive)
            await self.assert_refused(redlock.Lost, lease.unlock)
        self.assertEqual({}, self.manager._events._loops)

    async def test_one_that_cannot_be_had(self) -> None:
        async with self.manager.alock(self.name, ttl=600):
            self.assertIsNone(await manager().atry_lock(self.name, ttl=600, keep_alive=True))
            own = manager()
            for wait in (0, 0.01):
                await self.assert_refused(
                    redlock.Taken, own.alock, self.name, ttl=600, wait=wait, keep_alive=True
                )
            self.assert_nothing_is_under_way(own)

    async def test_a_task_that_is_cancelled(self) -> None:
        async def work() -> None:
            async with self.manager.alock(self.name, ttl=600, keep_alive=True, wait=None):
                await asyncio.Event().wait()

        tasks = [asyncio.create_task(work()) for _ in range(3)]
        await self.until("one has it", lambda: keys(self.name) > 1)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.assert_all_over()


class Stopping(AsyncTest):
    """Tasks that are cancelled in their blocks when the lock is lost."""

    async def hold(self, then: Any = None, **options: Any) -> None:
        async with self.manager.alock(
            self.name, **{"ttl": 600, "cancel_when_lost": True, **options}
        ) as lease:
            self.lease = lease
            await self.go_on(then)

    async def go_on(self, then: Any) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            if then is not None:
                await then()

    async def lose(self) -> None:
        """As if C had reported it, with most of the time left."""
        (number,) = self.manager._events._kept._references
        self.manager._events._hand_on(lost_event(number))

    async def begin(self, *arguments: Any, **options: Any) -> asyncio.Task[None]:
        task = asyncio.create_task(self.hold(*arguments, **options))
        await self.until("it is in its block", lambda: hasattr(self, "lease"))
        return task

    async def test_a_block_is_left_with_what_it_has_lost(self) -> None:
        task = await self.begin(ttl=SHORT)
        ask_all("DEL", self.name)
        error = await self.assert_refused(redlock.Lost, lambda: task)
        self.assertEqual(4, error.status)
        self.assertIn("could not be kept alive", str(error))
        self.assertIsInstance(error.__cause__, asyncio.CancelledError)
        self.assertTrue(self.lease.lost.is_set())
        await self.assert_all_over()

    async def test_it_is_released_if_it_is_held_still(self) -> None:
        task = await self.begin()
        await self.lose()
        await self.assert_refused(redlock.Lost, lambda: task)
        await self.assert_all_over()

    async def test_a_lease_that_was_awaited(self) -> None:
        lease = await self.manager.alock(self.name, ttl=600, cancel_when_lost=True)
        await self.lose()
        await asyncio.wait_for(lease.lost.wait(), PATIENCE)
        with self.assertRaises(redlock.Lost):
            async with lease:
                await asyncio.sleep(PATIENCE)  # it begins with the loss of before
        await self.assert_all_over()

    async def test_who_is_cancelled_by_others_too_is_cancelled(self) -> None:
        if sys.version_info < (3, 11):
            self.skipTest("before Python 3.11 nobody counts")
        for loses_first in (True, False):
            task = await self.begin()
            if loses_first:
                await self.lose()
            task.cancel()
            if not loses_first:
                await self.lose()
            await asyncio.wait([task])
            self.assertTrue(task.cancelled())
            del self.lease
            await self.assert_all_over()

    async def test_an_error_of_the_block_is_its_own(self) -> None:
        async def fail() -> None:
            raise ValueError("the block's own")

        task = await self.begin(fail)
        await self.lose()
        await self.assert_refused(ValueError, lambda: task)
        await self.assert_all_over()

    async def test_a_block_that_has_ended_is_not_cancelled(self) -> None:
        for is_late in (False, True):
            async with self.manager.alock(self.name, ttl=600, cancel_when_lost=True) as lease:
                block = lease._block
                await self.lose()  # the loop has had no time to tell the block
            if is_late:
                block.cancel()
            for _ in range(5):
                await asyncio.sleep(0)
        await self.assert_all_over()

    async def test_none_is_cancelled_that_has_not_asked_for_it(self) -> None:
        task = await self.begin(keep_alive=True, cancel_when_lost=False)
        await self.lose()
        await asyncio.wait_for(self.lease.lost.wait(), PATIENCE)
        done, _ = await asyncio.wait([task], timeout=0.05)
        self.assertEqual(set(), done)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await self.assert_all_over()


def lost_event(number: int) -> Any:
    return redlock._structures._CEvent(kind=redlock._structures._LOST, status=2, user_data=number)


if __name__ == "__main__":
    unittest.main()

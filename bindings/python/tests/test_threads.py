from __future__ import annotations

import asyncio
import gc
import random
import signal
import socket
import sys
import threading
import time
import unittest
from types import FrameType
from typing import Callable

from support import PATIENCE, RedlockTest, ask_all, manager, program, redlock


class Threads(RedlockTest):
    def test_threads_exclude_each_other(self) -> None:
        managers = [self.manager, manager()]
        counter = 0

        def count(own: redlock.Manager) -> None:
            nonlocal counter
            for _ in range(8):
                with own.lock(self.name, ttl=60, wait=None):
                    seen = counter
                    time.sleep(0)
                    counter = seen + 1

        self.run_threads(*[lambda own=managers[i % 2]: count(own) for i in range(16)])
        self.assertEqual(128, counter)
        self.assert_free()

    def test_hundreds_of_threads(self) -> None:
        counter = 0

        def count() -> None:
            nonlocal counter
            with self.manager.lock(self.name, ttl=600, wait=None):
                counter += 1

        self.run_threads(*[count] * 300)
        self.assertEqual(300, counter)
        self.assert_free()

    def test_many_threads_on_one_lease(self) -> None:
        with self.manager.lock(self.name, ttl=60) as lease:
            self.run_threads(*[lease.extend] * 8)
            self.assertTrue(lease.held)

    def test_a_waiter_gets_the_lock_when_it_is_free(self) -> None:
        lease = self.manager.lock(self.name, ttl=600)
        got = threading.Event()

        def wait() -> None:
            with self.manager.lock(self.name, ttl=600, wait=None):
                got.set()

        waiter = threading.Thread(target=wait)
        waiter.start()
        self.assertFalse(got.wait(0.3))
        lease.unlock()
        self.assertTrue(got.wait(PATIENCE))
        waiter.join()

    def test_they_get_the_lock_in_the_order_of_arrival(self) -> None:
        """A thread looks for signals now and then while it waits, and keeps its place."""
        order: list[int] = []
        threads: list[threading.Thread] = []

        def wait(i: int) -> None:
            with self.manager.lock(self.name, ttl=600, wait=None):
                order.append(i)
                time.sleep(0.02)

        with self.manager.lock(self.name, ttl=600):
            for i in range(40):
                threads.append(threading.Thread(target=wait, args=(i,)))
                threads[-1].start()
                self.eventually("it waits", lambda i=i: self.manager.stats().waiting == i + 1)
        for thread in threads:
            thread.join()
        self.assertEqual(list(range(40)), order)
        self.assert_free()

    def test_threads_that_want_it_again_take_turns(self) -> None:
        """Each comes back to the end of the queue, so none has two turns while another waits for one."""
        turns: list[int] = []
        ready = threading.Barrier(10)

        def work(i: int) -> None:
            ready.wait(PATIENCE)
            for _ in range(12):
                with self.manager.lock(self.name, ttl=600, wait=None):
                    turns.append(i)
                    # The one that has just left comes back before this one leaves.
                    self.eventually("the others wait", lambda: self.waiting() >= min(9, left[0] - 1))
                    if turns.count(i) == 12:
                        left[0] -= 1

        left = [10]
        self.run_threads(*[lambda i=i: work(i) for i in range(10)])
        for begin in range(0, 120, 10):
            self.assertEqual(list(range(10)), sorted(turns[begin : begin + 10]), turns)

    def waiting(self) -> int:
        return self.manager.stats().waiting

    def test_a_manager_that_is_closed_while_threads_wait(self) -> None:
        closing = manager()
        semaphore = closing.semaphore(self.name, 1, ttl=600)
        calls: list[Callable[[], object]] = [
            lambda: closing.lock(self.name, ttl=600, wait=None),
            lambda: closing.lock(self.name, ttl=600, wait=PATIENCE, keep_alive=True),
            lambda: closing.lock([self.name, self.name + ":b"], ttl=600, wait=None),
            lambda: closing.lock(self.name, ttl=600, wait=None, shared=True),
            lambda: closing.lock(self.name, ttl=600, wait=None, reentrant=True),
            lambda: semaphore.acquire(None),
        ]
        threads = [threading.Thread(target=self.run_threads, args=(self.ends_with_closed(call),)) for call in calls]
        with self.manager.lock(self.name, ttl=600):
            for thread in threads:
                thread.start()
            self.eventually("all wait", lambda: closing.stats().waiting == len(calls))
            events = closing._events
            closing.close()
            for thread in threads:
                thread.join(PATIENCE)
            self.assertEqual(len(calls), len(self.ended))
            self.assertEqual({}, events.waiting)
        self.assert_free()

    def test_a_manager_that_is_closed_as_the_call_is_submitted(self) -> None:
        """close() has looked for calls already, and has not found this one."""
        closing = manager()
        with self.manager.lock(self.name, ttl=600):
            closing._events.is_closed = True
            self.assert_fails(redlock.Cancelled, closing.lock, self.name, ttl=600, wait=PATIENCE)

    def ends_with_closed(self, call: Callable[[], object]) -> Callable[[], None]:
        def run() -> None:
            self.ended.append(self.assert_fails(redlock.Closed, call))

        return run

    def setUp(self) -> None:
        super().setUp()
        self.ended: list[BaseException] = []

    def test_other_threads_run_while_one_waits(self) -> None:
        silent = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
        addresses = [f"127.0.0.1:{server.getsockname()[1]}" for server in silent]
        waiting = manager(*addresses, connect_timeout=0.5)
        turns = 0
        going = True

        def count() -> None:
            nonlocal turns
            while going:
                turns += 1
                time.sleep(0.001)

        counter = threading.Thread(target=count)
        counter.start()
        try:
            error = self.assert_fails(redlock.Unreachable, waiting.lock, self.name, ttl=60, wait=0)
            self.assertEqual(2, error.status)
            self.assertGreater(turns, 10)
            self.assert_fails(redlock.Unreachable, waiting.is_locked, self.name)
            self.assert_fails(redlock.Unreachable, waiting.connect, timeout=0.05)
        finally:
            going = False
            counter.join()
            for server in silent:
                server.close()

    def test_daemon_threads_that_wait_when_the_interpreter_ends(self) -> None:
        with self.manager.lock(self.name, ttl=600):
            run = program(f"""
import threading, time
waiting = redlock.Manager(*SERVERS)
wait = lambda: waiting.lock({self.name!r}, ttl=600, wait=None)
threads = [threading.Thread(target=wait, daemon=True) for _ in range(4)]
[thread.start() for thread in threads]
time.sleep(0.1)
print("the end")
""")
            self.assertEqual((0, "the end\n", ""), (run.returncode, run.stdout, run.stderr))
        self.assert_free()

    def test_tasks_that_are_cancelled(self) -> None:
        if not hasattr(asyncio, "to_thread"):
            self.skipTest("asyncio.to_thread is there from Python 3.9 on")

        def work() -> None:
            with self.manager.lock(self.name, ttl=600, wait=None):
                time.sleep(0.001)

        async def cancel_some() -> None:
            tasks = [asyncio.create_task(asyncio.to_thread(work)) for _ in range(30)]
            await asyncio.sleep(0.01)
            for task in tasks[::2]:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        asyncio.run(cancel_some())
        self.assert_free()


class Alarm(Exception):
    """Raised by a signal handler."""


class Alarms:
    """Rings at most as often as it is told to."""

    def __init__(self) -> None:
        self.left = 0

    def __enter__(self) -> Alarms:
        self.old = signal.signal(signal.SIGALRM, self.ring)
        return self

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self.old)

    def set(self, count: int, first: float, interval: float) -> None:
        self.left = count
        signal.setitimer(signal.ITIMER_REAL, first, interval)

    def ring(self, _number: int, _frame: FrameType | None) -> None:
        if self.left == 0:
            return
        self.left -= 1
        if self.left == 0:
            signal.setitimer(signal.ITIMER_REAL, 0)
        raise Alarm

    def stop(self) -> None:
        self.left = 0


class Signals(RedlockTest):
    """Exceptions of signal handlers at any moment, and nothing is left locked."""

    def test_an_alarm_ends_the_waiting(self) -> None:
        with Alarms() as alarms:
            for holder in (manager(), self.manager):
                lease = holder.lock(self.name, ttl=600)
                with self.assertRaises(Alarm):
                    alarms.set(1, 0.1, 0)
                    self.manager.lock(self.name, ttl=600, wait=None)
                lease.unlock()
                self.assert_free()

    def test_an_alarm_ends_the_call_also_if_its_lease_is_still_there(self) -> None:
        kept: list[BaseException] = []
        with manager().lock(self.name, ttl=600):
            with Alarms() as alarms:
                try:
                    alarms.set(1, 0.1, 0)
                    self.manager.lock(self.name, ttl=600, wait=None)
                except Alarm as error:
                    kept.append(error)  # with its frames, which have the lease
            self.assertEqual((1, 0), (len(kept), self.manager.stats().waiting))
        self.assert_free()

    def test_an_interrupt_from_the_keyboard(self) -> None:
        with manager().lock(self.name, ttl=600):
            run = program(f"""
import signal, threading
waiting = redlock.Manager(*SERVERS)
try:
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    waiting.lock({self.name!r}, ttl=600, wait=None)
except KeyboardInterrupt:
    print("interrupted")
""")
            self.assertEqual((0, "interrupted\n", ""), (run.returncode, run.stdout, run.stderr))
        self.assert_free()

    def test_alarms_while_it_releases(self) -> None:
        alarms = ["first", "second", "third"]
        with self.assertRaises(Alarm) as caught, self.manager.lock(self.name, ttl=600) as lease:
            unlock = lease.unlock

            def ring_first() -> None:
                if alarms:
                    raise Alarm(alarms.pop(0))
                unlock()

            lease.unlock = ring_first
        self.assertEqual("first", str(caught.exception))
        self.assert_free()

    def test_an_alarm_before_it_releases(self) -> None:
        """The lock is held still, so the block must release it."""

        def ring(*_: object, **_options: object) -> None:
            raise Alarm

        with self.assertRaises(Alarm), self.manager.lock(self.name, ttl=600) as lease:
            lease._call = ring
        self.assert_free()

    def test_no_finalizer_is_in_python(self) -> None:
        """If a signal handler raises an exception in a finalizer, it is lost, and the release may be lost, too."""
        ended = self.manager.lock(self.name, ttl=600)
        ended.unlock()
        callers = self.manager.lock(self.name + ":caller", ttl=600)
        entered = self.manager.lock(self.name, ttl=600).__enter__()
        unused = redlock.Lease(self.manager, self.name, 600)
        other = manager()
        other.close()
        calls = []

        def note(frame: FrameType, event: str, _argument: object) -> None:
            if event == "call":
                calls.append(frame.f_code.co_name)

        self.assertTrue(callers.held and entered.held and not unused.held)
        gc.collect()
        sys.setprofile(note)
        try:
            del ended, callers, entered, unused, other
            gc.collect()
        finally:
            sys.setprofile(None)
        self.assertEqual([], calls)
        self.assert_free()
        self.assertTrue(self.manager.is_locked(self.name + ":caller"))
        ask_all("DEL", self.name + ":caller")

    def test_a_lease_that_is_collected_with_its_manager_is_released_first(self) -> None:
        own = manager()
        entered = own.lock(self.name, ttl=600).__enter__()
        entered.myself = entered
        own.lease = entered
        del own, entered
        gc.collect()
        self.assert_free()

    def test_a_storm_of_alarms_on_blocks(self) -> None:
        def lock() -> None:
            while True:
                with self.manager.lock(self.name, ttl=600):
                    pass

        self.storm(lock)

    def test_a_storm_of_alarms_on_permits(self) -> None:
        semaphore = self.manager.semaphore(self.name, permits=2, ttl=600)

        def lock() -> None:
            while True:
                with semaphore:
                    pass

        self.storm(lock)

    def test_a_storm_of_alarms_on_waiting(self) -> None:
        """Another thread holds the lock now and then, so that the first one waits, and is handed the lock."""
        other = threading.Event()

        def lock_now_and_then() -> None:
            while not other.is_set():
                with self.manager.lock(self.name, ttl=600, wait=PATIENCE):
                    time.sleep(0.0005)

        def lock() -> None:
            while True:
                with self.manager.lock(self.name, ttl=600, wait=None):
                    pass

        thread = threading.Thread(target=lock_now_and_then)
        thread.start()
        try:
            self.storm(lock, check=False)
        finally:
            other.set()
            thread.join()
        self.assert_free()

    def test_a_storm_of_alarms_on_leases(self) -> None:
        """The caller has the lease, or no caller has it."""
        lease = None

        def lock() -> None:
            nonlocal lease
            while True:
                lease = self.manager.lock(self.name, ttl=600)
                lease.unlock()

        def unlock() -> None:
            if lease is not None and lease.held:
                lease.unlock()

        self.storm(lock, unlock)

    def storm(
        self, lock: Callable[[], None], undo: Callable[[], None] = gc.collect, check: bool = True
    ) -> None:
        if sys.version_info < (3, 11):
            self.skipTest("before Python 3.11 they may come where nothing in Python can be done")
        with Alarms() as alarms:
            for i in range(200):
                count = 1 + i % 3
                try:
                    alarms.set(count, random.uniform(0.0001, 0.003), random.uniform(0.0001, 0.001))
                    lock()
                except Alarm:
                    try:
                        alarms.stop()
                    except Alarm:
                        try:
                            alarms.stop()
                        except Alarm:
                            pass  # that was the third
                undo()
                if check:
                    self.assert_free()


if __name__ == "__main__":
    unittest.main()

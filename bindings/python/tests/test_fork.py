from __future__ import annotations

import gc
import multiprocessing
import os
import threading
import unittest
from typing import Callable

from support import SERVERS, RedlockTest, ask_all, in_child, manager, program, redlock


def lock_once(name: str) -> bool:
    """In a spawned process, which makes its own manager."""
    with manager().lock(name, ttl=600, wait=None) as lease:
        return lease.held


class Fork(RedlockTest):
    def test_a_child_locks_alone(self) -> None:
        with self.manager.lock(self.name, ttl=600):
            pass  # the parent is connected before it forks
        other = self.name + ":other"

        def lock() -> bool:
            with self.manager.lock(other, ttl=600) as lease:
                return lease.held

        self.assertIs(True, in_child(lock))
        self.assert_free(other)
        with self.manager.lock(self.name, ttl=600):
            refused = in_child(lambda: self.manager.lock(self.name, ttl=600, wait=0))
            self.assertIs(redlock.Taken, type(refused))

    def test_a_child_cannot_touch_the_lock_of_its_parent(self) -> None:
        lease = self.manager.lock(self.name, ttl=600)
        self.assertEqual((False, 0.0), in_child(lambda: (lease.held, lease.remaining)))
        for call in (lease.unlock, lease.extend, lease.confirm):
            self.assertIs(redlock.Forked, type(in_child(call)))
        lease.confirm()
        lease.unlock()

    def test_a_child_does_not_wait_for_a_thread_that_is_not_there(self) -> None:
        lease = self.manager.lock(self.name, ttl=600)
        calling, ended = threading.Event(), threading.Event()

        def call() -> None:
            with lease._calling.now(), self.manager._asking.now():
                calling.set()
                ended.wait()

        thread = threading.Thread(target=call)
        thread.start()
        calling.wait()
        try:
            self.assertIs(redlock.Forked, type(in_child(lease.confirm)))
            self.assertIs(True, in_child(lambda: self.manager.is_locked(self.name)))
        finally:
            ended.set()
            thread.join()
        lease.unlock()

    def test_a_child_that_leaves_the_block_of_its_parent_does_not_release(self) -> None:
        for leave in (
            "raise ValueError",
            "sys.exit()",
            "os._exit(0)",
            "pass",
            "del lease; gc.collect()",
            "kept.close()",
        ):
            run = program(f"""
import gc
kept = redlock.Manager(*SERVERS)
with kept.lock({self.name!r}, ttl=600) as lease:
    if os.fork():
        os.wait()
        lease.confirm()
        print("still the parent's")
    else:
        {leave}
""")
            self.assertEqual("still the parent's\n", run.stdout, leave)
        self.assert_free()

    def test_children_that_are_made_while_threads_hold_every_mutex(self) -> None:
        going = True

        def lock(name: str) -> None:
            while going:
                with self.manager.lock(name, ttl=600):
                    self.manager.is_locked(name)

        names = [f"{self.name}:{i}" for i in range(4)]
        threads = [threading.Thread(target=lock, args=(name,)) for name in names]
        for thread in threads:
            thread.start()
        try:
            children = [fork(self.in_all_ways(i, names[i % 4])) for i in range(24)]
            self.assertEqual([0] * 24, [os.waitpid(child, 0)[1] for child in children])
        finally:
            going = False
            for thread in threads:
                thread.join()
        for name in names:
            self.assert_free(name)

    def in_all_ways(self, number: int, name: str) -> Callable[[], None]:
        def lock() -> None:
            with self.manager.lock(name, ttl=600, wait=None):
                self.manager.is_locked(name)
            if number % 2:
                gc.collect()

        return lock

    def test_workers_of_a_parent_that_holds_locks(self) -> None:
        lease = self.manager.lock(self.name, ttl=600)
        forgotten = self.name + ":forgotten"
        self.manager.lock(forgotten, ttl=600)
        context = multiprocessing.get_context("fork")

        def work(number: int) -> None:
            for _ in range(5):
                with self.manager.lock(f"{self.name}:{number}", ttl=600):
                    gc.collect()

        workers = [context.Process(target=work, args=(i,)) for i in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
            self.assertEqual(0, worker.exitcode)
        lease.confirm()
        self.assertTrue(self.manager.is_locked(forgotten), "a worker released it")
        lease.unlock()
        ask_all("DEL", forgotten)

    def test_processes_that_are_spawned(self) -> None:
        context = multiprocessing.get_context("spawn")
        with context.Pool(2) as pool:
            self.assertEqual([True] * 4, pool.map(lock_once, [self.name] * 4))
        with self.assertRaisesRegex(TypeError, "cannot be pickled"):
            context.Process(target=print, args=(self.manager,)).start()
        self.assert_free()

    def test_processes_exclude_each_other(self) -> None:
        reader, writer = os.pipe()

        def write() -> None:
            for _ in range(3):
                with self.manager.lock(self.name, ttl=60, wait=None):
                    os.write(writer, b"(")
                    self.manager.is_locked(
                        self.name
                    )  # the others have their chance to come in between
                    os.write(writer, b")")

        children = [fork(write) for _ in range(4)]
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            self.assertEqual(b"()" * 12, pipe.read())
        for child in children:
            self.assertEqual(0, os.waitpid(child, 0)[1])


def fork(body: Callable[[], None]) -> int:
    child = os.fork()
    if child == 0:
        status = 1
        try:
            body()
            status = 0
        finally:
            os._exit(status)
    return child


assert SERVERS

if __name__ == "__main__":
    unittest.main()

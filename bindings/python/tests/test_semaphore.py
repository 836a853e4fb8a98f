from __future__ import annotations

import asyncio
import contextlib
import gc
import threading
import unittest
from typing import AsyncIterator, Callable, Iterator

from support import AsyncTest, RedlockTest, manager, redlock


class Permits(RedlockTest):
    def test_so_many_have_one_and_no_more(self) -> None:
        semaphore = self.manager.semaphore(self.name, permits=2, ttl=30)
        with semaphore.acquire() as one, semaphore as two:
            self.assertTrue(one.held and two.held)
            self.assertEqual(self.name, two.resource)
            self.assertEqual(2, semaphore.taken())
            self.assertIsNone(semaphore.try_acquire())
            self.assert_fails(redlock.Taken, semaphore.acquire, 0.1)
            theirs = manager().semaphore(self.name, permits=2, ttl=30)
            self.assertIsNone(theirs.try_acquire())
            info = manager().inspect(self.name, permits=2)
            self.assertEqual((True, 2), (info.locked, info.permits_taken))
            one.unlock()
            three = theirs.try_acquire()
            assert three is not None
            three.extend(60)
            self.assertTrue(three.remaining > 30)
            three.unlock()
        self.assertEqual(0, semaphore.taken())

    def test_who_locks_the_name_uses_one(self) -> None:
        semaphore = self.manager.semaphore(self.name, permits=1, ttl=30)
        with self.manager.lock(self.name, ttl=30):
            self.assertIsNone(semaphore.try_acquire())
            self.assertEqual(1, semaphore.taken())
        with semaphore:
            self.assert_fails(redlock.Taken, manager().lock, self.name, ttl=1, wait=0)

    def test_a_permit_is_kept(self) -> None:
        semaphore = self.manager.semaphore(self.name, permits=2, ttl=0.4, keep_alive=True)
        with semaphore as lease:
            self.assertFalse(lease.lost.wait(1))
            self.assertTrue(lease.held)

    def test_threads_share_it(self) -> None:
        semaphore = self.manager.semaphore(self.name, permits=3, ttl=30)
        inside: list[int] = []
        most: list[int] = []

        def work() -> None:
            for _ in range(10):
                with semaphore.acquire(wait=60):
                    inside.append(1)
                    most.append(len(inside))
                    inside.pop()

        threads = [threading.Thread(target=work) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(60, len(most))
        self.assertLessEqual(max(most), 3)

    def test_what_is_wrong_is_said(self) -> None:
        for permits in (0, -1):
            self.assert_fails(
                redlock.InvalidArgument, self.manager.semaphore, self.name, permits, ttl=30
            )
        for permits in (257, 2**40):
            semaphore = self.manager.semaphore(self.name, permits, ttl=30)
            self.assert_fails(redlock.InvalidArgument, semaphore.acquire)
        with self.assertRaises(TypeError):
            self.manager.semaphore(self.name, 2.5, ttl=30)  # type: ignore[arg-type]
        fencing = manager(fencing=True).semaphore(self.name, 2, ttl=30)
        self.assert_fails(redlock.InvalidArgument, fencing.acquire)


class Blocks(RedlockTest):
    """A block releases the permit that it has taken, wherever it is left."""

    def setUp(self) -> None:
        super().setUp()
        self.semaphore = self.manager.semaphore(self.name, permits=4, ttl=600, keep_alive=True)

    def generate(self) -> Iterator[redlock.Lease]:
        with self.semaphore as lease:
            yield lease

    def generate_with_a_stack(self) -> Iterator[redlock.Lease]:
        with contextlib.ExitStack() as first, first.pop_all() as stack:
            lease = stack.enter_context(self.semaphore)
            with stack.pop_all():
                yield lease

    def test_on_another_thread(self) -> None:
        for generate in (self.generate, self.generate_with_a_stack):
            one, two, three = (generate() for _ in range(3))
            leases = [next(block) for block in (one, two, three)]
            for block, held in ((one, [False, True, True]), (three, [False, True, False])):
                self.run_threads(block.close)
                self.assertEqual(held, [lease.held for lease in leases])
            two.close()
            self.assertEqual(0, self.semaphore.taken())

    def test_while_other_threads_enter_and_leave(self) -> None:
        blocks = [self.generate() for _ in range(2)]
        leases = [next(block) for block in blocks]

        def enter_and_leave() -> None:
            for _ in range(10):
                with self.semaphore as outer:
                    self.assertTrue(outer.held)
                self.assertFalse(outer.held)

        self.run_threads(enter_and_leave, enter_and_leave)
        self.assertEqual([True, True], [lease.held for lease in leases])
        self.run_threads(*[block.close for block in blocks])
        self.assertEqual([False, False], [lease.held for lease in leases])
        self.assertEqual(0, self.semaphore.taken())

    def test_a_block_in_a_block(self) -> None:
        with self.semaphore as outer:
            with self.semaphore as inner:
                self.assertEqual(2, self.semaphore.taken())
            self.assertTrue(outer.held and not inner.held)
        self.assertFalse(outer.held)

    def test_a_block_that_is_thrown_away(self) -> None:
        block = self.generate()
        lease = next(block)
        del block
        gc.collect()
        self.assertFalse(lease.held)
        self.assertEqual(0, self.semaphore.taken())

    def test_who_only_looks_is_no_block(self) -> None:
        ends: list[Callable[..., object]] = []
        looks: list[Callable[[], object]] = [
            lambda: hasattr(self.semaphore, "__exit__"),
            lambda: hasattr(redlock.Semaphore, "__enter__"),
            lambda: ends.append(self.semaphore.__exit__),
            lambda: ends.append(self.semaphore.__enter__),
            lambda: ends.append(self.manager.semaphore(self.name + ":other", 2, ttl=600).__enter__),
        ]
        for look in looks:
            look()
            with self.semaphore as outer, self.semaphore as inner:
                look()
                self.assertEqual(2, self.semaphore.taken())
            self.assertFalse(outer.held or inner.held)
        self.assertEqual(0, self.semaphore.taken())

    def test_without_a_block(self) -> None:
        """As a class does whose own methods call these."""
        enter, leave = (lambda: self.semaphore.__enter__()), (lambda: self.semaphore.__exit__(None, None, None))
        one, two = enter(), enter()
        leave()
        self.assertTrue(one.held and not two.held)
        leases: list[redlock.Lease] = []
        self.run_threads(lambda: leases.append(enter()))
        leave()
        self.assertTrue(leases[0].held and not one.held)
        self.run_threads(leave)
        self.assertFalse(leases[0].held)
        self.assert_fails(RuntimeError, leave)
        self.assertEqual(0, self.semaphore.taken())


class PermitsOfTasks(AsyncTest):
    async def test_so_many_have_one_and_no_more(self) -> None:
        semaphore = self.manager.semaphore(self.name, permits=3, ttl=30)
        inside: list[int] = []
        most: list[int] = []

        async def work() -> None:
            for _ in range(10):
                async with semaphore.aacquire(wait=60):
                    inside.append(1)
                    most.append(len(inside))
                    await asyncio.sleep(0)
                    inside.pop()

        await asyncio.gather(*(work() for _ in range(6)))
        self.assertEqual(60, len(most))
        self.assertLessEqual(max(most), 3)
        self.assert_nothing_is_under_way()

    async def test_it_is_entered_itself(self) -> None:
        semaphore = self.manager.semaphore(self.name, permits=2, ttl=30)
        async with semaphore as one, semaphore as two:
            self.assertTrue(one.held and two.held)
            with self.assertRaises(redlock.Taken):
                await semaphore.aacquire(wait=0)
            await two.extend(60)
        self.assertFalse(one.held or two.held)
        lease = await semaphore.aacquire()
        await lease.unlock()

    async def test_a_block_is_left_in_another_task(self) -> None:
        semaphore = self.manager.semaphore(self.name, permits=4, ttl=600, keep_alive=True)

        async def generate() -> AsyncIterator[redlock.AsyncLease]:
            async with semaphore as lease:
                yield lease

        async def generate_with_a_stack() -> AsyncIterator[redlock.AsyncLease]:
            async with contextlib.AsyncExitStack() as stack:
                yield await stack.enter_async_context(semaphore)

        async def enter(block: AsyncIterator[redlock.AsyncLease]) -> redlock.AsyncLease:
            return await block.__anext__()

        for kind in (generate, generate_with_a_stack):
            one, two = kind(), kind()
            first, second = [await asyncio.create_task(enter(block)) for block in (one, two)]
            await asyncio.create_task(one.aclose())
            self.assertTrue(second.held and not first.held)
            await two.aclose()
            self.assertFalse(second.held)
            self.assertEqual(0, await semaphore.ataken())
        self.assert_nothing_is_under_way()

    async def test_without_a_block(self) -> None:
        semaphore = self.manager.semaphore(self.name, permits=4, ttl=600)
        one = await semaphore.__aenter__()
        two = await asyncio.create_task(semaphore.__aenter__())
        await semaphore.__aexit__(None, None, None)
        self.assertTrue(two.held and not one.held)
        await semaphore.__aexit__(None, None, None)
        self.assertFalse(two.held)

    async def test_it_is_tried_once(self) -> None:
        semaphore = self.manager.semaphore(self.name, permits=1, ttl=600)
        lease = await semaphore.atry_acquire()
        assert lease is not None
        self.assertIsNone(await semaphore.atry_acquire())
        self.assertEqual(1, await semaphore.ataken())
        await lease.unlock()


if __name__ == "__main__":
    unittest.main()

from __future__ import annotations

import asyncio
import threading
import unittest

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
            self.assert_fails(redlock.Taken, manager().lock, self.name, 1, 0)

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
                redlock.InvalidArgument, self.manager.semaphore, self.name, permits, 30
            )
        for permits in (257, 2**40):
            semaphore = self.manager.semaphore(self.name, permits, ttl=30)
            self.assert_fails(redlock.InvalidArgument, semaphore.acquire)
        with self.assertRaises(TypeError):
            self.manager.semaphore(self.name, 2.5, ttl=30)  # type: ignore[arg-type]
        fencing = manager(fencing=True).semaphore(self.name, 2, ttl=30)
        self.assert_fails(redlock.InvalidArgument, fencing.acquire)


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


if __name__ == "__main__":
    unittest.main()

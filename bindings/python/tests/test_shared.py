from __future__ import annotations

import asyncio
import threading
import unittest

from support import RedlockTest, manager, redlock


class Shared(RedlockTest):
    def test_readers_share_and_a_writer_is_alone(self) -> None:
        other = manager()
        with self.manager.lock(self.name, ttl=60, shared=True) as one:
            with other.lock(self.name, ttl=60, shared=True) as two:
                self.assertTrue(one.shared and two.shared and one.held and two.held)
                info = other.inspect(self.name)
                self.assertEqual((True, True, 2), (info.locked, info.shared, info.readers))
                one.extend(120)
                self.assertTrue(one.remaining > 60)
                two.confirm(1)
                self.assertIsNone(manager().try_lock(self.name, ttl=60))
        with self.manager.lock(self.name, ttl=60) as writer:
            self.assertFalse(writer.shared)
            self.assertIsNone(other.try_lock(self.name, ttl=60, shared=True))

    def test_readers_may_nest_and_nothing_else(self) -> None:
        with self.manager.lock(self.name, ttl=60, shared=True):
            with self.manager.lock(self.name, ttl=60, shared=True):
                self.assertEqual(2, self.manager.inspect(self.name).readers)
            self.assert_fails(redlock.Nested, self.manager.lock, self.name, ttl=60)
        with self.manager.lock(self.name, ttl=60):
            with self.assertRaises(redlock.Nested):
                self.manager.lock(self.name, ttl=60, shared=True)

    def test_a_writer_becomes_a_reader(self) -> None:
        lease = self.manager.lock(self.name, ttl=60)
        lease.downgrade()
        self.assertTrue(lease.shared and lease.held)
        beside = manager().lock(self.name, ttl=60, shared=True)
        lease.unlock()
        beside.unlock()
        self.assert_fails(redlock.Lost, lease.downgrade)

    def test_a_reader_waits_and_is_kept(self) -> None:
        other, lease = manager(), self.manager.lock(self.name, ttl=60)
        timer = threading.Timer(0.6, lease.unlock)
        timer.start()
        reader = other.lock(self.name, ttl=2, wait=30, shared=True, keep_alive=True)
        timer.join()
        self.assertFalse(reader.lost.wait(0.1))
        reader.unlock()

    def test_tasks_share_as_well(self) -> None:
        async def run() -> None:
            one = await self.manager.alock(self.name, ttl=60, shared=True)
            async with manager().alock(self.name, ttl=60, shared=True) as two:
                self.assertTrue(one.shared and two.shared)
                self.assertIsNone(await manager().atry_lock(self.name, ttl=60))
            await one.unlock()
            writer = await self.manager.alock(self.name, ttl=60)
            await writer.downgrade()
            self.assertTrue(writer.shared)
            await writer.unlock()

        asyncio.run(run())


if __name__ == "__main__":
    unittest.main()

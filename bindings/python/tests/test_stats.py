from __future__ import annotations

import asyncio
import re
import unittest

from support import RedlockTest, manager, redlock


class Stats(RedlockTest):
    def test_what_happens_is_counted(self) -> None:
        other = manager()
        with self.manager.lock(self.name, ttl=30) as lease:
            self.assertIsNone(other.try_lock(self.name, ttl=30))
            lease.extend()
        stats = self.manager.stats()
        counts = stats.acquire.ok, stats.extend.ok, stats.release.ok, stats.attempts, stats.waits
        self.assertEqual((1, 1, 1, 1, 0), counts)
        for histogram in (stats.acquire_time, stats.hold_time):
            self.assertEqual((1, 1), (histogram.count, sum(histogram.buckets)))
            self.assertGreater(histogram.sum, 0)
            self.assertEqual(len(histogram.buckets) - 1, len(histogram.bounds))
            self.assertEqual((0.000025, 60), (histogram.bounds[0], histogram.bounds[-1]))
        self.assertGreaterEqual(stats.requests, 6)
        self.assertGreaterEqual(stats.round_trip.count, 6)
        self.assertEqual(1, other.stats().acquire.taken)
        lines = self.manager.stats_text().splitlines()
        self.assertIn('redlock_lock_acquisitions_total{outcome="ok"} 1', lines)
        self.manager.close()
        self.assert_fails(redlock.Closed, self.manager.stats)
        self.assert_fails(redlock.Closed, self.manager.stats_text)

    def test_a_wait_in_slices_is_one(self) -> None:
        with manager().lock(self.name, ttl=30):
            # On a busy machine the last attempt may have no time for an answer.
            with self.assertRaises((redlock.Taken, redlock.Unreachable)):
                self.manager.lock(self.name, ttl=30, wait=0.6)
        stats = self.manager.stats()
        refused = stats.acquire.taken + stats.acquire.unreachable
        self.assertEqual((0, 1, 1), (stats.acquire.ok, refused, stats.waits))
        self.assertGreater(stats.wait_time.sum, 0.5)

    def test_tasks_are_counted(self) -> None:
        async def lock() -> None:
            async with self.manager.alock(self.name, ttl=30, keep_alive=True):
                self.assertEqual(1, self.manager.stats().kept)

        asyncio.run(lock())
        stats = self.manager.stats()
        self.assertEqual((1, 1, 0), (stats.acquire.ok, stats.release.ok, stats.kept))

    def test_what_becomes_of_locks_is_told_where_that_is_wanted(self) -> None:
        lines: list[str] = []

        def log(level: int, line: str) -> None:
            if level == 10:
                lines.append(re.sub(r" \w+_ms=[\d.]+", "", line))

        with manager(logger=log).lock(self.name, ttl=30):
            pass
        self.assertEqual([], lines)
        with manager(logger=log, trace="events").lock(self.name, ttl=30):
            pass
        self.assertEqual(["event=acquired attempts=1", "event=released"], lines)
        lines.clear()
        with manager(logger=log, trace="resources").lock(self.name, ttl=30):
            pass
        named = f'resource="{self.name}"'
        self.assertEqual([f"event=acquired {named} attempts=1", f"event=released {named}"], lines)
        self.assert_fails(redlock.InvalidArgument, manager, trace="all")


if __name__ == "__main__":
    unittest.main()

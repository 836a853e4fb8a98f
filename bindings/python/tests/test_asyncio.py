from __future__ import annotations

import asyncio
import contextlib
import ctypes
import functools
import gc
import math
import os
import random
import secrets
import socket
import sys
import threading
import unittest
import weakref
from types import FrameType
from typing import Any, Callable

from proxies import Proxy
from support import PATIENCE, SERVERS, AsyncTest, ask_all, in_child, keys, manager, program, redlock


class Block(AsyncTest):
    async def test_the_block_has_the_lock(self) -> None:
        async with self.manager.alock(self.name, ttl=30) as lease:
            self.assertTrue(lease.held)
            self.assertTrue(0 < lease.remaining < 30)
            self.assertEqual(self.name, lease.resource)
            self.assertRegex(lease.token, "^[0-9A-F]{40}$")
            self.assertTrue(manager().is_locked(self.name))
        self.assertFalse(lease.held)
        self.assertFalse(self.manager.is_locked(self.name))
        self.assert_nothing_is_under_way()

    async def test_fencing_tokens_grow(self) -> None:
        fencing = manager(fencing=True)
        async with fencing.alock(self.name, ttl=30) as first:
            token = first.fencing_token
            self.assertGreater(token, 0)
        async with fencing.alock(self.name, ttl=30) as second:
            self.assertGreater(second.fencing_token, token)

    async def test_several_are_locked_at_once(self) -> None:
        names = [self.name, self.name + ":b"]
        async with self.manager.alock(names, ttl=30, keep_alive=True) as lease:
            self.assertEqual(tuple(names), lease.resources)
            for name in names:
                self.assertIsNone(await manager().atry_lock(name, ttl=1))
                for several in ([name, "x"], ["x", name]):
                    with self.assertRaises(redlock.Nested):
                        await self.manager.alock(several, ttl=1)
            ticket = await lease.detach()
        async with await manager().aadopt(ticket) as taker:
            self.assertEqual(tuple(names), taker.resources)
            await taker.extend(60)
        for name in names:
            self.assertFalse(self.manager.is_locked(name))

    async def test_a_lock_changes_hands(self) -> None:
        async with self.manager.alock(self.name, ttl=30) as giver:
            await giver.extend_by(30)
            self.assertTrue(30 < giver.remaining <= 60)
            token, ticket = giver.token, await giver.detach()
            self.assertFalse(giver.held)
            with self.assertRaises(redlock.Lost):
                await giver.extend()
        other = manager()
        async with await other.aadopt(ticket, keep_alive=True) as taker:
            self.assertEqual((self.name, token), (taker.resource, taker.token))
            self.assertTrue(10 < taker.remaining <= 60)
            self.assertIsNone(await self.manager.atry_lock(self.name, ttl=1))
        await self.assert_all_over(last_holder=other)
        for bad, kind in ((ticket, redlock.Lost), ("no ticket", redlock.InvalidArgument)):
            with self.assertRaises(kind):
                await self.manager.aadopt(bad)
        adopting = asyncio.ensure_future(self.manager.aadopt(ticket))
        await asyncio.sleep(0)
        adopting.cancel()
        with self.assertRaises((asyncio.CancelledError, redlock.Lost)):
            await adopting
        await self.assert_all_over()

    async def test_an_exception_releases(self) -> None:
        for kind in (ZeroDivisionError, GeneratorExit, asyncio.CancelledError, redlock.Taken):
            with self.assertRaises(kind):
                async with self.manager.alock(self.name, ttl=600):
                    raise kind
            await self.assert_all_over()

    async def test_a_block_may_release_early(self) -> None:
        async with self.manager.alock(self.name, ttl=600) as lease:
            await lease.unlock()
            self.assert_free()
            async with self.manager.alock(self.name, ttl=600):
                pass  # not nested: the outer one is over

    async def test_others_are_kept_out_for_a_time(self) -> None:
        for kind in ({}, {"reentrant": True}, {"keep_alive": True}):
            name = f"{self.name}:{kind}"
            async with self.manager.alock(name, ttl=600, **kind) as lease:  # type: ignore[arg-type]
                for bad in (601, -1):
                    await self.assert_refused(redlock.InvalidArgument, lease.unlock, hold_at_least=bad)
                await self.assert_refused(TypeError, lease.unlock, hold_at_least="5")
                await lease.confirm()
                await lease.unlock(hold_at_least=300)
                self.assertFalse(lease.held or lease.lost.is_set())
            self.assertTrue(0 < self.manager.inspect(name).remaining <= 300)
            self.assertIsNone(await manager().atry_lock(name, ttl=600))
            ask_all("DEL", name)
        self.assertEqual(0, self.manager.stats().kept)
        await self.assert_all_over()

    async def test_a_task_that_is_cancelled_still_keeps_others_out(self) -> None:
        lease = await self.manager.alock(self.name, ttl=600)
        task = asyncio.ensure_future(lease.unlock(hold_at_least=300))
        await asyncio.sleep(0)  # the call is under way
        task.cancel()
        await asyncio.wait([task])
        await self.until("it is unlocked", lambda: not lease.held)
        info = self.manager.inspect(self.name)
        self.assertTrue(0 < info.remaining <= 300, info)
        ask_all("DEL", self.name)
        await self.assert_all_over()

    async def test_the_block_releases_what_could_not_be_kept(self) -> None:
        for kind in ({}, {"reentrant": True}, {"shared": True}):
            for is_caught in (False, True):
                caught = contextlib.suppress(redlock.InvalidArgument)
                with caught:
                    async with self.manager.alock(self.name, ttl=600, **kind) as lease:  # type: ignore[arg-type]
                        with caught if is_caught else contextlib.nullcontext():
                            await lease.unlock(hold_at_least=700)
                        await lease.confirm()
                self.assertFalse(lease.held)
                await self.assert_all_over()
        with self.assertRaises(redlock.Lost):
            async with self.manager.alock(self.name, ttl=600) as lease:
                await self.assert_refused(redlock.InvalidArgument, lease.unlock, hold_at_least=700)
                ask_all("DEL", self.name)
        await self.assert_all_over()

    async def test_a_lock_that_is_gone_before_the_block_ended_is_lost(self) -> None:
        with self.assertRaises(redlock.Lost):
            async with self.manager.alock(self.name, ttl=600):
                ask_all("DEL", self.name)
        with self.assertRaisesRegex(ValueError, "the block's own"):
            async with self.manager.alock(self.name, ttl=600):
                ask_all("DEL", self.name)
                raise ValueError("the block's own")
        await self.assert_all_over()

    async def test_locks_are_not_reentrant(self) -> None:
        async with self.manager.alock(self.name, ttl=600) as outer:
            for wait in (0, 30, None):
                error = await self.assert_refused(
                    redlock.Nested, self.wait_for, self.name, ttl=600, wait=wait
                )
                self.assertIn("set reentrant=True", str(error))
            async with self.manager.alock(self.name + ":other", ttl=600):
                await outer.confirm()
            other = asyncio.create_task(self.wait_for(self.name, ttl=600, wait=0))
            await self.assert_refused(redlock.Taken, lambda: other)
        async with self.manager.alock(self.name, ttl=600):
            pass  # one after the other is another matter
        await self.assert_all_over()

    async def wait_for(self, resource: str, **options: Any) -> redlock.AsyncLease:
        return await self.manager.alock(resource, **options)

    async def test_one_block_for_one_lease(self) -> None:
        lease = await self.manager.alock(self.name, ttl=600)
        async with lease as same:
            self.assertIs(lease, same)
            with self.assertRaises((RuntimeError, IndexError)):
                async with lease:
                    self.fail("it was entered twice")
        with self.assertRaises(RuntimeError):
            async with lease:
                self.fail("it was entered after its end")
        locking = self.manager.alock(self.name, ttl=600)
        async with locking:
            pass
        with self.assertRaises(RuntimeError):
            await locking
        await self.assert_all_over()


class Explicit(AsyncTest):
    async def test_the_lease_is_the_callers(self) -> None:
        lease = await self.manager.alock(self.name, ttl=600)
        self.assertTrue(manager().is_locked(self.name))
        await lease.unlock()
        for _ in range(2):
            await self.assert_refused(redlock.Lost, lease.unlock)
        self.assertFalse(lease.held)
        await self.assert_all_over()

    async def test_try_lock(self) -> None:
        lease = await self.manager.atry_lock(self.name, ttl=600)
        assert lease is not None
        self.assertIsNone(await manager().atry_lock(self.name, ttl=600))
        await lease.unlock()

    async def test_extend_and_confirm(self) -> None:
        async with self.manager.alock(self.name, ttl=60) as lease:
            await lease.extend(ttl=600)
            self.assertGreater(lease.remaining, 300)
            await lease.confirm(least=300)
            error = await self.assert_refused(redlock.TooShort, lease.confirm, least=900)
            self.assertEqual(7, error.status)
            self.assertEqual(str(error), lease.message)
            await lease.extend()

    async def test_what_has_ended_is_lost_and_the_next_holder_is_left_alone(self) -> None:
        lease = await self.manager.alock(self.name, ttl=600)
        ask_all("DEL", self.name)
        async with manager().alock(self.name, ttl=600) as theirs:
            await self.assert_refused(redlock.Lost, lease.confirm)
            error = await self.assert_refused(redlock.Lost, lease.extend)
            self.assertEqual(4, error.status)
            await self.assert_refused(redlock.Lost, lease.unlock)
            await theirs.confirm()

    async def test_many_tasks_on_one_lease(self) -> None:
        async with self.manager.alock(self.name, ttl=60) as lease:
            calls = [lease.extend(), lease.confirm(), lease.keep_alive()] * 8
            self.assertEqual([None] * 24, await asyncio.gather(*calls))
            self.assertTrue(lease.held)

    async def test_a_lease_of_another_loop(self) -> None:
        lease = await self.manager.alock(self.name, ttl=600)

        def use() -> None:
            for call in (lease.extend, lease.confirm, lease.keep_alive, lease.unlock):
                with self.assertRaisesRegex(RuntimeError, "belongs to another event loop"):
                    asyncio.run(call())

        self.run_threads(use)
        await lease.unlock()

    async def test_what_cannot_be_asked(self) -> None:
        alock = self.manager.alock
        for ttl in (0, -1, 0.001, math.nan, math.inf):
            error = await self.assert_refused(redlock.InvalidArgument, alock, self.name, ttl=ttl)
            self.assertTrue(str(error))
        for wait in (-1, math.nan):
            await self.assert_refused(redlock.InvalidArgument, alock, self.name, ttl=60, wait=wait)
        for bad in ("", "a\0b", "x" * 65537):
            await self.assert_refused(redlock.InvalidArgument, alock, bad, ttl=60)
        await self.assert_refused(TypeError, alock, None, ttl=60)
        await self.assert_refused(TypeError, alock, self.name, ttl=None)
        for wait in (None, 0, 0.0001, math.inf):
            await (await alock(self.name, ttl=60, wait=wait)).unlock()
        self.manager.close()
        await self.assert_refused(redlock.Closed, alock, self.name, ttl=60)

    async def test_a_taken_lock_is_tried_once_or_for_a_time(self) -> None:
        async with self.manager.alock(self.name, ttl=600):
            for wait in (0, 0.1):
                error = await self.assert_refused(
                    redlock.Taken, manager().alock, self.name, ttl=600, wait=wait
                )
                self.assertEqual(1, error.status)
                self.assertTrue(str(error))

    async def test_a_manager_that_is_closed_meanwhile(self) -> None:
        async with self.manager.alock(self.name, ttl=600) as lease:
            self.manager.close()
            await self.assert_refused(redlock.Closed, lease.extend)
        self.eventually("it is released", lambda: keys(self.name) == 0)

    async def test_a_manager_that_is_closed_while_tasks_wait(self) -> None:
        own = manager()
        events = own._events

        async def wait() -> None:
            async with own.alock(self.name, ttl=600, wait=None) as lease:
                self.assertTrue(lease.held)

        async with self.manager.alock(self.name, ttl=600):
            tasks = [asyncio.create_task(wait()) for _ in range(6)]
            await self.until("all wait", lambda: len(events._calls) == 6)
            own.close()
            await self.assert_refused(redlock.Closed, own.alock, self.name, ttl=600)
            for task in tasks[::2]:
                task.cancel()
            outcomes = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), PATIENCE)
            self.assertEqual([redlock.Closed] * 3, [type(outcome) for outcome in outcomes[1::2]])
            self.assertTrue(all(task.cancelled() for task in tasks[::2]))
            self.assertEqual(({}, {}), (events._calls, events._loops))
        self.assert_free()

    async def test_a_manager_that_is_closed_by_another_thread(self) -> None:
        for wait in (
            lambda own: own.alock(self.name, ttl=600, wait=None, keep_alive=True),
            lambda own: own.alock(self.name, ttl=600, wait=None, reentrant=True),
            lambda own: own.semaphore(self.name, 1, ttl=600).aacquire(None),
        ):
            own = manager()
            async with self.manager.alock(self.name, ttl=600):
                waiting = asyncio.ensure_future(self.awaited(wait(own)))
                await self.until("it waits", lambda own=own: own.stats().waiting == 1)
                self.run_threads(own.close)
                await self.assert_refused(redlock.Closed, lambda waiting=waiting: asyncio.wait_for(waiting, PATIENCE))
            await self.assert_all_over()

    async def test_a_manager_that_is_closed_as_the_call_is_submitted(self) -> None:
        """close() has looked for calls already, and has not found this one."""
        closing = manager()
        async with self.manager.alock(self.name, ttl=600):
            closing._events.is_closed = True
            await self.assert_refused(redlock.Cancelled, closing.alock, self.name, ttl=600, wait=PATIENCE)

    async def awaited(self, locking: Any) -> Any:
        return await locking

    async def test_a_lock_that_comes_as_the_manager_is_closed(self) -> None:
        """The event is there, and the task has not run since."""
        own = manager()
        task = asyncio.ensure_future(self.awaited(own.alock(self.name, ttl=600)))
        while not own._events._calls:
            await asyncio.sleep(0)
        (call,) = own._events._calls.values()
        while call.status is None:
            own._events.take()
        self.assertEqual(0, call.status)
        own.close()
        await self.assert_refused(redlock.Closed, lambda: task)
        await self.assert_all_over()

    async def test_questions_end_when_the_manager_is_closed(self) -> None:
        silent = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
        addresses = [f"127.0.0.1:{server.getsockname()[1]}" for server in silent]
        for ask in (lambda own: own.aconnect(PATIENCE), lambda own: own.ais_locked(self.name)):
            own = manager(*addresses, connect_timeout=2 * PATIENCE)
            asking = asyncio.ensure_future(ask(own))
            await self.until("it asks", lambda own=own: own._events._questions)
            own.close()
            await self.assert_refused(redlock.Closed, lambda asking=asking: asyncio.wait_for(asking, PATIENCE))
        for server in silent:
            server.close()  # the threads of the pool come back

    async def test_a_lock_that_ends_while_the_logger_runs_is_not_had(self) -> None:
        def tell(level: int, line: str) -> None:
            if self.name in line:
                self.eventually("the lock has ended", lambda: keys(self.name) == 0)

        own = manager(logger=tell, trace="resources")
        await self.assert_refused(redlock.TooSlow, own.alock, self.name, ttl=0.2, wait=0)

    async def test_a_block_that_ends_without_its_servers(self) -> None:
        """It held the lock to its end."""
        proxy = Proxy(SERVERS[0])
        async with manager(proxy.address, SERVERS[2]).alock(self.name, ttl=600):
            proxy.cut()
        ask_all("DEL", self.name)

    async def test_servers_that_are_not_there(self) -> None:
        lines: list[str] = []
        nobody = manager("127.0.0.1:1", logger=lambda _, line: lines.append(line))
        error = await self.assert_refused(redlock.Unreachable, nobody.alock, self.name, ttl=60, wait=0)
        self.assertIn("127.0.0.1:1", str(error))
        self.assertIn("127.0.0.1:1", "".join(lines))
        self.assert_nothing_is_under_way(nobody)


class Questions(AsyncTest):
    async def test_they_are_awaited(self) -> None:
        self.assertEqual(self.manager.connect(), await self.manager.aconnect())
        self.assertFalse(await self.manager.ais_locked(self.name))
        async with self.manager.alock(self.name, ttl=60):
            self.assertTrue(await self.manager.ais_locked(self.name))
            info = await self.manager.ainspect(self.name)
            self.assertTrue(info.locked and 30 < info.remaining <= 60)
        for question in (self.manager.ais_locked, self.manager.ainspect):
            await self.assert_refused(redlock.InvalidArgument, question, "")
        self.manager.close()
        for question in (self.manager.aconnect, self.manager.ais_locked, self.manager.ainspect):
            arguments = () if question == self.manager.aconnect else (self.name,)
            await self.assert_refused(redlock.Closed, question, *arguments)

    async def test_the_loop_goes_on_meanwhile(self) -> None:
        """The servers do not answer before the loop closes them."""
        for ask in (
            lambda own: own.aconnect(PATIENCE),
            lambda own: own.ais_locked(self.name),
            lambda own: own.ainspect(self.name),
            lambda own: own.semaphore(self.name, 2, ttl=60).ataken(),
            lambda own: own.semaphore(self.name, 2, ttl=60).atry_acquire(),
        ):
            silent = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
            lines: list[str] = []
            own = manager(
                *(f"127.0.0.1:{server.getsockname()[1]}" for server in silent),
                connect_timeout=2 * PATIENCE,
                logger=lambda _, line, lines=lines: lines.append(line),
            )
            asking = asyncio.ensure_future(ask(own))
            for server in silent:
                connection, _ = await asyncio.get_running_loop().run_in_executor(None, server.accept)
                server.close()
                connection.close()
            with self.assertRaises(redlock.Unreachable):
                await asyncio.wait_for(asking, PATIENCE)
            self.assertNotEqual([], lines)


class Tasks(AsyncTest):
    async def test_tasks_and_threads_exclude_each_other(self) -> None:
        counter = 0

        async def count(own: redlock.Manager) -> None:
            nonlocal counter
            for _ in range(5):
                async with own.alock(self.name, ttl=600, wait=None):
                    seen = counter
                    await asyncio.sleep(0)
                    counter = seen + 1

        def count_in_thread() -> None:
            nonlocal counter
            for _ in range(5):
                with self.manager.lock(self.name, ttl=600, wait=None):
                    counter += 1

        threads = [threading.Thread(target=count_in_thread) for _ in range(3)]
        for thread in threads:
            thread.start()
        other = manager()
        await asyncio.gather(*[count(own) for own in (self.manager, other) * 6])
        for thread in threads:
            thread.join()
        self.assertEqual(75, counter)
        await self.assert_all_over()

    async def test_a_thousand_tasks_want_a_hundred_locks(self) -> None:
        threads = len(os.listdir("/proc/self/task"))
        inside = [0] * 100
        turns: list[int] = []

        async def work(number: int) -> None:
            place = number % 100
            async with self.manager.alock(f"{self.name}:{place}", ttl=600, wait=None) as lease:
                inside[place] += 1
                self.assertEqual((1, True), (inside[place], lease.held))
                await asyncio.sleep(0)
                inside[place] -= 1
                turns.append(number)

        await asyncio.gather(*[work(number) for number in range(1000)])
        self.assertEqual(list(range(1000)), sorted(turns))
        self.assertEqual(threads, len(os.listdir("/proc/self/task")))
        self.assert_nothing_is_under_way()
        self.assertEqual(0, sum(keys(f"{self.name}:{place}") for place in range(0, 100, 9)))

    async def test_loops_in_threads_share_a_manager(self) -> None:
        counter = 0

        async def count() -> None:
            nonlocal counter
            for i in range(5):
                async with self.manager.alock(self.name, ttl=600, wait=None) as lease:
                    seen = counter
                    await lease.extend()
                    counter = seen + 1
                async with self.manager.alock(f"{self.name}:{i}", ttl=600, wait=None):
                    pass

        async def count_in_tasks() -> None:
            await asyncio.wait_for(asyncio.gather(*[count() for _ in range(5)]), 4 * PATIENCE)

        self.run_threads(*[lambda: asyncio.run(count_in_tasks())] * 4)
        self.assertEqual(100, counter)
        await self.assert_all_over()

    async def test_a_waiter_gets_the_lock_when_it_is_free(self) -> None:
        lease = await self.manager.alock(self.name, ttl=600)
        waiter = asyncio.create_task(self.lock_once())
        await asyncio.sleep(0.1)
        self.assertFalse(waiter.done())
        await lease.unlock()
        await asyncio.wait_for(waiter, PATIENCE)

    async def lock_once(self) -> None:
        async with self.manager.alock(self.name, ttl=600, wait=None):
            pass

    async def test_a_password_that_changes_while_nobody_looks(self) -> None:
        user = f"user-{secrets.token_hex(6)}"
        passwords = ["first"]

        def let_in() -> None:
            words = ("reset", "on", f">{passwords[-1]}", "~python:*", "+@all")
            ask_all("ACL", "SETUSER", user, *words)

        let_in()
        try:
            own = manager(user=user, password=lambda: passwords[-1])
            await (await own.alock(self.name, ttl=600)).unlock()
            passwords.append("second")
            let_in()
            ask_all("CLIENT", "KILL", "USER", user)
            # It finds out that it is refused, and asks again.
            await (await own.alock(self.name, ttl=600, wait=PATIENCE)).unlock()
        finally:
            ask_all("ACL", "DELUSER", user)


class Cancelling(AsyncTest):
    async def begun(self) -> None:
        """A call is in progress: its loop has had no time to look for the end."""
        while not self.manager._events._calls:
            await asyncio.sleep(0)

    async def test_a_task_that_waits(self) -> None:
        for holder in (manager(), self.manager):
            async with holder.alock(self.name, ttl=600):
                tasks = [asyncio.create_task(self.lock()) for _ in range(20)]
                await self.until("all wait", lambda: len(self.manager._events._calls) >= 20)
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                self.assertTrue(all(task.cancelled() for task in tasks))
                self.assert_nothing_is_under_way()
            await self.assert_all_over()

    async def lock(self) -> None:
        async with self.manager.alock(self.name, ttl=600, wait=None) as lease:
            await lease.extend()
            await lease.confirm()

    async def test_at_any_moment(self) -> None:
        for _ in range(100):
            task = asyncio.create_task(self.lock())
            for _ in range(random.randrange(60)):
                await asyncio.sleep(0)
                if task.done():
                    break
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            # The next one does not wait for a lock that was left behind.
            lease = await self.manager.alock(self.name, ttl=600, wait=PATIENCE)
            await lease.unlock()
        await self.assert_all_over()

    async def test_some_of_many(self) -> None:
        async def lock_later() -> None:
            await asyncio.sleep(0)
            await self.lock()

        tasks = [asyncio.create_task(lock_later()) for _ in range(100)]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks[::2]:
            task.cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        self.assertEqual([None] * 50, outcomes[1::2])
        await self.assert_all_over()

    async def test_between_the_lock_and_its_task(self) -> None:
        """The event is there, and the task has not run since."""
        task = asyncio.create_task(self.lock())
        await self.begun()
        (call,) = self.manager._events._calls.values()
        while call.status is None:
            self.manager._events.take()
        self.assertEqual(0, call.status)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        self.assertTrue(task.cancelled())
        await self.assert_all_over()

    async def test_while_it_is_unlocked(self) -> None:
        await self.unlock_and_cancel()
        # While another call is under way, what is submitted is not sent at once.
        async with manager().alock(self.name + ":other", ttl=600):
            other = asyncio.ensure_future(self.wait_for_other())
            await self.until("it waits", lambda: self.manager.stats().waiting == 1)
            await self.unlock_and_cancel(1)
        await other

    async def wait_for_other(self) -> None:
        async with self.manager.alock(self.name + ":other", ttl=600, wait=None):
            pass

    async def unlock_and_cancel(self, others: int = 0) -> None:
        for leave_block in (True, False):
            lease = await self.manager.alock(self.name, ttl=600)
            leave = lease.__aexit__(None, None, None) if leave_block else lease.unlock()
            task = asyncio.create_task(leave)
            while len(self.manager._events._calls) == others:
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            self.assert_free()
            if others == 0:
                await self.assert_all_over()

    async def test_while_an_extension_is_waited_for(self) -> None:
        """The lock is as before, and the next call need not wait."""
        async with self.manager.alock(self.name, ttl=600) as lease:
            task = asyncio.create_task(lease.extend(60))
            await self.begun()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            self.assertTrue(lease.held)
            await lease.confirm()
        await self.assert_all_over()

    async def test_a_time_that_is_over(self) -> None:
        async with manager().alock(self.name, ttl=600):
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(self.lock(), 0.05)
            self.assert_nothing_is_under_way()


class Loops(AsyncTest):
    """What a loop leaves behind when it ends."""

    async def hold(self) -> None:
        async with self.manager.alock(self.name, ttl=600, wait=None):
            await asyncio.Event().wait()

    async def begin(self) -> list[asyncio.Task[None]]:
        tasks = [asyncio.create_task(self.hold()) for _ in range(5)]
        while not self.manager.is_locked(self.name):
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        return tasks

    def test_a_loop_that_runs_to_its_end(self) -> None:
        asyncio.run(self.begin())
        self.assert_free()
        self.assert_nothing_is_under_way()

    def test_a_loop_that_is_closed_with_tasks_that_are_thrown_away(self) -> None:
        loop = asyncio.new_event_loop()
        tasks = loop.run_until_complete(self.begin())
        loop.close()
        del tasks, loop
        gc.collect()
        # The manager knows the waiting tasks, until it looks.
        asyncio.run(self.lock_elsewhere())
        gc.collect()
        self.assert_free()
        self.assert_nothing_is_under_way()

    async def lock_elsewhere(self) -> None:
        async with self.manager.alock(self.name + ":other", ttl=600):
            pass

    def test_a_loop_that_is_closed_with_tasks_that_are_not(self) -> None:
        """Their waiting calls are given up. Held locks stay held."""
        holder = manager().lock(self.name, ttl=600)
        loop = asyncio.new_event_loop()
        tasks = loop.run_until_complete(self.begin())
        loop.close()
        asyncio.run(self.lock_elsewhere())
        self.assert_nothing_is_under_way()
        holder.unlock()
        self.assert_free()
        del tasks

    def test_a_loop_that_is_closed_before_its_lock_comes(self) -> None:
        holder = manager().lock(self.name, ttl=600)
        events = self.manager._events
        loop = asyncio.new_event_loop()

        async def begin() -> asyncio.Task[None]:
            task = asyncio.create_task(self.hold())
            while not events._calls:
                await asyncio.sleep(0)
            return task

        task = loop.run_until_complete(begin())
        loop.close()
        holder.unlock()
        event = redlock._structures._CEvent(size=ctypes.sizeof(redlock._structures._CEvent))
        take = functools.partial(redlock._library._c.RedLock_NextEvent, events.handle, 100, ctypes.byref(event))
        self.eventually("it has come", lambda: take() == 0)
        self.assertEqual(0, event.status)
        events._hand_on(event)
        self.assert_free()
        events.take()
        self.assert_nothing_is_under_way()
        del task

    def test_loops_one_after_another(self) -> None:
        for _ in range(20):
            asyncio.run(self.lock_elsewhere())
            self.assert_nothing_is_under_way()

    def test_a_descriptor_that_is_closed_is_watched_by_no_loop(self) -> None:
        """Another descriptor with the same number would not be watched."""

        async def use() -> None:
            for _ in range(5):
                own = manager()
                async with own.alock(self.name, ttl=600) as lease:
                    own.close()
                    events = weakref.ref(lease._events)
                del own, lease
                gc.collect()
                self.assertIsNone(events(), "a loop knows it still")
                reader, writer = os.pipe()
                readable = asyncio.Event()
                asyncio.get_running_loop().add_reader(reader, readable.set)
                os.write(writer, b"x")
                await asyncio.wait_for(readable.wait(), PATIENCE)
                asyncio.get_running_loop().remove_reader(reader)
                os.close(reader)
                os.close(writer)

        asyncio.run(use())


class Garbage(AsyncTest):
    async def test_a_block_that_is_thrown_away_releases(self) -> None:
        async def hold() -> None:
            async with self.manager.alock(self.name, ttl=600):
                await asyncio.Event().wait()

        coroutine = hold()
        task = asyncio.ensure_future(self.drive(coroutine))
        await self.until("it is held", lambda: self.manager._leases_of_tasks.find(self.name.encode()))
        task.cancel()
        del coroutine, task
        gc.collect()
        await asyncio.sleep(0)
        await self.until("it is free", lambda: keys(self.name) == 0)

    async def drive(self, coroutine: Any) -> None:
        await coroutine

    async def test_a_block_that_is_closed_awaits_nothing(self) -> None:
        async def hold() -> None:
            async with self.manager.alock(self.name, ttl=600):
                await asyncio.Event().wait()

        coroutine = hold()
        task = asyncio.ensure_future(self.drive(coroutine))
        await self.until("it is held", lambda: self.manager._leases_of_tasks.find(self.name.encode()))
        coroutine.close()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await self.assert_all_over()

    async def test_an_entered_lease_that_is_lost_is_released(self) -> None:
        lease = await (await self.manager.alock(self.name, ttl=600)).__aenter__()
        lease.myself = lease
        del lease
        gc.collect()
        self.assert_free()

    async def test_the_collector_only_frees_what_is_the_callers(self) -> None:
        await self.manager.alock(self.name, ttl=600)
        gc.collect()
        self.assertTrue(self.manager.is_locked(self.name))
        ask_all("DEL", self.name)

    async def test_no_finalizer_is_in_python(self) -> None:
        ended = await self.manager.alock(self.name, ttl=600)
        await ended.unlock()
        callers = await self.manager.alock(self.name + ":caller", ttl=600)
        entered = await self.manager.alock(self.name, ttl=600)
        await entered.__aenter__()
        calls = []

        def note(frame: FrameType, event: str, _argument: object) -> None:
            if event == "call":
                calls.append(frame.f_code.co_name)

        gc.collect()
        sys.setprofile(note)
        try:
            del ended, callers, entered
            gc.collect()
        finally:
            sys.setprofile(None)
        self.assertEqual([], calls)
        self.assert_free()
        ask_all("DEL", self.name + ":caller")

    def test_the_end_of_the_interpreter(self) -> None:
        run = program(f"""
import asyncio
import contextlib
async def main():
    global kept, lease
    kept = redlock.Manager(*SERVERS)
    lease = await kept.alock({self.name!r}, ttl=60, keep_alive=True)
asyncio.run(main())
""")
        self.assertEqual((0, "", ""), (run.returncode, run.stdout, run.stderr))
        ask_all("DEL", self.name)


class Fork(AsyncTest):
    """Each runs its own loop, because a child cannot use its parent's loop."""

    def test_a_child_locks_alone(self) -> None:
        async def lock_once(name: str) -> bool:
            async with self.manager.alock(name, ttl=600) as lease:
                return lease.held

        asyncio.run(lock_once(self.name))
        self.assertIs(True, in_child(lambda: asyncio.run(lock_once(self.name))))
        asyncio.run(lock_once(self.name))
        self.assert_free()

    def test_a_child_of_a_loop_does_not_disturb_it(self) -> None:
        """It shares the selector of its parent's loop, and has copies of all tasks."""
        waiting = manager()

        async def use_and_fork() -> None:
            async with self.manager.alock(self.name, ttl=600, keep_alive=True) as lease:
                waiter = asyncio.create_task(wait())
                await self.until("it waits", lambda: waiting._events._calls != {})

                def end() -> str:
                    # The loop is the parent's, so this asks as a call without a loop does.
                    error = self.said_by(lease._call, redlock._library._c.RedLock_Confirm, lease._handle, 0)
                    nonlocal waiter
                    del waiter
                    lease._end_keeping()
                    gc.collect()
                    waiting.close()
                    self.manager.close()
                    return type(error).__name__

                for _ in range(3):
                    self.assertEqual("Forked", in_child(end))
                await asyncio.wait_for(lease.confirm(), PATIENCE)
            await asyncio.wait_for(waiter, PATIENCE)

        async def wait() -> None:
            async with waiting.alock(self.name, ttl=600, wait=None):
                pass

        asyncio.run(use_and_fork())
        self.assert_free()
        self.assert_nothing_is_under_way(waiting)

    def said_by(self, call: Callable[..., Any], *arguments: Any) -> BaseException | None:
        try:
            call(*arguments)
        except redlock.Error as error:
            return error
        return None

    def test_a_child_that_leaves_the_block_of_its_parent_does_not_release(self) -> None:
        for leave in ("raise ValueError", "os._exit(0)", "del lease; gc.collect()"):
            run = program(f"""
import asyncio, gc
kept = redlock.Manager(*SERVERS)
async def main():
    async with kept.alock({self.name!r}, ttl=600) as lease:
        if os.fork():
            os.wait()
            await lease.confirm()
            print("still the parent's")
        else:
            {leave}
asyncio.run(main())
""")
            self.assertEqual("still the parent's\n", run.stdout, leave)
        self.assert_free()


if __name__ == "__main__":
    unittest.main()

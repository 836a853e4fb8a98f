"""Servers with names get other addresses: see moving_names.rs.

The arguments: who drives, and the task.
"""

from __future__ import annotations

import asyncio
import os
import select
import sys
import threading

HOW, TASK = sys.argv[1:]
if HOW == "gevent":
    from gevent import monkey

    monkey.patch_all()

import redlock

SERVERS = os.environ["REDLOCK_TEST_SERVERS"].split(",")


def say() -> None:
    print(TASK, flush=True)


def await_end_of_input() -> None:
    """Other greenlets run meanwhile."""
    select.select([0], [], [])


def keep(manager: redlock.Manager) -> None:
    with manager.lock("r", ttl=8, keep_alive=True):
        say()
        await_end_of_input()
    manager.close()


def wait(manager: redlock.Manager) -> None:
    failures: list[BaseException] = []

    def take() -> None:
        try:
            manager.lock("r", ttl=8, wait=None)
        except redlock.Error as error:
            failures.append(error)

    waiter = threading.Thread(target=take)
    waiter.start()
    say()
    await_end_of_input()
    manager.close()
    waiter.join()
    assert type(failures[0]) is redlock.Closed, failures


async def akeep(manager: redlock.Manager) -> None:
    async with manager.alock("r", ttl=8, keep_alive=True):
        say()
        await end_of_input()
    manager.close()


async def await_lock(manager: redlock.Manager) -> None:
    waiter = asyncio.ensure_future(manager.alock("r", ttl=8, wait=None)._take_for_caller())
    say()
    await end_of_input()
    manager.close()
    try:
        await waiter
    except redlock.Closed:
        return
    raise AssertionError("it has the lock")


async def end_of_input() -> None:
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_reader(0, ended.set)
    await ended.wait()
    loop.remove_reader(0)


manager = redlock.Manager(*SERVERS, reply_timeout=20)  # one that writes to its disk beside others may be slow
if HOW == "asyncio":
    asyncio.run({"keep": akeep, "wait": await_lock}[TASK](manager))
else:
    {"keep": keep, "wait": wait}[TASK](manager)

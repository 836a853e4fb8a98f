"""How a program uses the module, as mypy sees it. Nothing runs this."""

from __future__ import annotations

import contextlib
import datetime
from typing import Any, Callable

import redlock


def block(manager: redlock.Manager, stack: contextlib.ExitStack) -> None:
    with manager.lock("a", ttl=10) as lease, manager.semaphore("b", 2, ttl=10) as permit:
        both: list[redlock.Lease] = [lease, permit]
    both.append(stack.enter_context(manager.lock(["a", "b"], ttl=10, reentrant=True)))
    both.append(stack.enter_context(manager.semaphore("b", 2, ttl=10)))
    tried: redlock.Lease | None = manager.try_lock("a", ttl=10)
    lease.unlock(hold_at_least=5)
    print(both, tried, lease.fencing_token or 0 + 1, lease.lost.wait(1) is True)


async def ablock(manager: redlock.Manager, stack: contextlib.AsyncExitStack) -> None:
    semaphore = manager.semaphore("b", 2, ttl=10)
    async with manager.alock("a", ttl=10) as lease, semaphore as permit, semaphore.aacquire() as other:
        all_of_them: list[redlock.AsyncLease] = [lease, permit, other]
    all_of_them.append(await manager.alock("a", ttl=10))
    all_of_them.append(await stack.enter_async_context(manager.alock("a", ttl=10)))
    all_of_them.append(await stack.enter_async_context(semaphore))
    tried: redlock.AsyncLease | None = await semaphore.atry_acquire()
    info: redlock.Info = await manager.ainspect("a")
    words: str = await manager.aconnect()
    await lease.unlock(hold_at_least=datetime.timedelta(seconds=5))
    print(all_of_them, tried, info.remaining + 0.5, words, await semaphore.ataken() + 1)


def mistakes(manager: redlock.Manager) -> None:
    lock: Callable[..., Any] = manager.lock
    lock("a", 10)
    # mypy tells if there is nothing to be ignored.
    manager.lock("a", 10)  # type: ignore
    manager.lock(5, ttl=10)  # type: ignore[arg-type]
    manager.lock("a", ttl="10")  # type: ignore[arg-type]
    manager.lock("a", ttl=10).unlock(hold_at_least="5")  # type: ignore[arg-type]

"""Locks that are held on a majority of independent Redis or Valkey servers.

They are taken through the C library of the same name:

    manager = redlock.Manager("127.0.0.1:6379", "127.0.0.1:6380", "127.0.0.1:6381")
    with manager.lock("report", ttl=10) as lease:
        ...

All times are in seconds, and may be fractions or timedeltas. The library is the file that REDLOCK_LIBRARY
names, the file in the directory of this package, or the file that the system's loader finds. This package
needs Python 3.8 or later, and no other package.

Threads: while a thread waits for a lock, other threads run. Exceptions of signal handlers, such as
KeyboardInterrupt, end the wait within a quarter of a second, or when the current attempt ends: a call
waits for servers that do not answer as long as the timeouts allow. Such exceptions leave no lock behind.
(Before Python 3.11 there are moments in which they can, until the ttl of the lock expires.)

Threads of one manager that wait for a lock get it in the order of arrival.

gevent, and others that put something else in the place of threads: once the modules select or threading
are patched, a call waits in Python for a descriptor, and the others run meanwhile. They may be patched
before this package is imported, or later. connect, is_locked, inspect and taken then use a thread of the
system for the time of the call.

Names: a server that has been unreachable for 2 s may have got another address. Its name is looked up in a
thread named redlock-names, which ends with that, while a call waits or a lock is kept alive. Nothing waits
for it, neither close nor the end of the program.

Processes: a manager that was made before a fork (os.fork, multiprocessing) works in the parent and in its
children. A lock belongs to the process that took it. In a child, calls on it raise Forked, and neither an
exit nor the garbage collector releases it. A manager cannot be pickled: each spawned process must make
its own.

asyncio: alock does not block, and starts no thread, except for names (see above):

    async with manager.alock("report", ttl=10) as lease:
        await send_report()

A task that is cancelled while it waits, or in the block, leaves no lock behind. Loops in several threads
may share a manager. Each call that asks servers has a form for tasks, whose name begins with an a. Those
that take no lock (aconnect, ais_locked, ainspect, ataken) use a thread of the loop's pool. The other calls
return at once.

Keep-alive: with keep_alive=True a lock is extended again and again until it is unlocked, so its ttl can
be shorter than the work. A thread of the library does this, independently of Python: a thread that
computes, or a busy loop, does not lose the lock. If a lock cannot be kept alive, lease.lost is set while
some of the ttl is left: stop the protected work then. For tasks, cancel_when_lost does this.
"""

from __future__ import annotations

from ._arguments import TLS
from ._async_lease import AsyncLease
from ._errors import (
    Cancelled,
    Closed,
    Error,
    Forked,
    Internal,
    InvalidArgument,
    Lost,
    Nested,
    NoServers,
    Taken,
    TooShort,
    TooSlow,
    Unreachable,
)
from ._lease import Lease
from ._lost_event import LostEvent
from ._manager import Manager
from ._reentrant import AsyncLevel, Level
from ._semaphore import Semaphore
from ._state import Info, Server
from ._stats import Histogram, Outcomes, Stats
from ._types import (
    Logger as Logger,
)
from ._types import (
    Name as Name,
)
from ._types import (
    Names as Names,
)
from ._types import (
    Password as Password,
)
from ._types import (
    Path as Path,
)
from ._types import (
    RestartGuard as RestartGuard,
)
from ._types import (
    Seconds as Seconds,
)
from ._types import (
    Trace as Trace,
)

__all__ = [
    "TLS",
    "AsyncLease",
    "AsyncLevel",
    "Cancelled",
    "Closed",
    "Error",
    "Forked",
    "Histogram",
    "Info",
    "Internal",
    "InvalidArgument",
    "Lease",
    "Level",
    "Lost",
    "LostEvent",
    "Manager",
    "Nested",
    "NoServers",
    "Outcomes",
    "Semaphore",
    "Server",
    "Stats",
    "Taken",
    "TooShort",
    "TooSlow",
    "Unreachable",
]

# A program sees each class here, by whatever name it has imported this package.
for _name in __all__:
    globals()[_name].__module__ = __name__
del _name

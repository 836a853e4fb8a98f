"""The exceptions, by the status of a call."""

from __future__ import annotations


class Error(Exception):
    """A call that did not succeed.

    The message is for a person: the answer of each server, and the count of the votes. The status is the
    number that the C library returned, or None if the library was not called.
    """

    def __init__(self, message: str = "", status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class Taken(Error):
    """Somebody else holds the lock."""


class Nested(Taken):
    """The with block around this call holds the lock, and not both calls asked for a reentrant lock."""


class Unreachable(Error):
    """Too few servers answered in time."""


class TooSlow(Error):
    """The lock was granted, but no validity was left."""


class Lost(Error):
    """The lock is not held, or no longer held."""


class TooShort(Error):
    """The lock is held, but not for as long as requested."""


class Cancelled(Error):
    """The call was cancelled, and nothing of it stays locked."""


class InvalidArgument(Error, ValueError):
    """The message names the fault."""


class NoServers(Error):
    """No server was given."""


class Forked(Error):
    """The lease belongs to the parent process."""


class Internal(Error):
    """The message says what happened."""


class Closed(Error):
    """The manager was closed."""


_ERRORS: dict[int, type[Error]] = {
    1: Taken,
    2: Unreachable,
    3: TooSlow,
    4: Lost,
    5: Cancelled,
    7: TooShort,
    -1: InvalidArgument,
    -2: NoServers,
    -3: Forked,
    -4: Internal,
}


def _check(status: int, words: str) -> str:
    if status != 0:
        raise _ERRORS.get(status, Error)(words, status)
    return words

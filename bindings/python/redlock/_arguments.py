"""Arguments, as C takes them."""

from __future__ import annotations

import math
import operator
import os
from datetime import timedelta
from typing import Iterable, NamedTuple, cast

from ._errors import InvalidArgument
from ._types import Name, Names, Path, Seconds

# How many seconds a call waits for a lock if it does not say how long.
_WAIT = 5


class TLS(NamedTuple):
    """The TLS settings for rediss:// servers. The files are PEM."""

    ca: Path | None = None
    """The trusted authorities, if not those that the system trusts."""
    certificate: Path | None = None
    """The client certificate, for servers that ask for one."""
    key: Path | None = None
    """The key of the client certificate."""
    server_name: str | None = None
    """The name that certificates must be for, if it is not the host."""
    insecure_skip_verify: bool = False
    """Whether any certificate is accepted."""


# The index of each name is its number in C.
_GUARDS = ("on", "strict", "off", "durable")
_TRACES = (None, "events", "resources")


def _string(text: Name, what: str) -> bytes:
    """Refuses a string that C would cut short: "a\\0b" must not lock "a"."""
    if isinstance(text, str):
        try:
            text = text.encode()
        except UnicodeEncodeError as error:
            reason = error.reason
        if isinstance(text, str):
            # Not within the except clause, because that error holds the text, which may be a password.
            raise InvalidArgument(f"{what} is not valid text: {reason}", -1)
    if not isinstance(text, bytes):
        raise TypeError(f"{what} must be a str or bytes, not {type(text).__name__}")
    if b"\0" in text:
        raise InvalidArgument(f"{what} contains a NUL byte", -1)
    return text


def _given(resource: Names) -> tuple[Name, ...]:
    """Returns one resource, or several, as a tuple."""
    if isinstance(resource, (str, bytes)):
        return (resource,)
    if not isinstance(resource, Iterable):
        raise TypeError(f"resource must be a str or bytes, not {type(resource).__name__}")
    several = tuple(cast("Iterable[Name]", resource))
    if not several:
        raise InvalidArgument("resource is empty: give at least one name", -1)
    return several


def _count(permits: int) -> int:
    """Limits the number to the range of a C int, and leaves it to the library to refuse it."""
    return max(-(2**31), min(operator.index(permits), 2**31 - 1))


def _optional(text: Name | None, what: str) -> bytes | None:
    return None if text is None else _string(text, what)


def _file(path: Path | None, what: str) -> bytes | None:
    return None if path is None else _string(os.fsencode(path), what)


def _seconds(value: Seconds, what: str) -> float:
    if isinstance(value, timedelta):
        return value.total_seconds()
    if not hasattr(type(value), "__float__"):
        raise TypeError(f"{what} must be a number of seconds, not {type(value).__name__}")
    try:
        seconds = float(value)
    except OverflowError:
        seconds = math.inf
    if math.isnan(seconds):
        raise InvalidArgument(f"{what} is not a number", -1)
    return seconds


def _ms(value: Seconds, what: str) -> int:
    """Returns milliseconds; a small value never becomes 0, because 0 has another meaning."""
    seconds = _seconds(value, what)
    ms = round(max(-(2.0**62), min(seconds * 1000, 2.0**62)))
    return int(math.copysign(1, seconds)) if ms == 0 and seconds != 0 else ms


def _refuse_both(reentrant: bool, shared: bool) -> None:
    if reentrant and shared:
        raise InvalidArgument("shared and reentrant exclude each other", -1)

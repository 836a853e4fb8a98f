"""The types of arguments."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import TYPE_CHECKING, Callable, Literal, Sequence, SupportsFloat, Union

if TYPE_CHECKING:
    import logging

Seconds = Union[SupportsFloat, timedelta]
Name = Union[str, bytes]
Names = Union[Name, Sequence[Name]]
Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]
Password = Union[Name, Callable[[], Name]]
Logger = Union["logging.Logger", Callable[[int, str], object]]
RestartGuard = Literal["on", "strict", "off", "durable"]
Trace = Literal["events", "resources"]

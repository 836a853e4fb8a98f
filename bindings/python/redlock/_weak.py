"""A map of weak references."""

from __future__ import annotations

import weakref
from typing import Generic, TypeVar

_T = TypeVar("_T")
_Key = TypeVar("_Key")


class _Weak(Generic[_Key, _T]):
    """A map of weak references, which keeps nothing alive.

    Dead references are removed now and then, not by a callback, because the exception of a signal handler
    would be lost in a callback.
    """

    def __init__(self) -> None:
        self._references: dict[_Key, weakref.ref[_T]] = {}
        self._limit = 100

    def find(self, key: _Key) -> _T | None:
        reference = self._references.get(key)
        return reference() if reference else None

    def put(self, key: _Key, thing: _T) -> None:
        self._references[key] = weakref.ref(thing)
        if len(self._references) > self._limit:
            self.throw_out()
            self._limit = 2 * len(self._references) + 100

    def drop(self, key: _Key, thing: _T) -> None:
        if self.find(key) is thing:
            self._references.pop(key, None)

    def throw_out(self) -> list[_Key]:
        """Removes dead references, and returns their keys."""
        gone = [key for key, it in list(self._references.items()) if it() is None]
        for key in gone:
            self._references.pop(key, None)
        return gone

    def all(self) -> list[_T]:
        things = [it() for it in list(self._references.values())]
        return [it for it in things if it is not None]

    def __len__(self) -> int:
        return len(self._references)

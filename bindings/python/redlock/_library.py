"""The C library: where it is, and its functions."""

from __future__ import annotations

import ctypes
import ctypes.util
import os
from typing import TYPE_CHECKING, Any, Callable, Iterator

from ._structures import _CAcquireOptions, _CEvent, _CInfo, _CServerInfo, _CStats

# The interface version that this package needs. Below 1.0 the interface may change with the second number.
_INTERFACE = "0.3"
_NAMES = ("libredlock.so.0.3", "libredlock.so", "libredlock.dylib")

_HANDLE = ctypes.c_void_p
_STRING = ctypes.c_char_p
_MS = ctypes.c_int64
_INT = ctypes.c_int
_NUMBER = ctypes.c_void_p  # user_data: never dereferenced

# These return a status. Other threads run during the call.
_CALLS: dict[str, tuple[Any, ...]] = {
    "RedLock_AddServerUrl": (_HANDLE, _STRING, _INT),
    "RedLock_Connect": (_HANDLE, _MS),
    "RedLock_LookUp": (_HANDLE,),
    "RedLock_SetRetry": (_HANDLE, _INT, _INT),
    "RedLock_SetTimeouts": (_HANDLE, _MS, _MS),
    "RedLock_SetClockDriftFactor": (_HANDLE, ctypes.c_double),
    "RedLock_SetRestartGuard": (_HANDLE, _INT, _MS, _MS),
    "RedLock_SetFailoverGuard": (_HANDLE, ctypes.c_bool),
    "RedLock_SetFencing": (_HANDLE, ctypes.c_bool),
    "RedLock_SetTracing": (_HANDLE, _INT),
    "RedLock_SetWaking": (_HANDLE, ctypes.c_bool),
    "RedLock_SetLanguage": (_HANDLE, _INT),
    "RedLock_SetTlsCa": (_HANDLE, _STRING),
    "RedLock_SetTlsCertificate": (_HANDLE, _STRING, _STRING),
    "RedLock_SetTlsServerName": (_HANDLE, _STRING),
    "RedLock_SetTlsInsecureSkipVerify": (_HANDLE, ctypes.c_bool),
    "RedLock_SetCredentials": (_HANDLE, _STRING, _STRING),
    "RedLock_KeepLog": (_HANDLE, _INT),
    "RedLock_Acquire": (_HANDLE, ctypes.POINTER(_CAcquireOptions), _HANDLE),
    "RedLock_Wait": (_HANDLE, _HANDLE, _MS),
    "RedLock_Downgrade": (_HANDLE, _HANDLE),
    "RedLock_Extend": (_HANDLE, _HANDLE, _MS),
    "RedLock_Confirm": (_HANDLE, _HANDLE, _MS),
    "RedLock_Unlock": (_HANDLE, _HANDLE),
    "RedLock_UnlockAfter": (_HANDLE, _HANDLE, _MS),
    "RedLock_IsLocked": (_HANDLE, _STRING, ctypes.POINTER(ctypes.c_bool)),
    "RedLock_Detach": (_HANDLE, _HANDLE, _STRING, ctypes.c_size_t),
    "RedLock_Adopt": (_HANDLE, _STRING, _HANDLE),
    "RedLock_Inspect": (_HANDLE, _STRING, ctypes.c_size_t, ctypes.POINTER(_CInfo)),
    "RedLock_KeepAlive": (_HANDLE, _HANDLE, _NUMBER),
    "RedLock_SetBackgroundThread": (_HANDLE, ctypes.c_bool),
    "RedLock_NextEvent": (_HANDLE, _MS, ctypes.POINTER(_CEvent)),
}

# These neither wait nor ask servers. To let other threads run would take longer than the calls
# themselves.
_LOOKS: dict[str, tuple[Any, ...]] = {
    "RedLock_New": (_HANDLE,),
    "RedLock_Free": (None, _HANDLE),
    "RedLock_ErrorMessage": (_STRING, _HANDLE),
    "RedLock_IsLookUpDue": (ctypes.c_bool, _HANDLE),
    "RedLock_TakeLogLine": (_INT, _HANDLE, _STRING, ctypes.c_size_t),
    "RedLock_SubmitAcquire": (_INT, _HANDLE, ctypes.POINTER(_CAcquireOptions), _HANDLE, _NUMBER),
    "RedLock_SubmitAdopt": (_INT, _HANDLE, _STRING, _HANDLE, _NUMBER),
    "RedLock_SubmitDowngrade": (_INT, _HANDLE, _HANDLE, _NUMBER),
    "RedLock_SubmitExtend": (_INT, _HANDLE, _HANDLE, _MS, _NUMBER),
    "RedLock_SubmitConfirm": (_INT, _HANDLE, _HANDLE, _MS, _NUMBER),
    "RedLock_SubmitUnlock": (_INT, _HANDLE, _HANDLE, _NUMBER),
    "RedLock_SubmitUnlockAfter": (_INT, _HANDLE, _HANDLE, _MS, _NUMBER),
    "RedLock_Cancel": (_INT, _HANDLE, _HANDLE),
    "RedLockLease_SetDoneEvents": (_INT, _HANDLE, ctypes.c_bool),
    "RedLock_Descriptor": (_INT, _HANDLE),
    "RedLock_Servers": (_INT, _HANDLE, ctypes.POINTER(_CServerInfo), ctypes.POINTER(ctypes.c_size_t)),
    "RedLock_GetStats": (_INT, _HANDLE, ctypes.POINTER(_CStats)),
    "RedLock_StatsText": (ctypes.c_size_t, _HANDLE, _STRING, ctypes.c_size_t),
    "RedLock_Retain": (_INT, _HANDLE),
    "RedLockLease_Levels": (_INT, _HANDLE),
    "RedLockLease_New": (_HANDLE,),
    "RedLockLease_Free": (None, _HANDLE),
    "RedLockLease_IsHeld": (ctypes.c_bool, _HANDLE),
    "RedLockLease_RemainingMs": (_MS, _HANDLE),
    "RedLockLease_ValidityMs": (_MS, _HANDLE),
    "RedLockLease_Resource": (ctypes.c_void_p, _HANDLE),
    "RedLockLease_ResourceSize": (ctypes.c_size_t, _HANDLE),
    "RedLockLease_ResourceCount": (ctypes.c_size_t, _HANDLE),
    "RedLockLease_ResourceAt": (_STRING, _HANDLE, ctypes.c_size_t),
    "RedLockLease_Token": (_STRING, _HANDLE),
    "RedLockLease_Mode": (_INT, _HANDLE),
    "RedLockLease_FencingToken": (ctypes.c_int64, _HANDLE),
    "RedLockLease_ErrorMessage": (_STRING, _HANDLE),
}


def _open_library() -> tuple[ctypes.CDLL, str]:
    named = os.environ.get("REDLOCK_LIBRARY")
    failures: list[str] = []
    for name in [named] if named else _names():
        try:
            return ctypes.CDLL(name), name
        except OSError as error:
            failures.append(str(error))
    words = "; ".join(failures)
    raise ImportError(
        f"redlock library not found: install it, or set REDLOCK_LIBRARY to its path: {words}"
    )


def _names() -> Iterator[str]:
    # A package contains the library.
    directory = os.path.dirname(os.path.abspath(__file__))
    yield from filter(os.path.exists, (os.path.join(directory, name) for name in _NAMES))
    yield from _NAMES
    found = ctypes.util.find_library("redlock")  # the last resort, because it runs programs
    if found:
        yield found


def _function(library: ctypes.CDLL, name: str, function: str, result: Any, *types: Any) -> Any:
    try:
        found = getattr(library, function)
    except AttributeError:
        words = f"{name} has no {function}: it is older than this file, or not redlock"
        raise ImportError(words) from None
    found.restype = result
    found.argtypes = types
    return found


class _C:
    """The C functions."""

    def __init__(self) -> None:
        library, name = _open_library()
        version = _function(library, name, "RedLock_Version", _STRING)().decode()
        if not version.startswith(f"{_INTERFACE}."):
            raise ImportError(f"{name} is redlock {version}, but this file needs {_INTERFACE}")
        for function, types in _CALLS.items():
            setattr(self, function, _function(library, name, function, _INT, *types))
        looks = ctypes.PyDLL(name, handle=library._handle)
        for function, types in _LOOKS.items():
            setattr(self, function, _function(looks, name, function, *types))

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Callable[..., Any]: ...


_c = _C()

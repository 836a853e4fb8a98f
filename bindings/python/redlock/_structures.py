"""The structs of redlock.h, and the numbers in them."""

from __future__ import annotations

import ctypes

from ._stats import Outcomes, Stats


class _CAcquireOptions(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("resource", ctypes.c_char_p),
        ("resource_size", ctypes.c_size_t),
        ("resources", ctypes.POINTER(ctypes.c_char_p)),
        ("resource_count", ctypes.c_size_t),
        ("ttl_ms", ctypes.c_int64),
        ("wait_ms", ctypes.c_int64),
        ("tries", ctypes.c_int32),
        ("mode", ctypes.c_int32),
        ("permits", ctypes.c_int32),
        ("keep_alive", ctypes.c_int32),
    ]


class _CEvent(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("kind", ctypes.c_int32),
        ("status", ctypes.c_int32),
        ("lease", ctypes.c_void_p),
        ("user_data", ctypes.c_void_p),
        ("remaining_ms", ctypes.c_int64),
    ]


class _CServerInfo(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("connected", ctypes.c_int32),
        ("votes", ctypes.c_int32),
        ("round_trip_us", ctypes.c_int64),
        ("clock_offset_us", ctypes.c_int64),
        ("name", ctypes.c_char * 256),
        ("words", ctypes.c_char * 512),
        ("version", ctypes.c_char * 32),
        ("role", ctypes.c_char * 16),
        ("run_id", ctypes.c_char * 48),
        ("keeps", ctypes.c_char * 32),
        ("eviction", ctypes.c_char * 32),
    ]


class _CInfo(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("locked", ctypes.c_int32),
        ("mode", ctypes.c_int32),
        ("remaining_ms", ctypes.c_int64),
        ("readers", ctypes.c_int64),
        ("words", ctypes.c_char * 1024),
        ("permits", ctypes.c_int32),
        ("permits_taken", ctypes.c_int32),
    ]


_BUCKETS = 21


class _COutcomes(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in Outcomes._fields]


class _CHistogram(ctypes.Structure):
    _fields_ = [
        ("count", ctypes.c_uint64),
        ("sum_us", ctypes.c_int64),
        ("buckets", ctypes.c_uint64 * _BUCKETS),
    ]


class _CStats(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        *[(name, _COutcomes) for name in Stats._fields[:6]],
        *[(name, ctypes.c_uint64) for name in Stats._fields[6:18]],
        *[(name, _CHistogram) for name in Stats._fields[18:]],
        ("bounds_us", ctypes.c_int64 * (_BUCKETS - 1)),
    ]


# Kinds of events. C writes the first two; the last one means that there is no event.
_DONE, _LOST, _NONE = 0, 1, -1

# RedLock_Cancel has ended the call.
_CANCELLED = 5

# RedLock_Wait: the call is still under way.
_NO_EVENT = 6

# The mode in which several callers may hold a lock.
_SHARED = 1
_PYTHON = 4  # REDLOCK_LANGUAGE_PYTHON

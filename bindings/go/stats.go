package redlock

/*
#include <stdlib.h>
#include <redlock.h>
*/
import "C"

import (
	"runtime"
	"time"
)

// Stats are the counters of a Manager since it was made. All counts only grow; Waiting and Kept are current
// numbers.
type Stats struct {
	Acquire Outcomes // Lock and TryLock
	Extend  Outcomes // Extend and ExtendBy
	Confirm Outcomes
	Release Outcomes // Unlock, except for an inner level
	Adopt   Outcomes
	Inspect Outcomes // Inspect and IsLocked

	Detached   uint64 // locks that were given away
	Attempts   uint64 // how often the servers were asked for a lock; all at once counts as one
	Waits      uint64 // calls that had to wait for a lock, even if only for a moment
	Renewed    uint64 // extensions of locks that are kept alive
	NotRenewed uint64 // extensions that failed, and were tried again as long as there was time
	KeptLost   uint64 // locks that could not be kept alive

	Requests          uint64 // requests that were sent, to all servers together
	Connections       uint64 // connections that could be used
	ConnectionsLost   uint64
	ConnectionsFailed uint64 // attempts to connect that failed

	Waiting uint64 // how many calls are waiting for a lock now
	Kept    uint64 // how many locks are kept alive now

	AcquireTime Histogram // how long it took to take a lock, for locks that were taken
	WaitTime    Histogram // the waiting time of calls that had to wait, whatever their result
	HoldTime    Histogram // how long released locks were held
	RoundTrip   Histogram // from sending a request to reading its answer
}

// Outcomes is the number of calls of one kind, by outcome.
type Outcomes struct {
	OK, Taken, Unreachable, TooSlow, Lost, TooShort, Cancelled, Failed uint64
}

// Histogram is a histogram of durations.
type Histogram struct {
	Count uint64
	Sum   time.Duration
	// Buckets has the number of durations in each bucket: at most the bound at the same index in Bounds, and more
	// than the bound before it. The last bucket has no bound, so there is one bound less.
	Buckets []uint64
	Bounds  []time.Duration
}

// Trace is which events of locks a logger receives.
type Trace int32

// The kinds of traces. Each event is one line of key=value pairs, at level 3.
const (
	TraceOff       Trace = C.REDLOCK_TRACE_OFF
	TraceEvents    Trace = C.REDLOCK_TRACE_EVENTS    // without names
	TraceResources Trace = C.REDLOCK_TRACE_RESOURCES // with resource names
)

// Stats reports the counters. It asks no server, and does not wait.
func (m *Manager) Stats() (Stats, error) {
	defer runtime.KeepAlive(m)
	s := m.shared
	if err := s.begin(); err != nil {
		return Stats{}, err
	}
	defer s.end()
	counted := C.RedLockStats{size: C.sizeof_RedLockStats}
	if err := s.check(C.RedLock_GetStats(s.handle, &counted)); err != nil {
		return Stats{}, err
	}
	bounds := make([]time.Duration, len(counted.bounds_us))
	for i, us := range counted.bounds_us {
		bounds[i] = time.Duration(us) * time.Microsecond
	}
	return Stats{
		Acquire:           outcomes(counted.acquire),
		Extend:            outcomes(counted.extend),
		Confirm:           outcomes(counted.confirm),
		Release:           outcomes(counted.release),
		Adopt:             outcomes(counted.adopt),
		Inspect:           outcomes(counted.inspect),
		Detached:          uint64(counted.detached),
		Attempts:          uint64(counted.attempts),
		Waits:             uint64(counted.waits),
		Renewed:           uint64(counted.renewed),
		NotRenewed:        uint64(counted.not_renewed),
		KeptLost:          uint64(counted.kept_lost),
		Requests:          uint64(counted.requests),
		Connections:       uint64(counted.connections),
		ConnectionsLost:   uint64(counted.connections_lost),
		ConnectionsFailed: uint64(counted.connections_failed),
		Waiting:           uint64(counted.waiting),
		Kept:              uint64(counted.kept),
		AcquireTime:       histogram(counted.acquire_time, bounds),
		WaitTime:          histogram(counted.wait_time, bounds),
		HoldTime:          histogram(counted.hold_time, bounds),
		RoundTrip:         histogram(counted.round_trip, bounds),
	}, nil
}

// StatsText is the counters and the state of each server as text for Prometheus: content type "text/plain;
// version=0.0.4". It asks no server, and does not wait.
func (m *Manager) StatsText() (string, error) {
	defer runtime.KeepAlive(m)
	s := m.shared
	if err := s.begin(); err != nil {
		return "", err
	}
	defer s.end()
	for size := C.RedLock_StatsText(s.handle, nil, 0); ; {
		text := (*C.char)(C.malloc(size + 1))
		needed := C.RedLock_StatsText(s.handle, text, size+1)
		words := C.GoString(text)
		freeText(text)
		if needed <= size {
			return words, nil
		}
		size = needed
	}
}

func outcomes(o C.RedLockOutcomes) Outcomes {
	return Outcomes{
		OK:          uint64(o.ok),
		Taken:       uint64(o.taken),
		Unreachable: uint64(o.unreachable),
		TooSlow:     uint64(o.too_slow),
		Lost:        uint64(o.lost),
		TooShort:    uint64(o.too_short),
		Cancelled:   uint64(o.cancelled),
		Failed:      uint64(o.failed),
	}
}

func histogram(h C.RedLockHistogram, bounds []time.Duration) Histogram {
	buckets := make([]uint64, len(h.buckets))
	for i, count := range h.buckets {
		buckets[i] = uint64(count)
	}
	sum := time.Duration(h.sum_us) * time.Microsecond
	return Histogram{Count: uint64(h.count), Sum: sum, Buckets: buckets, Bounds: bounds}
}

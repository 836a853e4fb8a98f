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

// Stats is what a Manager has counted since it was made. All counts only grow; Waiting and Kept are what there is now.
type Stats struct {
	Acquire Outcomes // Lock and TryLock
	Extend  Outcomes // Extend and ExtendBy
	Confirm Outcomes
	Release Outcomes // Unlock, but not of an inner level
	Adopt   Outcomes
	Inspect Outcomes // Inspect and IsLocked

	Detached   uint64 // locks that were given away
	Attempts   uint64 // how often the servers were asked for a lock, all at once
	Waits      uint64 // calls that had to wait for a lock, for a moment at least
	Renewed    uint64 // extensions of locks that are kept
	NotRenewed uint64 // those that failed, and were tried again as long as there was time
	KeptLost   uint64 // locks that could not be kept

	Requests          uint64 // what was sent, to all servers together
	Connections       uint64 // those that could be used
	ConnectionsLost   uint64
	ConnectionsFailed uint64 // attempts to connect that failed

	Waiting uint64 // how many calls wait for a lock now
	Kept    uint64 // how many locks are kept now

	AcquireTime Histogram // how long it took to take a lock, of those that were taken
	WaitTime    Histogram // how long those waited that had to, whatever came of it
	HoldTime    Histogram // how long locks were held that were released
	RoundTrip   Histogram // from the sending of a request to the reading of its answer
}

// Outcomes is how many calls of a kind have come to what.
type Outcomes struct {
	OK, Taken, Unreachable, TooSlow, Lost, TooShort, Cancelled, Failed uint64
}

// Histogram is how many took how long.
type Histogram struct {
	Count uint64
	Sum   time.Duration
	// Buckets has how many took at most the time in Bounds of that place, and more than that of the place before. The
	// last one has no bound, so there is one bound less.
	Buckets []uint64
	Bounds  []time.Duration
}

// Trace is what a logger is told of locks.
type Trace int32

// What is told: one line for each event, as key=value, at level 3.
const (
	TraceOff       Trace = C.REDLOCK_TRACE_OFF
	TraceEvents    Trace = C.REDLOCK_TRACE_EVENTS    // without names
	TraceResources Trace = C.REDLOCK_TRACE_RESOURCES // with the names of the resources
)

// Stats tells what was counted. It asks nobody, and waits for nothing.
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

// StatsText is what was counted, and what is known of each server, as Prometheus reads it: content type
// "text/plain; version=0.0.4". It asks nobody, and waits for nothing.
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

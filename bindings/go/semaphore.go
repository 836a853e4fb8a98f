//go:build cgo

package redlock

import (
	"context"
	"math"
	"time"
)

// Semaphore is a resource that several callers can hold at the same time, in all programs with the same servers.
// Manager.Semaphore makes one. Any number of goroutines may share it, and each of them may hold several permits.
type Semaphore struct {
	manager  *Manager
	resource string
	permits  int32
}

// Semaphore makes a Semaphore of the resource with this number of permits, 1 to 256. All users of the resource must
// give the same number. If the numbers differ, the greatest applies. A caller that locks the resource uses one
// permit. No I/O: the first call reports a wrong argument.
func (m *Manager) Semaphore(resource string, permits int) *Semaphore {
	switch {
	case permits < 1: // 0 would be a lock
		permits = -1
	case permits > math.MaxInt32:
		permits = math.MaxInt32
	}
	return &Semaphore{m, resource, int32(permits)}
}

// Acquire takes a permit, or waits for one, as Manager.Lock does for a lock. The Lease is that of the permit:
// Unlock releases the permit.
func (s *Semaphore) Acquire(ctx context.Context, ttl time.Duration) (*Lease, error) {
	return s.manager.acquire(ctx, []string{s.resource}, ttl, how{permits: s.permits, waits: true})
}

// TryAcquire makes one attempt, out of turn. ErrTaken: all permits are taken.
func (s *Semaphore) TryAcquire(ctx context.Context, ttl time.Duration) (*Lease, error) {
	return s.manager.acquire(ctx, []string{s.resource}, ttl, how{permits: s.permits})
}

// Taken asks the servers how many permits are taken. The answer may be out of date when it arrives.
func (s *Semaphore) Taken(ctx context.Context) (int, error) {
	info, err := s.manager.inspect(ctx, s.resource, s.permits)
	return info.PermitsTaken, err
}

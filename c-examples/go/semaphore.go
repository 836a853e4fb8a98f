package redlock

import (
	"context"
	"math"
	"time"
)

// Semaphore is a resource that so many may have at the same time, in all programs with the same servers.
// Manager.Semaphore makes one. Any number of goroutines may share it, and one of them may have several permits.
type Semaphore struct {
	manager  *Manager
	resource string
	permits  int32
}

// Semaphore is the resource as one that has so many permits, 1 to 256. All who use it have to say the same number:
// else there are as many as the greatest of these. Who locks the resource uses one permit. No I/O: what is wrong
// is said by the first call.
func (m *Manager) Semaphore(resource string, permits int) *Semaphore {
	switch {
	case permits < 1: // 0 would be a lock
		permits = -1
	case permits > math.MaxInt32:
		permits = math.MaxInt32
	}
	return &Semaphore{m, resource, int32(permits)}
}

// Acquire takes a permit, or waits for one, as Manager.Lock does for a lock. The Lease is that of the permit: Unlock
// gives it back.
func (s *Semaphore) Acquire(ctx context.Context, ttl time.Duration) (*Lease, error) {
	return s.manager.acquire(ctx, []string{s.resource}, ttl, how{permits: s.permits, waits: true})
}

// TryAcquire makes one attempt, out of turn. ErrTaken: all permits are taken.
func (s *Semaphore) TryAcquire(ctx context.Context, ttl time.Duration) (*Lease, error) {
	return s.manager.acquire(ctx, []string{s.resource}, ttl, how{permits: s.permits})
}

// Taken asks the servers how many permits somebody has. The answer may be out of date when it arrives.
func (s *Semaphore) Taken(ctx context.Context) (int, error) {
	info, err := s.manager.inspect(ctx, s.resource, s.permits)
	return info.PermitsTaken, err
}

package tests

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"redlock.example/redlock"
)

func taken(t *testing.T, s *redlock.Semaphore) int {
	t.Helper()
	count, err := s.Taken(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return count
}

func mustAcquire(t *testing.T, s *redlock.Semaphore) *redlock.Lease {
	t.Helper()
	lease, err := s.Acquire(context.Background(), 30*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func TestSoManyHaveAPermitAndNoMore(t *testing.T) {
	m, other, name := impatient(t), impatient(t), resource(t)
	ours, theirs := m.Semaphore(name, 2), other.Semaphore(name, 2)
	one, two := mustAcquire(t, ours), mustAcquire(t, theirs)
	if !one.Held() || !two.Held() || taken(t, ours) != 2 {
		t.Fatal("two have no permits")
	}
	_, err := theirs.TryAcquire(context.Background(), time.Second)
	mustBe(t, err, redlock.ErrTaken)
	mustUnlock(t, one)
	if err := two.Extend(time.Minute); err != nil || two.Remaining() < 30*time.Second {
		t.Fatal(err, two.Remaining())
	}
	plain := mustLock(t, m, resource(t), time.Second)
	mustUnlock(t, plain)
	mustUnlock(t, mustAcquire(t, theirs))
	mustUnlock(t, two)
	if taken(t, ours) != 0 {
		t.Fatal("something is left")
	}
}

func TestWhoLocksTheResourceUsesAPermit(t *testing.T) {
	m, name := impatient(t), resource(t)
	one := m.Semaphore(name, 1)
	lease := mustLock(t, m, name, time.Minute)
	_, err := one.TryAcquire(context.Background(), time.Second)
	mustBe(t, err, redlock.ErrTaken)
	mustUnlock(t, lease)
	mustUnlock(t, mustAcquire(t, one))
}

func TestGoroutinesShareASemaphore(t *testing.T) {
	s := newManager(t, redlock.Options{ReplyTimeout: 20 * time.Second}, servers...).Semaphore(resource(t), 3)
	var inside, most atomic.Int32
	var all sync.WaitGroup
	for i := 0; i < 8; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for j := 0; j < 10; j++ {
				lease, err := s.Acquire(context.Background(), 30*time.Second)
				if err != nil {
					t.Error(err)
					return
				}
				if n := inside.Add(1); n > most.Load() {
					most.Store(n)
				}
				inside.Add(-1)
				if err := lease.Unlock(); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	all.Wait()
	if most.Load() > 3 {
		t.Fatal(most.Load())
	}
}

func TestWhatIsNoSemaphoreIsSaid(t *testing.T) {
	m, name := impatient(t), resource(t)
	for _, permits := range []int{-1, 0, 257, 1 << 40} {
		s := m.Semaphore(name, permits)
		_, err := s.Acquire(context.Background(), time.Second)
		mustBe(t, err, redlock.ErrInvalidArgument)
		_, err = s.Taken(context.Background())
		mustBe(t, err, redlock.ErrInvalidArgument)
	}
}

package tests

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"redlock.example/redlock"
)

func TestDeadlineEndsTheWaiting(t *testing.T) {
	m, name := impatient(t), resource(t)
	lease := mustLock(t, m, name, 60*time.Second)
	err := refusedByDeadline(t, m, name)
	mustBe(t, err, redlock.ErrTaken)
	if errors.Is(err, redlock.ErrUnreachable) || errors.Is(err, context.Canceled) {
		t.Fatalf("%v is too many things at once", err)
	}
	mustUnlock(t, lease)
}

// A caller in the middle of the queue hears of nothing except its context.
func TestCancelEndsTheWaiting(t *testing.T) {
	m, name := newManager(t, redlock.Options{RetryDelay: 24 * time.Hour}, servers...), resource(t)
	lease := mustLock(t, m, name, 60*time.Second)
	var cancels []context.CancelFunc
	var results []chan error
	for i := 0; i < 3; i++ {
		ctx, cancel := context.WithCancel(context.Background())
		result := make(chan error, 1)
		go func() {
			_, err := m.Lock(ctx, name, time.Second)
			result <- err
		}()
		cancels, results = append(cancels, cancel), append(results, result)
	}
	for _, i := range []int{1, 2, 0} {
		select {
		case err := <-results[i]:
			t.Fatal("did not wait: ", err)
		case <-time.After(100 * time.Millisecond):
		}
		cancels[i]()
		select {
		case err := <-results[i]:
			mustBe(t, err, context.Canceled)
		case <-time.After(20 * time.Second):
			t.Fatal("waits although it was cancelled")
		}
	}
	mustUnlock(t, lease)
}

func TestWaiterGetsTheLockWhenItIsFree(t *testing.T) {
	m, name := impatient(t), resource(t)
	lease := mustLock(t, m, name, 60*time.Second)
	result := make(chan error)
	go func() {
		next, err := m.Lock(within(t, 20*time.Second), name, time.Second)
		if err == nil {
			err = next.Unlock()
		}
		result <- err
	}()
	mustUnlock(t, lease)
	if err := <-result; err != nil {
		t.Fatal(err)
	}
}

func TestContextThatIsOver(t *testing.T) {
	m, name := impatient(t), resource(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := m.Lock(ctx, name, time.Minute)
	mustBe(t, err, context.Canceled)
	_, err = m.TryLock(ctx, name, time.Minute)
	mustBe(t, err, context.Canceled)
	if isLocked(t, m, name) {
		t.Fatal("took a lock for nobody")
	}
}

// The servers grant, their replies are held back, and the caller gives up in between.
func TestCancelledAttemptLeavesNothingLocked(t *testing.T) {
	gates, addresses := newGates(t)
	patient := redlock.Options{ConnectTimeout: time.Minute, ReplyTimeout: time.Minute}
	m, direct, name := newManager(t, patient, addresses...), impatient(t), resource(t)
	mustUnlock(t, mustLock(t, m, resource(t), time.Second)) // the connections are up
	setAll(gates, true)

	ctx, cancel := context.WithCancel(context.Background())
	result := make(chan error)
	go func() {
		_, err := m.Lock(ctx, name, 10*time.Minute)
		result <- err
	}()
	eventually(t, "the servers grant", func() bool { return isSeen(t, direct, name, true) })
	cancel()
	mustBe(t, <-result, context.Canceled)
	m.Close()
	setAll(gates, false)
	eventually(t, "what was granted is released", func() bool { return isSeen(t, direct, name, false) })
}

// listeners accept connections and never send anything.
func listeners(t *testing.T, n int) (addresses []string) {
	for i := 0; i < n; i++ {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		addresses = append(addresses, l.Addr().String())
	}
	return addresses
}

func TestContextEndsAnAttemptOnSilentServers(t *testing.T) {
	const patience = 10 * time.Second
	patient := redlock.Options{ConnectTimeout: patience, ReplyTimeout: patience}
	m := newManager(t, patient, listeners(t, 3)...)
	start := time.Now()
	_, err := m.Lock(within(t, 100*time.Millisecond), resource(t), time.Second)
	mustBe(t, err, context.DeadlineExceeded)
	if waited := time.Since(start); waited > patience*3/4 {
		t.Fatalf("the context had to wait %v for the servers", waited)
	}
}

func TestTooFewServersAreUnreachable(t *testing.T) {
	brief := redlock.Options{ConnectTimeout: 50 * time.Millisecond, ReplyTimeout: 50 * time.Millisecond}
	m := newManager(t, brief, listeners(t, 3)...)
	_, err := m.TryLock(context.Background(), resource(t), 10*time.Second)
	mustBe(t, err, redlock.ErrUnreachable)
	_, err = m.IsLocked(context.Background(), resource(t))
	mustBe(t, err, redlock.ErrUnreachable)
	mustBe(t, refusedByDeadline(t, m, resource(t)), redlock.ErrUnreachable)
}

// Each holder unlocks when all others wait, and then waits behind them. So the turns go round in the order of the
// first arrival, and all get the same number of locks.
func TestFortyWaitersGetTheLockInTheOrderOfTheirArrival(t *testing.T) {
	const waiters, rounds = 40, 3
	m := impatient(t)
	for kind, lock := range map[string]func(context.Context, string) (*redlock.Lease, error){
		"a lock": func(ctx context.Context, name string) (*redlock.Lease, error) { return m.Lock(ctx, name, time.Minute) },
		"several": func(ctx context.Context, name string) (*redlock.Lease, error) {
			return m.LockAll(ctx, []string{name, name + "2"}, time.Minute)
		},
		"a permit": func(ctx context.Context, name string) (*redlock.Lease, error) {
			return m.Semaphore(name, 1).Acquire(ctx, time.Minute)
		},
	} {
		ctx, name := within(t, 4*time.Minute), resource(t)
		waiting := func(n uint64) {
			for {
				stats, err := m.Stats()
				if err != nil || stats.Waiting == n || ctx.Err() != nil {
					return
				}
				time.Sleep(time.Millisecond)
			}
		}
		first, err := lock(ctx, name)
		must(t, err)
		var turns []int // guarded by the lock
		var all sync.WaitGroup
		for i := 0; i < waiters; i++ {
			all.Add(1)
			go func(i int) {
				defer all.Done()
				for round := 0; round < rounds; round++ {
					lease, err := lock(ctx, name)
					if err != nil {
						t.Error(err)
						return
					}
					turns = append(turns, i)
					left := waiters*rounds - len(turns)
					if left >= waiters {
						left = waiters - 1
					}
					waiting(uint64(left))
					if err := lease.Unlock(); err != nil {
						t.Error(err)
					}
				}
			}(i)
			waiting(uint64(i + 1))
		}
		mustUnlock(t, first)
		all.Wait()
		for turn, i := range turns {
			if i != turn%waiters {
				t.Fatal(kind, ": turn ", turn, " is that of ", i, ": ", turns)
			}
		}
		if len(turns) != waiters*rounds {
			t.Fatal(kind, ": ", len(turns))
		}
	}
}

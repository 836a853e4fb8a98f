package tests

import (
	"context"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"redlock.example/redlock"
)

func TestClosedManager(t *testing.T) {
	m, other, name := impatient(t), impatient(t), resource(t)
	lease := mustLock(t, m, name, 30*time.Second)
	forgotten := mustLock(t, m, resource(t), 30*time.Second)
	m.Close()
	m.Close()
	_, err := m.Lock(within(t, time.Second), name, time.Second)
	mustBe(t, err, redlock.ErrClosed)
	_, err = m.TryLock(context.Background(), name, time.Second)
	mustBe(t, err, redlock.ErrClosed)
	_, err = m.IsLocked(context.Background(), name)
	mustBe(t, err, redlock.ErrClosed)
	_, err = m.Connect(context.Background())
	mustBe(t, err, redlock.ErrClosed)
	if !lease.Held() || !isLocked(t, other, name) {
		t.Fatal("Close released a lock")
	}

	// Its holder may go on, and ends it.
	must(t, lease.Extend(time.Minute))
	must(t, lease.Confirm(40*time.Second))
	mustUnlock(t, lease)
	mustBe(t, lease.Unlock(), redlock.ErrLost)
	if isLocked(t, other, name) || !forgotten.Held() {
		t.Fatal("not the lock that was to be released")
	}
	mustUnlock(t, forgotten)
}

func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	return len(entries)
}

// The connections are closed with the Manager, or with the last lock if that is released later. Neither waits
// for the collector.
func TestConnectionsAreClosed(t *testing.T) {
	must(t, tryOnce(impatient(t), resource(t))) // what Go itself keeps open is there
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	before := descriptors(t)
	for round := 0; round < 10; round++ {
		m := impatient(t)
		mustConnect(t, m)
		mustUnlock(t, mustLock(t, m, resource(t), time.Minute))
		late, given := mustLock(t, m, resource(t), time.Minute), mustLock(t, m, resource(t), time.Minute)
		_, err := m.TryLock(context.Background(), late.Resource(), time.Minute)
		mustBe(t, err, redlock.ErrTaken)
		m.Close()
		if round%2 == 0 {
			mustUnlock(t, late)
			_, err = given.Detach()
			must(t, err)
		} else {
			_, err = given.Detach()
			must(t, err)
			mustUnlock(t, late)
		}
		if n := descriptors(t); n > before {
			t.Fatalf("%d descriptors, and %d before", n, before)
		}
	}
}

// Close returns when the calls have ended, and with the last of them the connections.
func TestConnectionsAreClosedAlthoughCallsWait(t *testing.T) {
	name := resource(t)
	for _, server := range answering(t) {
		ask(t, server, "SET "+name+" theirs PX 600000") // a holder without connections
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	before := descriptors(t)
	for round := 0; round < 10; round++ {
		m, outcomes := impatient(t), make(chan error, 8)
		for i := 0; i < cap(outcomes); i++ {
			go func() {
				_, err := m.Lock(context.Background(), name, time.Minute)
				outcomes <- err
			}()
		}
		eventually(t, "all wait", func() bool {
			stats, err := m.Stats()
			must(t, err)
			return stats.Waiting == uint64(cap(outcomes))
		})
		m.Close()
		if n := descriptors(t); n > before {
			t.Fatalf("%d descriptors, and %d before", n, before)
		}
		for i := 0; i < cap(outcomes); i++ {
			mustBe(t, <-outcomes, redlock.ErrClosed)
		}
	}
	takeAway(t, name)
}

func TestCloseWhileOthersLock(t *testing.T) {
	for round := 0; round < 20; round++ {
		m := impatient(t)
		var all, started sync.WaitGroup
		for i := 0; i < 8; i++ {
			all.Add(1)
			started.Add(1)
			go func(name string) {
				defer all.Done()
				for first := true; ; first = false {
					lease, err := m.TryLock(within(t, 20*time.Second), name, time.Minute)
					if first {
						started.Done()
					}
					if err == nil {
						err = lease.Unlock()
					}
					if err != nil {
						if err != redlock.ErrClosed {
							t.Error(err)
						}
						return
					}
				}
			}(resource(t))
		}
		started.Wait()
		m.Close()
		all.Wait()
	}
}

// The collector runs while calls are in progress, and frees forgotten leases and managers. Nothing in use may
// be freed. A held lock stays held, because freeing does no I/O.
func TestCollectorOnlyFrees(t *testing.T) {
	observer := impatient(t)
	mustConnect(t, observer)
	before := runtime.NumGoroutine()
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
			}
		}
	}()
	var forgotten []string
	for i := 0; i < 10; i++ {
		m, err := redlock.New(servers...)
		if err != nil {
			t.Fatal(err)
		}
		name := resource(t)
		forgotten = append(forgotten, name)
		mustLock(t, m, name, time.Minute)
		mustUnlock(t, mustLock(t, m, resource(t), time.Minute))
	}
	close(stop)
	<-stopped
	runtime.GC()
	for _, name := range forgotten {
		if !isLocked(t, observer, name) {
			t.Fatal("the collector released ", name)
		}
	}
	eventually(t, "all is freed", func() bool {
		runtime.GC()
		return runtime.NumGoroutine() <= before
	})
}

// A program that keeps one lock for days makes a context for each of its requests.
func TestAContextThatHasEndedIsForgottenWhileTheLockIsHeld(t *testing.T) {
	const requests = 1000
	m := impatient(t)
	lease := mustLock(t, m, resource(t), 10*time.Minute)
	ctx, before := lease.Context(context.Background()), runtime.NumGoroutine()
	type key struct{}
	var collected atomic.Int64
	for i := 0; i < requests; i++ {
		request := new([64]byte)
		runtime.SetFinalizer(request, func(*[64]byte) { collected.Add(1) })
		parent, cancel := context.WithCancel(context.WithValue(context.Background(), key{}, request))
		lease.Context(lease.Context(parent))
		cancel()
	}
	eventually(t, "all requests are collected", func() bool {
		runtime.GC()
		return collected.Load() == requests
	})
	noneLeft(t, before)
	if ctx.Err() != nil {
		t.Fatal("a context has ended with others")
	}
	mustUnlock(t, lease)
	ends(t, "the context that was left", ctx.Done())
}

// The servers take the release in vain until the gates open. The Lease must still know its lock then.
func TestUnlockThatReachedTooFewServersMayBeRepeated(t *testing.T) {
	for _, closes := range []bool{false, true} {
		gates, addresses := newGates(t)
		brief := redlock.Options{ReplyTimeout: 200 * time.Millisecond}
		m, name := newManager(t, brief, addresses...), resource(t)
		var lease *redlock.Lease
		eventually(t, "it is locked", func() bool {
			var err error
			lease, err = m.TryLock(context.Background(), name, 10*time.Minute)
			return err == nil
		})
		token := lease.Token()
		if closes {
			m.Close()
		}
		setAll(gates, true)
		mustBe(t, lease.Unlock(), redlock.ErrUnreachable)
		mustBe(t, lease.Unlock(), redlock.ErrUnreachable)
		mustBe(t, lease.Err(), redlock.ErrReleased)
		if lease.Held() {
			t.Fatal("it is held")
		}
		// The servers have it again: only the token tells them whose it is.
		noKeys(t, []string{name})
		for _, server := range answering(t) {
			ask(t, server, "SET "+name+" "+token+" PX 600000")
		}
		setAll(gates, false)
		// A release may arrive although its answer comes too late, so the result of the last call is not looked at.
		for _, server := range answering(t) {
			eventually(t, "it is released on "+server, func() bool {
				_ = lease.Unlock()
				return ask(t, server, "EXISTS "+name) == ":0"
			})
		}
	}
}

// Servers that say nothing hold these calls up for as long as the timeouts, and Close ends the waiting before that.
func TestCloseEndsTheWaitingForSilentServersAtOnce(t *testing.T) {
	t.Parallel()
	patient := redlock.Options{ConnectTimeout: 3 * time.Second, ReplyTimeout: 3 * time.Second}
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer silent.Close()
	m := newManager(t, patient, append(listeners(t, 2), silent.Addr().String())...)
	ctx, outcomes := context.Background(), make(chan error, 16)
	calls := []func() error{
		func() error { _, err := m.Connect(ctx); return err },
		func() error { _, err := m.IsLocked(ctx, "x"); return err },
		func() error { _, err := m.Inspect(ctx, "x"); return err },
		func() error { _, err := m.Semaphore("x", 2).Taken(ctx); return err },
		func() error { _, err := m.Semaphore("x", 2).Acquire(ctx, time.Minute); return err },
		func() error { _, err := m.Lock(ctx, "x", time.Minute); return err },
		func() error { _, err := m.RLock(ctx, "x", time.Minute); return err },
		func() error { _, err := m.LockAll(ctx, []string{"x", "y"}, time.Minute); return err },
	}
	for _, call := range calls {
		go func(call func() error) { outcomes <- call() }(call)
	}
	asked, err := silent.Accept()
	must(t, err)
	defer asked.Close()
	m.Close()
	for range calls {
		mustBe(t, <-outcomes, redlock.ErrClosed) // and not what comes of the silence
	}
}

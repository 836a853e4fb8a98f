package tests

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
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
		late := mustLock(t, m, resource(t), time.Minute)
		_, err := m.TryLock(context.Background(), late.Resource(), time.Minute)
		mustBe(t, err, redlock.ErrTaken)
		m.Close()
		mustUnlock(t, late)
		if n := descriptors(t); n > before {
			t.Fatalf("%d descriptors, and %d before", n, before)
		}
	}
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
	observer := impatient(t)
	for _, name := range forgotten {
		if !isLocked(t, observer, name) {
			t.Fatal("the collector released ", name)
		}
	}
}

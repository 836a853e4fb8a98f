package tests

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"redlock.example/redlock"
)

func TestClosedManager(t *testing.T) {
	m, other, name := impatient(t), impatient(t), resource(t)
	lease := mustLock(t, m, name, 30*time.Second)
	m.Close()
	m.Close()
	_, err := m.Lock(within(t, time.Second), name, time.Second)
	mustBe(t, err, redlock.ErrClosed)
	_, err = m.IsLocked(name)
	mustBe(t, err, redlock.ErrClosed)
	mustBe(t, lease.Unlock(), redlock.ErrClosed)
	if !lease.Held() || !isLocked(t, other, name) {
		t.Fatal("Close released a lock")
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

// The collector runs while calls are under way, and frees leases and managers that are forgotten:
// nothing in use may go, and what was held stays held, since freeing does no I/O.
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
	for i := 0; i < 50; i++ {
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

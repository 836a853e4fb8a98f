package tests

import (
	"context"
	"sync"
	"testing"
	"time"

	"redlock.example/redlock"
)

func TestLockHoldsUntilUnlock(t *testing.T) {
	m, other, name := impatient(t), impatient(t), resource(t)
	lease := mustLock(t, m, name, 30*time.Second)
	if !lease.Held() || lease.Remaining() <= 0 || lease.Remaining() > 30*time.Second {
		t.Fatalf("held %v, remaining %v", lease.Held(), lease.Remaining())
	}
	if !isLocked(t, other, name) {
		t.Fatal("another manager sees no lock")
	}
	_, err := other.TryLock(context.Background(), name, time.Second)
	mustBe(t, err, redlock.ErrTaken)

	mustUnlock(t, lease)
	if lease.Held() || lease.Remaining() != 0 || isLocked(t, other, name) {
		t.Fatal("still locked after Unlock")
	}
	mustUnlock(t, mustLock(t, other, name, time.Second))
}

// The counter is a plain one: two holders at once would lose a count, and the race detector
// would see them.
func TestGoroutinesExcludeEachOther(t *testing.T) {
	const goroutines, rounds = 64, 4
	name, counter := resource(t), 0
	managers := []*redlock.Manager{impatient(t), impatient(t)}
	var all sync.WaitGroup
	for i := 0; i < goroutines; i++ {
		all.Add(1)
		go func(m *redlock.Manager) {
			defer all.Done()
			for round := 0; round < rounds; round++ {
				lease, err := m.Lock(within(t, 60*time.Second), name, 30*time.Second)
				if err != nil {
					t.Error(err)
					return
				}
				counter++
				if err := lease.Unlock(); err != nil {
					t.Error(err)
				}
			}
		}(managers[i%len(managers)])
	}
	all.Wait()
	if counter != goroutines*rounds {
		t.Fatalf("counted %d of %d", counter, goroutines*rounds)
	}
}

func TestDistinctResourcesDoNotDisturb(t *testing.T) {
	m := impatient(t)
	var all sync.WaitGroup
	for i := 0; i < 64; i++ {
		all.Add(1)
		go func(name string) {
			defer all.Done()
			for round := 0; round < 5; round++ {
				lease, err := m.Lock(within(t, 20*time.Second), name, 30*time.Second)
				if err != nil {
					t.Error(err)
					return
				}
				if err := lease.Unlock(); err != nil {
					t.Error(err)
				}
			}
		}(resource(t))
	}
	all.Wait()
}

func TestExtend(t *testing.T) {
	m, name := impatient(t), resource(t)
	lease := mustLock(t, m, name, 5*time.Second)
	if err := lease.Extend(60 * time.Second); err != nil {
		t.Fatal(err)
	}
	if lease.Remaining() <= 5*time.Second {
		t.Fatalf("only %v left", lease.Remaining())
	}
	if err := lease.Confirm(30 * time.Second); err != nil {
		t.Fatal(err)
	}
	mustBe(t, lease.Confirm(90*time.Second), redlock.ErrTooShort)
	if !lease.Held() || lease.Err() != nil {
		t.Fatal("it is there, only not for so long: ", lease.Err())
	}
	mustUnlock(t, lease)
}

func TestWhatHasEndedIsLost(t *testing.T) {
	m, name := impatient(t), resource(t)
	lease := mustLock(t, m, name, 100*time.Millisecond)
	eventually(t, "the lock expires", func() bool { return !lease.Held() && isSeen(t, m, name, false) })
	theirs := mustLock(t, m, name, 30*time.Second)
	mustBe(t, lease.Extend(time.Second), redlock.ErrLost)
	mustBe(t, lease.Confirm(0), redlock.ErrLost)
	mustBe(t, lease.Unlock(), redlock.ErrLost)
	if err := theirs.Confirm(0); err != nil {
		t.Fatal("the next holder was disturbed: ", err)
	}
	mustUnlock(t, theirs)
	mustBe(t, theirs.Unlock(), redlock.ErrLost)
}

func TestOneLeaseManyGoroutines(t *testing.T) {
	m := impatient(t)
	lease := mustLock(t, m, resource(t), 30*time.Second)
	var all sync.WaitGroup
	for i := 0; i < 16; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			if err := lease.Extend(30 * time.Second); err != nil {
				t.Error(err)
			}
			if !lease.Held() || lease.Remaining() == 0 {
				t.Error("not held")
			}
		}()
	}
	all.Wait()
	mustUnlock(t, lease)
}

// What is looked at without a lock on the lease's calls may go at any moment.
func TestLookingOnWhileItIsUnlocked(t *testing.T) {
	m := impatient(t)
	for round := 0; round < 50; round++ {
		lease := mustLock(t, m, resource(t), time.Minute)
		var all, started sync.WaitGroup
		for i := 0; i < 4; i++ {
			all.Add(1)
			started.Add(1)
			go func() {
				defer all.Done()
				started.Done()
				for lease.Held() && lease.Remaining() > 0 {
				}
			}()
		}
		started.Wait()
		mustUnlock(t, lease)
		all.Wait()
	}
}

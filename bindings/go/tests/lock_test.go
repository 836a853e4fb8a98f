package tests

import (
	"context"
	"strings"
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

func TestInspectTellsForHowLong(t *testing.T) {
	m, other, name := impatient(t), impatient(t), resource(t)
	info, err := other.Inspect(context.Background(), name)
	if err != nil || info.Locked || info.Remaining != 0 {
		t.Fatal(info, err)
	}
	lease := mustLock(t, m, name, time.Minute)
	info, err = other.Inspect(context.Background(), name)
	if err != nil || !info.Locked || info.Shared || info.Readers != 0 {
		t.Fatal(info, err)
	}
	if info.Remaining <= 30*time.Second || info.Remaining > time.Minute {
		t.Fatal(info.Remaining)
	}
	mustUnlock(t, lease)
	_, err = m.Inspect(context.Background(), "")
	mustBe(t, err, redlock.ErrInvalidArgument)
	_, err = m.Inspect(context.Background(), "a\x00b")
	mustBe(t, err, redlock.ErrInvalidArgument)
}

func TestExtendByAddsToWhatIsLeft(t *testing.T) {
	for _, drift := range []float64{0, 0.2} {
		m := newManager(t, redlock.Options{ClockDriftFactor: drift, ReplyTimeout: 20 * time.Second}, servers...)
		lease := mustLock(t, m, resource(t), 100*time.Second)
		for i := 0; i < 20; i++ {
			before := lease.Remaining()
			if err := lease.ExtendBy(50 * time.Second); err != nil {
				t.Fatal(err)
			}
			// Some of it has passed by now.
			if now := lease.Remaining(); now <= before || now > before+50100*time.Millisecond {
				t.Fatal(before, now)
			}
		}
		// By far more than it would be with a wrong allowance for drift, and by less than 20 times 50 seconds.
		if now := lease.Remaining(); now < 10*time.Minute {
			t.Fatal(drift, now)
		}
		mustBe(t, lease.ExtendBy(0), redlock.ErrInvalidArgument)
		mustBe(t, lease.ExtendBy(1<<62), redlock.ErrInvalidArgument)
		mustUnlock(t, lease)
		mustBe(t, lease.ExtendBy(time.Second), redlock.ErrLost)
	}
}

func TestALockThatIsRetainedTakesMoreUnlocks(t *testing.T) {
	m, other, name := impatient(t), impatient(t), resource(t)
	lease := mustLock(t, m, name, 30*time.Second)
	ctx := lease.Context(context.Background())
	for level := 1; level <= 3; level++ {
		if lease.Levels() != level {
			t.Fatal(lease.Levels())
		}
		if err := lease.Retain(); err != nil {
			t.Fatal(err)
		}
	}
	_, err := lease.Detach()
	mustBe(t, err, redlock.ErrInvalidArgument)
	for level := 3; level > 0; level-- {
		mustUnlock(t, lease)
		if lease.Levels() != level || !lease.Held() || lease.Err() != nil || ctx.Err() != nil {
			t.Fatal(lease.Levels(), lease.Held(), lease.Err(), ctx.Err())
		}
		_, err := other.TryLock(context.Background(), name, time.Second)
		mustBe(t, err, redlock.ErrTaken)
	}
	mustUnlock(t, lease)
	if lease.Levels() != 0 || lease.Held() || isLocked(t, other, name) {
		t.Fatal("still locked after the last Unlock")
	}
	<-ctx.Done()
	mustBe(t, lease.Retain(), redlock.ErrLost)
	mustBe(t, lease.Unlock(), redlock.ErrLost)
	mustBe(t, new(redlock.Lease).Retain(), redlock.ErrLost)

	// The loss of a lock is reported at every level.
	lease = mustLock(t, m, name, 300*time.Millisecond)
	if err := lease.Retain(); err != nil {
		t.Fatal(err)
	}
	<-lease.Lost()
	for lease.Held() { // less than a millisecond is left
		time.Sleep(time.Millisecond)
	}
	mustBe(t, lease.Retain(), redlock.ErrLost)
	mustBe(t, lease.Unlock(), redlock.ErrLost)
	// Its last Unlock asks servers, whose keys may exist a moment longer.
	_ = lease.Unlock()
	if lease.Levels() != 0 {
		t.Fatal(lease.Levels())
	}
}

func TestSeveralAreLockedAtOnce(t *testing.T) {
	m, other, ctx := impatient(t), impatient(t), context.Background()
	names := []string{resource(t), resource(t), resource(t)}
	lease, err := m.LockAll(ctx, names, 30*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if lease.Resource() != names[0] || !sameNames(lease.Resources(), names) || !lease.Held() {
		t.Fatal(lease)
	}
	for _, name := range names {
		_, err = other.TryLock(ctx, name, time.Second)
		mustBe(t, err, redlock.ErrTaken)
		_, err = other.TryLockAll(ctx, []string{resource(t), name}, time.Second)
		mustBe(t, err, redlock.ErrTaken)
		if !strings.Contains(err.Error(), "resource 2 of 2 held by another client") {
			t.Fatal(err)
		}
	}
	for _, err := range []error{lease.Extend(time.Minute), lease.Confirm(30 * time.Second), lease.KeepAlive()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	ticket, err := lease.Detach()
	if err != nil {
		t.Fatal(err)
	}
	taken, err := other.Adopt(ctx, ticket)
	if err != nil || !sameNames(taken.Resources(), names) {
		t.Fatal(taken, err)
	}
	mustUnlock(t, taken)
	for _, bad := range [][]string{nil, {"a", "a"}, {"a", ""}, {"a", "b\x00"}, make([]string, 129)} {
		_, err = m.LockAll(ctx, bad, time.Second)
		mustBe(t, err, redlock.ErrInvalidArgument)
	}
	one, err := m.LockAll(ctx, names[:1], time.Second)
	if err != nil || len(one.Resources()) != 1 {
		t.Fatal(one, err)
	}
	mustUnlock(t, one)
}

func TestALockChangesHands(t *testing.T) {
	m, other, name := impatient(t), impatient(t), resource(t)
	lease := mustLock(t, m, name, 30*time.Second)
	ctx := lease.Context(context.Background())
	ticket, err := lease.Detach()
	if err != nil {
		t.Fatal(err)
	}
	<-ctx.Done()
	if lease.Held() || lease.Err() != redlock.ErrDetached || !isLocked(t, other, name) {
		t.Fatal("not given away: ", lease.Err())
	}
	if isOver(lease.Lost()) {
		t.Fatal("what is given away is not lost")
	}
	mustBe(t, lease.Unlock(), redlock.ErrLost)
	mustBe(t, lease.Extend(time.Minute), redlock.ErrLost)
	_, err = lease.Detach()
	mustBe(t, err, redlock.ErrLost)
	taken, err := other.Adopt(context.Background(), ticket)
	if err != nil {
		t.Fatal(err)
	}
	if taken.Resource() != name || taken.Remaining() <= 10*time.Second || taken.Remaining() >= 30*time.Second {
		t.Fatal(taken)
	}
	if err := taken.Extend(time.Minute); err != nil || taken.Remaining() <= 30*time.Second {
		t.Fatal(taken, err)
	}
	_, err = m.TryLock(context.Background(), name, time.Second)
	mustBe(t, err, redlock.ErrTaken)
	mustUnlock(t, taken)
	_, err = other.Adopt(context.Background(), ticket)
	mustBe(t, err, redlock.ErrLost)
	for _, bad := range []string{"", "no ticket", ticket[:len(ticket)-1], ticket + "\x00"} {
		_, err = other.Adopt(context.Background(), bad)
		mustBe(t, err, redlock.ErrInvalidArgument)
	}
	mustUnlock(t, mustLock(t, other, name, time.Second))
}

func TestUnlockAfterKeepsOthersOut(t *testing.T) {
	m, other, name := impatient(t), impatient(t), resource(t)
	mustConnectAll(t, m)
	lease := mustLock(t, m, name, 10*time.Minute)
	ctx := lease.Context(context.Background())
	for _, bad := range []time.Duration{-1, 10*time.Minute + 1} {
		mustBe(t, lease.UnlockAfter(bad), redlock.ErrInvalidArgument)
	}
	if !lease.Held() || lease.Err() != nil || ctx.Err() != nil {
		t.Fatal("it is not held as before: ", lease.Err())
	}
	must(t, lease.Retain())
	must(t, lease.UnlockAfter(5*time.Minute)) // leaves a level
	if !lease.Held() || lease.Levels() != 1 {
		t.Fatal("an inner level has released it")
	}
	must(t, lease.UnlockAfter(5*time.Minute))
	<-ctx.Done()
	if lease.Held() || lease.Levels() != 0 || lease.Err() != redlock.ErrReleased || isOver(lease.Lost()) {
		t.Fatal("it is held: ", lease.Err())
	}
	mustBe(t, lease.UnlockAfter(0), redlock.ErrLost)
	_, err := other.TryLock(context.Background(), name, time.Second)
	mustBe(t, err, redlock.ErrTaken)
	info, err := other.Inspect(context.Background(), name)
	if err != nil || info.Remaining <= 0 || info.Remaining > 5*time.Minute {
		t.Fatal(info, err)
	}
	takeAway(t, name)

	gone := mustLock(t, m, name, time.Minute)
	must(t, gone.UnlockAfter(0))
	noKeys(t, []string{name})
	reader := mustRLock(t, m, name)
	mustBe(t, reader.UnlockAfter(0), redlock.ErrInvalidArgument)
	mustUnlock(t, reader)
	var none redlock.Lease
	mustBe(t, none.UnlockAfter(0), redlock.ErrLost)
}

func TestContextEndsAnAdoption(t *testing.T) {
	gates, addresses := newGates(t)
	patient := redlock.Options{ConnectTimeout: time.Minute, ReplyTimeout: time.Minute}
	m := newManager(t, patient, addresses...)
	mustConnectAll(t, m)
	ticket, err := mustLock(t, impatient(t), resource(t), 10*time.Minute).Detach()
	must(t, err)
	setAll(gates, true)
	_, err = m.Adopt(within(t, 50*time.Millisecond), ticket)
	mustBe(t, err, context.DeadlineExceeded)
	setAll(gates, false)
	if taken, err := m.Adopt(context.Background(), ticket); err == nil {
		mustUnlock(t, taken)
	} else {
		mustBe(t, err, redlock.ErrLost) // it was adopted, and released for nobody
	}
}

// The counter is a plain one: two holders at once would lose a count, and the race detector would detect them.
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

// Data that is read without the mutex of the lease's calls may disappear at any moment.
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

func sameNames(one, two []string) bool {
	return strings.Join(one, "\x00") == strings.Join(two, "\x00")
}

package tests

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"redlock.example/redlock"
)

// brief is the TTL of kept locks: short enough to see them renewed, and long enough for a busy machine.
const brief = 6 * time.Second

func mustKeep(t *testing.T, m *redlock.Manager, name string, ttl time.Duration) *redlock.Lease {
	t.Helper()
	lease := mustLock(t, m, name, ttl)
	must(t, lease.KeepAlive())
	return lease
}

// takeAway deletes a lock that is on all servers, and on all that answer.
func takeAway(t *testing.T, name string) {
	t.Helper()
	for _, server := range answering(t) {
		eventually(t, "the lock is on "+server, func() bool { return ask(t, server, "DEL "+name) == ":1" })
	}
}

func isOver(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// ends waits for a channel to be closed.
func ends(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("never came: ", what)
	}
}

func TestKeptLockIsRenewed(t *testing.T) {
	t.Parallel()
	m, name := impatient(t), resource(t)
	lease := mustKeep(t, m, name, brief)
	ctx, last := lease.Context(context.Background()), lease.Remaining()
	eventually(t, "it is extended", func() bool {
		before := last
		last = lease.Remaining()
		return last > before
	})
	if isOver(ctx.Done()) || isOver(lease.Lost()) || lease.Err() != nil {
		t.Fatal("it was lost: ", lease.Err())
	}
	mustUnlock(t, lease)
	ends(t, "the end of the context", ctx.Done())
	if lease.Err() != redlock.ErrReleased || isOver(lease.Lost()) {
		t.Fatal(lease.Err())
	}
	noKeys(t, []string{name})
}

func TestKeptLockThatIsTakenAwayIsToldOf(t *testing.T) {
	t.Parallel()
	m, name := impatient(t), resource(t)
	lease := mustKeep(t, m, name, brief)
	ctx := lease.Context(context.Background())
	takeAway(t, name)
	ends(t, "the news that it is lost", lease.Lost())
	ends(t, "the end of the context", ctx.Done())
	mustBe(t, lease.Err(), redlock.ErrLost)
	mustBe(t, lease.KeepAlive(), redlock.ErrLost)
	if lease.Held() {
		t.Fatal("it is held")
	}
	mustBe(t, lease.Unlock(), redlock.ErrLost)
	mustBe(t, lease.Err(), redlock.ErrLost)
}

func TestKeptLockIsToldOfWhileItIsValidWhereServersAreSilent(t *testing.T) {
	t.Parallel()
	gates, addresses := newGates(t)
	m, name := newManager(t, redlock.Options{}, addresses...), resource(t)
	lease := mustKeep(t, m, name, brief*2/3)
	setAll(gates, true)
	ends(t, "the news that it cannot be kept", lease.Lost())
	mustBe(t, lease.Err(), redlock.ErrUnreachable)
	setAll(gates, false)
	_ = lease.Unlock()
	noKeys(t, []string{name})
}

// The goroutine that drives knows the lock, and must not keep it for ever.
func TestKeptLockThatIsForgottenEnds(t *testing.T) {
	t.Parallel()
	m, name := impatient(t), resource(t)
	ctx := mustKeep(t, m, name, brief/3).Context(context.Background())
	eventually(t, "the collector has come", func() bool {
		runtime.GC()
		return isOver(ctx.Done())
	})
	noKeys(t, []string{name})
}

func TestContextEndsWithItsParent(t *testing.T) {
	t.Parallel()
	lease := mustLock(t, impatient(t), resource(t), time.Minute)
	parent, cancel := context.WithCancel(context.Background())
	ctx := lease.Context(parent)
	cancel()
	ends(t, "the end of the context", ctx.Done())
	if lease.Err() != nil || isOver(lease.Lost()) || isOver(lease.Context(context.Background()).Done()) {
		t.Fatal("the lock has ended with it: ", lease.Err())
	}
	mustUnlock(t, lease)
	ends(t, "the end of a context of a lock that was released", lease.Context(context.Background()).Done())
}

func TestLockThatIsNotKeptIsLostWithItsTime(t *testing.T) {
	t.Parallel()
	lease := mustLock(t, impatient(t), resource(t), 200*time.Millisecond)
	ctx := lease.Context(context.Background())
	ends(t, "the end of the context", ctx.Done())
	ends(t, "the news that it is lost", lease.Lost())
	mustBe(t, lease.Err(), redlock.ErrLost)
	_ = lease.Unlock()
}

func TestExtendingPutsTheEndOff(t *testing.T) {
	t.Parallel()
	name := resource(t)
	lease := mustLock(t, impatient(t), name, brief)
	lost, first := lease.Lost(), time.After(brief)
	must(t, lease.Extend(time.Minute))
	<-first
	if isOver(lost) {
		t.Fatal(lease.Err())
	}
	takeAway(t, name)
	mustBe(t, lease.Extend(time.Minute), redlock.ErrLost)
	if !isOver(lost) {
		t.Fatal("a call has found out that it is lost, and nobody is told")
	}
}

// Nothing is called after the extension: the watch alone notices the end.
func TestTheEndThatWasPutOffIsTold(t *testing.T) {
	t.Parallel()
	lease := mustLock(t, impatient(t), resource(t), time.Second)
	lost := lease.Lost()
	if err := lease.Extend(3 * time.Second); err != nil {
		mustBe(t, err, redlock.ErrLost) // the machine is very busy
	}
	ends(t, "the news that it is lost", lost)
	if left := lease.Remaining(); left > 0 {
		t.Fatal("it is told too early: ", left)
	}
}

// The replies are held back. The call ends with the context, and the lock is still held.
func TestContextEndsCallsOfAHolder(t *testing.T) {
	t.Parallel()
	gates, addresses := newGates(t)
	patient := redlock.Options{ConnectTimeout: time.Minute, ReplyTimeout: time.Minute}
	lease := mustLock(t, newManager(t, patient, addresses...), resource(t), 10*time.Minute)
	setAll(gates, true)
	for _, call := range []func(context.Context, time.Duration) error{lease.ExtendContext, lease.ConfirmContext} {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		err := call(ctx, time.Minute)
		cancel()
		mustBe(t, err, redlock.ErrCancelled, context.DeadlineExceeded)
		if errors.Is(err, redlock.ErrLost) || !lease.Held() || lease.Err() != nil {
			t.Fatal(err, lease.Err())
		}
	}
	setAll(gates, false)
	must(t, lease.Confirm(time.Minute))
	mustUnlock(t, lease)
}

// The wait for another goroutine's call on the lease ends with the context.
func TestContextEndsTheWaitingForAnotherCall(t *testing.T) {
	t.Parallel()
	gates, addresses := newGates(t)
	patient := redlock.Options{ConnectTimeout: time.Minute, ReplyTimeout: time.Minute}
	name := resource(t)
	lease := mustLock(t, newManager(t, patient, addresses...), name, 10*time.Minute)
	setAll(gates, true)
	unlocked := make(chan error)
	go func() { unlocked <- lease.Unlock() }()
	noKeys(t, []string{name})
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	mustBe(t, lease.ConfirmContext(ctx, 0), redlock.ErrCancelled, context.DeadlineExceeded)
	setAll(gates, false)
	must(t, <-unlocked)
}

// A kept lock keeps the connections of a closed Manager until it is unlocked.
func TestKeptLockOutlivesItsManager(t *testing.T) {
	t.Parallel()
	m, name := impatient(t), resource(t)
	lease := mustKeep(t, m, name, brief)
	m.Close()
	last := lease.Remaining()
	eventually(t, "it is extended", func() bool {
		before := last
		last = lease.Remaining()
		return last > before
	})
	mustUnlock(t, lease)
	noKeys(t, []string{name})
}

// While a function supplies the password of one server, the others are enough.
func TestSlowPasswordHoldsUpNobody(t *testing.T) {
	user := newUser(t, "sesame")
	asked, answer := make(chan struct{}, len(servers)), make(chan struct{})
	options := redlock.Options{Username: user, PasswordFunc: func(server string) (string, error) {
		if server == servers[0] {
			asked <- struct{}{}
			<-answer
		}
		return "sesame", nil
	}}
	m := newManager(t, options, servers...)
	defer close(answer)
	ctx, cancel := context.WithCancel(context.Background())
	outcome := make(chan error, 1)
	go func() {
		_, err := m.Lock(ctx, resource(t), time.Minute)
		outcome <- err
	}()
	<-asked
	mustUnlock(t, mustKeep(t, m, resource(t), brief))
	cancel()
	select {
	case err := <-outcome:
		if err != nil {
			mustBe(t, err, context.Canceled)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("it waits for the password although it was cancelled")
	}
}

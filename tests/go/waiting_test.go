package tests

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"redlock.example/redlock"
)

func TestDeadlineEndsTheWaiting(t *testing.T) {
	m, name := impatient(t), resource(t)
	lease := mustLock(t, m, name, 60*time.Second)
	_, err := m.Lock(within(t, 300*time.Millisecond), name, time.Second)
	mustBe(t, err, context.DeadlineExceeded, redlock.ErrTaken)
	if errors.Is(err, redlock.ErrUnreachable) || errors.Is(err, context.Canceled) {
		t.Fatalf("%v is too many things at once", err)
	}
	mustUnlock(t, lease)
}

func TestCancelEndsTheWaiting(t *testing.T) {
	// A pause of a day: what ends the waiting is the context alone.
	m, name := newManager(t, redlock.Options{RetryDelay: 24 * time.Hour}, servers...), resource(t)
	lease := mustLock(t, m, name, 60*time.Second)
	ctx, cancel := context.WithCancel(context.Background())
	result := make(chan error)
	go func() {
		_, err := m.Lock(ctx, name, time.Second)
		result <- err
	}()
	select {
	case err := <-result:
		t.Fatal("did not wait: ", err)
	case <-time.After(200 * time.Millisecond):
	}
	cancel()
	mustBe(t, <-result, context.Canceled)
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

// The servers grant, their replies are kept back, and the caller gives up in between.
func TestCancelledAttemptLeavesNothingLocked(t *testing.T) {
	var gates []*gate
	var addresses []string
	for _, server := range servers {
		g := newGate(t, server)
		gates, addresses = append(gates, g), append(addresses, g.address())
	}
	patient := redlock.Options{ConnectTimeout: time.Minute, ReplyTimeout: time.Minute}
	m, direct, name := newManager(t, patient, addresses...), impatient(t), resource(t)
	mustUnlock(t, mustLock(t, m, resource(t), time.Second)) // the connections are up
	for _, g := range gates {
		g.set(true)
	}

	ctx, cancel := context.WithCancel(context.Background())
	result := make(chan error)
	go func() {
		_, err := m.Lock(ctx, name, 10*time.Minute)
		result <- err
	}()
	eventually(t, "the servers grant", func() bool { return isLocked(t, direct, name) })
	cancel()
	mustBe(t, <-result, context.Canceled)
	m.Close() // must not take the connections from the attempt that is still under way
	for _, g := range gates {
		g.set(false)
	}
	eventually(t, "what was granted is released", func() bool { return !isLocked(t, direct, name) })
}

// listeners accept connections and never say a word.
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
	patient := redlock.Options{ConnectTimeout: time.Minute, ReplyTimeout: time.Minute}
	m := newManager(t, patient, listeners(t, 3)...)
	start := time.Now()
	_, err := m.Lock(within(t, 100*time.Millisecond), resource(t), time.Second)
	mustBe(t, err, context.DeadlineExceeded)
	if waited := time.Since(start); waited > 20*time.Second {
		t.Fatalf("the context had to wait %v for the servers", waited)
	}
}

func TestTooFewServersAreUnreachable(t *testing.T) {
	brief := redlock.Options{ConnectTimeout: 50 * time.Millisecond, ReplyTimeout: 50 * time.Millisecond}
	m := newManager(t, brief, listeners(t, 3)...)
	_, err := m.TryLock(context.Background(), resource(t), 10*time.Second)
	mustBe(t, err, redlock.ErrUnreachable)
	_, err = m.IsLocked(resource(t))
	mustBe(t, err, redlock.ErrUnreachable)
	_, err = m.Lock(within(t, 500*time.Millisecond), resource(t), 10*time.Second)
	mustBe(t, err, redlock.ErrUnreachable, context.DeadlineExceeded)
}

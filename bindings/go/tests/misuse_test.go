package tests

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"redlock.example/redlock"
)

func TestErrors(t *testing.T) {
	m, name := impatient(t), resource(t)
	lease := mustLock(t, m, name, time.Minute)
	_, taken := m.TryLock(context.Background(), name, time.Minute)
	waited := refusedByDeadline(t, m, name)
	cancelled := cancelledWhileWaiting(m, name)
	short := lease.Confirm(time.Hour)
	_, bad := m.Lock(context.Background(), "", time.Minute)
	mustUnlock(t, lease)
	lost := lease.Unlock()
	_, noServers := redlock.New()
	m.Close()
	_, closed := m.Lock(context.Background(), name, time.Minute)

	all := []error{
		redlock.ErrTaken, redlock.ErrUnreachable, redlock.ErrTooSlow, redlock.ErrLost,
		redlock.ErrInvalidArgument, redlock.ErrNoServers, redlock.ErrForked, redlock.ErrInternal,
		redlock.ErrCancelled, redlock.ErrTooShort, redlock.ErrReleased, redlock.ErrClosed, context.DeadlineExceeded, context.Canceled,
	}
	for _, it := range []struct {
		err  error
		what []error
	}{
		{taken, []error{redlock.ErrTaken}},
		{waited, []error{redlock.ErrTaken, context.DeadlineExceeded}},
		{cancelled, []error{redlock.ErrCancelled, context.Canceled}},
		{short, []error{redlock.ErrTooShort}},
		{bad, []error{redlock.ErrInvalidArgument}},
		{lost, []error{redlock.ErrLost}},
		{noServers, []error{redlock.ErrNoServers}},
		{closed, []error{redlock.ErrClosed}},
	} {
		for _, kind := range all {
			is := false
			for _, wanted := range it.what {
				is = is || wanted == kind
			}
			if errors.Is(it.err, kind) != is {
				t.Errorf("errors.Is(%v, %v) is not %v", it.err, kind, is)
			}
		}
		var e *redlock.Error
		var status redlock.Status
		ours := it.err != redlock.ErrClosed
		if errors.As(it.err, &e) != ours || errors.As(it.err, &status) != ours {
			t.Errorf("errors.As of %v", it.err)
		}
		if ours && (e.Status != status || status != it.what[0] || e.Message == "") {
			t.Errorf("%#v, %v", e, status)
		}
		if ours && status.Retriable() != (status == redlock.ErrTaken) {
			t.Errorf("%v is retriable: %v", status, status.Retriable())
		}
		if !strings.HasPrefix(it.err.Error(), "redlock: ") {
			t.Errorf("%v", it.err)
		}
	}
}

// refusedByDeadline is the error of a caller that has waited until a deadline. The reason for the refusal
// arrives in the last moment, if the machine is not too busy.
func refusedByDeadline(t *testing.T, m *redlock.Manager, name string) (err error) {
	t.Helper()
	eventually(t, "it is heard why", func() bool {
		_, err = m.Lock(within(t, 50*time.Millisecond), name, time.Minute)
		mustBe(t, err, context.DeadlineExceeded)
		return !errors.Is(err, redlock.ErrCancelled)
	})
	return err
}

func cancelledWhileWaiting(m *redlock.Manager, name string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer time.AfterFunc(20*time.Millisecond, cancel).Stop()
	_, err := m.Lock(ctx, name, time.Minute)
	return err
}

func TestInvalidArguments(t *testing.T) {
	m := impatient(t)
	for _, bad := range []struct {
		name string
		ttl  time.Duration
	}{
		{"", time.Second}, {strings.Repeat("x", 65537), time.Second}, {"go\x00nul", time.Second},
		{"go:ttl", 0}, {"go:ttl", -1}, {"go:ttl", -time.Second}, {"go:ttl", 1},
		{"go:ttl", time.Millisecond}, {"go:ttl", math.MaxInt64}, {"go:ttl", math.MinInt64},
	} {
		_, err := m.Lock(within(t, 20*time.Second), bad.name, bad.ttl)
		mustBe(t, err, redlock.ErrInvalidArgument)
		if errors.Is(err, context.DeadlineExceeded) {
			t.Fatal("no deadline has ended ", err)
		}
		_, err = m.TryLock(context.Background(), bad.name, bad.ttl)
		mustBe(t, err, redlock.ErrInvalidArgument)
	}
	_, err := m.IsLocked(context.Background(), "")
	mustBe(t, err, redlock.ErrInvalidArgument)
	_, err = m.IsLocked(context.Background(), "a\x00b")
	mustBe(t, err, redlock.ErrInvalidArgument)
	for _, bad := range []string{"", "host:0", "host:65536", "http://host", "a\x00b:1"} {
		_, err := redlock.New(bad)
		mustBe(t, err, redlock.ErrInvalidArgument)
	}
	_, err = redlock.New(servers[0], servers[0])
	mustBe(t, err, redlock.ErrInvalidArgument)
	_, err = redlock.New()
	mustBe(t, err, redlock.ErrNoServers)
	askNobody := func(string) (string, error) { return "", nil }
	for _, bad := range []redlock.Options{
		{ClockDriftFactor: 1}, {ClockDriftFactor: math.NaN()}, {RetryDelay: -1}, {Tries: -1}, {Tries: 1 << 31},
		{ConnectTimeout: -1}, {ReplyTimeout: -1}, {ReplyTimeout: math.MaxInt64},
		{Password: "a\x00b"}, {Username: "a\x00b"}, {Password: "a", PasswordFunc: askNobody},
		{TLS: &redlock.TLS{CAFile: "/nowhere/ca.pem"}}, {TLS: &redlock.TLS{CertFile: "cert.pem"}},
		{TLS: &redlock.TLS{KeyFile: "key.pem"}}, {TLS: &redlock.TLS{ServerName: "a\x00b"}},
	} {
		_, err := redlock.NewWithOptions(bad, servers...)
		mustBe(t, err, redlock.ErrInvalidArgument)
	}
}

// The names of keys are bytes, and times are whole milliseconds, rounded up.
func TestEdgesOfWhatIsValid(t *testing.T) {
	m := impatient(t)
	long := resource(t) + ":"
	long += strings.Repeat("x", 65536-len(long))
	for _, name := range []string{resource(t) + " \r\n$9\xff\"'", resource(t) + "ключ", long} {
		lease := mustLock(t, m, name, time.Minute)
		if lease.Resource() != name || !isLocked(t, m, name) {
			t.Fatalf("%q is not locked", name)
		}
		mustUnlock(t, lease)
	}
	tenYears := 315360000000 * time.Millisecond
	lease := mustLock(t, m, resource(t), tenYears)
	if left := lease.Remaining(); left < tenYears*98/100 || left > tenYears {
		t.Fatal(left)
	}
	mustBe(t, lease.Extend(tenYears+1), redlock.ErrInvalidArgument)
	mustBe(t, lease.Extend(0), redlock.ErrInvalidArgument)
	mustBe(t, lease.Extend(-1), redlock.ErrInvalidArgument)
	mustBe(t, lease.Confirm(-1), redlock.ErrInvalidArgument)
	mustBe(t, lease.Confirm(math.MaxInt64), redlock.ErrTooShort)
	must(t, lease.Extend(time.Minute+time.Nanosecond))
	must(t, lease.Confirm(time.Nanosecond))
	mustUnlock(t, lease)

	// 3.000001 ms would leave no validity, and is 4 ms.
	_, err := m.TryLock(context.Background(), resource(t), 3*time.Millisecond)
	mustBe(t, err, redlock.ErrInvalidArgument)
	short, err := m.TryLock(context.Background(), resource(t), 3*time.Millisecond+1)
	if errors.Is(err, redlock.ErrInvalidArgument) {
		t.Fatal(err)
	}
	if err == nil {
		_ = short.Unlock()
	}
}

func TestPanicOfAHolderReleases(t *testing.T) {
	m, name := impatient(t), resource(t)
	func() {
		defer func() {
			if recover() != "out of paper" {
				t.Error("another panic")
			}
		}()
		lease := mustLock(t, m, name, time.Minute)
		defer lease.Unlock()
		panic("out of paper")
	}()
	noKeys(t, []string{name})
}

func TestUnlockTwice(t *testing.T) {
	m, name := impatient(t), resource(t)
	lease := mustLock(t, m, name, time.Minute)
	var released, lost int
	outcomes := make(chan error, 32)
	each(cap(outcomes), func(int) { outcomes <- lease.Unlock() })
	for i := 0; i < cap(outcomes); i++ {
		switch err := <-outcomes; {
		case err == nil:
			released++
		case errors.Is(err, redlock.ErrLost):
			lost++
		default:
			t.Error(err)
		}
	}
	if released != 1 || lost != cap(outcomes)-1 {
		t.Fatalf("released %d times, lost %d times", released, lost)
	}
	mustBe(t, lease.Extend(time.Minute), redlock.ErrLost)
	mustBe(t, lease.Confirm(0), redlock.ErrLost)
	mustBe(t, lease.KeepAlive(), redlock.ErrLost)
	if lease.Held() || lease.Remaining() != 0 || lease.Resource() != name {
		t.Fatal("it is not as it should be after Unlock")
	}
}

func TestTriesAreCounted(t *testing.T) {
	options := redlock.Options{RetryDelay: 4 * time.Millisecond, ReplyTimeout: 500 * time.Millisecond}
	other, name := impatient(t), resource(t)
	lease := mustLock(t, other, name, time.Minute)
	for options.Tries = 1; options.Tries <= 3; options.Tries++ {
		m := newManager(t, options, servers...)
		_, err := m.Lock(context.Background(), name, time.Minute)
		mustBe(t, err, redlock.ErrTaken)
		if errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
	}
	mustUnlock(t, lease)
}

// The second try comes after such a long pause that there is none.
func TestTriesHaveThePauseThatIsSet(t *testing.T) {
	t.Parallel()
	other, name := impatient(t), resource(t)
	lease := mustLock(t, other, name, time.Minute)
	m := newManager(t, redlock.Options{Tries: 2, RetryDelay: 24 * time.Hour, NoWaking: true, ReplyTimeout: 20 * time.Second}, servers...)
	mustConnect(t, m)
	_, err := m.Lock(within(t, 2*time.Second), name, time.Minute)
	mustBe(t, err, context.DeadlineExceeded)
	stats, err := m.Stats()
	must(t, err)
	if stats.Attempts > 1 {
		t.Fatal(stats.Attempts)
	}
	mustUnlock(t, lease)
}

func TestZeroValues(t *testing.T) {
	var m redlock.Manager
	_, err := m.Lock(context.Background(), "x", time.Second)
	mustBe(t, err, redlock.ErrClosed)
	_, err = m.IsLocked(context.Background(), "x")
	mustBe(t, err, redlock.ErrClosed)
	must(t, m.Close())
	var lease redlock.Lease
	mustBe(t, lease.Unlock(), redlock.ErrLost)
	mustBe(t, lease.Extend(time.Second), redlock.ErrLost)
	mustBe(t, lease.Confirm(0), redlock.ErrLost)
	mustBe(t, lease.KeepAlive(), redlock.ErrLost)
	mustBe(t, lease.Err(), redlock.ErrLost)
	<-lease.Lost()
	<-lease.Context(context.Background()).Done()
	if lease.Held() || lease.Remaining() != 0 || lease.Resource() != "" || lease.Token() != "" {
		t.Fatal("it holds something")
	}
}

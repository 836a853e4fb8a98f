package tests

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"redlock.example/redlock"
)

// threadsMax is for the whole process: the threads of Go itself, and a few. Waiting goroutines have no threads.
// The runtime starts another thread for each call into C that takes longer than usual. On a busy machine any
// call may do that.
var threadsMax = runtime.GOMAXPROCS(0) + 32

func threads(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	must(t, err)
	for _, line := range strings.Split(string(status), "\n") {
		if count := strings.TrimPrefix(line, "Threads:"); count != line {
			n, err := strconv.Atoi(strings.TrimSpace(count))
			must(t, err)
			return n
		}
	}
	t.Fatal("no number of threads in /proc/self/status")
	return 0
}

// fewThreads checks whether there were too many at any time, because threads of Go do not end.
func fewThreads(t *testing.T) {
	t.Helper()
	if n := threads(t); n > threadsMax {
		t.Errorf("%d threads", n)
	}
}

// noneLeft waits until there are no more goroutines than before.
func noneLeft(t *testing.T, before int) {
	t.Helper()
	eventually(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= before })
}

// each runs a function on n goroutines and waits for all.
func each(n int, f func(i int)) {
	var all sync.WaitGroup
	for i := 0; i < n; i++ {
		all.Add(1)
		go func(i int) {
			defer all.Done()
			f(i)
		}(i)
	}
	all.Wait()
}

func resourcesOf(t *testing.T, n int) (names []string) {
	t.Helper()
	for i := 0; i < n; i++ {
		names = append(names, resource(t))
	}
	return names
}

// noKeys waits until none of the names is on any of the servers that answer. A call returns when a majority has
// answered; the others follow in a moment.
func noKeys(t *testing.T, names []string) {
	t.Helper()
	const atOnce = 100
	for ; len(names) > atOnce; names = names[atOnce:] {
		noKeys(t, names[:atOnce])
	}
	for _, server := range answering(t) {
		eventually(t, "no key is left on "+server, func() bool {
			return ask(t, server, "EXISTS "+strings.Join(names, " ")) == ":0"
		})
	}
}

// Plain counters: two holders at once would lose a count, and the race detector would detect them.
func TestThousandsOfGoroutines(t *testing.T) {
	for _, it := range []struct{ goroutines, count int }{{200, 1}, {10_000, 100}, {2000, 2000}} {
		goroutines, count := it.goroutines, it.count
		t.Run(fmt.Sprint(count), func(t *testing.T) {
			before := runtime.NumGoroutine()
			m, names, counters := impatient(t), resourcesOf(t, count), make([]int, count)
			ctx := within(t, 4*time.Minute)
			each(goroutines, func(i int) {
				lease, err := m.Lock(ctx, names[i%count], time.Minute)
				if err != nil {
					t.Error(err)
					return
				}
				counters[i%count]++
				if err := lease.Unlock(); err != nil {
					t.Error(err)
				}
			})
			for i, counted := range counters {
				if counted != goroutines/count {
					t.Fatalf("counted %d of %d under %s", counted, goroutines/count, names[i])
				}
			}
			fewThreads(t)
			noKeys(t, names)
			m.Close()
			noneLeft(t, before)
		})
	}
}

// Half of the callers give up, at any moment: in the queue, during their request, and when the lock is almost
// theirs.
func TestCancelledAtRandom(t *testing.T) {
	const goroutines, count = 2000, 20
	before := runtime.NumGoroutine()
	m, names, counters := impatient(t), resourcesOf(t, count), make([]int, count)
	var had, ended atomic.Int64
	each(goroutines, func(i int) {
		ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
		defer cancel()
		if i%2 == 0 {
			patience := time.Duration(rand.Int63n(1 << (10 + rand.Intn(19)))) // up to 268 ms
			defer time.AfterFunc(patience, cancel).Stop()
		}
		lease, err := m.Lock(ctx, names[i%count], time.Minute)
		switch {
		case err == nil:
			had.Add(1)
			counters[i%count]++
			if err := lease.Unlock(); err != nil {
				t.Error(err)
			}
		case i%2 == 0 && errors.Is(err, context.Canceled):
			ended.Add(1)
		default:
			t.Error(err)
		}
	})
	sum := 0
	for _, counted := range counters {
		sum += counted
	}
	if int64(sum) != had.Load() || had.Load() < goroutines/2 {
		t.Fatalf("counted %d, had %d", sum, had.Load())
	}
	t.Logf("%d had it, %d were cancelled", had.Load(), ended.Load())
	fewThreads(t)
	noKeys(t, names)
	m.Close()
	noneLeft(t, before)
}

// One try each, cut off while it is in progress: every granted lock is released again.
func TestAttemptsCutOff(t *testing.T) {
	const goroutines = 1000
	before := runtime.NumGoroutine()
	m, names := impatient(t), resourcesOf(t, goroutines)
	mustConnect(t, m)
	var ended atomic.Int64
	each(goroutines, func(i int) {
		patience := time.Duration(rand.Int63n(int64(20 * time.Millisecond)))
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		lease, err := m.TryLock(ctx, names[i], time.Minute)
		switch {
		case err == nil:
			if err := lease.Unlock(); err != nil {
				t.Error(err)
			}
		case errors.Is(err, context.DeadlineExceeded):
			ended.Add(1)
		default:
			t.Error(err)
		}
	})
	if ended.Load() == 0 {
		t.Error("none was cut off")
	}
	noKeys(t, names)
	m.Close()
	noneLeft(t, before)
}

// crowd starts goroutines that wait for each of the resources, which others hold: each of them per resource. Each
// goroutine reports its result.
func crowd(ctx context.Context, m *redlock.Manager, names []string, each int) (outcomes chan error) {
	outcomes = make(chan error, each*len(names))
	var started sync.WaitGroup
	for i := 0; i < cap(outcomes); i++ {
		started.Add(1)
		go func(name string) {
			started.Done()
			_, err := m.Lock(ctx, name, time.Minute)
			outcomes <- err
		}(names[i%len(names)])
	}
	started.Wait()
	return outcomes
}

func holdAll(t *testing.T, m *redlock.Manager, names []string) (leases []*redlock.Lease) {
	t.Helper()
	for _, name := range names {
		leases = append(leases, mustLock(t, m, name, 10*time.Minute))
	}
	return leases
}

// A crowd waits in the queue, behind holders that do not release. All give up as soon as they are told to, and
// the holders are not affected.
func TestCrowdInLineIsCancelledAtOnce(t *testing.T) {
	before := runtime.NumGoroutine()
	m, names := newManager(t, redlock.Options{RetryDelay: 24 * time.Hour}, servers...), resourcesOf(t, 20)
	leases := holdAll(t, m, names)
	ctx, cancel := context.WithCancel(context.Background())
	outcomes := crowd(ctx, m, names, 100)
	cancel()
	deadline := time.After(30 * time.Second)
	for i := 0; i < cap(outcomes); i++ {
		select {
		case err := <-outcomes:
			mustBe(t, err, context.Canceled)
		case <-deadline:
			t.Fatalf("%d of %d still wait", cap(outcomes)-i, cap(outcomes))
		}
	}
	fewThreads(t)
	for _, lease := range leases {
		must(t, lease.Extend(10*time.Minute))
		mustUnlock(t, lease)
	}
	noKeys(t, names)
	m.Close()
	noneLeft(t, before)
}

func TestCloseEndsTheWaitingOfACrowd(t *testing.T) {
	before := runtime.NumGoroutine()
	m, names := newManager(t, redlock.Options{RetryDelay: 24 * time.Hour}, servers...), resourcesOf(t, 20)
	leases := holdAll(t, m, names)
	outcomes := crowd(context.Background(), m, names, 100)
	m.Close()
	for i := 0; i < cap(outcomes); i++ {
		mustBe(t, <-outcomes, redlock.ErrClosed)
	}
	noneLeft(t, before+1) // the one that drives, for the holders
	for _, lease := range leases {
		mustUnlock(t, lease)
	}
	noKeys(t, names)
	noneLeft(t, before)
}

// Attempts whose replies do not come are in progress. A holder can release its lock all the same.
func TestNobodyWhoWaitsHoldsUpAnUnlock(t *testing.T) {
	const goroutines = 500
	gates, addresses := newGates(t)
	patient := redlock.Options{ConnectTimeout: time.Minute, ReplyTimeout: time.Minute}
	m, held := newManager(t, patient, addresses...), resource(t)
	mustConnectAll(t, m)
	lease := mustLock(t, m, held, 10*time.Minute)
	names := resourcesOf(t, goroutines)
	setAll(gates, true)
	before := runtime.NumGoroutine()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	outcomes := crowd(ctx, m, names, 1)
	all := "EXISTS " + strings.Join(names, " ")
	eventually(t, "all calls are under way", func() bool {
		return ask(t, answering(t)[0], all) == fmt.Sprint(":", goroutines)
	})
	unlocked := make(chan error)
	go func() { unlocked <- lease.Unlock() }()
	noKeys(t, []string{held})
	fewThreads(t)
	cancel()
	for i := 0; i < goroutines; i++ {
		mustBe(t, <-outcomes, context.Canceled)
	}
	noneLeft(t, before+1) // the Unlock
	setAll(gates, false)
	must(t, <-unlocked)
	noKeys(t, names)
}

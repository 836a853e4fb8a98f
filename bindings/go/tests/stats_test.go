package tests

import (
	"context"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"redlock.example/redlock"
)

func TestWhatHappensIsCountedAndToldWhereThatIsWanted(t *testing.T) {
	var mu sync.Mutex
	var lines []string
	times := regexp.MustCompile(` \w+_ms=[\d.]+`)
	logger := func(level int, message string) {
		mu.Lock()
		defer mu.Unlock()
		if level == 3 {
			lines = append(lines, times.ReplaceAllString(message, ""))
		}
	}
	options := redlock.Options{Logger: logger, Trace: redlock.TraceResources, ReplyTimeout: 20 * time.Second}
	m, other, name := newManager(t, options, servers...), impatient(t), resource(t)
	lease := mustLock(t, m, name, 30*time.Second)
	_, err := other.TryLock(context.Background(), name, time.Second)
	mustBe(t, err, redlock.ErrTaken)
	if err := lease.Extend(30 * time.Second); err != nil {
		t.Fatal(err)
	}
	mustUnlock(t, lease)
	stats, err := m.Stats()
	if err != nil {
		t.Fatal(err)
	}
	if stats.Acquire.OK != 1 || stats.Extend.OK != 1 || stats.Release.OK != 1 || stats.Attempts != 1 || stats.Waits != 0 {
		t.Fatalf("%+v", stats)
	}
	for _, h := range []redlock.Histogram{stats.AcquireTime, stats.HoldTime} {
		if h.Count != 1 || h.Sum <= 0 || len(h.Bounds) != len(h.Buckets)-1 || h.Bounds[0] != 25*time.Microsecond {
			t.Fatalf("%+v", h)
		}
	}
	if stats, err := other.Stats(); err != nil || stats.Acquire.Taken != 1 {
		t.Fatal(stats, err)
	}
	text, err := m.StatsText()
	if err != nil || !strings.Contains(text, "\nredlock_lock_acquisitions_total{outcome=\"ok\"} 1\n") {
		t.Fatal(text, err)
	}
	told := func() string {
		mu.Lock()
		defer mu.Unlock()
		return strings.Join(lines, "\n")
	}
	named := " resource=\"" + name + "\""
	wanted := "event=acquired" + named + " attempts=1\nevent=extended" + named + "\nevent=released" + named
	for deadline := time.Now().Add(time.Minute); told() != wanted; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(told())
		}
	}
	if _, err := redlock.NewWithOptions(redlock.Options{Trace: 7}, servers...); err == nil {
		t.Fatal("a Trace that means nothing was taken")
	}
	if _, err := new(redlock.Manager).Stats(); err == nil {
		t.Fatal("a closed Manager has counted something")
	}
}

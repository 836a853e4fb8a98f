package redlock

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"
)

func isWoken(w *waiter) bool {
	select {
	case <-w.wake:
		return true
	default:
		return false
	}
}

func TestALineIsServedInTheOrderOfArrival(t *testing.T) {
	var all lines
	var line []*waiter
	for i := 0; i < 100; i++ {
		line = append(line, all.join("a"))
	}
	other := all.join("b")
	if all.due(line[0], time.Time{}) > 0 || all.due(other, time.Time{}) > 0 {
		t.Fatal("the first has to wait")
	}
	for i, w := range line[:99] {
		for _, behind := range line[i+1:] {
			if isWoken(behind) || all.due(behind, time.Time{}) != never {
				t.Fatal("one behind comes before its turn")
			}
		}
		h := &hold{}
		all.granted("a", h, time.Hour)
		all.leave(w)
		next := line[i+1]
		if !isWoken(next) || all.due(next, time.Time{}) != look {
			t.Fatal("the next does not wait for the holder")
		}
		all.letGo("a", h)
		if !isWoken(next) || all.due(next, time.Time{}) > 0 {
			t.Fatal("the next is not told of the release")
		}
	}
	all.leave(line[99])
	all.leave(other)
	if len(all.byName) != 0 {
		t.Fatal(all.byName)
	}
}

func TestWhoGivesUpLeavesNoGap(t *testing.T) {
	var all lines
	var line []*waiter
	for i := 0; i < 10; i++ {
		line = append(line, all.join("a"))
	}
	for _, i := range []int{5, 9, 1} {
		all.leave(line[i])
		if isWoken(line[0]) {
			t.Fatal("the first is told of those behind")
		}
	}
	for _, i := range []int{0, 2, 3, 4, 6, 7} {
		all.leave(line[i])
	}
	if !isWoken(line[8]) || all.due(line[8], time.Time{}) > 0 {
		t.Fatal("the last of them is not the first now")
	}
	all.leave(line[8])
	if len(all.byName) != 0 {
		t.Fatal(all.byName)
	}
}

func TestLocksThatWereForgottenAreNotKeptForEver(t *testing.T) {
	var all lines
	for i := 0; i < 10_000; i++ {
		all.granted(fmt.Sprint(i), &hold{}, 0)
		if len(all.byName) > linesMin {
			t.Fatalf("%d lines", len(all.byName))
		}
	}
	for i := 0; i < 1000; i++ {
		all.granted(fmt.Sprint(i), &hold{}, time.Hour)
	}
	if len(all.byName) < 1000 {
		t.Fatal("a lock that is held was forgotten")
	}
}

func TestAnOldReleaseDoesNotEndANewLock(t *testing.T) {
	var all lines
	old, young := &hold{}, &hold{}
	w := all.join("a")
	all.granted("a", old, time.Hour)
	all.granted("a", young, time.Hour)
	all.letGo("a", old)
	if all.due(w, time.Time{}) <= 0 {
		t.Fatal("the lock that is held counts as released")
	}
	all.letGo("a", young)
	if all.due(w, time.Time{}) > 0 {
		t.Fatal("it was released")
	}
}

// Where the number of tries is bounded, they are pauses between two of these; else C has its own, and they
// are how long it may go on pausing for nothing.
func TestPausesGrowWithTheWaiting(t *testing.T) {
	for _, it := range []struct {
		tries         int
		waited, bound time.Duration
	}{
		{3, 0, shortest}, {3, 100 * time.Millisecond, 25 * time.Millisecond}, {3, time.Hour, 300 * time.Millisecond},
		{0, 0, shortest}, {0, 100 * time.Millisecond, 25 * time.Millisecond}, {0, time.Hour, 75 * time.Millisecond},
	} {
		m := &Manager{tries: it.tries, longest: longestPause(200 * time.Millisecond)}
		longest := time.Duration(0)
		for i := 0; i < 1000; i++ {
			pause := m.pause(it.waited)
			if pause < 0 || pause >= it.bound {
				t.Fatalf("a pause of %v after %v", pause, it.waited)
			}
			if pause > longest {
				longest = pause
			}
		}
		if longest < it.bound*9/10 {
			t.Fatalf("no pause is longer than %v after %v", longest, it.waited)
		}
	}
	for _, delay := range []time.Duration{1, never / 2, never/2 + 1, never} {
		if longest := longestPause(delay); longest < shortest || longest < delay {
			t.Fatalf("a longest pause of %v for a delay of %v", longest, delay)
		}
	}
}

func TestMillisecondsAreRoundedAwayFromZero(t *testing.T) {
	for d, wanted := range map[time.Duration]int64{
		0: 0, 1: 1, -1: -1, time.Millisecond: 1, time.Millisecond + 1: 2, -time.Millisecond: -1,
		-time.Millisecond - 1: -2, math.MaxInt64: 9223372036855, math.MinInt64: -9223372036855,
	} {
		if got := int64(ms(d)); got != wanted {
			t.Errorf("%v is %d ms", d, got)
		}
	}
}

// No slot is lost, whichever way the waiting for it ends.
func TestSlots(t *testing.T) {
	one, all := make(slots, 1), make(slots, 1)
	closing := make(chan struct{})
	if err := one.take(context.Background(), closing, all); err != nil {
		t.Fatal(err)
	}
	close(closing)
	for i := 0; i < 10; i++ {
		if err := one.take(context.Background(), closing, all); err != ErrClosed {
			t.Fatal(err)
		}
		other := make(slots, 1)
		if err := other.take(context.Background(), closing, all); err != ErrClosed || len(other) != 0 {
			t.Fatal(err, len(other))
		}
	}
	one.give(all)
	if len(one) != 0 || len(all) != 0 {
		t.Fatal(len(one), len(all))
	}
}

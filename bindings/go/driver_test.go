package redlock

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"
)

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

func TestAPasswordIsPutWhereItFits(t *testing.T) {
	p := &passwords{ask: func(server string) (string, error) { return server + "!", nil }}
	for size := 1; size < 8; size++ {
		room := []byte("########")
		if given := p.into(room[:size], "abcd"); given != (size >= 6) {
			t.Error(size, given)
		} else if given && string(room) != "abcd!\x00##" || !given && room[size] != '#' {
			t.Errorf("%d: %q", size, room)
		}
	}
}

// nowhere has a server that cannot exist.
func nowhere(t *testing.T) *Manager {
	t.Helper()
	m, err := New("127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestManagerThatWasNotUsedIsFreed(t *testing.T) {
	m := nowhere(t)
	m.Close()
	<-m.shared.freed
	m.Close()
	if m.shared.file != nil {
		t.Fatal("it has begun to drive for nobody")
	}
}

// Some systems have no descriptor to wait for. There a thread waits in C.
func TestWithoutADescriptorAThreadDrives(t *testing.T) {
	m := nowhere(t)
	m.shared.started = true
	go m.shared.drive()
	for i := 0; i < 3; i++ {
		if _, err := m.TryLock(context.Background(), "x", time.Minute); !errors.Is(err, ErrUnreachable) {
			t.Fatal(err)
		}
	}
	m.Close()
	<-m.shared.freed
}

func TestWhoStandsInDoesNotWhenNobodyIsHeldUp(t *testing.T) {
	m := nowhere(t)
	defer m.Close()
	m.shared.newDriver().standIn() // returns
	if m.shared.standing != 0 {
		t.Fatal("it stands")
	}
}

func TestTheEndOfALockIsToldOnce(t *testing.T) {
	m := nowhere(t)
	defer m.Close()
	h, err := m.shared.newHold()
	if err != nil {
		t.Fatal(err)
	}
	defer h.finish()
	h.expiry = time.NewTimer(time.Hour) // the hold has no lock, so it would expire at once
	l := &Lease{hold: h}
	ctx := l.Context(context.Background())
	h.end(ErrReleased, false)
	h.end(ErrLost, true)
	<-ctx.Done()
	select {
	case <-l.Lost():
		t.Fatal("it was released, not lost")
	default:
	}
	if l.Err() != ErrReleased {
		t.Fatal(l.Err())
	}
}

// An event may come for a hold that has finished: its number is then unknown.
func TestEventsOfNobodyAreDropped(t *testing.T) {
	m := nowhere(t)
	defer m.Close()
	h, err := m.shared.newHold()
	if err != nil {
		t.Fatal(err)
	}
	h.finish()
	h.finish()
	if len(m.shared.holds) != 0 {
		t.Fatal("it is kept although it has finished")
	}
	d := m.shared.newDriver()
	d.events[0].id, d.events[1].id = 7, 1
	m.shared.handOut(d.events[:2])
}

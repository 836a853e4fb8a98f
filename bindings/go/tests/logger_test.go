package tests

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"redlock.example/redlock"
)

// traced are options under which the Logger gets a line for each event of a lock.
func traced(logger func(int, string)) redlock.Options {
	return redlock.Options{Logger: logger, Trace: redlock.TraceEvents, ReplyTimeout: time.Minute}
}

func TestTheLoggerMayCloseTheManager(t *testing.T) {
	closed, toClose := make(chan struct{}), make(chan *redlock.Manager, 1)
	m := newManager(t, traced(func(int, string) {
		select {
		case m := <-toClose:
			m.Close() // waits for the calls under way
			close(closed)
		default:
		}
	}), servers...)
	toClose <- m
	lease, err := m.TryLock(context.Background(), resource(t), time.Minute)
	ends(t, "the end of Close", closed)
	if err == nil {
		mustUnlock(t, lease)
	} else {
		mustBe(t, err, redlock.ErrClosed)
	}
}

// The call that is under way can end only if the goroutine that drives is not in the Logger.
func TestTheLoggerMayWaitForACallThatIsUnderWay(t *testing.T) {
	gates, addresses := newGates(t)
	toUnlock, begins, unlocked := make(chan *redlock.Lease, 1), make(chan struct{}), make(chan error, 1)
	m := newManager(t, traced(func(int, string) {
		select {
		case lease := <-toUnlock:
			close(begins)
			unlocked <- lease.Unlock()
		default:
		}
	}), addresses...)
	mustConnectAll(t, m)
	lease := mustLock(t, m, resource(t), time.Minute)
	setAll(gates, true)
	extended := make(chan error, 1)
	go func() { extended <- lease.Extend(10 * time.Minute) }()
	for _, server := range answering(t) {
		eventually(t, "it is extended on "+server, func() bool {
			var left int
			_, err := fmt.Sscanf(ask(t, server, "PTTL "+lease.Resource()), ":%d", &left)
			return err == nil && left > 120_000
		})
	}
	toUnlock <- lease
	eventually(t, "a line comes", func() bool {
		_, err := m.TryLock(within(t, 20*time.Millisecond), resource(t), time.Minute)
		mustBe(t, err, context.DeadlineExceeded)
		return isOver(begins)
	})
	setAll(gates, false)
	for _, outcome := range []chan error{extended, unlocked} {
		select {
		case err := <-outcome:
			must(t, err)
		case <-time.After(20 * time.Second):
			t.Fatal("a call does not end")
		}
	}
}

// kept collects the lines that a Logger gets.
type kept struct {
	mu    sync.Mutex
	lines []string
}

func (k *kept) add(level int, text string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.lines = append(k.lines, fmt.Sprint(level, " ", text))
}

func (k *kept) has(text string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return strings.Contains(strings.Join(k.lines, "\n"), text)
}

func TestALoggerThatPanicsOrExitsIsToldAndHarmsNothing(t *testing.T) {
	for told, fail := range map[string]func(){
		"1 the Logger failed: panic: out of ink":         func() { panic("out of ink") },
		"1 the Logger failed: runtime.Goexit was called": runtime.Goexit,
	} {
		var lines kept
		fail := fail
		m := newManager(t, traced(func(level int, text string) {
			lines.add(level, text)
			fail()
		}), servers...)
		name := resource(t)
		mustUnlock(t, mustLock(t, m, name, time.Minute))
		noKeys(t, []string{name})
		eventually(t, "it is told", func() bool { return lines.has(told) && lines.has("3 event=released") })
	}
}

func TestASlowLoggerHoldsUpNobodyAndIsToldWhatIsLeftOut(t *testing.T) {
	var lines kept
	begins, ready := make(chan struct{}, 1), make(chan struct{})
	options := traced(func(level int, text string) {
		select {
		case begins <- struct{}{}:
			<-ready
		default:
		}
		lines.add(level, text)
	})
	options.Trace = redlock.TraceResources
	m := newManager(t, options, servers...)
	must(t, tryOnce(m, resource(t)))
	ends(t, "the first line", begins)
	begins <- struct{}{}
	const locks = 200 // two lines each, and 256 may wait; two have come before
	last := ""
	for i := 0; i < locks; i++ {
		last = resource(t)
		must(t, tryOnce(m, last))
	}
	m.Close()
	close(ready)
	eventually(t, "the last lines come", func() bool {
		lines.mu.Lock()
		defer lines.mu.Unlock()
		return len(lines.lines) == 1+1+256
	})
	if wanted := fmt.Sprintf("1 %d earlier lines were dropped", 2+2*locks-1-256); lines.lines[1] != wanted {
		t.Fatal(lines.lines[:3])
	}
	if line := lines.lines[1+256]; !strings.Contains(line, "event=released") || !strings.Contains(line, last) {
		t.Fatal("it is not the last lines that stay: ", line)
	}
}

// The program makes no call while the server ends. The TTL is so long that no renewal comes, either.
func TestTheLoggerOfAProgramThatOnlyKeepsALockIsToldOfALostServer(t *testing.T) {
	gates, addresses := newGates(t)
	var lines kept
	m := newManager(t, redlock.Options{Logger: lines.add}, addresses...)
	lease := mustLock(t, m, resource(t), time.Hour)
	must(t, lease.KeepAlive())
	mustConnectAll(t, m)
	gates[1].cut()
	eventually(t, "the loss is told", func() bool { return lines.has("1 " + addresses[1]) })
	mustUnlock(t, lease)
}

func TestTheLoggerIsToldWhyThereIsNoPassword(t *testing.T) {
	user := newUser(t, "sesame")
	for told, fail := range map[string]func() (string, error){
		"the vault is shut":           func() (string, error) { return "", errors.New("the vault is shut") },
		"panic: no key":               func() (string, error) { panic("no key") },
		"runtime.Goexit was called":   func() (string, error) { runtime.Goexit(); return "", nil },
		"the password contains a NUL": func() (string, error) { return "a\x00b", nil },
		"the password is too long":    func() (string, error) { return strings.Repeat("x", 1<<20), nil },
	} {
		var lines kept
		fail := fail
		options := redlock.Options{Username: user, Logger: lines.add}
		options.PasswordFunc = func(string) (string, error) { return fail() }
		m := newManager(t, options, servers...)
		mustBe(t, tryOnce(m, resource(t)), redlock.ErrUnreachable)
		eventually(t, "it is told that "+told, func() bool {
			return lines.has("1 no password for " + servers[0] + ": " + told)
		})
		if lines.has("a\x00b") || lines.has("xxx") {
			t.Fatal("the password is in a line")
		}
	}
}

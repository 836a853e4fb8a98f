package tests

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"redlock.example/redlock"
)

// newUser makes a user on every server, and removes it in the end.
func newUser(t *testing.T, password string) (name string) {
	t.Helper()
	name = fmt.Sprintf("go%d", time.Now().UnixNano())
	for _, server := range answering(t) {
		answer := ask(t, server, "ACL SETUSER "+name+" on >"+password+" ~* &* +@all")
		if answer != "+OK" {
			t.Fatal(answer)
		}
		t.Cleanup(func() { ask(t, server, "ACL DELUSER "+name) })
	}
	return name
}

func tryOnce(m *redlock.Manager, name string) error {
	lease, err := m.TryLock(context.Background(), name, 10*time.Second)
	if err == nil {
		err = lease.Unlock()
	}
	return err
}

func TestCredentials(t *testing.T) {
	user := newUser(t, "sesame")
	good := newManager(t, redlock.Options{Username: user, Password: "sesame"}, servers...)
	must(t, tryOnce(good, resource(t)))
	bad := newManager(t, redlock.Options{Username: user, Password: "simsim"}, servers...)
	err := tryOnce(bad, resource(t))
	mustBe(t, err, redlock.ErrUnreachable)
	if strings.Contains(err.Error(), "simsim") {
		t.Fatal("the password is in ", err)
	}
}

func TestPasswordFunc(t *testing.T) {
	user := newUser(t, "sesame")
	var mu sync.Mutex
	asked := map[string]int{}
	options := redlock.Options{Username: user, PasswordFunc: func(server string) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		asked[server]++
		return "sesame", nil
	}}
	m := newManager(t, options, servers...)
	each(64, func(int) {
		if err := tryOnce(m, resource(t)); err != nil {
			t.Error(err)
		}
	})
	for _, server := range answering(t) {
		count := func() int {
			mu.Lock()
			defer mu.Unlock()
			return asked[server]
		}
		// A majority is enough for a lock, so the last question may come later.
		eventually(t, "all are asked about", func() bool {
			must(t, tryOnce(m, resource(t)))
			return count() > 0
		})
		if n := count(); n != 1 {
			t.Errorf("asked for the password of %s %d times", server, n)
		}
	}
}

// A failure of the user's function must not tear down the frames of C below it. The same Manager goes on, and
// logs in when there is a password.
func TestPasswordFuncThatFails(t *testing.T) {
	user := newUser(t, "sesame")
	none := errors.New("none")
	options := redlock.Options{Username: user, PasswordFunc: func(string) (string, error) { return "", none }}
	mustBe(t, tryOnce(newManager(t, options, servers...), resource(t)), redlock.ErrUnreachable)
	for what, fail := range map[string]func() string{
		"panic":    func() string { panic("no password today") },
		"exit":     func() string { runtime.Goexit(); return "" },
		"nul":      func() string { return "sesame\x00street" },
		"too long": func() string { return strings.Repeat("x", 1<<20) },
		"empty":    func() string { return "" },
	} {
		fail := fail
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			var willing atomic.Bool
			options := redlock.Options{Username: user, PasswordFunc: func(string) (string, error) {
				if willing.Load() {
					return "sesame", nil
				}
				return fail(), nil
			}}
			m := newManager(t, options, servers...)
			mustBe(t, tryOnce(m, resource(t)), redlock.ErrUnreachable)
			willing.Store(true)
			eventually(t, "it is asked again", func() bool { return tryOnce(m, resource(t)) == nil })
		})
	}
}

func TestRestartGuard(t *testing.T) {
	guards := []redlock.RestartGuard{redlock.GuardOn, redlock.GuardStrict, redlock.GuardOff, redlock.GuardDurable}
	for _, guard := range guards {
		for _, options := range []redlock.Options{
			{RestartGuard: guard}, {RestartGuard: guard, LongestTTL: time.Minute, GuardCap: 5 * time.Minute},
		} {
			must(t, tryOnce(newManager(t, options, servers...), resource(t)))
		}
	}
	for words, bad := range map[string]redlock.Options{
		"RestartGuard is 4":                       {RestartGuard: 4},
		"RestartGuard is -1":                      {RestartGuard: -1},
		"LongestTTL is -1ms: it must be 0ms to":   {LongestTTL: -1},
		"GuardCap is 9223372036855ms: it must be": {GuardCap: math.MaxInt64},
	} {
		_, err := redlock.NewWithOptions(bad, servers...)
		mustBe(t, err, redlock.ErrInvalidArgument)
		if !strings.Contains(err.Error(), words) {
			t.Errorf("%q is not in %v", words, err)
		}
	}
}

// No Sentinel watches the servers: with and without the setting, a lock is had.
func TestNoFailoverGuard(t *testing.T) {
	for _, none := range []bool{false, true} {
		must(t, tryOnce(newManager(t, redlock.Options{NoFailoverGuard: none}, servers...), resource(t)))
	}
}

func TestFencingTokensGrow(t *testing.T) {
	name := resource(t)
	plain := mustLock(t, impatient(t), name, time.Minute)
	if token := plain.FencingToken(); token != 0 {
		t.Errorf("the token is %d without Fencing", token)
	}
	mustUnlock(t, plain)
	m, last := newManager(t, redlock.Options{Fencing: true}, servers...), int64(0)
	for round := 0; round < 3; round++ {
		lease := mustLock(t, m, name, time.Minute)
		token := lease.FencingToken()
		if token <= last {
			t.Errorf("%d comes after %d", token, last)
		}
		must(t, lease.Extend(2*time.Minute))
		if lease.FencingToken() != token {
			t.Errorf("%d became %d", token, lease.FencingToken())
		}
		mustUnlock(t, lease)
		if lease.FencingToken() != 0 {
			t.Error("a token is there without a lock")
		}
		last = token
	}
	var none redlock.Lease
	if none.FencingToken() != 0 {
		t.Error("a Lease that holds nothing has a token")
	}
}

// The wait queue is in a key beside the lock. A caller that is not woken asks now and then, and is in no queue.
func TestNoWaking(t *testing.T) {
	for _, noWaking := range []bool{false, true} {
		holder, name := impatient(t), resource(t)
		lease := mustLock(t, holder, name, time.Minute)
		options := redlock.Options{NoWaking: noWaking, RetryDelay: 4 * time.Millisecond, ReplyTimeout: 20 * time.Second}
		m, ctx, outcome := newManager(t, options, servers...), within(t, time.Minute), make(chan error, 1)
		go func() {
			next, err := m.Lock(ctx, name, time.Minute)
			if err == nil {
				err = next.Unlock()
			}
			outcome <- err
		}()
		isQueued := func() bool {
			for _, server := range answering(t) {
				if ask(t, server, "EXISTS "+name+":w") == ":1" {
					return true
				}
			}
			return false
		}
		eventually(t, "it waits", func() bool {
			stats, err := m.Stats()
			must(t, err)
			return isQueued() || stats.Attempts > 5
		})
		if isQueued() == noWaking {
			t.Fatal("NoWaking is ", noWaking)
		}
		mustUnlock(t, lease)
		must(t, <-outcome)
	}
}

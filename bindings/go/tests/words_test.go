package tests

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"redlock.example/redlock"
)

// misspelt is a closed port. The third server of the tests may be down.
const misspelt = "127.0.0.1:1"

func twoOfThree(t *testing.T, options redlock.Options) *redlock.Manager {
	t.Helper()
	return newManager(t, options, servers[0], servers[1], misspelt)
}

func TestServersTellsOfEach(t *testing.T) {
	m := twoOfThree(t, redlock.Options{})
	mustConnect(t, m)
	told, err := m.Servers()
	must(t, err)
	if len(told) != 3 || told[0].Name != servers[0] || told[2].Name != misspelt {
		t.Fatalf("%+v", told)
	}
	if it := told[0]; !it.Connected || !it.Votes || it.Words != "" || it.RoundTrip < 0 || it.ClockOffset == nil || it.ClockOffset.Abs() > time.Hour || it.Role != "primary" || len(it.RunID) != 40 || it.Version == "" {
		t.Errorf("%+v", it)
	}
	if it := told[2]; it.Connected || it.Votes || it.Words == "" || it.RoundTrip >= 0 || it.ClockOffset != nil || it.Role != "" || it.RunID != "" {
		t.Errorf("%+v", it)
	}
	m.Close()
	_, err = m.Servers()
	mustBe(t, err, redlock.ErrClosed)
}

func TestConnectNamesTheServersThatAreNotThere(t *testing.T) {
	m := twoOfThree(t, redlock.Options{})
	words, err := m.Connect(context.Background())
	must(t, err)
	lease := mustLock(t, m, resource(t), time.Minute)
	defer lease.Unlock()
	for _, text := range []string{words, lease.Message()} {
		if !strings.Contains(text, misspelt) {
			t.Errorf("%s is not named: %q", misspelt, text)
		}
	}
}

func TestNothingIsSaidWhereAllServersAreThere(t *testing.T) {
	m := newManager(t, redlock.Options{}, servers[0])
	words, err := m.Connect(context.Background())
	must(t, err)
	lease := mustLock(t, m, resource(t), time.Minute)
	defer lease.Unlock()
	if words != "" || lease.Message() != "" {
		t.Errorf("%q, %q", words, lease.Message())
	}
	if err = lease.Extend(-time.Second); err == nil || !strings.Contains(err.Error(), lease.Message()) {
		t.Errorf("%v, %q", err, lease.Message())
	}
}

func TestTheLoggerIsTold(t *testing.T) {
	var mu sync.Mutex
	var told []string
	m := twoOfThree(t, redlock.Options{Logger: func(level int, line string) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, fmt.Sprint(level, " ", line))
	}})
	eventually(t, "it is told", func() bool {
		mustConnect(t, m) // a quorum is up, perhaps before the name was looked up in vain
		mu.Lock()
		defer mu.Unlock()
		text := strings.Join(told, "\n")
		return strings.Contains(text, "1 ") && strings.Contains(text, misspelt)
	})
}

func TestNeitherATokenNorAPasswordShows(t *testing.T) {
	const password = "s3same-0pen"
	options := redlock.Options{Username: "u", Password: password}
	guarded := twoOfThree(t, options)
	byURL := newManager(t, redlock.Options{}, "redis://u:"+password+"@"+servers[0])
	lease := mustLock(t, impatient(t), resource(t), time.Minute)
	token := lease.Token()
	if len(token) != 40 {
		t.Fatalf("the token has %d digits", len(token))
	}
	var shown bytes.Buffer
	for _, thing := range []any{options, &options, guarded, byURL, lease, []any{options, lease, guarded}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x", "%X", "%o"} {
			fmt.Fprintf(&shown, verb, thing)
		}
		text, err := json.Marshal(thing)
		fmt.Fprintln(&shown, string(text), err)
	}
	for _, m := range []*redlock.Manager{guarded, byURL} {
		_, err := m.TryLock(context.Background(), resource(t), time.Minute)
		fmt.Fprintf(&shown, "%v %+v %#v", err, err, err)
	}
	_, err := redlock.New("redis://u:" + password + "@h:x")
	fmt.Fprintf(&shown, "%v %s %#v", err, lease.Extend(0), lease.Message())
	for _, secret := range []string{token, password, fmt.Sprintf("%x", password), fmt.Sprintf("%X", password)} {
		if strings.Contains(shown.String(), secret) {
			t.Errorf("%q is shown", secret)
		}
	}
	if !strings.Contains(shown.String(), lease.Resource()) {
		t.Error("the lease does not say what it is of")
	}
	must(t, lease.Unlock())
	if lease.Token() != "" {
		t.Error("a token is there without a lock")
	}
}

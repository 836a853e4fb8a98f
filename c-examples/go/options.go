package redlock

/*
#include <limits.h>
#include <redlock.h>
*/
import "C"

import (
	"fmt"
	"runtime/cgo"
	"strings"
	"time"
)

// Options are the settings of a Manager. A zero stands for the default.
type Options struct {
	// RetryDelay bounds the pauses of Lock between two attempts, which are random, begin short and
	// grow while it waits: none is much longer than one and a half of it. Default 200 ms.
	RetryDelay time.Duration
	// Tries is how often Lock asks the servers at most; what it waits in line for other goroutines
	// of the Manager is not counted. Default: as often as its context allows.
	Tries int
	// ConnectTimeout is for connecting to a server, with the log-in. Default 1.5 s.
	ConnectTimeout time.Duration
	// ReplyTimeout is for a server's reply. Default: a twentieth of the TTL, 25 to 500 ms.
	ReplyTimeout time.Duration
	// ClockDriftFactor is how much faster a server's clock may run than ours. Default 0.01.
	ClockDriftFactor float64

	// Username and Password are for servers whose URL names neither. Without a Username it is the
	// default user of the servers.
	Username string
	Password string `json:"-"`
	// PasswordFunc is asked for the password instead: when a server is first connected to, and again
	// when it did not accept the last answer. server is as messages name it, such as 10.0.0.7:6379.
	// After an error the server counts as not connected, and the function is asked again a second
	// later at the earliest; a panic is one. It runs on a goroutine of its own, several at once for
	// several servers, while calls that connect wait for it: so it should be quick. It must not use
	// the Manager.
	PasswordFunc func(server string) (string, error)

	// TLS, where it is not nil, has servers that are given as host:port spoken to over TLS, like
	// those given as rediss:// URLs, and says how.
	TLS *TLS

	// Logger is told of servers that are lost or refuse (level 1) or come back (level 2), in one
	// line. It runs on a goroutine of its own, while the call in which that happened waits for it.
	Logger func(level int, message string)
}

// TLS are the settings of encrypted connections. The zero value trusts the system's roots.
type TLS struct {
	CAFile     string // a PEM file with the authorities to be trusted instead of the system's
	CertFile   string // a PEM file with a certificate for the servers to see, with its chain
	KeyFile    string // a PEM file with the key of that
	ServerName string // the name in the servers' certificates. Default: each server's own host
	// InsecureSkipVerify takes any certificate for good: whoever sits in between can read along and
	// answer in the servers' stead.
	InsecureSkipVerify bool
}

// Format is for printing the Options with package fmt: it leaves the Password out.
func (o Options) Format(state fmt.State, _ rune) {
	type plain Options
	if o.Password != "" {
		o.Password = "(not shown)"
	}
	if state.Flag('#') {
		fmt.Fprintf(state, "%#v", plain(o))
	} else {
		fmt.Fprintf(state, "%+v", plain(o))
	}
}

func (m *Manager) configure(o Options) error {
	switch {
	case o.RetryDelay < 0:
		return invalid("RetryDelay is negative")
	case o.Tries < 0:
		return invalid("Tries is negative")
	case o.RetryDelay == 0:
		o.RetryDelay = 200 * time.Millisecond
	}
	if o.ConnectTimeout == 0 {
		o.ConnectTimeout = 1500 * time.Millisecond
	}
	m.tries, m.longest = o.Tries, longestPause(o.RetryDelay)
	err := m.check(C.RedLock_SetTimeouts(m.handle, ms(o.ConnectTimeout), ms(o.ReplyTimeout)))
	if err == nil {
		err = m.setRetry(o.RetryDelay)
	}
	if err == nil && o.ClockDriftFactor != 0 {
		err = m.check(C.RedLock_SetClockDriftFactor(m.handle, C.double(o.ClockDriftFactor)))
	}
	if err == nil {
		err = m.setCredentials(o)
	}
	if err == nil && o.TLS != nil {
		err = m.setTLS(*o.TLS)
	}
	if err == nil && o.Logger != nil {
		m.logger = cgo.NewHandle(o.Logger)
		err = m.check(setLogger(m.handle, m.logger))
	}
	return err
}

// setRetry is for the short while in which an attempt may wait in the C library.
func (m *Manager) setRetry(delay time.Duration) error {
	delay = earlier(delay, C.INT_MAX*time.Millisecond)
	return m.check(C.RedLock_SetRetry(m.handle, 1, C.int(ms(delay))))
}

func (m *Manager) setCredentials(o Options) error {
	if o.PasswordFunc == nil {
		return m.with(func(texts ...*C.char) C.RedLockStatus {
			return C.RedLock_SetCredentials(m.handle, texts[0], texts[1])
		}, o.Username, o.Password)
	}
	if o.Password != "" {
		return invalid("both Password and PasswordFunc are given")
	}
	m.passwords = cgo.NewHandle(o.PasswordFunc)
	return m.with(func(texts ...*C.char) C.RedLockStatus {
		return setPasswordFunc(m.handle, texts[0], m.passwords)
	}, o.Username)
}

func (m *Manager) setTLS(t TLS) error {
	rl := m.handle
	err := m.with(func(texts ...*C.char) C.RedLockStatus {
		return C.RedLock_SetTlsCa(rl, texts[0])
	}, t.CAFile)
	if err == nil {
		err = m.with(func(texts ...*C.char) C.RedLockStatus {
			return C.RedLock_SetTlsCertificate(rl, texts[0], texts[1])
		}, t.CertFile, t.KeyFile)
	}
	if err == nil {
		err = m.with(func(texts ...*C.char) C.RedLockStatus {
			return C.RedLock_SetTlsServerName(rl, texts[0])
		}, t.ServerName)
	}
	if err == nil {
		err = m.check(C.RedLock_SetTlsInsecureSkipVerify(rl, C.bool(t.InsecureSkipVerify)))
	}
	return err
}

// longestPause is one and a half of the delay.
func longestPause(delay time.Duration) time.Duration {
	if delay > never/2 {
		return never
	}
	if delay = delay + delay/2; delay < shortest {
		return shortest
	}
	return delay
}

func (m *Manager) addServer(server, scheme string) error {
	if !strings.Contains(server, "://") {
		server = scheme + server
	}
	return m.with(func(texts ...*C.char) C.RedLockStatus {
		return C.RedLock_AddServerUrl(m.handle, texts[0], 0)
	}, server)
}

package redlock

/*
#include <limits.h>
#include <redlock.h>
*/
import "C"

import (
	"fmt"
	"math"
	"runtime/cgo"
	"strings"
	"time"
)

// Options are the settings of a Manager. A zero means the default.
type Options struct {
	// RetryDelay bounds the pauses of Lock between two attempts. They are random, begin short and grow while it
	// waits: none is longer than one and a half of RetryDelay. Default 200 ms.
	RetryDelay time.Duration
	// Tries is the maximum number of tries of Lock, with a mean pause of RetryDelay. Default: as many as its
	// context allows.
	Tries int
	// ConnectTimeout is the timeout for connecting to a server, including the log-in. Default 1.5 s.
	ConnectTimeout time.Duration
	// ReplyTimeout is the timeout for a server's reply. Default: a twentieth of the TTL, 25 to 500 ms.
	ReplyTimeout time.Duration
	// ClockDriftFactor is how much faster a server's clock may run than this machine's. Default 0.01.
	ClockDriftFactor float64

	// RestartGuard is how the manager guards against servers that lose their memory. Default GuardOn.
	RestartGuard RestartGuard
	// LongestTTL is the longest TTL that any client uses on these servers. Default: the TTL that is noted on the
	// servers, which is enough unless several of them are lost at once.
	LongestTTL time.Duration
	// GuardCap is the longest time that a server stays without a vote; less than 3 s is 3 s. Locks with a longer
	// TTL are guarded for that time only. Default 10 min.
	GuardCap time.Duration
	// NoFailoverGuard lets a master that Sentinels watch vote as soon as one Sentinel names it, and also while no
	// Sentinel can be reached. Then an old master may vote beside its successor, and two clients may hold one lock.
	// Otherwise it has a vote only while a majority of all its Sentinels names it as the master, so an old master that
	// was paused or cut off while another one was elected never votes beside its successor. It has no effect on servers
	// that no Sentinel watches, nor with GuardOff or GuardDurable. Default: a majority must name it.
	NoFailoverGuard bool

	// Fencing gives each lock a fencing token: see Lease.FencingToken. All clients that lock the resource must set
	// it. The servers count in the key redlock:fence, so do not lock a resource with this name. Default: locks have
	// no token.
	Fencing bool

	// NoWaking makes waiting calls ask for the lock now and then, and its releases wake no waiting clients.
	// Otherwise waiting calls are woken when another process releases the lock. The wait queue is in the key that
	// is named as the resource with :w appended, so do not lock a resource with such a name. Default: waiting calls
	// are woken.
	NoWaking bool

	// Username and Password are for servers whose URLs name neither. Without a Username, the default user of the
	// servers is meant.
	Username string
	Password string `json:"-"`
	// PasswordFunc provides the password instead. It is called when the library connects to a server for the first
	// time, and again when the server did not accept the last answer. server is as messages name it, such as
	// 10.0.0.7:6379. After an error the server counts as not connected, and the function is called again after one
	// second at the earliest. A panic is such an error. The Logger is told of each error. The function runs on a
	// goroutine of its own, and may run several times at once for several servers. Calls that connect wait for it, so
	// it should be quick. It must not use the Manager.
	PasswordFunc func(server string) (string, error)

	// TLS, if not nil, makes the connections to servers that are given as host:port use TLS, like those given as
	// rediss:// URLs, and contains the settings.
	TLS *TLS

	// Logger is called when servers are lost or refuse (level 1) or come back (level 2), with one line of text. It
	// runs on a goroutine of its own, one line at a time. No call waits for it, so it may use the Manager, and even
	// close it. Up to 256 lines wait for a slow Logger. Beyond that, the oldest are left out, and one line reports how
	// many. A line may still come after Close has returned. A panic in it harms no call and ends there: the Logger
	// gets one more line, at level 1, that reports the panic.
	Logger func(level int, message string)
	// Trace makes the Logger also receive the events of locks, at level 3: one line of key=value pairs for each
	// event. Default TraceOff.
	Trace Trace
}

// RestartGuard is how the manager guards against servers that lose their memory, for example in a restart without
// their data.
type RestartGuard int32

// The modes of the guard. It needs the right to read and write the key redlock:guard, and to use INFO, TIME,
// PEXPIRETIME (Redis 7.0), GETRANGE, GET, SET and EVAL.
const (
	GuardOn      RestartGuard = C.REDLOCK_GUARD_ON      // no vote until the locks that the server may have forgotten have ended
	GuardStrict  RestartGuard = C.REDLOCK_GUARD_STRICT  // as GuardOn, but servers that seem to be new also have no vote at first
	GuardOff     RestartGuard = C.REDLOCK_GUARD_OFF     // every server that can be reached has a vote
	GuardDurable RestartGuard = C.REDLOCK_GUARD_DURABLE // as GuardOff, because the program vouches that no server ever forgets
)

// TLS are the settings of encrypted connections. The zero value trusts the system's roots.
type TLS struct {
	CAFile     string // a PEM file with the authorities to trust instead of the system's
	CertFile   string // a PEM file with the client certificate, with its chain
	KeyFile    string // a PEM file with the key of that certificate
	ServerName string // the name in the servers' certificates. Default: each server's own host
	// InsecureSkipVerify accepts any certificate without verification: anybody on the network path to the servers
	// can then read everything and answer in their place.
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

func (s *shared) configure(o Options) error {
	switch {
	case o.RetryDelay < 0:
		return invalid("RetryDelay must not be negative")
	case o.Tries < 0:
		return invalid("Tries must not be negative")
	case o.Tries > math.MaxInt32:
		return invalid("Tries must be at most 2147483647")
	case o.RestartGuard < GuardOn || o.RestartGuard > GuardDurable:
		return invalid(fmt.Sprintf("RestartGuard is %d: use one of the Guard constants", o.RestartGuard))
	case o.Trace < TraceOff || o.Trace > TraceResources:
		return invalid(fmt.Sprintf("Trace is %d: use one of the Trace constants", o.Trace))
	case o.RetryDelay == 0:
		o.RetryDelay = 200 * time.Millisecond
	}
	if o.ConnectTimeout == 0 {
		o.ConnectTimeout = 1500 * time.Millisecond
	}
	s.tries = o.Tries
	if o.Logger != nil {
		s.teller = &teller{logger: o.Logger}
	}
	err := s.check(C.RedLock_SetLanguage(s.handle, C.REDLOCK_LANGUAGE_GO))
	if err == nil {
		err = s.check(C.RedLock_SetTimeouts(s.handle, ms(o.ConnectTimeout), ms(o.ReplyTimeout)))
	}
	if err == nil {
		err = s.setRetry(o.RetryDelay)
	}
	s.drift = 0.01
	if err == nil && o.ClockDriftFactor != 0 {
		s.drift = o.ClockDriftFactor
		err = s.check(C.RedLock_SetClockDriftFactor(s.handle, C.double(o.ClockDriftFactor)))
	}
	if err == nil {
		guard, longest, limit := C.int32_t(o.RestartGuard), ms(o.LongestTTL), ms(o.GuardCap)
		err = s.check(C.RedLock_SetRestartGuard(s.handle, guard, longest, limit))
	}
	if err == nil {
		err = s.check(C.RedLock_SetFailoverGuard(s.handle, C.bool(!o.NoFailoverGuard)))
	}
	if err == nil {
		err = s.check(C.RedLock_SetFencing(s.handle, C.bool(o.Fencing)))
	}
	if err == nil {
		err = s.check(C.RedLock_SetWaking(s.handle, C.bool(!o.NoWaking)))
	}
	if err == nil {
		err = s.setCredentials(o)
	}
	if err == nil && o.TLS != nil {
		err = s.setTLS(*o.TLS)
	}
	if err == nil {
		err = s.check(C.RedLock_SetTracing(s.handle, C.int32_t(o.Trace)))
	}
	if err == nil && s.teller != nil {
		s.logger = cgo.NewHandle(s.teller)
		err = s.check(setLogger(s.handle, s.logger))
	}
	return err
}

// ttlFor is the TTL that gives a lock a validity of so many milliseconds. It adds the allowance for drift, 2 ms for
// the precision of expiry, and a rounding.
func (s *shared) ttlFor(validity float64) C.int64_t {
	return C.int64_t(math.Min((validity+3)/(1-s.drift)+1, 1e15)) // C refuses a value that is too large
}

// setRetry sets the pauses. The number of tries comes with each call.
func (s *shared) setRetry(delay time.Duration) error {
	if delay > C.INT_MAX*time.Millisecond {
		delay = C.INT_MAX * time.Millisecond
	}
	return s.check(C.RedLock_SetRetry(s.handle, 1, C.int(ms(delay))))
}

func (s *shared) setCredentials(o Options) error {
	if o.PasswordFunc == nil {
		return s.with(func(texts ...*C.char) C.RedLockStatus {
			return C.RedLock_SetCredentials(s.handle, texts[0], texts[1])
		}, text{"Username", o.Username}, text{"Password", o.Password})
	}
	if o.Password != "" {
		return invalid("Password and PasswordFunc exclude each other")
	}
	s.passwords = cgo.NewHandle(&passwords{o.PasswordFunc, s.teller})
	return s.with(func(texts ...*C.char) C.RedLockStatus {
		return setPasswordFunc(s.handle, texts[0], s.passwords)
	}, text{"Username", o.Username})
}

func (s *shared) setTLS(t TLS) error {
	rl := s.handle
	err := s.with(func(texts ...*C.char) C.RedLockStatus {
		return C.RedLock_SetTlsCa(rl, texts[0])
	}, text{"TLS.CAFile", t.CAFile})
	if err == nil {
		err = s.with(func(texts ...*C.char) C.RedLockStatus {
			return C.RedLock_SetTlsCertificate(rl, texts[0], texts[1])
		}, text{"TLS.CertFile", t.CertFile}, text{"TLS.KeyFile", t.KeyFile})
	}
	if err == nil {
		err = s.with(func(texts ...*C.char) C.RedLockStatus {
			return C.RedLock_SetTlsServerName(rl, texts[0])
		}, text{"TLS.ServerName", t.ServerName})
	}
	if err == nil {
		err = s.check(C.RedLock_SetTlsInsecureSkipVerify(rl, C.bool(t.InsecureSkipVerify)))
	}
	return err
}

func (s *shared) addServer(server, scheme string) error {
	if !strings.Contains(server, "://") {
		server = scheme + server
	}
	return s.with(func(texts ...*C.char) C.RedLockStatus {
		return C.RedLock_AddServerUrl(s.handle, texts[0], 0)
	}, text{"server", server})
}

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

// Options are the settings of a Manager. A zero stands for the default.
type Options struct {
	// RetryDelay bounds the pauses of Lock between two attempts, which are random, begin short and
	// grow while it waits: none is longer than one and a half of it. Default 200 ms.
	RetryDelay time.Duration
	// Tries is how often Lock tries at most, with pauses of RetryDelay in the mean. Default: as often as
	// its context allows.
	Tries int
	// ConnectTimeout is for connecting to a server, with the log-in. Default 1.5 s.
	ConnectTimeout time.Duration
	// ReplyTimeout is for a server's reply. Default: a twentieth of the TTL, 25 to 500 ms.
	ReplyTimeout time.Duration
	// ClockDriftFactor is how much faster a server's clock may run than ours. Default 0.01.
	ClockDriftFactor float64

	// RestartGuard is what is done against servers that lose their memory. Default GuardOn.
	RestartGuard RestartGuard
	// LongestTTL is the longest TTL that any client uses on these servers. Default: what is noted on them,
	// which is enough unless several of them are lost at once.
	LongestTTL time.Duration
	// GuardCap is for how long a server is left without a vote at most; less than 3 s is 3 s. Locks with a
	// longer TTL are guarded for that long only. Default 10 min.
	GuardCap time.Duration

	// Fencing has each lock come with a fencing token: see Lease.FencingToken. All who lock the resource must
	// set it. The servers count in the key with :f behind the name of the resource, so lock none of such a
	// name. Default: locks have no token.
	Fencing bool

	// NoWaking has calls that wait for a lock ask now and then, rather than being told when another process
	// releases it, and has releases tell nobody. Waiters stand in line in the key with :w behind the name of the
	// resource, so lock none of such a name. Default: they are told.
	NoWaking bool

	// Username and Password are for servers whose URL names neither. Without a Username it is the
	// default user of the servers.
	Username string
	Password string `json:"-"`
	// PasswordFunc is asked for the password instead: when a server is first connected to, and again
	// when it did not accept the last answer. server is as messages name it, such as 10.0.0.7:6379.
	// After an error the server counts as not connected, and the function is asked again a second
	// later at the earliest; a panic is one. It runs on a goroutine of its own, perhaps several at once for
	// several servers, while calls that connect wait for it: so it should be quick. It must not use
	// the Manager.
	PasswordFunc func(server string) (string, error)

	// TLS, where it is not nil, has servers that are given as host:port spoken to over TLS, like
	// those given as rediss:// URLs, and says how.
	TLS *TLS

	// Logger is told of servers that are lost or refuse (level 1) or come back (level 2), in one
	// line. It runs on a goroutine of its own, one line at a time, and should be quick: what the servers say
	// is taken in after it.
	Logger func(level int, message string)
	// Trace has the Logger told what becomes of locks as well, at level 3: one line for each event, as key=value.
	// Default TraceOff.
	Trace Trace
}

// RestartGuard is what is done against servers that lose their memory, as in a restart without their data.
type RestartGuard int32

// How much is done. It needs the right to read and write the key redlock:guard, and to use INFO, TIME,
// GETRANGE and EVAL.
const (
	GuardOn      RestartGuard = C.REDLOCK_GUARD_ON      // no vote until the locks that it may have forgotten have ended
	GuardStrict  RestartGuard = C.REDLOCK_GUARD_STRICT  // the same, and none at first for servers that seem to be new
	GuardOff     RestartGuard = C.REDLOCK_GUARD_OFF     // every server that can be reached has a vote
	GuardDurable RestartGuard = C.REDLOCK_GUARD_DURABLE // the same: the program vouches that no server ever forgets
)

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

func (s *shared) configure(o Options) error {
	switch {
	case o.RetryDelay < 0:
		return invalid("RetryDelay is negative")
	case o.Tries < 0:
		return invalid("Tries is negative")
	case o.Tries > math.MaxInt32:
		return invalid("Tries is more than 2147483647")
	case o.RestartGuard < GuardOn || o.RestartGuard > GuardDurable:
		return invalid(fmt.Sprintf("RestartGuard is %d, which means nothing", o.RestartGuard))
	case o.Trace < TraceOff || o.Trace > TraceResources:
		return invalid(fmt.Sprintf("Trace is %d, which means nothing", o.Trace))
	case o.RetryDelay == 0:
		o.RetryDelay = 200 * time.Millisecond
	}
	if o.ConnectTimeout == 0 {
		o.ConnectTimeout = 1500 * time.Millisecond
	}
	s.tries = o.Tries
	err := s.check(C.RedLock_SetTimeouts(s.handle, ms(o.ConnectTimeout), ms(o.ReplyTimeout)))
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
	if err == nil && o.Logger != nil {
		s.logger = cgo.NewHandle(o.Logger)
		err = s.check(setLogger(s.handle, s.logger))
	}
	return err
}

// ttlFor is the TTL that a lock has to be given to be valid for so many milliseconds, with what is allowed for drift,
// 2 ms for the precision of expiry, and a rounding.
func (s *shared) ttlFor(validity float64) C.int64_t {
	return C.int64_t(math.Min((validity+3)/(1-s.drift)+1, 1e15)) // C refuses what is too much
}

// setRetry sets the pauses. How often Lock tries comes with each call.
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
		}, o.Username, o.Password)
	}
	if o.Password != "" {
		return invalid("both Password and PasswordFunc are given")
	}
	s.passwords = cgo.NewHandle(o.PasswordFunc)
	return s.with(func(texts ...*C.char) C.RedLockStatus {
		return setPasswordFunc(s.handle, texts[0], s.passwords)
	}, o.Username)
}

func (s *shared) setTLS(t TLS) error {
	rl := s.handle
	err := s.with(func(texts ...*C.char) C.RedLockStatus {
		return C.RedLock_SetTlsCa(rl, texts[0])
	}, t.CAFile)
	if err == nil {
		err = s.with(func(texts ...*C.char) C.RedLockStatus {
			return C.RedLock_SetTlsCertificate(rl, texts[0], texts[1])
		}, t.CertFile, t.KeyFile)
	}
	if err == nil {
		err = s.with(func(texts ...*C.char) C.RedLockStatus {
			return C.RedLock_SetTlsServerName(rl, texts[0])
		}, t.ServerName)
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
	}, server)
}

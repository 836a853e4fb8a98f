// Package redlock takes locks that are held on a majority of independent Redis or Valkey servers.
//
// It is a thin layer over the C library of that name. Where the library is not installed in the
// usual places, tell the compiler and the loader:
//
//	CGO_CFLAGS=-I<include> CGO_LDFLAGS=-L<lib> LD_LIBRARY_PATH=<lib> go run ./cmd/demo
package redlock

/*
#cgo LDFLAGS: -lredlock
#include <stdlib.h>
#include <redlock.h>
*/
import "C"

import (
	"runtime"
	"strings"
	"sync"
	"time"
	"unsafe"
)

// Options are the settings of a Manager. A zero stands for the default.
type Options struct {
	RetryDelay       time.Duration // mean pause between two attempts; each is random, ±50 %. Default 200 ms
	ConnectTimeout   time.Duration // for connecting to a server. Default 1.5 s
	ReplyTimeout     time.Duration // for a server's reply. Default: a twentieth of the TTL, 25 to 500 ms
	ClockDriftFactor float64       // how much faster a server's clock may run than ours. Default 0.01
}

// Manager takes locks on one set of servers. Any number of goroutines may use it at once.
type Manager struct {
	retryDelay time.Duration
	asking     sync.Mutex // IsLocked leaves its words in the C manager: one at a time

	mu     sync.Mutex // guards what follows
	handle *C.RedLock
	calls  int
	closed bool
}

// New makes a Manager for servers given as host:port or as a URL, such as
// redis://user:password@host:6379/0 or unix:///run/redis.sock. It does no I/O. All programs that
// are to exclude each other must name the same servers.
func New(servers ...string) (*Manager, error) {
	return NewWithOptions(Options{}, servers...)
}

// NewWithOptions is New with settings.
func NewWithOptions(options Options, servers ...string) (*Manager, error) {
	if len(servers) == 0 {
		return nil, &Error{Status: ErrNoServers, Message: "no server was given"}
	}
	m := &Manager{retryDelay: options.RetryDelay, handle: C.RedLock_New()}
	if m.handle == nil {
		return nil, &Error{Status: ErrInternal, Message: "out of memory"}
	}
	runtime.SetFinalizer(m, (*Manager).free)
	if err := m.configure(options); err != nil {
		return nil, err
	}
	for _, server := range servers {
		if err := m.addServer(server); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Close frees the connections; what else is called on the Manager later fails with ErrClosed. It
// does no I/O: locks that are held stay held until they expire, so unlock them first.
func (m *Manager) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	if m.calls == 0 {
		m.free()
	}
	return nil
}

// IsLocked asks the servers whether anybody holds the resource. To take a lock, take it: the
// answer may be out of date when it arrives.
func (m *Manager) IsLocked(resource string) (bool, error) {
	name, err := cString(resource)
	if err != nil {
		return false, err
	}
	defer C.free(unsafe.Pointer(name))
	handle, err := m.begin()
	if err != nil {
		return false, err
	}
	defer m.end()
	m.asking.Lock()
	defer m.asking.Unlock()
	var locked C.bool
	err = m.check(C.RedLock_IsLocked(handle, name, &locked))
	return bool(locked), err
}

func (m *Manager) configure(options Options) error {
	if options.RetryDelay < 0 {
		return &Error{Status: ErrInvalidArgument, Message: "RetryDelay is negative"}
	}
	if m.retryDelay == 0 {
		m.retryDelay = 200 * time.Millisecond
	}
	if options.ConnectTimeout == 0 {
		options.ConnectTimeout = 1500 * time.Millisecond
	}
	status := C.RedLock_SetTimeouts(m.handle, ms(options.ConnectTimeout), ms(options.ReplyTimeout))
	if err := m.check(status); err != nil || options.ClockDriftFactor == 0 {
		return err
	}
	return m.check(C.RedLock_SetClockDriftFactor(m.handle, C.double(options.ClockDriftFactor)))
}

func (m *Manager) addServer(server string) error {
	if !strings.Contains(server, "://") {
		server = "redis://" + server
	}
	url, err := cString(server)
	if err != nil {
		return err
	}
	defer C.free(unsafe.Pointer(url))
	return m.check(C.RedLock_AddServerUrl(m.handle, url, 0))
}

// begin hands out the C manager for one call, and end takes it back: it is freed when Close was
// called and the last call is over, so neither waits for the other.
func (m *Manager) begin() (*C.RedLock, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, ErrClosed
	}
	m.calls++
	return m.handle, nil
}

func (m *Manager) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.calls--; m.calls == 0 && m.closed {
		m.free()
	}
}

// free is also the finalizer: RedLock_Free does no I/O.
func (m *Manager) free() {
	C.RedLock_Free(m.handle)
	m.handle = nil
}

func (m *Manager) check(status C.RedLockStatus) error {
	if status == C.REDLOCK_OK {
		return nil
	}
	return &Error{Status: Status(status), Message: C.GoString(C.RedLock_ErrorMessage(m.handle))}
}

// cString refuses what C would cut short: "a\x00b" must not lock "a".
func cString(s string) (*C.char, error) {
	if strings.IndexByte(s, 0) >= 0 {
		return nil, &Error{Status: ErrInvalidArgument, Message: "a name holds a NUL byte"}
	}
	return C.CString(s), nil
}

// ms rounds up: a little must not become 0, which means something else.
func ms(d time.Duration) C.int64_t {
	n := d.Milliseconds()
	if d%time.Millisecond > 0 {
		n++
	}
	return C.int64_t(n)
}

package redlock

/*
#include <redlock.h>
*/
import "C"

import (
	"context"
	"runtime"
	"runtime/cgo"
	"strings"
	"sync"
	"time"
)

// Manager takes locks on one set of servers. Any number of goroutines may use it at once. New makes
// one; the zero value is a closed one.
type Manager struct {
	handle    *C.RedLock
	tries     int
	longest   time.Duration // of the pauses
	passwords cgo.Handle    // 0, or the function that is asked
	logger    cgo.Handle

	lines   lines
	asking  slots // calls of those who want something
	holding slots // calls of those who have a lock: they never wait for the others

	closing chan struct{}  // closed by Close
	ended   sync.WaitGroup // calls of those who want something
	mu      sync.Mutex     // guards what follows
	closed  bool
	uses    int // the handle goes with the last: the Manager, calls under way, locks that are held
}

// New makes a Manager for servers given as host:port or as a URL, such as
// rediss://user:password@host:6379/0 or unix:///run/redis.sock. It does no I/O. All programs that
// are to exclude each other must name the same servers.
func New(servers ...string) (*Manager, error) {
	return NewWithOptions(Options{}, servers...)
}

// NewWithOptions is New with settings.
func NewWithOptions(options Options, servers ...string) (*Manager, error) {
	if len(servers) == 0 {
		return nil, &Error{Status: ErrNoServers, Message: "no server was given"}
	}
	m := &Manager{
		handle:  C.RedLock_New(),
		asking:  make(slots, slotsOfManager),
		holding: make(slots, slotsOfManager),
		closing: make(chan struct{}),
		uses:    1,
	}
	if m.handle == nil {
		return nil, &Error{Status: ErrInternal, Message: "no manager could be made"}
	}
	runtime.SetFinalizer(m, (*Manager).free)
	err := m.configure(options)
	scheme := "redis://"
	if options.TLS != nil {
		scheme = "rediss://"
	}
	for i := 0; i < len(servers) && err == nil; i++ {
		err = m.addServer(servers[i], scheme)
	}
	if err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

// Close ends the taking of locks: those who wait get ErrClosed, and so do later calls. It returns
// when attempts under way are over, which takes no longer than the timeouts, and what they took for
// callers that are gone is released.
//
// Locks that are held stay held, and may still be extended and unlocked: the connections end with
// the last of them. To call Close again does no harm.
func (m *Manager) Close() error {
	m.mu.Lock()
	first := !m.closed && m.closing != nil
	if first {
		m.closed = true
		close(m.closing)
	}
	m.mu.Unlock()
	m.ended.Wait()
	if first {
		m.drop()
	}
	return nil
}

// Connect connects to the servers now rather than at the first lock, for a program that would
// rather not start than find out later. It returns when a quorum is up: ErrUnreachable says that
// and why there is none.
//
// The words are about the servers that are not up, and why: a name may be mis-spelled. They are empty
// if all are.
func (m *Manager) Connect(ctx context.Context) (string, error) {
	words := make(chan string, 1) // not a variable: the call may end after this one
	err := m.ask(ctx, func() error {
		err := m.check(C.RedLock_Connect(m.handle, 0))
		words <- C.GoString(C.RedLock_ErrorMessage(m.handle))
		return err
	}, func(error) {})
	if err != nil {
		return "", err
	}
	return <-words, nil
}

// IsLocked asks the servers whether anybody holds the resource. To take a lock, take it: the
// answer may be out of date when it arrives.
func (m *Manager) IsLocked(ctx context.Context, resource string) (bool, error) {
	var locked C.bool
	err := m.ask(ctx, func() error {
		return m.with(func(texts ...*C.char) C.RedLockStatus {
			return C.RedLock_IsLocked(m.handle, texts[0], &locked)
		}, resource)
	}, func(error) {})
	return err == nil && bool(locked), err
}

// begin is called before a call for somebody who wants something, and end after it.
func (m *Manager) begin() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || m.closing == nil {
		return ErrClosed
	}
	m.uses++
	m.ended.Add(1)
	return nil
}

func (m *Manager) end() {
	m.drop()
	m.ended.Done()
}

// keep has the handle stay until one more drop. Who calls it keeps the handle already.
func (m *Manager) keep() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.uses++
}

func (m *Manager) drop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.uses--; m.uses == 0 {
		m.free()
	}
}

// free is also the finalizer: RedLock_Free does no I/O.
func (m *Manager) free() {
	runtime.SetFinalizer(m, nil)
	C.RedLock_Free(m.handle)
	m.handle = nil
	for _, function := range []*cgo.Handle{&m.passwords, &m.logger} {
		if *function != 0 {
			function.Delete()
			*function = 0
		}
	}
}

// with hands C some texts, NULL for those that are empty.
func (m *Manager) with(f func(...*C.char) C.RedLockStatus, texts ...string) error {
	var pointers []*C.char
	for _, text := range texts {
		if strings.IndexByte(text, 0) >= 0 {
			return invalid("a text holds a NUL byte") // C would see its beginning only
		}
		pointer := (*C.char)(nil)
		if text != "" {
			pointer = C.CString(text)
			defer freeText(pointer)
		}
		pointers = append(pointers, pointer)
	}
	return m.check(f(pointers...))
}

// check reads the words of a call. Where several fail at once they may be those of another.
func (m *Manager) check(status C.RedLockStatus) error {
	if status == C.REDLOCK_OK {
		return nil
	}
	return &Error{Status: Status(status), Message: C.GoString(C.RedLock_ErrorMessage(m.handle))}
}

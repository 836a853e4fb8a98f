package redlock

/*
#include <redlock.h>
*/
import "C"

import (
	"context"
	"math"
	"os"
	"runtime"
	"runtime/cgo"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// The number of calls that may block a thread at the same time: those of Connect, IsLocked and Inspect.
const blockingMax = 4

// Manager takes locks on one set of servers. Any number of goroutines may use it at once. New makes a Manager; the
// zero value is a closed Manager.
type Manager struct {
	shared *shared
}

// shared is the common part of a Manager, its leases and the driving goroutine. It refers to neither the Manager
// nor a Lease, so that these can be collected while that goroutine runs.
type shared struct {
	handle    *C.RedLock
	tries     int
	drift     float64
	teller    *teller    // nil without a Logger
	passwords cgo.Handle // 0, or the handle of a *passwords
	logger    cgo.Handle // 0, or the handle of the teller

	submitting sync.Mutex    // for short calls into C: each goroutine that waits in C needs a thread
	blocking   chan struct{} // one slot for each call that blocks a thread

	closing  chan struct{}  // closed by Close
	ended    sync.WaitGroup // calls under way
	stopped  atomic.Bool    // the handle is no longer needed
	standIns sync.WaitGroup
	freed    chan struct{} // closed when the handle has been freed

	mu       sync.Mutex // guards the fields below, for short moments
	closed   bool
	started  bool
	file     *os.File
	standing int // how many goroutines stand in for the driving one
	uses     int // the last use frees the handle: the Manager, calls under way, held locks, a look-up
	holds    map[uintptr]*hold
	lastID   uintptr

	isLookingUp bool // a goroutine looks up the names of servers that may have moved
}

// New makes a Manager for servers given as host:port or as a URL, such as rediss://user:password@host:6379/0,
// unix:///run/redis.sock or redis-sentinel://host,host2/master. It does no I/O. All programs that must exclude each
// other must name the same servers.
func New(servers ...string) (*Manager, error) {
	return NewWithOptions(Options{}, servers...)
}

// NewWithOptions is New with settings.
func NewWithOptions(options Options, servers ...string) (*Manager, error) {
	if len(servers) == 0 {
		return nil, &Error{Status: ErrNoServers, Message: "no server was given"}
	}
	if err := checkVersion(); err != nil {
		return nil, err
	}
	s := &shared{
		handle:   C.RedLock_New(),
		blocking: make(chan struct{}, blockingMax),
		closing:  make(chan struct{}),
		freed:    make(chan struct{}),
		uses:     1,
		holds:    map[uintptr]*hold{},
	}
	if s.handle == nil {
		return nil, &Error{Status: ErrInternal, Message: "cannot create a manager"}
	}
	C.RedLock_IsLookUpDue(s.handle) // from now on a driver leaves the resolver to RedLock_LookUp
	m := &Manager{s}
	runtime.SetFinalizer(m, (*Manager).forget)
	err := s.configure(options)
	scheme := "redis://"
	if options.TLS != nil {
		scheme = "rediss://"
	}
	for i := 0; i < len(servers) && err == nil; i++ {
		err = s.addServer(servers[i], scheme)
	}
	if err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

// Close ends the taking of locks: waiting calls get ErrClosed at once, and so do later calls. Close returns when the
// waiting calls have ended. What Connect, IsLocked and Inspect have asked servers ends with the answers, which takes no
// longer than the timeouts. Anything that servers may have granted to waiting calls is released.
//
// Held locks stay held, may still be extended and unlocked, and are still kept alive if they were. The connections
// end with the last of these locks, or with a look-up of a server's name that is under way then, for which nobody
// waits. A second Close is harmless.
func (m *Manager) Close() error {
	s := m.shared
	if s == nil {
		return nil
	}
	first := s.close()
	s.ended.Wait()
	if first && s.drop() {
		<-s.freed
	}
	runtime.SetFinalizer(m, nil)
	return nil
}

// forget is Close without waiting, for the garbage collector.
func (m *Manager) forget() {
	if m.shared.close() {
		m.shared.drop()
	}
}

// close tells whether this was the first call of close.
func (s *shared) close() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.closed = true
	close(s.closing)
	return true
}

// Connect connects to the servers now instead of at the first lock, for a program that should not start without its
// servers. It returns when a quorum is connected. ErrUnreachable: there is no quorum; the message gives the reason.
//
// The returned message is about the servers that are not connected, and why: a name may be misspelled. It is empty
// if all are connected.
func (m *Manager) Connect(ctx context.Context) (string, error) {
	words := make(chan string, 1) // not a variable: the call may end after this function
	err := m.ask(ctx, func(s *shared) error {
		err := s.check(C.RedLock_Connect(s.handle, 0))
		words <- C.GoString(C.RedLock_ErrorMessage(s.handle))
		return err
	})
	if err != nil {
		return "", err
	}
	return <-words, nil
}

// Server is the state of one server, from Manager.Servers.
type Server struct {
	Name      string // host:port, or the path of its socket
	Connected bool
	Votes     bool          // whether its grants count
	Words     string        // why it is not connected, or does not vote
	RoundTrip time.Duration // how long its last answer took; negative if there was none yet
	// How far its clock is ahead of this machine's clock, give or take half a round trip and a millisecond; nil if
	// that is not known.
	ClockOffset *time.Duration

	// What the server said about itself when it was last asked. Empty if it did not say it, or if the user may not
	// ask.
	Version  string
	Role     string // "primary", or "replica" or "sentinel", which cannot vote
	RunID    string // changes with each start
	Keeps    string // which of its data outlives its process: "log, synced always", ..., "no log"
	Eviction string // its maxmemory-policy
}

// Servers reports what is known of each server, in the order in which the servers were given. No server is asked,
// and the call does not wait.
func (m *Manager) Servers() ([]Server, error) {
	defer runtime.KeepAlive(m)
	s := m.shared
	if err := s.begin(); err != nil {
		return nil, err
	}
	defer s.end()
	var count C.size_t
	if err := s.check(C.RedLock_Servers(s.handle, nil, &count)); err != nil {
		return nil, err
	}
	infos := make([]C.RedLockServerInfo, count)
	infos[0].size = C.sizeof_RedLockServerInfo
	if err := s.check(C.RedLock_Servers(s.handle, &infos[0], &count)); err != nil {
		return nil, err
	}
	servers := make([]Server, len(infos))
	for i := range infos {
		info := &infos[i]
		var offset *time.Duration
		if us := int64(info.clock_offset_us); us != math.MinInt64 {
			ahead := time.Duration(us) * time.Microsecond
			offset = &ahead
		}
		servers[i] = Server{
			Name:        C.GoString(&info.name[0]),
			Connected:   info.connected != 0,
			Votes:       info.votes != 0,
			Words:       C.GoString(&info.words[0]),
			RoundTrip:   time.Duration(info.round_trip_us) * time.Microsecond,
			ClockOffset: offset,
			Version:     C.GoString(&info.version[0]),
			Role:        C.GoString(&info.role[0]),
			RunID:       C.GoString(&info.run_id[0]),
			Keeps:       C.GoString(&info.keeps[0]),
			Eviction:    C.GoString(&info.eviction[0]),
		}
	}
	return servers, nil
}

// IsLocked asks the servers whether any client holds the resource. The answer may be out of date when it arrives:
// to get a lock, take it without asking first.
func (m *Manager) IsLocked(ctx context.Context, resource string) (bool, error) {
	answer := make(chan bool, 1)
	err := m.ask(ctx, func(s *shared) error {
		var locked C.bool
		err := s.with(func(texts ...*C.char) C.RedLockStatus {
			return C.RedLock_IsLocked(s.handle, texts[0], &locked)
		}, text{"resource", resource})
		answer <- bool(locked)
		return err
	})
	return err == nil && <-answer, err
}

// Info is what the servers report about a resource, from Manager.Inspect.
type Info struct {
	Locked    bool
	Remaining time.Duration // how long it is still held, if it is neither extended nor unlocked; negative: forever
	Shared    bool          // whether several can hold it at the same time
	Readers   int64         // how many hold it
	Words     string        // which servers could not answer, and why
	// PermitsTaken is how many permits of a Semaphore are taken; it is Locked if all are taken.
	PermitsTaken int
}

// Inspect asks the servers whether any client holds the resource, on a quorum, and for how long it is still held.
// It finds the lock of any client, and changes nothing. The answer may be out of date when it arrives: to get a
// lock, take it without asking first.
func (m *Manager) Inspect(ctx context.Context, resource string) (Info, error) {
	return m.inspect(ctx, resource, 0)
}

// inspect asks about a lock, or, if permits is not 0, about a semaphore with this number of permits.
func (m *Manager) inspect(ctx context.Context, resource string, permits int32) (Info, error) {
	answer := make(chan Info, 1)
	err := m.ask(ctx, func(s *shared) error {
		var info C.RedLockInfo
		info.size = C.sizeof_RedLockInfo
		info.permits = C.int32_t(permits)
		err := s.with(func(texts ...*C.char) C.RedLockStatus {
			return C.RedLock_Inspect(s.handle, texts[0], 0, &info)
		}, text{"resource", resource})
		answer <- Info{
			Locked:    info.locked != 0,
			Remaining: duration(int64(info.remaining_ms)),
			Shared:    info.mode == C.REDLOCK_SHARED,
			Readers:   int64(info.readers),
			Words:     C.GoString(&info.words[0]),

			PermitsTaken: int(info.permits_taken),
		}
		return err
	})
	if err != nil {
		return Info{}, err
	}
	return <-answer, nil
}

// duration converts milliseconds, and limits them to the maximum of a time.Duration.
func duration(ms int64) time.Duration {
	if ms > int64(math.MaxInt64/time.Millisecond) {
		return math.MaxInt64
	}
	return time.Duration(ms) * time.Millisecond
}

// ask makes a call into C that takes as long as the servers do, and occupies a thread for it. It returns when the
// call or ctx has ended, or the Manager is being closed. In the last two cases the call ends in the background.
func (m *Manager) ask(ctx context.Context, call func(*shared) error) error {
	defer runtime.KeepAlive(m)
	s := m.shared
	if err := s.begin(); err != nil {
		return err
	}
	outcome := make(chan error, 1)
	go func() {
		defer s.end()
		select {
		case s.blocking <- struct{}{}:
			defer func() { <-s.blocking }()
			outcome <- call(s)
		case <-ctx.Done():
		case <-s.closing:
		}
	}()
	select {
	case err := <-outcome:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-s.closing:
		return ErrClosed
	}
}

// begin must be called before a call of a user, and end after it.
func (s *shared) begin() error {
	if s == nil {
		return ErrClosed
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	if !s.started {
		s.started = true
		s.file = s.open()
		go s.drive()
	}
	s.uses++
	s.ended.Add(1)
	return nil
}

func (s *shared) end() {
	s.drop()
	s.ended.Done()
}

// keep keeps the handle until one more drop. The caller must already keep the handle.
func (s *shared) keep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uses++
}

// drop tells whether this was the last use: then the handle is about to be freed.
func (s *shared) drop() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.uses--; s.uses > 0 {
		return false
	}
	switch {
	case !s.started:
		s.free()
		close(s.freed)
	default:
		s.stopped.Store(true)
		if s.file != nil {
			_ = s.file.SetReadDeadline(time.Unix(1, 0)) // wakes the driving goroutine
		}
	}
	return true
}

// free is called once. RedLock_Free does no I/O.
func (s *shared) free() {
	C.RedLock_Free(s.handle)
	for _, function := range []cgo.Handle{s.passwords, s.logger} {
		if function != 0 {
			function.Delete()
		}
	}
}

// text is a text for C, and the name of the argument or option.
type text struct{ name, value string }

// with passes texts to C, and passes NULL for empty ones.
func (s *shared) with(f func(...*C.char) C.RedLockStatus, texts ...text) error {
	var pointers []*C.char
	for _, text := range texts {
		if strings.IndexByte(text.value, 0) >= 0 {
			return invalid(text.name + " contains a NUL byte") // C would see only the part before the NUL
		}
		pointer := (*C.char)(nil)
		if text.value != "" {
			pointer = C.CString(text.value)
			defer freeText(pointer)
		}
		pointers = append(pointers, pointer)
	}
	return s.check(f(pointers...))
}

// check reads the message of a call. If several calls fail at once, the message may be that of another call.
func (s *shared) check(status C.RedLockStatus) error {
	if status == C.REDLOCK_OK {
		return nil
	}
	return &Error{Status: Status(status), Message: C.GoString(C.RedLock_ErrorMessage(s.handle))}
}

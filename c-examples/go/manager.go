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

// How many calls that block a thread may be under way: those of Connect, IsLocked and
// Inspect.
const blockingMax = 4

// Manager takes locks on one set of servers. Any number of goroutines may use it at once. New makes
// one; the zero value is a closed one.
type Manager struct {
	shared *shared
}

// shared is what a Manager, its leases and the goroutine that drives have in common. It knows neither
// the Manager nor a Lease: these may be forgotten while that goroutine runs.
type shared struct {
	handle    *C.RedLock
	tries     int
	drift     float64
	passwords cgo.Handle // 0, or the function that is asked
	logger    cgo.Handle

	submitting sync.Mutex    // for calls into C that take moments: a thread that waits there is one more
	blocking   chan struct{} // a place for each call that blocks a thread

	closing  chan struct{}  // closed by Close
	ended    sync.WaitGroup // calls of those who want something
	stopped  atomic.Bool    // nobody needs the handle any more
	standIns sync.WaitGroup
	freed    chan struct{} // closed when the handle is gone

	mu       sync.Mutex // guards what follows, for moments
	closed   bool
	started  bool
	file     *os.File
	standing int // how many goroutines stand in for the one that drives
	uses     int // the handle goes with the last: the Manager, calls under way, locks that are held
	holds    map[uintptr]*hold
	lastID   uintptr
}

// New makes a Manager for servers given as host:port or as a URL, such as
// rediss://user:password@host:6379/0, unix:///run/redis.sock or redis-sentinel://host,host2/master.
// It does no I/O. All programs that are to exclude each other must name the same servers.
func New(servers ...string) (*Manager, error) {
	return NewWithOptions(Options{}, servers...)
}

// NewWithOptions is New with settings.
func NewWithOptions(options Options, servers ...string) (*Manager, error) {
	if len(servers) == 0 {
		return nil, &Error{Status: ErrNoServers, Message: "no server was given"}
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
		return nil, &Error{Status: ErrInternal, Message: "no manager could be made"}
	}
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

// Close ends the taking of locks: those who wait get ErrClosed, and so do later calls. It returns
// when all of them have heard of it, and calls of Connect, IsLocked and Inspect are over, which takes
// no longer than the timeouts. What servers may have granted to those who waited is released.
//
// Locks that are held stay held, may still be extended and unlocked, and are kept if they were: the
// connections end with the last of them. To call Close again does no harm.
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

// forget is Close without waiting, for the collector.
func (m *Manager) forget() {
	if m.shared.close() {
		m.shared.drop()
	}
}

// close tells whether it was the first to do so.
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

// Connect connects to the servers now rather than at the first lock, for a program that would
// rather not start than find out later. It returns when a quorum is up: ErrUnreachable says that
// and why there is none.
//
// The words are about the servers that are not up, and why: a name may be mis-spelled. They are empty
// if all are.
func (m *Manager) Connect(ctx context.Context) (string, error) {
	words := make(chan string, 1) // not a variable: the call may end after this one
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

// Server is what is known of a server, as Manager.Servers tells it.
type Server struct {
	Name      string // host:port, or the path of its socket
	Connected bool
	Votes     bool          // whether what it grants counts
	Words     string        // why it is not connected, or does not vote
	RoundTrip time.Duration // how long its last answer took; negative if it has given none
	// How far its clock is ahead of this machine's, give or take half a round trip and a millisecond; nil if that
	// is not known.
	ClockOffset *time.Duration

	// What it said of itself when it was last asked; empty where it did not, or the user may not ask.
	Version  string
	Role     string // "primary", or "replica" or "sentinel", which cannot vote
	RunID    string // another after each start
	Keeps    string // what outlives its process: "log, synced always", ..., "no log"
	Eviction string // its maxmemory-policy
}

// Servers tells what is known of each server, in the order in which they were given. Nobody is asked, and
// nothing is waited for.
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

// IsLocked asks the servers whether anybody holds the resource. To take a lock, take it: the
// answer may be out of date when it arrives.
func (m *Manager) IsLocked(ctx context.Context, resource string) (bool, error) {
	answer := make(chan bool, 1)
	err := m.ask(ctx, func(s *shared) error {
		var locked C.bool
		err := s.with(func(texts ...*C.char) C.RedLockStatus {
			return C.RedLock_IsLocked(s.handle, texts[0], &locked)
		}, resource)
		answer <- bool(locked)
		return err
	})
	return err == nil && <-answer, err
}

// Info is what the servers say of a resource, as Manager.Inspect tells it.
type Info struct {
	Locked    bool
	Remaining time.Duration // for how long it is held still, if it is neither extended nor unlocked; negative: for ever
	Shared    bool          // whether several may hold it at the same time
	Readers   int64         // how many do
	Words     string        // which servers could not answer, and why
	// PermitsTaken is how many permits of a Semaphore somebody has; it is Locked if all are taken.
	PermitsTaken int
}

// Inspect asks the servers whether anybody holds the resource, on a quorum, and for how long still. It finds the
// lock of any client, and changes nothing. To take a lock, take it: the answer may be out of date when it arrives.
func (m *Manager) Inspect(ctx context.Context, resource string) (Info, error) {
	return m.inspect(ctx, resource, 0)
}

// inspect asks about a lock, or about a semaphore of so many permits if that is not 0.
func (m *Manager) inspect(ctx context.Context, resource string, permits int32) (Info, error) {
	answer := make(chan Info, 1)
	err := m.ask(ctx, func(s *shared) error {
		var info C.RedLockInfo
		info.size = C.sizeof_RedLockInfo
		info.permits = C.int32_t(permits)
		err := s.with(func(texts ...*C.char) C.RedLockStatus {
			return C.RedLock_Inspect(s.handle, texts[0], 0, &info)
		}, resource)
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

// duration is so many milliseconds, or as many as there can be.
func duration(ms int64) time.Duration {
	if ms > int64(math.MaxInt64/time.Millisecond) {
		return math.MaxInt64
	}
	return time.Duration(ms) * time.Millisecond
}

// ask makes a call into C that takes as long as the servers do, and a thread for that. It returns when
// that is over, or ctx is: the call then ends in the background.
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
			outcome <- ErrClosed
		}
	}()
	select {
	case err := <-outcome:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// begin is called before a call for somebody who wants something, and end after it.
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

// keep has the handle stay until one more drop. Who calls it keeps the handle already.
func (s *shared) keep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uses++
}

// drop tells whether it was the last: then the handle is about to be freed.
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
			_ = s.file.SetReadDeadline(time.Unix(1, 0)) // wakes the goroutine that drives
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

// with hands C some texts, NULL for those that are empty.
func (s *shared) with(f func(...*C.char) C.RedLockStatus, texts ...string) error {
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
	return s.check(f(pointers...))
}

// check reads the words of a call. Where several fail at once they may be those of another.
func (s *shared) check(status C.RedLockStatus) error {
	if status == C.REDLOCK_OK {
		return nil
	}
	return &Error{Status: Status(status), Message: C.GoString(C.RedLock_ErrorMessage(s.handle))}
}

package redlock

/*
#include <redlock.h>
*/
import "C"

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Lease is one lock. It ends by itself when its time is over, so look at Remaining, or Confirm,
// before a step that must not happen without it. Goroutines may share it.
//
// A Lease that is forgotten while it holds stays locked on the servers until it expires.
type Lease struct {
	manager *Manager
	mu      sync.Mutex // a call and the reading of its words belong together
	handle  *C.RedLockLease
}

// handover makes what was written before an Unlock visible after the Lock that follows it. The
// servers order the two, but Go's memory model, and its race detector, know nothing of servers.
var handover atomic.Int64

// Extend gives the lock a new TTL, counted from now. ErrLost: it had ended. ErrUnreachable: too
// few servers answered, and what was valid stays valid until its old end.
func (l *Lease) Extend(ttl time.Duration) error {
	return l.call(func(rl *C.RedLock) C.RedLockStatus { return C.RedLock_Extend(rl, l.handle, ms(ttl)) })
}

// Confirm asks the servers whether the lock is still ours, for at least so long.
func (l *Lease) Confirm(least time.Duration) error {
	return l.call(func(rl *C.RedLock) C.RedLockStatus { return C.RedLock_Confirm(rl, l.handle, ms(least)) })
}

// Unlock releases the lock. ErrLost: it had already ended, and nothing of anybody else's was
// touched. ErrUnreachable: some servers could not be told; the lock expires there.
func (l *Lease) Unlock() error {
	return l.call(l.unlock)
}

// Remaining is how long the lock is valid from now on, 0 when it is not. No I/O.
func (l *Lease) Remaining() time.Duration {
	defer runtime.KeepAlive(l)
	return time.Duration(C.RedLockLease_RemainingMs(l.handle)) * time.Millisecond
}

// Held tells whether the lock is held and valid now, by this machine's clock. No I/O.
func (l *Lease) Held() bool {
	defer runtime.KeepAlive(l)
	return bool(C.RedLockLease_IsHeld(l.handle))
}

func newLease(m *Manager) *Lease {
	l := &Lease{manager: m, handle: C.RedLockLease_New()}
	runtime.SetFinalizer(l, (*Lease).free)
	return l
}

func (l *Lease) attempt(rl *C.RedLock, name *C.char, ttl time.Duration) error {
	err := l.check(rl, func(rl *C.RedLock) C.RedLockStatus {
		return C.RedLock_TryLock(rl, name, ms(ttl), 0, l.handle)
	})
	handover.Add(1)
	if err != nil {
		l.free() // now rather than when the collector comes: there may be many attempts
	}
	return err
}

func (l *Lease) unlock(rl *C.RedLock) C.RedLockStatus {
	handover.Add(1)
	return C.RedLock_Unlock(rl, l.handle)
}

func (l *Lease) call(f func(*C.RedLock) C.RedLockStatus) error {
	rl, err := l.manager.begin()
	if err != nil {
		return err
	}
	defer l.manager.end()
	return l.check(rl, f)
}

// check makes a call and reads its words. That the goroutine may be on another thread by then
// does no harm: the words are kept in the lease.
func (l *Lease) check(rl *C.RedLock, f func(*C.RedLock) C.RedLockStatus) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	status := f(rl)
	if status == C.REDLOCK_OK {
		return nil
	}
	return &Error{Status: Status(status), Message: C.GoString(C.RedLockLease_ErrorMessage(l.handle))}
}

// free is also the finalizer: RedLockLease_Free does no I/O.
func (l *Lease) free() {
	C.RedLockLease_Free(l.handle)
	l.handle = nil
}

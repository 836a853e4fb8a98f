package redlock

/*
#include <redlock.h>
*/
import "C"

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Lease is one lock, which Manager.Lock and Manager.TryLock return. It ends by itself when its time
// is over, so look at Remaining, or Confirm, before a step that must not happen without it.
// Goroutines may share it.
//
// A Lease that is forgotten while it holds stays locked on the servers until it expires: freeing
// its memory, which the collector does, releases nothing.
type Lease struct {
	manager  *Manager
	resource string
	hold     *hold
	calls    sync.Mutex // one call at a time, which may take as long as the servers do
	mu       sync.Mutex // guards the handle and the words, for moments
	handle   *C.RedLockLease
	words    string
	counts   bool // the Manager is kept for it
}

// order makes what was written before an Unlock visible after the Lock that follows it. The
// servers order the two, but Go's memory model, and its race detector, know nothing of servers.
var order atomic.Int64

// Extend gives the lock a new TTL, counted from now; one that is shorter than what is left shortens
// nothing. ErrLost: it had ended. ErrUnreachable: too few servers answered, and what was valid
// stays valid until its old end.
func (l *Lease) Extend(ttl time.Duration) error {
	err := l.call(func() C.RedLockStatus {
		return C.RedLock_Extend(l.manager.handle, l.handle, ms(ttl))
	})
	switch status(err) {
	case 0:
		l.manager.lines.extended(l.hold, l.Remaining())
	case ErrLost:
		l.letGo()
	}
	return err
}

// Confirm asks the servers whether the lock is still ours, for at least so long. ErrLost: it is
// not. ErrUnreachable: too few servers answered. It changes nothing.
func (l *Lease) Confirm(least time.Duration) error {
	return l.call(func() C.RedLockStatus {
		return C.RedLock_Confirm(l.manager.handle, l.handle, ms(least))
	})
}

// Unlock releases the lock. ErrLost: it had already ended, or was released before; nothing of
// anybody else's was touched. ErrUnreachable: some servers could not be told; the lock expires
// there, and calling again is allowed.
//
// It takes no context: a lock has to be released most of all when the work was cancelled. It takes
// one round trip, and no longer than the reply timeout where servers do not answer. To call it
// again after it succeeded does no harm, so it can be deferred as well.
func (l *Lease) Unlock() error {
	err := l.call(func() C.RedLockStatus {
		l.letGo()
		order.Add(1)
		return C.RedLock_Unlock(l.manager.handle, l.handle)
	})
	l.letGo() // once more: who was woken may have come too early
	if status(err) != ErrUnreachable {
		l.finish()
	}
	return err
}

// Remaining is how long the lock is valid from now on, 0 when it is not. No I/O.
func (l *Lease) Remaining() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Duration(C.RedLockLease_RemainingMs(l.handle)) * time.Millisecond
}

// Held tells whether the lock is held and valid now, by this machine's clock. No I/O.
func (l *Lease) Held() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bool(C.RedLockLease_IsHeld(l.handle))
}

// Resource is what was locked.
func (l *Lease) Resource() string {
	return l.resource
}

// Message is what the last call on it has to say. After a success: which servers could not take part,
// and why; empty if all could. After a failure: the message of the error.
func (l *Lease) Message() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.words
}

// Token is what stands on the servers as the value of the key; empty if it holds no lock. Keep it to
// yourself: who knows it can release the lock. Nothing else shows it. It waits for a call on the
// Lease that is under way.
func (l *Lease) Token() string {
	l.calls.Lock()
	defer l.calls.Unlock()
	if l.handle == nil {
		return ""
	}
	return C.GoString(C.RedLockLease_Token(l.handle))
}

// String is what is locked, and for how long it is valid.
func (l *Lease) String() string {
	return fmt.Sprintf("redlock.Lease of %q, valid for %v", l.resource, l.Remaining())
}

// GoString is String, for %#v.
func (l *Lease) GoString() string {
	return l.String()
}

// newLease makes a Lease that holds nothing yet, and nothing of the Manager either.
func (m *Manager) newLease(resource string) (*Lease, error) {
	l := &Lease{manager: m, resource: resource, hold: &hold{}, handle: C.RedLockLease_New()}
	if l.handle == nil {
		return nil, &Error{Status: ErrInternal, Message: "no lease could be made"}
	}
	runtime.SetFinalizer(l, (*Lease).finish)
	return l, nil
}

// acquire is called by a goroutine that has begun a call on the Manager, until it succeeds.
func (l *Lease) acquire(ttl, wait, slice time.Duration) error {
	name := C.CString(l.resource)
	defer freeText(name)
	status := C.RedLock_TryLockSlice(l.manager.handle, name, ms(ttl), ms(wait), ms(slice), l.handle)
	if err := l.check(status); err != nil {
		return err
	}
	order.Add(1)
	l.manager.keep()
	l.counts = true
	l.manager.lines.granted(l.resource, l.hold, l.Remaining())
	return nil
}

// undo releases what was taken for a caller that is gone, in the slot in which it was taken.
func (l *Lease) undo(err error) {
	if err == nil {
		C.RedLock_Unlock(l.manager.handle, l.handle)
		l.letGo()
	}
	l.finish() // now rather than when the collector comes: there may be many of them
}

// call makes a call for the holder. Those on one lease wait for each other before they take a slot.
func (l *Lease) call(f func() C.RedLockStatus) error {
	l.calls.Lock()
	defer l.calls.Unlock()
	if l.handle == nil {
		return &Error{Status: ErrLost, Message: "the lock was released before"}
	}
	// Neither of the two can end the waiting.
	_ = l.manager.holding.take(context.Background(), nil, allHolding)
	defer l.manager.holding.give(allHolding)
	return l.check(f())
}

// letGo has the next in line ask. The zero Lease has none.
func (l *Lease) letGo() {
	if l.manager != nil {
		l.manager.lines.letGo(l.resource, l.hold)
	}
}

// check reads the words of a call. That the goroutine may be on another thread by now does no harm:
// they are kept in the lease.
func (l *Lease) check(status C.RedLockStatus) error {
	words := C.GoString(C.RedLockLease_ErrorMessage(l.handle))
	l.mu.Lock()
	l.words = words
	l.mu.Unlock()
	if status == C.REDLOCK_OK {
		return nil
	}
	return &Error{Status: Status(status), Message: words}
}

// finish gives back what a Lease has, if there is one. It is also the finalizer, and does no I/O.
func (l *Lease) finish() {
	if l == nil {
		return
	}
	l.calls.Lock()
	defer l.calls.Unlock()
	if l.handle == nil {
		return
	}
	runtime.SetFinalizer(l, nil)
	l.mu.Lock()
	C.RedLockLease_Free(l.handle)
	l.handle = nil
	l.mu.Unlock()
	if l.counts {
		l.manager.drop()
	}
}

// status is that of an error of this package, and 0 of none.
func status(err error) Status {
	if e, ok := err.(*Error); ok {
		return e.Status
	}
	return 0
}

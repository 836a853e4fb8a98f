package redlock

/*
#include <redlock.h>

static RedLockStatus redlock_go_unlock(RedLock *rl, RedLockLease *lease, uintptr_t id) {
	return RedLock_SubmitUnlock(rl, lease, (void *)id);
}
*/
import "C"

import (
	"context"
	"errors"
	"sync"
	"time"
)

// hold is the inner part of a Lease. The driving goroutine refers to the hold and not to the Lease, so that the
// garbage collector can collect the Lease.
type hold struct {
	shared *shared
	id     uintptr              // identifies the hold in C: not a Go pointer
	turn   chan struct{}        // full during a call: there is one call at a time
	done   chan C.RedLockStatus // the result of a submitted call
	counts bool                 // this hold counts as a use of the manager's handle

	mu      sync.Mutex // guards the fields below, for short moments
	handle  *C.RedLockLease
	words   string
	over    error                 // why the lock has ended, as far as is known
	lost    chan struct{}         // closed when the lock ends, except by a release
	cancels map[*func(error)]bool // cancel the contexts that end with the lock
	expiry  *time.Timer           // checks for expiry, for Lost and Context
}

// errClosing is the reason why a call is cancelled when the Manager is closed.
var errClosing = errors.New("the manager is closing")

// nothing is the hold of the zero Lease.
var nothing = endedHold()

func endedHold() *hold {
	h := &hold{turn: make(chan struct{}, 1), lost: make(chan struct{})}
	h.end(&Error{Status: ErrLost, Message: "the lease never held a lock"}, true)
	return h
}

// newHold makes a hold that holds nothing yet.
func (s *shared) newHold() (*hold, error) {
	h := &hold{
		shared: s,
		turn:   make(chan struct{}, 1),
		done:   make(chan C.RedLockStatus, 1),
		handle: C.RedLockLease_New(),
		lost:   make(chan struct{}),
	}
	if h.handle == nil {
		return nil, &Error{Status: ErrInternal, Message: "cannot create a lease"}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastID++
	h.id = s.lastID
	s.holds[h.id] = h
	return h, nil
}

// submit makes a short call into C. Only one goroutine is in C at a time, because each goroutine that waits in C
// would need a thread.
func (h *hold) submit(call func() C.RedLockStatus) C.RedLockStatus {
	h.shared.submitting.Lock()
	defer h.shared.submitting.Unlock()
	return call()
}

// await waits for the result of a submitted call. When ctx ends, or closing is closed, the call is cancelled, and
// await returns the reason as its error. The result of the call is known even then. If C also knows the deadline,
// the call ends by itself at the deadline, with a message.
func (h *hold) await(ctx context.Context, closing <-chan struct{}, deadline bool) (C.RedLockStatus, error) {
	var over error
	select {
	case status := <-h.done:
		return status, nil
	case <-closing:
		over = errClosing
	case <-ctx.Done():
		over = ctx.Err()
	}
	if deadline && over == context.DeadlineExceeded {
		timer := time.NewTimer(lastWords)
		defer timer.Stop()
		select {
		case status := <-h.done:
			return status, over
		case <-timer.C:
		case <-closing:
		}
	}
	h.submit(func() C.RedLockStatus { return C.RedLock_Cancel(h.shared.handle, h.handle) })
	return <-h.done, over
}

// outcome is the error of a call that has ended, for its caller; over is the reason why it was cancelled, if it
// was.
func (h *hold) outcome(status C.RedLockStatus, over error) error {
	failure := h.note(status)
	if failure == nil {
		return nil // not a *Error that is nil
	}
	switch failure.Status {
	case ErrCancelled:
		failure.cause = over
	case ErrLost:
		h.end(failure, true)
	}
	return failure
}

// note reads the message of a call that has ended.
func (h *hold) note(status C.RedLockStatus) *Error {
	words := C.GoString(C.RedLockLease_ErrorMessage(h.handle))
	h.mu.Lock()
	h.words = words
	h.mu.Unlock()
	if status == C.REDLOCK_OK {
		return nil
	}
	return &Error{Status: Status(status), Message: words}
}

// end tells all listeners, once, that there is no lock any more.
func (h *hold) end(why error, isLost bool) {
	for cancel := range h.close(why, isLost) {
		(*cancel)(why) // without h.mu: a parent may be of any type, and is called here
	}
}

// close returns the contexts that have to be cancelled.
func (h *hold) close(why error, isLost bool) map[*func(error)]bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over != nil {
		return nil
	}
	h.over = why
	if isLost {
		close(h.lost)
	}
	if h.expiry != nil {
		h.expiry.Stop()
	}
	cancels := h.cancels
	h.cancels = nil
	return cancels
}

// context makes a context that ends with parent or the lock.
func (h *hold) context(parent context.Context) context.Context {
	ctx, cancel := withCause(parent)
	if over := h.add(&cancel); over != nil {
		cancel(over)
	} else if parent.Done() != nil {
		after(ctx, func() { h.remove(&cancel) }) // the parent may end long before the lock
	}
	return ctx
}

// add returns why the lock has ended, if it has.
func (h *hold) add(cancel *func(error)) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over != nil {
		return h.over
	}
	h.watch()
	if h.cancels == nil {
		h.cancels = map[*func(error)]bool{}
	}
	h.cancels[cancel] = true
	return nil
}

func (h *hold) remove(cancel *func(error)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.cancels, cancel)
}

// watch makes the hold end when the lock expires. h.mu must be locked.
func (h *hold) watch() {
	if h.expiry == nil && h.over == nil {
		h.expiry = time.AfterFunc(h.remaining(), h.expire)
	}
}

// expire is called again later if the lock was extended meanwhile.
func (h *hold) expire() {
	h.mu.Lock()
	left := h.remaining()
	if left > 0 {
		h.expiry.Reset(left)
	}
	h.mu.Unlock()
	if left <= 0 {
		h.end(&Error{Status: ErrLost, Message: "the lock expired"}, true)
	}
}

// remaining requires that h.mu is locked.
func (h *hold) remaining() time.Duration {
	return time.Duration(C.RedLockLease_RemainingMs(h.handle)) * time.Millisecond
}

// resources is what is locked, as C knows it.
func (h *hold) resources() []string {
	count := int(C.RedLockLease_ResourceCount(h.handle))
	if count == 1 {
		size := C.RedLockLease_ResourceSize(h.handle)
		return []string{C.GoStringN(C.RedLockLease_Resource(h.handle), C.int(size))}
	}
	names := make([]string, count)
	for i := range names {
		names[i] = C.GoString(C.RedLockLease_ResourceAt(h.handle, C.size_t(i)))
	}
	return names
}

func (h *hold) submitUnlock() C.RedLockStatus {
	return C.redlock_go_unlock(h.shared.handle, h.handle, C.uintptr_t(h.id))
}

// undo releases a lock that came too late for its caller.
func (h *hold) undo() {
	if h.submit(h.submitUnlock) != C.REDLOCK_OK {
		h.finish()
		return
	}
	h.shared.keep()
	h.shared.ended.Add(1) // the caller's own count is still there
	go func() {
		<-h.done
		h.finish()
		h.shared.end()
	}()
}

// finish frees the handle, and does no I/O. It tells whether this was the last use of the manager.
func (h *hold) finish() bool {
	h.mu.Lock()
	handle := h.handle
	h.handle = nil
	h.mu.Unlock()
	if handle == nil {
		return false
	}
	h.end(&Error{Status: ErrLost, Message: "the lease was garbage-collected"}, true)
	h.shared.mu.Lock()
	delete(h.shared.holds, h.id)
	h.shared.mu.Unlock()
	C.RedLockLease_Free(handle)
	return h.counts && h.shared.drop()
}

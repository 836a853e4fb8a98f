package redlock

/*
#include <stdlib.h>
#include <redlock.h>

static RedLockStatus redlock_go_extend(RedLock *rl, RedLockLease *lease, int64_t ttl_ms, uintptr_t id) {
	return RedLock_SubmitExtend(rl, lease, ttl_ms, (void *)id);
}

static RedLockStatus redlock_go_confirm(RedLock *rl, RedLockLease *lease, int64_t least_ms, uintptr_t id) {
	return RedLock_SubmitConfirm(rl, lease, least_ms, (void *)id);
}

static RedLockStatus redlock_go_downgrade(RedLock *rl, RedLockLease *lease, uintptr_t id) {
	return RedLock_SubmitDowngrade(rl, lease, (void *)id);
}

static RedLockStatus redlock_go_keep_alive(RedLock *rl, RedLockLease *lease, uintptr_t id) {
	return RedLock_KeepAlive(rl, lease, (void *)id);
}
*/
import "C"

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"
)

// Lease is one lock, which Manager.Lock and Manager.TryLock return. It ends by itself when its time
// is over, so look at Remaining, or Confirm, before a step that must not happen without it; or have it
// kept with KeepAlive, and stop when its Context ends. Goroutines may share it.
//
// A Lease that is forgotten while it holds stays locked on the servers until it expires: freeing
// its memory, which the collector does, releases nothing, and it is kept no more.
type Lease struct {
	manager   *Manager
	resources []string
	hold      *hold
}

// order makes what was written before an Unlock visible after the Lock that follows it. The
// servers order the two, but Go's memory model, and its race detector, know nothing of servers.
var order atomic.Int64

// Extend gives the lock a new TTL, counted from now; one that is shorter than what is left shortens
// nothing. ErrLost: it had ended. ErrUnreachable: too few servers answered, and what was valid
// stays valid until its old end.
func (l *Lease) Extend(ttl time.Duration) error {
	return l.ExtendContext(context.Background(), ttl)
}

// ExtendContext is Extend that ends with ctx, at the latest: what was valid then stays valid until its
// old end, or is extended.
func (l *Lease) ExtendContext(ctx context.Context, ttl time.Duration) error {
	return l.call(ctx, func(h *hold, rl *C.RedLock) C.RedLockStatus {
		return C.redlock_go_extend(rl, h.handle, ms(ttl), C.uintptr_t(h.id))
	})
}

// ExtendBy is Extend for so much longer than the lock is valid now: by what Remaining says and more, which is more than
// zero.
func (l *Lease) ExtendBy(more time.Duration) error {
	return l.ExtendByContext(context.Background(), more)
}

// ExtendByContext is ExtendBy that ends with ctx, at the latest.
func (l *Lease) ExtendByContext(ctx context.Context, more time.Duration) error {
	if more <= 0 {
		return invalid("there is nothing to extend the lock by")
	}
	return l.call(ctx, func(h *hold, rl *C.RedLock) C.RedLockStatus {
		// Of a lock that is over C says so, whatever it is to be given.
		left := int64(C.RedLockLease_RemainingMs(h.handle))
		return C.redlock_go_extend(rl, h.handle, h.shared.ttlFor(float64(left)+float64(ms(more))), C.uintptr_t(h.id))
	})
}

// Confirm asks the servers whether the lock is still ours, for at least so long. ErrTooShort: it is, but
// not for that long. ErrLost: it is not. ErrUnreachable: too few servers answered. It changes nothing.
func (l *Lease) Confirm(least time.Duration) error {
	return l.ConfirmContext(context.Background(), least)
}

// ConfirmContext is Confirm that ends with ctx, at the latest.
func (l *Lease) ConfirmContext(ctx context.Context, least time.Duration) error {
	return l.call(ctx, func(h *hold, rl *C.RedLock) C.RedLockStatus {
		return C.redlock_go_confirm(rl, h.handle, ms(least), C.uintptr_t(h.id))
	})
}

// Downgrade makes a shared lock of one that was had with Lock: its holder goes on as a reader, others are let in with RLock,
// and nobody can have had it alone in between. There is no way back. ErrLost: it had ended. ErrUnreachable: too few servers
// answered; it is held until its old end, as a shared lock if Shared says so, and calling again is allowed.
func (l *Lease) Downgrade() error {
	return l.DowngradeContext(context.Background())
}

// DowngradeContext is Downgrade that ends with ctx, at the latest.
func (l *Lease) DowngradeContext(ctx context.Context) error {
	return l.call(ctx, func(h *hold, rl *C.RedLock) C.RedLockStatus {
		return C.redlock_go_downgrade(rl, h.handle, C.uintptr_t(h.id))
	})
}

// Shared tells whether others may have the lock at the same time. No I/O.
func (l *Lease) Shared() bool {
	defer runtime.KeepAlive(l)
	h := l.inner()
	h.mu.Lock()
	defer h.mu.Unlock()
	return C.RedLockLease_Mode(h.handle) == C.REDLOCK_SHARED
}

// KeepAlive has the lock extended in the background until it is unlocked, with the TTL that it was given
// last, whenever a third of that has passed. Where it cannot be kept, Lost and Context tell, while at least
// a tenth of the TTL is left, unless somebody has taken the lock away. ErrLost: it is not held. No I/O.
func (l *Lease) KeepAlive() error {
	defer runtime.KeepAlive(l)
	h := l.inner()
	h.turn <- struct{}{}
	defer func() { <-h.turn }()
	if h.handle == nil {
		return released()
	}
	status := h.submit(func() C.RedLockStatus {
		return C.redlock_go_keep_alive(h.shared.handle, h.handle, C.uintptr_t(h.id))
	})
	return h.outcome(status, nil)
}

// Lost is closed when the lock is lost: when its time is over, when a call on it finds that out, or when it
// cannot be kept any more, although a rest of it is left then. See Err. It is not closed by Unlock.
func (l *Lease) Lost() <-chan struct{} {
	h := l.inner()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.watch()
	return h.lost
}

// Context is a context for what the lock guards: it ends with parent, when the lock is lost, and when it is
// unlocked. Err tells why, and so does context.Cause from Go 1.20 on.
func (l *Lease) Context(parent context.Context) context.Context {
	ctx, cancel := withCause(parent)
	h := l.inner()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over != nil {
		cancel(h.over)
		return ctx
	}
	h.watch()
	h.cancels = append(h.cancels, cancel)
	return ctx
}

// Err is why there is no lock any more, as far as is known without asking: nil while there is one,
// ErrReleased after Unlock, ErrDetached after Detach, else an Error with ErrLost, or with ErrUnreachable if it could not be kept.
func (l *Lease) Err() error {
	h := l.inner()
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.over
}

// Unlock releases the lock. ErrLost: it had already ended, or was released before; nothing of
// anybody else's was touched. ErrUnreachable: some servers could not be told; the lock expires
// there, and calling again is allowed.
//
// It takes no context: a lock has to be released most of all when the work was cancelled. It takes
// one round trip, and no longer than the reply timeout where servers do not answer. To call it
// again after it succeeded does no harm, so it can be deferred as well. After Retain it leaves one level, and
// asks nobody.
func (l *Lease) Unlock() error {
	defer runtime.KeepAlive(l)
	h := l.inner()
	h.turn <- struct{}{}
	defer func() { <-h.turn }()
	if h.handle == nil {
		return released()
	}
	order.Add(1)
	isInner := C.RedLockLease_Levels(h.handle) > 1
	status := h.submit(h.submitUnlock)
	if status == C.REDLOCK_OK {
		status = <-h.done
	}
	err := h.outcome(status, nil)
	if isInner {
		return err
	}
	h.end(ErrReleased, false)
	if status != C.REDLOCK_UNREACHABLE && h.finish() {
		<-h.shared.freed
	}
	return err
}

// Retain adds a level to the lock: one more Unlock is needed until it is released. It is for a function that is handed
// a Lease and uses it beyond its caller, as a goroutine does, or that calls one which unlocks. A lock is never taken
// again by itself: Go has no owner that could be known. An inner level lasts no longer than the lock, so Extend it
// where Remaining is less than the level needs. Each Unlock tells if the lock was lost: ErrLost. Detach refuses a lock
// that has several levels. ErrLost: it is not held, and has no level more. No I/O.
func (l *Lease) Retain() error {
	defer runtime.KeepAlive(l)
	h := l.inner()
	h.turn <- struct{}{}
	defer func() { <-h.turn }()
	if h.handle == nil {
		return released()
	}
	return h.outcome(h.submit(func() C.RedLockStatus { return C.RedLock_Retain(h.handle) }), nil)
}

// Levels is how many Unlocks release the lock: 1 without Retain, 0 if it is released. No I/O.
func (l *Lease) Levels() int {
	defer runtime.KeepAlive(l)
	h := l.inner()
	h.mu.Lock()
	defer h.mu.Unlock()
	return int(C.RedLockLease_Levels(h.handle))
}

// Detach gives the lock away, and returns a ticket, by which another process, or another Manager, takes it over with
// Manager.Adopt. The Lease holds nothing then: its calls return ErrLost, its contexts end with ErrDetached, and it
// is kept no more. Until it is adopted nobody extends the lock, and it ends when its time is over. No I/O.
//
// The ticket is as secret as the Token, which is in it: hand it over by a pipe or by the environment, not as an
// argument of a program, which everybody can see.
func (l *Lease) Detach() (string, error) {
	defer runtime.KeepAlive(l)
	h := l.inner()
	h.turn <- struct{}{}
	defer func() { <-h.turn }()
	if h.handle == nil {
		return "", released()
	}
	bytes := 0
	for _, resource := range l.resources {
		bytes += len(resource) + 2
	}
	size := C.size_t(128 + (bytes+2)/3*4) // REDLOCK_TICKET_SIZE
	room := (*C.char)(C.malloc(size))
	defer freeText(room)
	status := h.submit(func() C.RedLockStatus {
		return C.RedLock_Detach(h.shared.handle, h.handle, room, size)
	})
	if err := h.outcome(status, nil); err != nil {
		return "", err
	}
	ticket := C.GoString(room)
	h.end(ErrDetached, false)
	if h.finish() {
		<-h.shared.freed
	}
	return ticket, nil
}

// Remaining is how long the lock is valid from now on, 0 when it is not. No I/O.
func (l *Lease) Remaining() time.Duration {
	defer runtime.KeepAlive(l)
	h := l.inner()
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.remaining()
}

// Held tells whether the lock is held and valid now, by this machine's clock. No I/O.
func (l *Lease) Held() bool {
	defer runtime.KeepAlive(l)
	h := l.inner()
	h.mu.Lock()
	defer h.mu.Unlock()
	return bool(C.RedLockLease_IsHeld(h.handle))
}

// Resource is what was locked; the first of several.
func (l *Lease) Resource() string {
	if len(l.resources) == 0 {
		return ""
	}
	return l.resources[0]
}

// Resources is what was locked: one resource, or several, in the order in which they were given.
func (l *Lease) Resources() []string {
	return append([]string(nil), l.resources...)
}

// Message is what the last call on it has to say. After a success: which servers could not take part,
// and why; empty if all could. After a failure: the message of the error.
func (l *Lease) Message() string {
	h := l.inner()
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.words
}

// Token is what stands on the servers as the value of the key; empty if it holds no lock. Keep it to
// yourself: who knows it can release the lock. Nothing else shows it. It waits for a call on the
// Lease that is under way.
func (l *Lease) Token() string {
	defer runtime.KeepAlive(l)
	h := l.inner()
	h.turn <- struct{}{}
	defer func() { <-h.turn }()
	if h.handle == nil {
		return ""
	}
	return C.GoString(C.RedLockLease_Token(h.handle))
}

// FencingToken is a number that is greater than those of all locks of the same resource before, with
// Options.Fencing; 0 without. Hand it to what the lock guards with each write, and have it refuse a number that
// is less than the greatest it has seen, as a database does with UPDATE ... WHERE fence <= :token: then a holder
// that was paused beyond the end of its lock cannot undo what the next one wrote. It does not change when the
// lock is extended, and is there still when the lock has expired or was lost, until it is unlocked. It is less than
// 1<<53. No I/O.
func (l *Lease) FencingToken() int64 {
	defer runtime.KeepAlive(l)
	h := l.inner()
	h.mu.Lock()
	defer h.mu.Unlock()
	return int64(C.RedLockLease_FencingToken(h.handle))
}

// String is what is locked, and for how long it is valid.
func (l *Lease) String() string {
	if len(l.resources) > 1 {
		return fmt.Sprintf("redlock.Lease of %q, valid for %v", l.resources, l.Remaining())
	}
	return fmt.Sprintf("redlock.Lease of %q, valid for %v", l.Resource(), l.Remaining())
}

// GoString is String, for %#v.
func (l *Lease) GoString() string {
	return l.String()
}

func newLease(m *Manager, resources []string, h *hold) *Lease {
	l := &Lease{manager: m, resources: resources, hold: h}
	runtime.SetFinalizer(l, func(l *Lease) { l.hold.finish() })
	return l
}

func (l *Lease) inner() *hold {
	if l.hold == nil {
		return nothing
	}
	return l.hold
}

// call makes a call for the holder, when those before it are over.
func (l *Lease) call(ctx context.Context, submit func(*hold, *C.RedLock) C.RedLockStatus) error {
	defer runtime.KeepAlive(l)
	h := l.inner()
	select {
	case h.turn <- struct{}{}:
		defer func() { <-h.turn }()
	case <-ctx.Done():
		return &Error{Status: ErrCancelled, Message: "another call is under way", cause: ctx.Err()}
	}
	if h.handle == nil {
		return released()
	}
	status := h.submit(func() C.RedLockStatus { return submit(h, h.shared.handle) })
	over := error(nil)
	if status == C.REDLOCK_OK {
		status, over = h.await(ctx, nil, false)
	}
	return h.outcome(status, over)
}

func released() error {
	return &Error{Status: ErrLost, Message: "the lock was released before"}
}

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

static RedLockStatus redlock_go_unlock_after(RedLock *rl, RedLockLease *lease, int64_t least_ms, uintptr_t id) {
	return RedLock_SubmitUnlockAfter(rl, lease, least_ms, (void *)id);
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

// Lease is one lock, which Manager.Lock and Manager.TryLock return. It expires by itself, so check Remaining, or
// call Confirm, before a step that must not happen without the lock. Or keep it alive with KeepAlive, and stop when
// its Context ends. Goroutines may share it.
//
// If the program drops its last reference to a Lease that holds a lock, the lock stays on the servers until it
// expires. The garbage collector frees its memory, but releases nothing, and the lock is no longer kept alive.
type Lease struct {
	manager   *Manager
	resources []string
	hold      *hold
}

// order makes everything that was written before an Unlock visible after the Lock that follows it. The servers
// order the two, but Go's memory model, and its race detector, do not know about servers.
var order atomic.Int64

// Extend makes the lock last for ttl, counted from now. It never shortens the lock: if it lasts longer than that, it
// is unchanged, and the call succeeds. ErrLost: the lock had ended. ErrUnreachable: too few servers answered, and a valid lock stays valid until
// its old expiry.
func (l *Lease) Extend(ttl time.Duration) error {
	return l.ExtendContext(context.Background(), ttl)
}

// ExtendContext is Extend that ends with ctx, at the latest: a valid lock then stays valid until its old expiry, or
// is extended.
func (l *Lease) ExtendContext(ctx context.Context, ttl time.Duration) error {
	return l.call(ctx, func(h *hold, rl *C.RedLock) C.RedLockStatus {
		return C.redlock_go_extend(rl, h.handle, ms(ttl), C.uintptr_t(h.id))
	})
}

// ExtendBy extends the lock so that it is valid for more longer than now. The new validity is Remaining plus more,
// which must be more than zero.
func (l *Lease) ExtendBy(more time.Duration) error {
	return l.ExtendByContext(context.Background(), more)
}

// ExtendByContext is ExtendBy that ends with ctx, at the latest.
func (l *Lease) ExtendByContext(ctx context.Context, more time.Duration) error {
	if more <= 0 {
		return invalid("more must be more than 0")
	}
	return l.call(ctx, func(h *hold, rl *C.RedLock) C.RedLockStatus {
		// If the lock has ended, C reports that, whatever the new TTL.
		left := int64(C.RedLockLease_RemainingMs(h.handle))
		return C.redlock_go_extend(rl, h.handle, h.shared.ttlFor(float64(left)+float64(ms(more))), C.uintptr_t(h.id))
	})
}

// Confirm asks the servers whether this Lease still holds its lock, for at least that long. ErrTooShort: the lock
// is held, but not for that long. ErrLost: the lock is not held. ErrUnreachable: too few servers answered. It
// changes nothing on the servers. Afterwards, the Lease is valid no longer than a quorum of the servers that answered
// has the lock.
func (l *Lease) Confirm(least time.Duration) error {
	return l.ConfirmContext(context.Background(), least)
}

// ConfirmContext is Confirm that ends with ctx, at the latest.
func (l *Lease) ConfirmContext(ctx context.Context, least time.Duration) error {
	return l.call(ctx, func(h *hold, rl *C.RedLock) C.RedLockStatus {
		return C.redlock_go_confirm(rl, h.handle, ms(least), C.uintptr_t(h.id))
	})
}

// Downgrade makes an exclusive lock, taken with Lock, shared. Its holder continues as a reader, and others can take
// the lock with RLock. No other client can have held the lock exclusively in between. The reverse is not possible.
// ErrLost: the lock had ended. ErrUnreachable: too few servers answered. The lock is then held until its old
// expiry, as a shared lock if Shared says so, and the caller may call Downgrade again.
func (l *Lease) Downgrade() error {
	return l.DowngradeContext(context.Background())
}

// DowngradeContext is Downgrade that ends with ctx, at the latest.
func (l *Lease) DowngradeContext(ctx context.Context) error {
	return l.call(ctx, func(h *hold, rl *C.RedLock) C.RedLockStatus {
		return C.redlock_go_downgrade(rl, h.handle, C.uintptr_t(h.id))
	})
}

// Shared tells whether others can hold the lock at the same time. No I/O.
func (l *Lease) Shared() bool {
	defer runtime.KeepAlive(l)
	h := l.inner()
	h.mu.Lock()
	defer h.mu.Unlock()
	return C.RedLockLease_Mode(h.handle) == C.REDLOCK_SHARED
}

// KeepAlive keeps the lock alive until it is unlocked: the lock is extended in the background, with its last TTL,
// whenever a third of that TTL has passed. If the lock cannot be kept alive, Lost and Context report this while at
// least a tenth of the TTL is left, unless somebody has taken the lock away. ErrLost: the lock is not held. No I/O.
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

// Lost is closed when the lock is lost: when it expires, when a call on it finds out that it is lost, or when it
// can no longer be kept alive. In the last case, some of its validity is left. See Err. Unlock does not close it.
func (l *Lease) Lost() <-chan struct{} {
	h := l.inner()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.watch()
	return h.lost
}

// Context is a context for the work that the lock protects. It ends with parent, when the lock is lost, and when
// the lock is unlocked. Err gives the reason, and so does context.Cause from Go 1.20 on. What it occupies is given
// back when it ends: if there is one for each request, give it a parent that ends with the request.
func (l *Lease) Context(parent context.Context) context.Context {
	return l.inner().context(parent)
}

// Err is the reason why there is no lock any more, as far as is known without asking servers. It is nil while there
// is a lock, ErrReleased after Unlock, and ErrDetached after Detach. Otherwise it is an Error with ErrLost, or with
// ErrUnreachable if the lock could not be kept alive.
func (l *Lease) Err() error {
	h := l.inner()
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.over
}

// Unlock releases the lock. ErrLost: the lock had already ended, or was released before; no lock of another holder
// was changed. ErrUnreachable: the release did not reach some servers; the lock expires there, and the caller may
// call Unlock again.
//
// It takes no context, because a lock must be released especially when the work was cancelled. It takes one round
// trip, and no longer than the reply timeout if servers do not answer. A second call after a success is harmless,
// so Unlock can also be deferred. After Retain it leaves one level, and asks no server.
func (l *Lease) Unlock() error {
	return l.unlock((*hold).submitUnlock)
}

// UnlockAfter releases the lock, and keeps others out until a time after the lock was taken: least, from 0 to the TTL.
// The key is not deleted, and ends then. It is for a job that must run once in a fleet of machines whose clocks differ.
// No waiting caller is woken. ErrInvalidArgument: least is longer than the TTL, or the lock is shared or a permit; it
// is held as before. In all other respects it is as Unlock.
func (l *Lease) UnlockAfter(least time.Duration) error {
	return l.unlock(func(h *hold) C.RedLockStatus {
		return C.redlock_go_unlock_after(h.shared.handle, h.handle, ms(least), C.uintptr_t(h.id))
	})
}

// unlock releases the lock in one of the ways of C.
func (l *Lease) unlock(submit func(*hold) C.RedLockStatus) error {
	defer runtime.KeepAlive(l)
	h := l.inner()
	h.turn <- struct{}{}
	defer func() { <-h.turn }()
	if h.handle == nil {
		return released()
	}
	order.Add(1)
	isInner := C.RedLockLease_Levels(h.handle) > 1
	status := h.submit(func() C.RedLockStatus { return submit(h) })
	if status == C.REDLOCK_OK {
		status = <-h.done
	}
	err := h.outcome(status, nil)
	if isInner || status == C.REDLOCK_INVALID_ARGUMENT {
		return err // the lock is held
	}
	h.end(ErrReleased, false)
	if status != C.REDLOCK_UNREACHABLE && h.finish() {
		<-h.shared.freed
	}
	return err
}

// Retain adds a level to the lock: one more Unlock is then needed to release it. It is for a function that gets a
// Lease and uses it longer than its caller, as a goroutine does, or that calls a function which unlocks. Locking
// the same resource again is never such a level, because Go has no owner of a lock that could be identified. An
// inner level lasts no longer than the lock, so call Extend if Remaining is less than the level needs. Each Unlock
// reports a lost lock: ErrLost. Detach refuses a lock that has several levels. ErrLost: the lock is not held, and
// no level was added. No I/O.
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

// Levels is how many Unlock calls release the lock: 1 without Retain, 0 if it is released. No I/O.
func (l *Lease) Levels() int {
	defer runtime.KeepAlive(l)
	h := l.inner()
	h.mu.Lock()
	defer h.mu.Unlock()
	return int(C.RedLockLease_Levels(h.handle))
}

// Detach gives the lock away and returns a ticket. Another process, or another Manager, takes the lock over by
// passing the ticket to Manager.Adopt. The Lease then holds nothing: its calls return ErrLost, its contexts end
// with ErrDetached, and the lock is no longer kept alive. Until the lock is adopted, nobody extends it, and it
// expires after its TTL. No I/O.
//
// The ticket is as secret as the Token, which it contains. Pass it through a pipe or the environment, not as an
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

// Remaining is how long the lock is valid from now on, 0 if it is not valid. No I/O.
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

// Resource is the locked resource; the first of several.
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

// Message is the message of the last call on the Lease. After a success: which servers could not take part, and
// why; empty if all could. After a failure: the message of the error.
func (l *Lease) Message() string {
	h := l.inner()
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.words
}

// Token is the value of the key on the servers; empty if the Lease holds no lock. Keep it secret: anybody who knows
// it can release the lock. Nothing else shows it. Token waits for a call on the Lease that is under way.
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

// FencingToken is a number that is greater than those of all earlier locks of the same resource, with
// Options.Fencing; 0 without it. Pass it with each write to the system that the lock protects. That system must
// refuse a number that is less than the greatest it has seen, as a database does with UPDATE ... WHERE fence <=
// :token. Then a holder that was paused beyond the end of its lock cannot undo what the next holder wrote. The
// number does not change when the lock is extended. It stays available when the lock has expired or was lost, until
// it is unlocked. It is less than 1<<53. No I/O.
func (l *Lease) FencingToken() int64 {
	defer runtime.KeepAlive(l)
	h := l.inner()
	h.mu.Lock()
	defer h.mu.Unlock()
	return int64(C.RedLockLease_FencingToken(h.handle))
}

// String names the locked resources, and how long the lock is valid.
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

// call makes a call for the holder, when earlier calls have ended.
func (l *Lease) call(ctx context.Context, submit func(*hold, *C.RedLock) C.RedLockStatus) error {
	defer runtime.KeepAlive(l)
	h := l.inner()
	select {
	case h.turn <- struct{}{}:
		defer func() { <-h.turn }()
	case <-ctx.Done():
		return &Error{Status: ErrCancelled, Message: "another call on the lease is in progress", cause: ctx.Err()}
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
	return &Error{Status: ErrLost, Message: "the lock was already released"}
}

package redlock

/*
#include <stdlib.h>
#include <string.h>
#include <redlock.h>

static RedLockStatus redlock_go_acquire(RedLock *rl, _GoString_ resource, int64_t ttl_ms, int64_t wait_ms,
                                        int32_t tries, int32_t permits, int32_t mode, RedLockLease *lease, uintptr_t id) {
	RedLockAcquireOptions options = REDLOCK_ACQUIRE_OPTIONS_INIT;
	options.resource = _GoStringPtr(resource);
	options.resource_size = _GoStringLen(resource);
	options.ttl_ms = ttl_ms;
	options.wait_ms = wait_ms;
	options.tries = tries;
	options.permits = permits;
	options.mode = mode;
	return RedLock_SubmitAcquire(rl, &options, lease, (void *)id);
}

// names contains the resources one after the other, each with its NUL. If there are too many, the library reads none.
static RedLockStatus redlock_go_acquire_all(RedLock *rl, _GoString_ names, size_t count, int64_t ttl_ms, int64_t wait_ms,
                                            int32_t tries, RedLockLease *lease, uintptr_t id) {
	const char *resources[128];
	const char *name = _GoStringPtr(names);
	for (size_t i = 0; i < count && i < sizeof resources / sizeof *resources; i++) {
		resources[i] = name;
		name += strlen(name) + 1;
	}
	RedLockAcquireOptions options = REDLOCK_ACQUIRE_OPTIONS_INIT;
	options.resources = resources;
	options.resource_count = count;
	options.ttl_ms = ttl_ms;
	options.wait_ms = wait_ms;
	options.tries = tries;
	return RedLock_SubmitAcquire(rl, &options, lease, (void *)id);
}

static RedLockStatus redlock_go_adopt(RedLock *rl, const char *ticket, RedLockLease *lease, uintptr_t id) {
	return RedLock_SubmitAdopt(rl, ticket, lease, (void *)id);
}
*/
import "C"

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"time"
	"unsafe"
)

// When a deadline ends the wait, C makes a last attempt and reports why the lock was not available. The caller
// waits this long after the deadline for that report, because servers may be silent.
const lastWords = 200 * time.Millisecond

// forever is how long a Lock without a deadline waits.
const forever = time.Duration(-1)

// Lock takes the lock, or waits for it until ctx is done or Options.Tries are used up. ttl is how long the lock
// lasts unless it is extended or released. It is in whole milliseconds, rounded up, at least 4 ms with the default
// drift, and at most ten years. resource is the name of the key on the servers: 1 to 65,536 bytes without a NUL.
//
// Lock returns promptly when ctx ends. errors.Is then matches the error with ctx.Err(). If a deadline ended ctx,
// the error is also the reason why the lock was not available, unless the servers are silent: ErrTaken,
// ErrUnreachable or ErrTooSlow. After an error nothing stays locked.
func (m *Manager) Lock(ctx context.Context, resource string, ttl time.Duration) (*Lease, error) {
	return m.acquire(ctx, []string{resource}, ttl, how{waits: true})
}

// TryLock makes one attempt, out of turn. It returns promptly when ctx ends, and then leaves nothing locked.
func (m *Manager) TryLock(ctx context.Context, resource string, ttl time.Duration) (*Lease, error) {
	return m.acquire(ctx, []string{resource}, ttl, how{})
}

// RLock is Lock for a shared lock. Other callers that want it shared can hold it at the same time. No caller can
// hold it with Lock then, nor can any other Redlock client. While a caller waits with Lock, later calls of RLock do
// not get the lock. A shared lock has no fencing token. Besides the resource, the servers use the keys with :r and
// :i appended to its name, so do not lock resources with such names.
func (m *Manager) RLock(ctx context.Context, resource string, ttl time.Duration) (*Lease, error) {
	return m.acquire(ctx, []string{resource}, ttl, how{shared: true, waits: true})
}

// TryRLock is TryLock for a shared lock.
func (m *Manager) TryRLock(ctx context.Context, resource string, ttl time.Duration) (*Lease, error) {
	return m.acquire(ctx, []string{resource}, ttl, how{shared: true})
}

// LockAll locks several resources at once, all of them or none, with one Lease. It has one Token, is extended and
// lost as a whole, and excludes every caller that wants one of the resources. There may be 1 to 128 different
// resources in any order, 65,536 bytes in total. The message tells by its number which one was in the way. In all
// other respects it is as Lock.
func (m *Manager) LockAll(ctx context.Context, resources []string, ttl time.Duration) (*Lease, error) {
	return m.acquire(ctx, resources, ttl, how{waits: true})
}

// TryLockAll is LockAll with one attempt, out of turn, as TryLock makes it.
func (m *Manager) TryLockAll(ctx context.Context, resources []string, ttl time.Duration) (*Lease, error) {
	return m.acquire(ctx, resources, ttl, how{})
}

// how describes the requested lock.
type how struct {
	permits int32 // of a semaphore, if not 0
	shared  bool
	waits   bool
}

func (h how) mode() C.int32_t {
	if h.shared {
		return C.REDLOCK_SHARED
	}
	return C.REDLOCK_EXCLUSIVE
}

// acquire takes a lock of these resources, or, with how.permits, one permit of the only resource.
func (m *Manager) acquire(ctx context.Context, resources []string, ttl time.Duration, how how) (*Lease, error) {
	if err := check(ctx, resources, ttl); err != nil {
		return nil, err
	}
	wait, tries, deadline := time.Duration(0), 0, false
	if s := m.shared; how.waits && s != nil {
		wait, tries = forever, s.tries
		if end, ok := ctx.Deadline(); ok && tries == 0 {
			wait, deadline = notNegative(time.Until(end)), true
		}
	}
	return m.take(ctx, deadline, func(s *shared, h *hold) C.RedLockStatus {
		handle, id := h.handle, C.uintptr_t(h.id)
		if len(resources) == 1 {
			return C.redlock_go_acquire(s.handle, resources[0], ms(ttl), ms(wait), C.int32_t(tries), C.int32_t(how.permits), how.mode(), handle, id)
		}
		names := strings.Join(resources, "\x00") + "\x00"
		count := C.size_t(len(resources))
		return C.redlock_go_acquire_all(s.handle, names, count, ms(ttl), ms(wait), C.int32_t(tries), handle, id)
	})
}

// Adopt takes over a lock that was given away with Lease.Detach, in this process or another. The servers are asked
// whether the lock is there. ErrLost: the lock has ended. ErrUnreachable: too few servers answered, and the caller
// may try again. Adopt a ticket only once. A second adopter shares the lock, as goroutines that share a Lease do,
// and the first to unlock it releases it for both.
//
// Adopt returns promptly when ctx ends: the lock is then as it was, or is released if it was already adopted.
func (m *Manager) Adopt(ctx context.Context, ticket string) (*Lease, error) {
	if strings.IndexByte(ticket, 0) >= 0 {
		return nil, invalid("ticket contains a NUL byte")
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return m.take(ctx, false, func(s *shared, h *hold) C.RedLockStatus {
		text := C.CString(ticket)
		defer freeText(text)
		return C.redlock_go_adopt(s.handle, text, h.handle, C.uintptr_t(h.id))
	})
}

// take submits a call that takes a lock, and waits for it.
func (m *Manager) take(ctx context.Context, deadline bool, submit func(*shared, *hold) C.RedLockStatus) (*Lease, error) {
	s := m.shared
	if err := s.begin(); err != nil {
		return nil, err
	}
	defer runtime.KeepAlive(m)
	defer s.end()
	h, err := s.newHold()
	if err != nil {
		return nil, err
	}
	status := h.submit(func() C.RedLockStatus { return submit(s, h) })
	over := error(nil)
	if status == C.REDLOCK_OK {
		status, over = h.await(ctx, s.closing, deadline)
	}
	if status == C.REDLOCK_OK && over == nil {
		order.Add(1)
		s.keep()
		h.counts = true
		_ = h.note(status)
		return newLease(m, h.resources(), h), nil
	}
	failure := h.note(status)
	if status == C.REDLOCK_OK {
		failure = &Error{Status: ErrCancelled, Message: "the call was cancelled when the lock was taken"}
		h.undo()
	} else {
		h.finish()
	}
	switch {
	case over == errClosing:
		return nil, ErrClosed
	case over != nil:
		failure.cause = over
	case deadline && failure.Status.Retriable():
		failure.cause = context.DeadlineExceeded
	}
	return nil, failure
}

// check finds faults before the call waits. Faults that only the C library can find are reported later.
func check(ctx context.Context, resources []string, ttl time.Duration) error {
	if len(resources) == 0 {
		return invalid("resources is empty: give at least one name")
	}
	for i, resource := range resources {
		what := "resource"
		if len(resources) > 1 {
			what = fmt.Sprintf("resource %d of %d", i+1, len(resources))
		}
		switch {
		case resource == "":
			return invalid(what + " is empty")
		case len(resource) > 65536:
			return invalid(what + " is longer than 65536 bytes")
		case strings.IndexByte(resource, 0) >= 0:
			return invalid(what + " contains a NUL byte") // IsLocked could not ask about it
		}
	}
	if ttl <= 0 {
		return invalid("ttl must be more than 0")
	}
	return ctx.Err()
}

func freeText(text *C.char) {
	C.free(unsafe.Pointer(text))
}

func notNegative(d time.Duration) time.Duration {
	if d < 0 {
		return 0
	}
	return d
}

// ms rounds away from zero: a small value must not become 0, because 0 has another meaning.
func ms(d time.Duration) C.int64_t {
	n := d.Milliseconds()
	if d%time.Millisecond > 0 {
		n++
	} else if d%time.Millisecond < 0 {
		n--
	}
	return C.int64_t(n)
}

package redlock

/*
#include <stdlib.h>
#include <redlock.h>

static RedLockStatus redlock_go_acquire(RedLock *rl, _GoString_ resource, int64_t ttl_ms, int64_t wait_ms,
                                        int32_t tries, int32_t permits, RedLockLease *lease, uintptr_t id) {
	RedLockAcquireOptions options = REDLOCK_ACQUIRE_OPTIONS_INIT;
	options.resource = _GoStringPtr(resource);
	options.resource_size = _GoStringLen(resource);
	options.ttl_ms = ttl_ms;
	options.wait_ms = wait_ms;
	options.tries = tries;
	options.permits = permits;
	return RedLock_SubmitAcquire(rl, &options, lease, (void *)id);
}

static RedLockStatus redlock_go_adopt(RedLock *rl, const char *ticket, RedLockLease *lease, uintptr_t id) {
	return RedLock_SubmitAdopt(rl, ticket, lease, (void *)id);
}
*/
import "C"

import (
	"context"
	"runtime"
	"strings"
	"time"
	"unsafe"
)

// Where a deadline ends the wait, C makes a last attempt and says why the lock could not be had. So long
// after the deadline that is waited for: servers may be silent.
const lastWords = 200 * time.Millisecond

// forever is how long a Lock waits that has no deadline.
const forever = time.Duration(-1)

// Lock takes the lock, or waits for it until ctx is done or Options.Tries are used up. ttl is how
// long the lock lasts unless it is extended or released, in whole milliseconds, rounded up; at
// least 4 ms with the default drift, and at most ten years. resource is the name of the key on the
// servers: 1 to 65,536 bytes without a NUL.
//
// It returns promptly when ctx ends. The error is then ctx.Err() for errors.Is. Where that is a deadline,
// it is also why the lock could not be had, unless the servers are silent: ErrTaken, ErrUnreachable or
// ErrTooSlow. After an error nothing stays locked.
func (m *Manager) Lock(ctx context.Context, resource string, ttl time.Duration) (*Lease, error) {
	return m.acquire(ctx, resource, ttl, 0, true)
}

// TryLock makes one attempt, out of turn. It returns promptly when ctx ends, and leaves nothing
// locked then.
func (m *Manager) TryLock(ctx context.Context, resource string, ttl time.Duration) (*Lease, error) {
	return m.acquire(ctx, resource, ttl, 0, false)
}

// acquire takes a lock, or one of so many permits if that is not 0.
func (m *Manager) acquire(ctx context.Context, resource string, ttl time.Duration, permits int32, waits bool) (*Lease, error) {
	if err := check(ctx, resource, ttl); err != nil {
		return nil, err
	}
	wait, tries, deadline := time.Duration(0), 0, false
	if s := m.shared; waits && s != nil {
		wait, tries = forever, s.tries
		if end, ok := ctx.Deadline(); ok && tries == 0 {
			wait, deadline = notNegative(time.Until(end)), true
		}
	}
	return m.take(ctx, deadline, func(s *shared, h *hold) C.RedLockStatus {
		return C.redlock_go_acquire(s.handle, resource, ms(ttl), ms(wait), C.int32_t(tries), C.int32_t(permits), h.handle, C.uintptr_t(h.id))
	})
}

// Adopt takes over a lock that was given away with Lease.Detach, in this process or another: the servers are asked
// whether it is there. ErrLost: it has ended. ErrUnreachable: too few servers answered, and it may be tried again.
// Adopt a ticket once: who adopts it again shares the lock, as goroutines that share a Lease do, and the first to
// unlock it releases it for both.
//
// It returns promptly when ctx ends: the lock is then as it was, or released if it had been adopted by then.
func (m *Manager) Adopt(ctx context.Context, ticket string) (*Lease, error) {
	if strings.IndexByte(ticket, 0) >= 0 {
		return nil, invalid("the ticket holds a NUL byte")
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

// take submits a call by which a lock is had, and waits for it.
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
		return newLease(m, h.resource(), h), nil
	}
	failure := h.note(status)
	if status == C.REDLOCK_OK {
		failure = &Error{Status: ErrCancelled, Message: "it was had too late"}
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

// check finds what is wrong before anybody waits. What only the C library knows, it says later.
func check(ctx context.Context, resource string, ttl time.Duration) error {
	switch {
	case resource == "":
		return invalid("the resource is empty")
	case len(resource) > 65536:
		return invalid("the resource is longer than 65536 bytes")
	case strings.IndexByte(resource, 0) >= 0:
		return invalid("the resource holds a NUL byte") // IsLocked could not ask for it
	case ttl <= 0:
		return invalid("the TTL is not positive")
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

// ms rounds away from zero: a little must not become 0, which means something else.
func ms(d time.Duration) C.int64_t {
	n := d.Milliseconds()
	if d%time.Millisecond > 0 {
		n++
	} else if d%time.Millisecond < 0 {
		n--
	}
	return C.int64_t(n)
}

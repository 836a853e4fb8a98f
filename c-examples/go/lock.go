package redlock

/*
#include <stdlib.h>
#include <redlock.h>
*/
import "C"

import (
	"context"
	"crypto/rand"
	"math/big"
	"strings"
	"time"
	"unsafe"
)

// How long an attempt may wait at first, in the C library: while a goroutine of this Manager is
// releasing the lock, it is handed over there, right behind the release. The C library makes such
// a call stand back for up to 8 ms, where that gives other processes their chance.
const handOver = 16 * time.Millisecond

// The first pauses are at least so long.
const shortest = time.Millisecond

// forever is how long a Lock waits that has no bound on its tries: that its context ends, C need not
// know.
const forever = time.Duration(-1)

// Lock takes the lock, or waits for it until ctx is done or Options.Tries are used up. ttl is how
// long the lock lasts unless it is extended or released, in whole milliseconds, rounded up; at
// least 4 ms with the default drift, and at most ten years. resource is the name of the key on the
// servers: 1 to 65,536 bytes without a NUL.
//
// It returns promptly when ctx ends. The error is then ctx.Err() for errors.Is and, if anything
// was heard of the lock, also why it could not be had: ErrTaken, ErrUnreachable or ErrTooSlow.
// After an error nothing stays locked: see the package's comment for an attempt under way.
func (m *Manager) Lock(ctx context.Context, resource string, ttl time.Duration) (*Lease, error) {
	if err := check(ctx, resource, ttl); err != nil {
		return nil, err
	}
	w := m.lines.join(resource)
	defer m.lines.leave(w)
	since, pause, patience := time.Now(), time.Time{}, handOver
	var lease *Lease // the same one until it is woken: C knows by it how far the wait has come
	for tries := 1; ; tries++ {
		woken, err := m.await(ctx, w, pause)
		if err == nil && (woken || lease == nil) {
			since, patience = time.Now(), handOver
			lease.finish()
			lease, err = m.newLease(resource)
		}
		if err != nil {
			lease.finish()
			return nil, m.withReason(w, err)
		}
		err = m.attempt(ctx, lease, ttl, patience, m.tries == 0)
		refusal, ok := err.(*Error)
		if err == nil {
			return lease, nil
		}
		if ok && !refusal.Status.Retriable() {
			lease.finish()
		}
		if !ok || !refusal.Status.Retriable() {
			return nil, m.withReason(w, err)
		}
		m.lines.refused(w, refusal)
		if m.tries > 0 && tries >= m.tries {
			lease.finish()
			return nil, refusal
		}
		pause, patience = time.Now().Add(m.pause(time.Since(since))), 0
	}
}

// TryLock makes one attempt, out of turn. It returns promptly when ctx ends, and leaves nothing
// locked then.
func (m *Manager) TryLock(ctx context.Context, resource string, ttl time.Duration) (*Lease, error) {
	if err := check(ctx, resource, ttl); err != nil {
		return nil, err
	}
	lease, err := m.newLease(resource)
	if err != nil {
		return nil, err
	}
	if err = m.attempt(ctx, lease, ttl, 0, false); err != nil {
		if status(err) != 0 {
			lease.finish()
		}
		return nil, err
	}
	return lease, nil
}

// await returns when it is w's turn to ask the servers, and says whether somebody told it so. Who
// is not woken asks after its pause.
func (m *Manager) await(ctx context.Context, w *waiter, pause time.Time) (woken bool, err error) {
	for {
		select {
		case <-w.wake:
			woken, pause = true, time.Time{}
		default:
		}
		due := m.lines.due(w, pause)
		if err := ctx.Err(); err != nil || due <= 0 {
			return woken, err
		}
		timer := time.NewTimer(due)
		select {
		case <-w.wake:
			woken, pause = true, time.Time{}
		case <-timer.C:
			if pause = (time.Time{}); due == look {
				return woken, nil
			}
		case <-ctx.Done():
			err = ctx.Err()
		case <-m.closing:
			err = ErrClosed
		}
		timer.Stop()
		if err != nil {
			return woken, err
		}
	}
}

// withReason adds to the end of a context what kept the lock from being had.
func (m *Manager) withReason(w *waiter, err error) error {
	if err != context.Canceled && err != context.DeadlineExceeded {
		return err
	}
	reason := m.lines.reason(w)
	if reason == nil {
		return err
	}
	return &Error{Status: reason.Status, Message: reason.Message, cause: err}
}

// attempt asks the servers, for as long as patience says, or once. Where it is a slice of a longer wait,
// it goes on with that: C asks when its pause is over, which may be later, and pauses ever longer.
// After an error that is none of C, the lease may still be in use.
func (m *Manager) attempt(ctx context.Context, l *Lease, ttl, patience time.Duration, slice bool) error {
	if deadline, ok := ctx.Deadline(); ok && patience > 0 {
		patience = earlier(patience, time.Until(deadline))
		if patience < 0 {
			patience = 0 // less than that would be for ever
		}
	}
	wait := patience
	if slice {
		wait = forever
	}
	return m.ask(ctx, func() error { return l.acquire(ttl, wait, patience) }, l.undo)
}

// ask makes a call into C that takes as long as the servers do. It returns when that is over, or
// ctx is; the call then ends in the background, and undo is called with what it has come to.
func (m *Manager) ask(ctx context.Context, call func() error, undo func(error)) error {
	if err := m.begin(); err != nil {
		return err
	}
	if err := m.asking.take(ctx, m.closing, allAsking); err != nil {
		m.end()
		return err
	}
	if ctx.Done() == nil {
		defer m.end()
		defer m.asking.give(allAsking)
		return call()
	}
	outcome := make(chan error) // without a buffer: it is either received or undone
	go func() {
		defer m.end()
		defer m.asking.give(allAsking)
		err := call()
		select {
		case outcome <- err:
		case <-ctx.Done():
			undo(err)
		}
	}()
	select {
	case err := <-outcome:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// pause is how long to pause after so long a wait. It grows with that, so that nobody waits much
// longer than there was reason to; where C has pauses of its own, it is no longer than a part of
// these. It is random, so that those who wait do not come back all at
// once. The randomness is the system's: math/rand may draw the same numbers in every process.
func (m *Manager) pause(waited time.Duration) time.Duration {
	bound, most := waited/4, m.longest
	if m.tries == 0 {
		most /= 4
	}
	if bound = earlier(bound, most); bound < shortest {
		bound = shortest
	}
	if n, err := rand.Int(rand.Reader, big.NewInt(int64(bound))); err == nil {
		return time.Duration(n.Int64())
	}
	return bound / 2
}

// check finds what is wrong before anybody waits. What only the C library knows, it says later.
func check(ctx context.Context, resource string, ttl time.Duration) error {
	switch {
	case resource == "":
		return invalid("the resource is empty")
	case len(resource) > 65536:
		return invalid("the resource is longer than 65536 bytes")
	case strings.IndexByte(resource, 0) >= 0:
		return invalid("the resource holds a NUL byte") // "a\x00b" must not lock "a"
	case ttl <= 0:
		return invalid("the TTL is not positive")
	}
	return ctx.Err()
}

func freeText(text *C.char) {
	C.free(unsafe.Pointer(text))
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

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
	"time"
	"unsafe"
)

// Lock takes the lock, or waits for it until ctx is done. The error is then both ctx.Err() and,
// if an attempt was completed, what that said: ErrTaken, ErrUnreachable or ErrTooSlow.
//
// Waiting is a timer, not a call into C. An attempt under way when ctx ends is left to finish in
// the background, and what it takes is released at once.
func (m *Manager) Lock(ctx context.Context, resource string, ttl time.Duration) (*Lease, error) {
	var refusal *Error
	for {
		lease, err := m.TryLock(ctx, resource, ttl)
		if e, ok := err.(*Error); ok && e.Status.Retriable() {
			refusal = e
			if err = m.pause(ctx); err == nil {
				continue
			}
		}
		if err != nil && refusal != nil && err == ctx.Err() {
			refusal.cause = err
			return nil, refusal
		}
		return lease, err
	}
}

// TryLock makes one attempt.
func (m *Manager) TryLock(ctx context.Context, resource string, ttl time.Duration) (*Lease, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	name, err := cString(resource)
	if err != nil {
		return nil, err
	}
	handle, err := m.begin()
	if err != nil {
		C.free(unsafe.Pointer(name))
		return nil, err
	}
	lease := newLease(m)
	done := make(chan error) // without a buffer: the outcome is either received or undone
	go func() {
		defer m.end()
		defer C.free(unsafe.Pointer(name))
		err := lease.attempt(handle, name, ttl)
		select {
		case done <- err:
		case <-ctx.Done():
			if err == nil {
				_ = lease.check(handle, lease.unlock)
			}
		}
	}()
	select {
	case err := <-done:
		if err != nil {
			return nil, err
		}
		return lease, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// pause waits from half to one and a half times the retry delay, so that those who wait do not
// come back all at once. The randomness is the system's: math/rand draws the same numbers in
// every process unless it is seeded.
func (m *Manager) pause(ctx context.Context) error {
	delay := m.retryDelay / 2
	if extra, err := rand.Int(rand.Reader, big.NewInt(int64(m.retryDelay))); err == nil {
		delay += time.Duration(extra.Int64())
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

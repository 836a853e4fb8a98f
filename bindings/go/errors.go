package redlock

/*
#include <redlock.h>
*/
import "C"

import "errors"

// Status is the reason why a call did not succeed. Compare with errors.Is(err, ErrTaken).
type Status int32

// The reasons why the servers, or the library, did not do what was asked.
const (
	ErrTaken           Status = C.REDLOCK_TAKEN            // somebody else holds it
	ErrUnreachable     Status = C.REDLOCK_UNREACHABLE      // too few servers answered in time
	ErrTooSlow         Status = C.REDLOCK_TOO_SLOW         // granted, but no validity was left
	ErrLost            Status = C.REDLOCK_LOST             // the lock is not held, or no longer held
	ErrCancelled       Status = C.REDLOCK_CANCELLED        // a context ended the call
	ErrTooShort        Status = C.REDLOCK_TOO_SHORT        // the lock is held, but not for as long as requested
	ErrInvalidArgument Status = C.REDLOCK_INVALID_ARGUMENT // the message names the fault
	ErrNoServers       Status = C.REDLOCK_NO_SERVERS       // no server was given
	ErrForked          Status = C.REDLOCK_FORKED           // the lease belongs to the parent process
	ErrInternal        Status = C.REDLOCK_INTERNAL         // the message says what happened
)

// ErrClosed is the error of calls on a closed Manager.
var ErrClosed = errors.New("redlock: the manager is closed")

// ErrReleased is the reason why the Context of an unlocked Lease ended.
var ErrReleased = errors.New("redlock: the lock was released")

// ErrDetached is the reason why the Context of a Lease ended that was given away.
var ErrDetached = errors.New("redlock: the lock was given away")

// Error is the name of the status, such as REDLOCK_TAKEN.
func (s Status) Error() string {
	return C.GoString(C.RedLockStatus_Name(C.int32_t(s)))
}

// Retriable tells whether the same call may succeed a little later without any change.
func (s Status) Retriable() bool {
	return bool(C.RedLockStatus_IsRetriable(C.int32_t(s)))
}

// Error is a call that did not succeed. Every error of this package is an Error, except for ErrClosed, ErrReleased,
// ErrDetached, and the error of a context that had ended before the call began.
type Error struct {
	Status  Status
	Message string // for a person: the answer of each server, and the count of the votes
	cause   error  // ctx.Err(), if that ended the call
}

// Error is the message. It names servers, and contains no token and no password.
func (e *Error) Error() string {
	text := "redlock: " + e.Message
	if e.Message == "" {
		text += e.Status.Error()
	}
	if e.cause != nil {
		text += ": " + e.cause.Error()
	}
	return text
}

// Is makes errors.Is(err, ErrTaken) work.
func (e *Error) Is(target error) bool {
	return target == e.Status
}

// As makes errors.As work with a Status.
func (e *Error) As(target any) bool {
	status, ok := target.(*Status)
	if ok {
		*status = e.Status
	}
	return ok
}

// Unwrap makes errors.Is(err, context.DeadlineExceeded) work.
func (e *Error) Unwrap() error {
	return e.cause
}

func invalid(message string) error {
	return &Error{Status: ErrInvalidArgument, Message: message}
}

package redlock

/*
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <redlock.h>

// It contains no pointer, so it may be in Go memory.
typedef struct {
	uintptr_t id;
	int32_t kind;
	int32_t status;
} redlock_go_event;

// Also tells whether names have to be looked up.
static int redlock_go_events(RedLock *rl, int64_t wait_ms, redlock_go_event *events, int most, bool *is_look_up_due) {
	RedLockEvent event = REDLOCK_EVENT_INIT;
	int count = 0;
	while (count < most && RedLock_NextEvent(rl, wait_ms, &event) == REDLOCK_OK) {
		redlock_go_event told = {(uintptr_t)event.user_data, event.kind, event.status};
		events[count++] = told;
		wait_ms = 0;
	}
	*is_look_up_due = RedLock_IsLookUpDue(rl);
	return count;
}

// A copy that Go may close, because Go closes the descriptor that it waits for.
static int redlock_go_descriptor(RedLock *rl) {
	int own = RedLock_Descriptor(rl);
	int copy = own < 0 ? -1 : fcntl(own, F_DUPFD_CLOEXEC, 3);
	if (copy >= 0) {
		fcntl(copy, F_SETFL, fcntl(copy, F_GETFL) | O_NONBLOCK);
	}
	return copy;
}

static int redlock_go_is_readable(int descriptor) {
	struct pollfd look = {descriptor, POLLIN, 0};
	return poll(&look, 1, 0) != 0;
}
*/
import "C"

import (
	"os"
	"sync/atomic"
	"time"
)

const (
	// The number of events that one call into C takes at most.
	batch = 64

	// How long a call for events may take before another goroutine asks for events as well.
	patience = 100 * time.Millisecond

	// How many goroutines may stand in at once. Each stands in for an earlier one that does not return from C.
	standInsMax = 2

	// How long a goroutine waits in C at a time.
	stretch = time.Second
)

// driver asks C for events. This also does all work that is due: nothing is sent or received except by a driver.
type driver struct {
	shared *shared
	events [batch]C.redlock_go_event
	isDue  C.bool       // names have to be looked up
	calls  atomic.Int64 // odd while the driver is in C
	late   *time.Timer
}

func (s *shared) newDriver() *driver {
	d := &driver{shared: s}
	d.late = time.AfterFunc(time.Hour, d.standIn)
	d.late.Stop()
	return d
}

// open makes a file from the manager's descriptor, on which the runtime can wait without a thread. nil: this system
// has no such descriptor.
func (s *shared) open() *os.File {
	descriptor := C.redlock_go_descriptor(s.handle)
	if descriptor < 0 {
		return nil
	}
	file := os.NewFile(uintptr(descriptor), "redlock")
	if file.SetReadDeadline(time.Time{}) != nil {
		file.Close() // the runtime cannot wait for it
		return nil
	}
	return file
}

// drive is the driving goroutine. It runs until the manager is no longer needed, and then frees the manager.
func (s *shared) drive() {
	d := s.newDriver()
	if s.file == nil {
		for !s.stopped.Load() {
			d.take(stretch)
		}
	} else {
		// The file is an os.File, for which this cannot fail.
		connection, _ := s.file.SyscallConn()
		for !s.stopped.Load() {
			_ = connection.Read(d.look) // stop causes an error, which is ignored
		}
		s.file.Close()
	}
	d.late.Stop()
	s.mu.Lock() // a stand-in has counted itself by now, or does not begin
	s.mu.Unlock()
	s.standIns.Wait()
	s.free()
	close(s.freed)
}

// look takes all events. It returns false to be called again when the descriptor becomes readable. The runtime
// reports only the moment in which the descriptor becomes readable, not its state. So look returns false only if it
// has seen that the descriptor is not readable.
func (d *driver) look(descriptor uintptr) bool {
	for idle := 0; !d.shared.stopped.Load(); idle++ {
		if d.take(0) {
			idle = 0
		} else if C.redlock_go_is_readable(C.int(descriptor)) == 0 {
			return false
		} else if idle > 1 {
			time.Sleep(time.Millisecond) // a thread that is in C does the work that is due
		}
	}
	return true
}

// take asks for events and hands them out. It returns whether there were any. If a PasswordFunc delays C, other calls
// need not wait for that: another goroutine stands in.
func (d *driver) take(wait time.Duration) bool {
	d.calls.Add(1)
	d.late.Reset(wait + patience)
	n := int(C.redlock_go_events(d.shared.handle, ms(wait), &d.events[0], batch, &d.isDue))
	d.late.Stop()
	d.calls.Add(1)
	if bool(d.isDue) && d.shared.beginLookUp() {
		go d.shared.lookUp()
	}
	d.shared.handOut(d.events[:n])
	return n > 0
}

// standIn drives until d returns from C.
func (d *driver) standIn() {
	s := d.shared
	s.mu.Lock()
	call := d.calls.Load()
	if call%2 == 0 || s.standing == standInsMax {
		s.mu.Unlock()
		return
	}
	s.standing++
	s.standIns.Add(1)
	s.mu.Unlock()
	defer s.endStandingIn()
	for other := s.newDriver(); d.calls.Load() == call; {
		other.take(patience)
	}
}

func (s *shared) endStandingIn() {
	s.mu.Lock()
	s.standing--
	s.mu.Unlock()
	s.standIns.Done()
}

// beginLookUp tells whether there has to be a look-up: there is one at a time. The look-up is a use of the handle: C
// does not allow the handle to be freed before a call has begun, and nobody knows when that is.
func (s *shared) beginLookUp() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isLookingUp || s.uses == 0 {
		return false
	}
	s.isLookingUp = true
	s.uses++
	return true
}

// lookUp waits for the resolver, perhaps for long. Nobody waits for lookUp, not even Close.
func (s *shared) lookUp() {
	defer s.drop()
	for {
		C.RedLock_LookUp(s.handle) // a failure is a line of the Logger, and words of Servers
		s.mu.Lock()
		s.isLookingUp = false
		s.mu.Unlock()
		// For what is due since then, a driver may have found this look-up still under way.
		if !bool(C.RedLock_IsLookUpDue(s.handle)) || !s.lookUpAgain() {
			return
		}
	}
}

// lookUpAgain tells whether the caller, whose look-up has ended, has to look up again.
func (s *shared) lookUpAgain() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isLookingUp {
		return false
	}
	s.isLookingUp = true
	return true
}

func (s *shared) handOut(events []C.redlock_go_event) {
	for _, event := range events {
		s.mu.Lock()
		h := s.holds[uintptr(event.id)]
		s.mu.Unlock()
		switch {
		case h == nil: // the hold has finished
		case event.kind == C.REDLOCK_EVENT_DONE:
			h.done <- C.RedLockStatus(event.status)
		case event.kind == C.REDLOCK_EVENT_LOST:
			h.end(&Error{Status: Status(event.status), Message: "the lock could not be kept alive"}, true)
		}
	}
}

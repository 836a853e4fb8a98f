package redlock

import (
	"container/list"
	"math"
	"sync"
	"time"
)

const (
	// How often the first in line asks although a goroutine of this Manager has the lock: the key
	// may have been deleted on the servers.
	look = time.Second

	// How many resources there may be before those are looked for that nobody needs any more.
	linesMin = 64

	never = time.Duration(math.MaxInt64)
)

// lines has the goroutines of one Manager that want a lock, in a line for each resource.
type lines struct {
	mu     sync.Mutex // guards all that hangs on this
	byName map[string]*line
	limit  int
}

// line is what is known of one resource.
type line struct {
	waiters list.List // of *waiter; only the first asks the servers
	hold    *hold     // the lock, while this Manager has it
	refusal *Error    // what the servers said last
}

// hold is a lock that this Manager has. It is not the Lease, which may be forgotten.
type hold struct {
	until time.Time
}

// waiter is a goroutine in line.
type waiter struct {
	resource string
	line     *line
	place    *list.Element
	wake     chan struct{} // something has changed: it is the first now, or the lock was released
}

func (l *lines) join(resource string) *waiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := &waiter{resource: resource, line: l.line(resource), wake: make(chan struct{}, 1)}
	w.place = w.line.waiters.PushBack(w)
	return w
}

func (l *lines) leave(w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	wasFirst := w.isFirst()
	w.line.waiters.Remove(w.place)
	if wasFirst {
		w.line.wakeFirst()
	}
	l.forget(w.resource, w.line)
}

// due is how long w has to wait if nothing happens meanwhile, with a pause until then.
func (l *lines) due(w *waiter, pause time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !w.isFirst() {
		return never
	}
	if left := w.line.left(); left > 0 {
		return earlier(left, look)
	}
	return time.Until(pause)
}

// refused notes what the servers said to w.
func (l *lines) refused(w *waiter, refusal *Error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w.line.refusal = refusal
}

// reason is why w has not got the lock yet, as far as anybody has heard.
func (l *lines) reason(w *waiter) *Error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.line.left() > 0 {
		return &Error{Status: ErrTaken, Message: "another goroutine holds the lock"}
	}
	return w.line.refusal
}

// granted notes that this Manager has the lock, and until when.
func (l *lines) granted(resource string, h *hold, left time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := l.line(resource)
	h.until = time.Now().Add(left)
	line.hold, line.refusal = h, nil
}

// extended notes that a lock ends at another time than was thought.
func (l *lines) extended(h *hold, left time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h.until = time.Now().Add(left)
}

// letGo notes that a lock is being released or was lost: the first in line may ask.
func (l *lines) letGo(resource string, h *hold) {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := l.byName[resource]
	if line == nil {
		return
	}
	if line.hold == h {
		line.hold = nil
	}
	line.wakeFirst()
	l.forget(resource, line)
}

// line is that of a resource. Those that nobody needs any more, since their locks were forgotten
// and have ended, are forgotten too before there are too many.
func (l *lines) line(resource string) *line {
	if found := l.byName[resource]; found != nil {
		return found
	}
	if len(l.byName) >= l.limit {
		for name, it := range l.byName {
			l.forget(name, it)
		}
		l.limit = 2*len(l.byName) + linesMin
	}
	if l.byName == nil {
		l.byName = make(map[string]*line)
	}
	made := &line{}
	l.byName[resource] = made
	return made
}

func (l *lines) forget(resource string, it *line) {
	if it.waiters.Len() == 0 && it.left() <= 0 {
		delete(l.byName, resource)
	}
}

func (l *line) left() time.Duration {
	if l.hold == nil {
		return 0
	}
	return time.Until(l.hold.until)
}

func (l *line) wakeFirst() {
	if first := l.waiters.Front(); first != nil {
		select {
		case first.Value.(*waiter).wake <- struct{}{}:
		default: // it has been told, and not looked yet
		}
	}
}

func (w *waiter) isFirst() bool {
	return w.line.waiters.Front() == w.place
}

func earlier(a, b time.Duration) time.Duration {
	if a < b {
		return a
	}
	return b
}

//go:build cgo

package redlock

import (
	"fmt"
	"sync"
)

// levelFault is the level of lines about faults, as the library counts them.
const levelFault = 1

// linesMax is how many lines wait for a slow Logger at most.
const linesMax = 256

// teller passes lines to the Logger, on a goroutine of its own, which ends when there are no more lines. Nobody who
// adds a line waits for the Logger, so the Logger may make any call, and wait for any other.
type teller struct {
	logger func(level int, message string)

	mu      sync.Mutex // guards the fields below
	lines   []line
	leftOut int
	tells   bool // whether the goroutine is there
}

type line struct {
	level int
	text  string
}

// add never waits. A nil teller has no Logger.
func (t *teller) add(it line) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, it)
	if len(t.lines) > linesMax {
		t.lines = t.lines[1:] // the last ones describe the present state
		t.leftOut++
	}
	if !t.tells {
		t.tells = true
		go t.run()
	}
}

// run passes lines to the Logger until there are none. A Logger that fails is told so, once for each line.
func (t *teller) run() {
	for it, ok := t.next(); ok; it, ok = t.next() {
		if failure := outside(func() { t.logger(it.level, it.text) }); failure != "" {
			outside(func() { t.logger(levelFault, "the Logger failed: "+failure) })
		}
	}
}

func (t *teller) next() (it line, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if count := t.leftOut; count > 0 {
		t.leftOut = 0
		return line{levelFault, fmt.Sprintf("%d earlier lines were dropped", count)}, true
	}
	if len(t.lines) == 0 {
		t.lines, t.tells = nil, false
		return line{}, false
	}
	it, t.lines = t.lines[0], t.lines[1:]
	return it, true
}

// outside runs a function of the user on a goroutine of its own. It returns "" if the function returned, and
// otherwise how it failed: a panic, or runtime.Goexit. Neither may pass through the frames of the C library, because
// the mutexes that it holds would stay locked.
func outside(f func()) (failure string) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if reason := recover(); reason != nil {
				failure = fmt.Sprint("panic: ", reason)
			}
		}()
		failure = "runtime.Goexit was called"
		f()
		failure = ""
	}()
	<-done
	return failure
}

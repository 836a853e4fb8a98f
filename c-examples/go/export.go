package redlock

/*
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
*/
import "C"

import (
	"runtime/cgo"
	"strings"
	"unsafe"
)

//export redlockGoPassword
func redlockGoPassword(server, password *C.char, size C.size_t, function C.uintptr_t) C.bool {
	name, ask := C.GoString(server), cgo.Handle(function).Value().(func(string) (string, error))
	var text string
	var err error
	if !outside(func() { text, err = ask(name) }) || err != nil {
		return false
	}
	if len(text) >= int(size) || strings.IndexByte(text, 0) >= 0 {
		return false
	}
	room := unsafe.Slice((*byte)(unsafe.Pointer(password)), int(size))
	room[copy(room, text)] = 0
	return true
}

//export redlockGoLog
func redlockGoLog(level C.int32_t, message *C.char, function C.uintptr_t) {
	words, tell := C.GoString(message), cgo.Handle(function).Value().(func(int, string))
	outside(func() { tell(int(level), words) })
}

// outside runs a function of the user on a goroutine of its own, and returns whether the function returned. Neither
// a panic nor runtime.Goexit may pass through the frames of the C library, because the mutexes that it holds would
// stay locked.
func outside(f func()) (returned bool) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = recover() }()
		f()
		returned = true
	}()
	<-done
	return returned
}

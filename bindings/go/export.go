package redlock

/*
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
*/
import "C"

import (
	"runtime/cgo"
	"unsafe"
)

//export redlockGoPassword
func redlockGoPassword(server, password *C.char, size C.size_t, function C.uintptr_t) C.bool {
	room := unsafe.Slice((*byte)(unsafe.Pointer(password)), int(size))
	return C.bool(cgo.Handle(function).Value().(*passwords).into(room, C.GoString(server)))
}

//export redlockGoLog
func redlockGoLog(level C.int32_t, message *C.char, function C.uintptr_t) {
	cgo.Handle(function).Value().(*teller).add(line{int(level), C.GoString(message)})
}

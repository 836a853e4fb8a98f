package redlock

/*
#include <redlock.h>

#if REDLOCK_VERSION_MAJOR != 0 || REDLOCK_VERSION_MINOR != 3
#error "this package is for redlock 0.3, and the redlock.h that was found is of another version"
#endif
*/
import "C"

import "strings"

// The interface version that this package needs. Below 1.0 the interface may change with the second number.
const interfaceVersion = "0.3"

// checkVersion refuses a library of another version than that of redlock.h: its functions may take other arguments.
func checkVersion() error {
	version := C.GoString(C.RedLock_Version())
	if strings.HasPrefix(version, interfaceVersion+".") {
		return nil
	}
	words := "the library is redlock " + version + ", and this package is for " + interfaceVersion
	return &Error{Status: ErrInternal, Message: words}
}

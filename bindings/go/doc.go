// Package redlock takes locks that are held on a majority of independent Redis or Valkey servers: programs on
// different machines exclude each other, and a minority of the servers may fail.
//
// A lock is a lease. It expires by itself, even while its holder is still at work. Keep it alive with KeepAlive, or
// call Extend in time. Stop when its Context ends, and call Confirm before a step that cannot be undone.
//
// # Goroutines and threads
//
// Any number of goroutines may lock through one Manager. Goroutines that want the same resource wait in the
// library's queue, and get the lock in the order in which they came. A goroutine that waits for a lock, or for
// servers, occupies no system thread. One goroutine per Manager receives all events, and waits as for a network
// connection. Only Connect, IsLocked and Inspect occupy threads, at most four, and so does a slow PasswordFunc or a
// slow name server. A call whose context ends is cancelled, and a lock that it may have taken is released.
//
// # Building
//
// This package is a layer over the C library of the same name, by cgo. The published module contains that library
// for the systems that its cgo_*.go files name: there nothing needs to be installed. With the tag redlock_system,
// and on other systems, the installed library is linked. If it is in a usual place, such as /usr/local, no setting
// is needed. If not, use one of
//
//	PKG_CONFIG_PATH=<prefix>/lib/pkgconfig go build -tags redlock_pkgconfig
//	CGO_CFLAGS=-I<prefix>/include CGO_LDFLAGS="-L<prefix>/lib -Wl,-rpath,<prefix>/lib" go build
//
// and set LD_LIBRARY_PATH=<prefix>/lib to run the program, unless the program was linked with such an rpath.
package redlock

// Package redlock takes locks that are held on a majority of independent Redis or Valkey servers:
// programs on different machines exclude each other, and a minority of the servers may fail.
//
// A lock is a lease. It ends by itself when its time is over, also while its holder is still at
// work: Extend it in time, and ask Confirm before a step that cannot be undone.
//
// # Goroutines and threads
//
// Any number of goroutines may lock through one Manager. Those that want the same resource wait in
// line, in Go, and get the lock in the order in which they came; only the first of a line asks the
// servers. A call into the C library occupies a thread of the system while it runs, so no more than
// a few dozen run at a time, and what holders call (Unlock, Extend, Confirm) never waits for those
// who want to become holders. A call whose context ends returns at once; an attempt that was under
// way ends in the background within the timeouts, and what it may have taken is released.
//
// # Building
//
// It is a layer over the C library of that name, by cgo. Where that is installed in a usual place,
// such as /usr/local, nothing needs to be told. Elsewhere, one of
//
//	PKG_CONFIG_PATH=<prefix>/lib/pkgconfig go build -tags redlock_pkgconfig
//	CGO_CFLAGS=-I<prefix>/include CGO_LDFLAGS="-L<prefix>/lib -Wl,-rpath,<prefix>/lib" go build
//
// and, unless the program was linked with such an rpath, LD_LIBRARY_PATH=<prefix>/lib to run it.
package redlock

// Package redlock takes locks that are held on a majority of independent Redis or Valkey servers:
// programs on different machines exclude each other, and a minority of the servers may fail.
//
// A lock is a lease. It ends by itself when its time is over, also while its holder is still at
// work: have it kept with KeepAlive, or Extend it in time; stop when its Context ends; and ask Confirm
// before a step that cannot be undone.
//
// # Goroutines and threads
//
// Any number of goroutines may lock through one Manager. Those that want the same resource wait in
// the library's queue, and get the lock in the order in which they came. No goroutine that waits for a
// lock, or for servers, has a thread of the system: one goroutine per Manager takes in what has happened, and
// waits as for a network connection. Only Connect, IsLocked and Inspect occupy threads, four at most, and so does a
// PasswordFunc, or a name server, that takes its time. A call whose context ends is cancelled, and what it
// may have taken is released.
//
// # Building
//
// It is a layer over the C library of that name, by cgo. The published module has that library in it, for
// systems that its cgo_*.go files name: there nothing needs to be installed. With the tag redlock_system, and
// elsewhere, the installed library is linked. Where that is in a usual place, such as /usr/local, nothing
// needs to be told. If not, one of
//
//	PKG_CONFIG_PATH=<prefix>/lib/pkgconfig go build -tags redlock_pkgconfig
//	CGO_CFLAGS=-I<prefix>/include CGO_LDFLAGS="-L<prefix>/lib -Wl,-rpath,<prefix>/lib" go build
//
// and, unless the program was linked with such an rpath, LD_LIBRARY_PATH=<prefix>/lib to run it.
package redlock

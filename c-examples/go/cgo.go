//go:build !redlock_pkgconfig

package redlock

// Not pkg-config, unless asked for: the compiler finds /usr/local by itself on every system, and
// pkg-config does not, where it is there at all.

// #cgo LDFLAGS: -lredlock
import "C"

//go:build !redlock_pkgconfig

package redlock

// pkg-config is not used unless requested: the compiler finds /usr/local by itself on every system. pkg-config does
// not, and may not be installed.

// #cgo LDFLAGS: -lredlock
import "C"

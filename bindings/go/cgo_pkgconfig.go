//go:build redlock_pkgconfig

package redlock

// #cgo pkg-config: redlock
import "C"

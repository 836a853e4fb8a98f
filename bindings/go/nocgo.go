//go:build !cgo

package redlock

// Without cgo the rest of this package is left out, and a program would only be told that Manager is undefined. With
// this, the compiler's message says what to do.
var _ = redlock_needs_cgo__set_CGO_ENABLED_to_1_and_install_a_C_compiler

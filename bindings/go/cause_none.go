//go:build !go1.20

package redlock

import "context"

// withCause is context.WithCancel: contexts of this Go do not tell why they were cancelled.
func withCause(parent context.Context) (context.Context, func(error)) {
	ctx, cancel := context.WithCancel(parent)
	return ctx, func(error) { cancel() }
}

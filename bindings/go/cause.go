//go:build go1.20

package redlock

import "context"

// withCause is context.WithCancel for contexts that tell why they were cancelled.
func withCause(parent context.Context) (context.Context, func(error)) {
	return context.WithCancelCause(parent)
}

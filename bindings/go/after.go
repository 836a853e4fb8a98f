//go:build go1.21

package redlock

import "context"

// after calls f, on a goroutine of its own, when ctx has ended.
func after(ctx context.Context, f func()) {
	context.AfterFunc(ctx, f)
}

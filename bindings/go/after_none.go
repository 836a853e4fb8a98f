//go:build !go1.21

package redlock

import "context"

// after is context.AfterFunc, which this Go does not have: a goroutine waits.
func after(ctx context.Context, f func()) {
	go func() {
		<-ctx.Done()
		f()
	}()
}

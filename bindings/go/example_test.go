package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"redlock.example/redlock"
)

func Example() {
	manager, err := redlock.New("10.0.0.1:6379", "10.0.0.2:6379", "10.0.0.3:6379")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer manager.Close()

	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	lease, err := manager.Lock(ctx, "invoice:42", 10*time.Second)
	if err != nil {
		fmt.Println(err) // which server gave which answer
		return
	}
	defer lease.Unlock()
	fmt.Println("ours for", lease.Remaining())
}

func ExampleManager_Lock() {
	var manager *redlock.Manager
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	lease, err := manager.Lock(ctx, "invoice:42", 10*time.Second)
	switch {
	case errors.Is(err, redlock.ErrTaken):
		fmt.Println("somebody else is at it, and did not finish within a second")
	case errors.Is(err, redlock.ErrUnreachable):
		fmt.Println("too few servers can be reached:", err)
	case err != nil:
		fmt.Println("this will not do:", err)
	default:
		defer lease.Unlock()
	}
}

func ExampleManager_TryLock() {
	var manager *redlock.Manager
	lease, err := manager.TryLock(context.Background(), "nightly report", time.Minute)
	if errors.Is(err, redlock.ErrTaken) {
		return // another machine writes the report
	}
	if err == nil {
		defer lease.Unlock()
	}
}

// Work that may take longer than the TTL extends the lock, and stops when that fails.
func ExampleLease_Extend() {
	var lease *redlock.Lease
	for page := 1; page <= 100; page++ {
		if err := lease.Extend(10 * time.Second); err != nil {
			fmt.Println("stopped before page", page, err)
			return
		}
		// write the page
	}
}

// A job of unknown length, under a lock that is extended in the background.
func ExampleLease_KeepAlive() {
	var manager *redlock.Manager
	lease, err := manager.Lock(context.Background(), "nightly report", 10*time.Second)
	if err != nil {
		return
	}
	defer lease.Unlock()
	if err := lease.KeepAlive(); err != nil {
		return // the lock is already lost
	}
	ctx := lease.Context(context.Background()) // ends when the lock cannot be kept
	for page := 1; page <= 100; page++ {
		if ctx.Err() != nil {
			fmt.Println("stopped before page", page, lease.Err())
			return
		}
		// write the page; hand ctx to what it takes
	}
}

func ExampleLease_Confirm() {
	var lease *redlock.Lease
	if err := lease.Confirm(2 * time.Second); err != nil {
		fmt.Println("the money stays where it is:", err)
		return
	}
	// transfer it, which takes less than two seconds
}

func ExampleOptions() {
	options := redlock.Options{
		Username: "locker",
		PasswordFunc: func(server string) (string, error) {
			password, err := os.ReadFile("/run/secrets/redis")
			return strings.TrimSpace(string(password)), err
		},
		TLS: &redlock.TLS{CAFile: "/etc/redis/ca.pem"},
	}
	manager, err := redlock.NewWithOptions(options, "10.0.0.1:6380", "10.0.0.2:6380", "10.0.0.3:6380")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer manager.Close()
}

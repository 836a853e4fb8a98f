// Three people want to write the same report, and each waits a second for it. The first writes at once, the second
// after the first, and the third gives up.
//
//	go run ./cmd/demo [host:port ...]
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"redlock.example/redlock"
)

func main() {
	servers := os.Args[1:]
	if len(servers) == 0 {
		servers = []string{"127.0.0.1:6379", "127.0.0.1:6380", "127.0.0.1:6381"}
	}
	if err := run(servers); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(servers []string) error {
	manager, err := redlock.New(servers...)
	if err != nil {
		return err
	}
	defer manager.Close()

	people := []string{"Ada", "Ben", "Cleo"}
	done := make(chan error)
	for _, name := range people {
		go func(name string) { done <- write(manager, name) }(name)
	}
	for range people {
		if failure := <-done; failure != nil {
			err = failure
		}
	}
	return err
}

func write(manager *redlock.Manager, name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()

	lease, err := manager.Lock(ctx, "example:report", 2*time.Second)
	switch {
	case errors.Is(err, redlock.ErrTaken) && errors.Is(err, context.DeadlineExceeded):
		fmt.Println(name, "gives up waiting")
		return nil
	case err != nil:
		return err
	}
	defer lease.Unlock() // for the early return; a second Unlock is harmless

	for page := 1; page <= 3; page++ {
		fmt.Println(name, "holds the lock for", lease.Remaining(), "and writes page", page)
		time.Sleep(200 * time.Millisecond) // instead of real work
		if err := lease.Extend(2 * time.Second); err != nil {
			return fmt.Errorf("%s stops after page %d: %w", name, page, err)
		}
	}
	return lease.Unlock()
}

// Servers with names get other addresses: see moving_names.rs. The argument is the task.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"redlock.example/redlock"
)

func main() {
	before := sockets()
	servers := strings.Split(os.Getenv("REDLOCK_TEST_SERVERS"), ",")
	// A server that writes to its disk beside others may be slow.
	manager, err := redlock.NewWithOptions(redlock.Options{ReplyTimeout: 20 * time.Second}, servers...)
	must(err)
	switch os.Args[1] {
	case "keep":
		keep(manager)
	case "wait":
		wait(manager)
	case "close":
		keep(manager)
		say("closed")
		for sockets() > before {
			time.Sleep(time.Millisecond)
		}
	}
}

func keep(manager *redlock.Manager) {
	lease, err := manager.Lock(context.Background(), "r", 8*time.Second)
	must(err)
	must(lease.KeepAlive())
	say("kept")
	await()
	must(lease.Err())
	must(lease.Unlock())
	must(manager.Close())
}

func wait(manager *redlock.Manager) {
	ended := make(chan error)
	go func() {
		_, err := manager.Lock(context.Background(), "r", 8*time.Second)
		ended <- err
	}()
	say("waiting")
	await()
	must(manager.Close())
	if err := <-ended; !errors.Is(err, redlock.ErrClosed) {
		must(fmt.Errorf("the call has ended with %v", err))
	}
}

func say(word string) {
	fmt.Println(word)
}

// await waits until the test goes on.
func await() {
	_, err := io.ReadAll(os.Stdin)
	must(err)
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func sockets() (count int) {
	entries, err := os.ReadDir("/proc/self/fd")
	must(err)
	for _, entry := range entries {
		target, _ := os.Readlink("/proc/self/fd/" + entry.Name()) // the descriptor of ReadDir is closed by now
		if strings.HasPrefix(target, "socket:") {
			count++
		}
	}
	return count
}

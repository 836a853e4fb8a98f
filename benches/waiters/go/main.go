// Makes many goroutines wait for locks at once. Shows how many threads they need, and whether each gets its turn.
//
//	waiters WAITERS RESOURCES ROUNDS KEY PORT...
//
// The exchange with the bench, a line each: "ready" when the runtime has the threads that it has without locks.
// Then any line from the bench makes all goroutines begin. At the end, the figures as key=value. The bench counts
// the threads.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"sort"
	"strconv"
	"sync"
	"time"

	"redlock.example/redlock"
)

const (
	ttl      = 30 * time.Second
	patience = 60 * time.Second
)

// Starts as many goroutines as will wait. They compute and sleep. The threads after that belong to the runtime
// itself.
func warmUp(waiters int) {
	var all sync.WaitGroup
	for i := 0; i < waiters; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for end := time.Now().Add(50 * time.Microsecond); time.Now().Before(end); {
			}
			time.Sleep(20 * time.Millisecond)
		}()
	}
	all.Wait()
}

// Takes and releases the lock for a number of rounds. Returns how long each acquire took. If a call fails, it
// returns fewer.
func wait(manager *redlock.Manager, resource string, rounds int) (waits []time.Duration) {
	for i := 0; i < rounds; i++ {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		start := time.Now()
		lease, err := manager.Lock(ctx, resource, ttl)
		cancel()
		if err != nil {
			return waits
		}
		waits = append(waits, time.Since(start))
		if lease.Unlock() != nil {
			return waits
		}
	}
	return waits
}

func main() {
	if len(os.Args) < 6 {
		fmt.Fprintln(os.Stderr, "waiters WAITERS RESOURCES ROUNDS KEY PORT...")
		os.Exit(2)
	}
	waiters, _ := strconv.Atoi(os.Args[1])
	resources, _ := strconv.Atoi(os.Args[2])
	rounds, _ := strconv.Atoi(os.Args[3])
	var servers []string
	for _, port := range os.Args[5:] {
		servers = append(servers, "127.0.0.1:"+port)
	}
	warmUp(waiters)
	fmt.Println("ready")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return
	}
	manager, err := redlock.New(servers...)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	start := time.Now()
	waits := make([][]time.Duration, waiters)
	var all sync.WaitGroup
	for i := range waits {
		i := i
		all.Add(1)
		go func() {
			defer all.Done()
			waits[i] = wait(manager, fmt.Sprintf("%s:%d", os.Args[4], i%resources), rounds)
		}()
	}
	all.Wait()
	report(waits, rounds, time.Since(start))
	manager.Close()
}

func report(waits [][]time.Duration, rounds int, took time.Duration) {
	var all []time.Duration
	starved := 0
	for _, own := range waits {
		all = append(all, own...)
		if len(own) < rounds {
			starved++
		}
	}
	sort.Slice(all, func(i, j int) bool { return all[i] < all[j] })
	fmt.Printf("starved=%d locks=%d seconds=%.6f", starved, len(all), took.Seconds())
	if len(all) > 0 {
		fmt.Printf(" wait_p50_us=%d wait_most_us=%d", all[len(all)/2].Microseconds(), all[len(all)-1].Microseconds())
	}
	fmt.Println()
}

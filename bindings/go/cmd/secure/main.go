// Takes a lock on servers that require encryption and a log-in: over TLS, and with a password that is neither in
// this file nor on the command line.
//
//	go run ./cmd/secure ca.pem [host:port ...]
//
// If REDIS_PASSWORD is set in the environment, it is the password; REDIS_USER may name an ACL user.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"redlock.example/redlock"
)

func main() {
	options := redlock.Options{
		Username: os.Getenv("REDIS_USER"),
		Password: os.Getenv("REDIS_PASSWORD"),
		TLS:      &redlock.TLS{}, // trusts the authorities that the system trusts
	}
	servers := []string{"127.0.0.1:6479", "127.0.0.1:6480", "127.0.0.1:6481"}
	if len(os.Args) > 1 {
		options.TLS.CAFile = os.Args[1]
	}
	if len(os.Args) > 2 {
		servers = os.Args[2:]
	}
	if err := run(options, servers); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(options redlock.Options, servers []string) error {
	manager, err := redlock.NewWithOptions(options, servers...)
	if err != nil {
		return err
	}
	defer manager.Close()

	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	lease, err := manager.Lock(ctx, "secure:report", 10*time.Second)
	if err != nil {
		return err
	}
	fmt.Println("locked for", lease.Remaining(), "in secret")
	return lease.Unlock()
}

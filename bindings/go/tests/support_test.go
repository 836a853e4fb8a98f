package tests

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"redlock.example/redlock"
)

// servers are real ones, and a minority of them may be down.
var servers []string

func TestMain(m *testing.M) {
	list := os.Getenv("REDLOCK_TEST_SERVERS")
	if list == "" {
		fmt.Fprintln(os.Stderr, "REDLOCK_TEST_SERVERS must name the servers: host:port,host:port,...")
		os.Exit(1)
	}
	servers = strings.Split(list, ",")
	os.Exit(m.Run())
}

// newManager uses timeouts that suit a busy machine, unless the options say otherwise.
func newManager(t *testing.T, options redlock.Options, servers ...string) *redlock.Manager {
	t.Helper()
	if options.ConnectTimeout == 0 {
		options.ConnectTimeout = 20 * time.Second
	}
	m, err := redlock.NewWithOptions(options, servers...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// impatient retries often, as the tests have no time to lose. It gives a busy machine more time to reply than
// short TTLs would.
func impatient(t *testing.T) *redlock.Manager {
	t.Helper()
	options := redlock.Options{RetryDelay: 4 * time.Millisecond, ReplyTimeout: 500 * time.Millisecond}
	return newManager(t, options, servers...)
}

var resources atomic.Int64

// resource is a name that nothing else uses, neither another test nor an earlier run.
func resource(t *testing.T) string {
	return fmt.Sprintf("go:%s:%d:%d:%d", t.Name(), os.Getpid(), time.Now().UnixNano(), resources.Add(1))
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func mustLock(t *testing.T, m *redlock.Manager, name string, ttl time.Duration) *redlock.Lease {
	t.Helper()
	lease, err := m.Lock(within(t, 20*time.Second), name, ttl)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func mustConnect(t *testing.T, m *redlock.Manager) {
	t.Helper()
	_, err := m.Connect(context.Background())
	must(t, err)
}

// mustConnectAll waits until all servers that answer are connected. Calls wait for a majority only.
func mustConnectAll(t *testing.T, m *redlock.Manager) {
	t.Helper()
	mustConnect(t, m)
	eventually(t, "all are connected", func() bool {
		told, err := m.Servers()
		must(t, err)
		connected := 0
		for _, it := range told {
			if it.Connected {
				connected++
			}
		}
		return connected >= len(answering(t))
	})
}

func mustUnlock(t *testing.T, lease *redlock.Lease) {
	t.Helper()
	must(t, lease.Unlock())
}

func mustBe(t *testing.T, err error, wanted ...error) {
	t.Helper()
	if !mustFailWith(t, err, wanted...) {
		t.FailNow()
	}
}

// mustFailWith is for goroutines other than that of the test.
func mustFailWith(t *testing.T, err error, wanted ...error) bool {
	t.Helper()
	for _, w := range wanted {
		if !errors.Is(err, w) {
			t.Errorf("wanted %v, got %v", w, err)
			return false
		}
	}
	return true
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("never came true: ", what)
		}
	}
}

func isLocked(t *testing.T, m *redlock.Manager, name string) bool {
	t.Helper()
	locked, err := m.IsLocked(context.Background(), name)
	if err != nil {
		t.Fatal(err)
	}
	return locked
}

// isSeen checks whether the lock is there, or is absent, as expected. The answer is uncertain while the lock is
// set or deleted on one server after another and a third is down.
func isSeen(t *testing.T, m *redlock.Manager, name string, there bool) bool {
	t.Helper()
	locked, err := m.IsLocked(context.Background(), name)
	if errors.Is(err, redlock.ErrUnreachable) {
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	return locked == there
}

// ask sends a server one line and returns the first line of its answer.
func ask(t *testing.T, server, line string) string {
	t.Helper()
	connection, err := net.Dial("tcp", server)
	must(t, err)
	defer connection.Close()
	must(t, connection.SetDeadline(time.Now().Add(20*time.Second)))
	_, err = fmt.Fprintf(connection, "%s\r\n", line)
	must(t, err)
	answer, err := bufio.NewReader(connection).ReadString('\n')
	must(t, err)
	return strings.TrimSpace(answer)
}

// answering returns the servers that answer: a minority may be named to be frozen or killed.
func answering(t *testing.T) (up []string) {
	t.Helper()
	for _, server := range servers {
		if server != os.Getenv("REDLOCK_TEST_DOWN") {
			up = append(up, server)
		}
	}
	return up
}

// gate stands between a client and a server, and holds the replies back while it is shut.
type gate struct {
	listener net.Listener
	server   string
	mu       sync.Mutex
	open     *sync.Cond
	shut     bool
	clients  []net.Conn
}

func newGate(t *testing.T, server string) *gate {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{listener: listener, server: server}
	g.open = sync.NewCond(&g.mu)
	t.Cleanup(func() { listener.Close(); g.set(false) })
	go g.serve()
	return g
}

// newGates makes one gate for each server.
func newGates(t *testing.T) (gates []*gate, addresses []string) {
	t.Helper()
	for _, server := range servers {
		g := newGate(t, server)
		gates, addresses = append(gates, g), append(addresses, g.address())
	}
	return gates, addresses
}

func setAll(gates []*gate, shut bool) {
	for _, g := range gates {
		g.set(shut)
	}
}

func (g *gate) address() string { return g.listener.Addr().String() }

func (g *gate) set(shut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = shut
	g.open.Broadcast()
}

// cut is the end of the server, as its clients see it.
func (g *gate) cut() {
	g.listener.Close()
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, client := range g.clients {
		client.Close()
	}
}

func (g *gate) serve() {
	for {
		client, err := g.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", g.server)
		if err != nil {
			client.Close()
			continue
		}
		g.mu.Lock()
		g.clients = append(g.clients, client)
		g.mu.Unlock()
		go func() { io.Copy(server, client); server.Close() }()
		go func() { io.Copy(waiting{client, g}, server); client.Close() }()
	}
}

type waiting struct {
	client net.Conn
	gate   *gate
}

func (w waiting) Write(reply []byte) (int, error) {
	w.gate.mu.Lock()
	for w.gate.shut {
		w.gate.open.Wait()
	}
	w.gate.mu.Unlock()
	return w.client.Write(reply)
}

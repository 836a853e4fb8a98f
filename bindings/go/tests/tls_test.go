package tests

import (
	"os"
	"strings"
	"testing"
	"time"

	"redlock.example/redlock"
)

// Servers that require certificates from their clients, and the necessary files.
type secure struct {
	servers              []string
	ca, certificate, key string
}

func secureServers(t *testing.T) secure {
	t.Helper()
	files := strings.Split(os.Getenv("REDLOCK_TEST_TLS"), ",")
	if len(files) < 6 {
		t.Fatal("REDLOCK_TEST_TLS must name ca.pem,certificate.pem,key.pem,host:port,host:port,host:port")
	}
	return secure{files[3:], files[0], files[1], files[2]}
}

func TestTLS(t *testing.T) {
	s := secureServers(t)
	options := redlock.Options{TLS: &redlock.TLS{CAFile: s.ca, CertFile: s.certificate, KeyFile: s.key}}
	m := newManager(t, options, s.servers...)
	mustConnect(t, m)
	each(200, func(int) {
		if err := tryOnce(m, resource(t)); err != nil {
			t.Error(err)
		}
	})
	name := resource(t)
	lease := mustLock(t, m, name, 10*time.Second)
	if !isLocked(t, m, name) {
		t.Fatal("it is not locked")
	}
	mustUnlock(t, lease)
}

func TestTLSThatFails(t *testing.T) {
	s := secureServers(t)
	identified := redlock.TLS{CertFile: s.certificate, KeyFile: s.key}
	nobodysRoots, misnamed, nameless, lenient := identified, identified, redlock.TLS{CAFile: s.ca}, identified
	misnamed.CAFile, misnamed.ServerName = s.ca, "elsewhere.example"
	lenient.InsecureSkipVerify = true
	for what, it := range map[string]struct {
		tls  *redlock.TLS
		good bool
	}{
		"an authority that the system does not know": {&nobodysRoots, false},
		"another name":   {&misnamed, false},
		"no certificate": {&nameless, false},
		"no TLS":         {nil, false},
		"no look at it":  {&lenient, true},
	} {
		t.Run(what, func(t *testing.T) {
			m := newManager(t, redlock.Options{TLS: it.tls}, s.servers...)
			if err := tryOnce(m, resource(t)); it.good {
				must(t, err)
			} else {
				mustBe(t, err, redlock.ErrUnreachable)
			}
		})
	}
}

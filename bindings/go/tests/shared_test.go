package tests

import (
	"context"
	"testing"
	"time"

	"redlock.example/redlock"
)

func mustRLock(t *testing.T, m *redlock.Manager, name string) *redlock.Lease {
	t.Helper()
	lease, err := m.RLock(context.Background(), name, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if !lease.Held() || !lease.Shared() || lease.FencingToken() != 0 {
		t.Fatal("it is not shared")
	}
	return lease
}

func TestReadersShareAndAWriterIsAlone(t *testing.T) {
	m, other, name := impatient(t), impatient(t), resource(t)
	one, two := mustRLock(t, m, name), mustRLock(t, m, name)
	three, err := other.TryRLock(context.Background(), name, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	info, err := other.Inspect(context.Background(), name)
	if err != nil || !info.Locked || !info.Shared || info.Readers != 3 {
		t.Fatal(info, err)
	}
	_, err = other.TryLock(context.Background(), name, time.Minute)
	mustBe(t, err, redlock.ErrTaken)
	if err := one.Extend(2 * time.Minute); err != nil || one.Remaining() < time.Minute {
		t.Fatal(err, one.Remaining())
	}
	if err := one.Confirm(time.Second); err != nil {
		t.Fatal(err)
	}
	for _, lease := range []*redlock.Lease{one, two, three} {
		mustUnlock(t, lease)
	}
	writer := mustLock(t, m, name, time.Minute)
	_, err = other.TryRLock(context.Background(), name, time.Minute)
	mustBe(t, err, redlock.ErrTaken)
	if writer.Shared() {
		t.Fatal("a writer is alone")
	}
	mustUnlock(t, writer)
}

func TestAWriterBecomesAReader(t *testing.T) {
	m, other, name := impatient(t), impatient(t), resource(t)
	lease := mustLock(t, m, name, time.Minute)
	if err := lease.Downgrade(); err != nil || !lease.Shared() {
		t.Fatal(err)
	}
	beside := mustRLock(t, other, name)
	_, err := other.TryLock(context.Background(), name, time.Minute)
	mustBe(t, err, redlock.ErrTaken)
	mustUnlock(t, lease)
	mustUnlock(t, beside)
	mustBe(t, lease.Downgrade(), redlock.ErrLost)
	mustUnlock(t, mustLock(t, m, name, time.Minute))
}

func TestAReaderWaitsForAWriter(t *testing.T) {
	m, name := impatient(t), resource(t)
	writer := mustLock(t, m, name, time.Minute)
	outcome := make(chan error, 1)
	go func() {
		reader, err := m.RLock(context.Background(), name, time.Minute)
		if err == nil {
			err = reader.Unlock()
		}
		outcome <- err
	}()
	eventually(t, "it waits, or has failed", func() bool {
		stats, err := m.Stats()
		must(t, err)
		return stats.Waiting == 1 || len(outcome) == 1
	})
	mustUnlock(t, writer)
	must(t, <-outcome)
}

func TestAWriterThatWaitsComesFirst(t *testing.T) {
	m, other, name := impatient(t), impatient(t), resource(t)
	lease := mustRLock(t, m, name)
	written := make(chan *redlock.Lease)
	go func() {
		writer, err := other.Lock(context.Background(), name, time.Minute)
		if err != nil {
			t.Error(err)
		}
		written <- writer
	}()
	deadline := time.Now().Add(20 * time.Second)
	for {
		late, err := m.TryRLock(context.Background(), name, time.Minute)
		if err != nil {
			mustBe(t, err, redlock.ErrTaken)
			break
		}
		mustUnlock(t, late)
		if time.Now().After(deadline) {
			t.Fatal("readers overtake a writer")
		}
	}
	mustUnlock(t, lease)
	mustUnlock(t, <-written)
}

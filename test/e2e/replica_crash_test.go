package e2e

import (
	le "encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/ostrodb/ostro/cluster/group"
)

// ledger writes growing numbers to a few places of a group's memory, several in
// flight, and remembers what was acknowledged.
type ledger struct {
	next  uint64
	acked [ledgerPlaces]uint64 // the highest number of each place
}

const (
	ledgerPlaces  = 16
	ledgerStride  = 4096 // So that each lies in a page of its own.
	ledgerReplica = 3
)

// run writes until the group breaks, and calls after when so many were acknowledged.
func (l *ledger) run(t *testing.T, g *group.Group, count int, after func()) {
	t.Helper()
	type flying struct {
		number uint64
		*group.Pending
	}
	var window []flying
	for {
		number := l.next + 1
		p, err := l.write(t, g, number)
		if err != nil {
			break
		}
		l.next = number
		if window = append(window, flying{number, p}); len(window) < 4 {
			continue
		}
		if _, err := window[0].Wait(t.Context()); err != nil {
			break
		}
		l.acked[window[0].number%ledgerPlaces] = window[0].number
		window = window[1:]
		if count--; count == 0 {
			after()
		}
	}
	for _, w := range window { // What had ended before the group broke is acknowledged, too.
		if _, err := w.Wait(t.Context()); err == nil {
			l.acked[w.number%ledgerPlaces] = w.number
		}
	}
}

// write is durable in one of three ways.
func (l *ledger) write(t *testing.T, g *group.Group, number uint64) (*group.Pending, error) {
	off, data := number%ledgerPlaces*ledgerStride, le.LittleEndian.AppendUint64(nil, number)
	switch number % 3 {
	case 0:
		return g.Write(t.Context(), off, data, group.Durable)
	case 1:
		if _, err := g.Write(t.Context(), off, data); err != nil {
			return nil, err
		}
		return g.Flush(t.Context(), off, 8)
	default: // Acknowledged, not flushed: a killed process loses it no more.
		return g.Write(t.Context(), off, data)
	}
}

// check reads the replicas' files: each has all that was acknowledged, and none
// more than the one before it in the chain.
func (l *ledger) check(t *testing.T, files []string) {
	t.Helper()
	var before [ledgerPlaces]uint64
	for i, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for place := range before {
			got := le.LittleEndian.Uint64(data[place*ledgerStride:])
			if got < l.acked[place] || got > l.next+1 || i > 0 && got > before[place] {
				t.Fatalf("replica %d has %d at place %d; %d was acknowledged, the one before has %d", i, got, place, l.acked[place], before[place])
			}
			before[place] = got
		}
	}
}

func TestKillingAllProcessesKeepsAllThatAGroupAcknowledged(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	var files []string
	for i := range ledgerReplica {
		files = append(files, filepath.Join(dir, fmt.Sprintf("memory-%d", i)))
	}
	l := &ledger{}
	for range 4 {
		nic := startNIC(t, "--realtime", "0")
		daemons := []*daemon{nic.daemon}
		var urls []string
		for i, file := range files {
			urls = append(urls, fmt.Sprintf("unix://%s/r%d.sock", dir, i))
			daemons = append(daemons, startDaemon(t, "replica", "--listen", urls[i], "--fabric", "shm://"+nic.socket, "--memory", "64KiB", "--file", file))
		}
		g := dialAll(t, openFabric(t, "shm://"+nic.socket), group.Spec{Window: 8, MaxWrite: 64}, urls...)
		l.run(t, g, 1+random.IntN(500), func() {
			random.Shuffle(len(daemons), func(i, j int) { daemons[i], daemons[j] = daemons[j], daemons[i] })
			for _, d := range daemons {
				if err := d.cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		})
		for _, d := range daemons {
			_ = d.cmd.Wait()
		}
		l.check(t, files)
	}
}

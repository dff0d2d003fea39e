package bench

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/ostrodb/ostro/bench/workload"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/internal/await"
)

// fakeNode answers each GET as it is told to, once release is closed, and CLUSTER NODES with its map.
func fakeNode(t *testing.T, release <-chan struct{}, answer func(key string) string, nodes func() string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for in := bufio.NewScanner(c); in.Scan(); {
					if in.Text() == "ASKING" {
						fmt.Fprint(c, "+OK\r\n")
						continue
					}
					if in.Text() == "NODES" {
						text := nodes()
						fmt.Fprintf(c, "$%d\r\n%s\r\n", len(text), text)
						continue
					}
					if !strings.HasPrefix(in.Text(), "$30") || !in.Scan() {
						continue
					}
					<-release
					if _, err := fmt.Fprint(c, answer(in.Text())); err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

// roam has a client ask for keys until ctx ends, who believes at first that all are at the first node.
func roam(t *testing.T, ctx context.Context, addrs []string, clients, depth int, keys []uint32, draw func(*roamer) uint32) roamTotal {
	t.Helper()
	var r *roamer
	r, err := newRoamer(addrs, slotOwners{}, clients, depth, keys, func() uint32 { return draw(r) }, 16)
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	total, err := r.run(ctx, 2000, 0)
	if err != nil {
		t.Fatal(err)
	}
	return total
}

// All keys have moved while many operations wait for the one connection to where they were.
func TestOperationsThatWaitWhereTheirKeysWereAreSentWhereTheyAre(t *testing.T) {
	release, now := make(chan struct{}), make(chan struct{})
	close(now)
	nothing := func() string { return "" }
	there := fakeNode(t, now, func(string) string { return "$1\r\nx\r\n" }, nothing)
	moved := func(key string) string { return fmt.Sprintf("-MOVED %d %s\r\n", record.SlotOf([]byte(key)), there) }
	was := fakeNode(t, release, moved, nothing)
	ctx, stop := context.WithCancel(t.Context())
	drawn := 0
	draw := func(*roamer) uint32 { // The first node answers once many operations wait for it.
		if drawn++; drawn == 200 {
			close(release)
			stop()
		}
		return 0
	}
	total := roam(t, ctx, []string{was, there}, 1, 1, []uint32{7}, draw)
	if len(total.trail) < 200 || total.late != 0 || len(total.errors) > 0 || total.moved == 0 {
		t.Errorf("%d were answered, %d not, %d redirected, errors %v", len(total.trail), total.late, total.moved, total.errors)
	}
}

// Of a thousand slots that have moved together a client learns by few redirections.
func TestAClientThatIsRedirectedReadsTheMapAnew(t *testing.T) {
	now := make(chan struct{})
	close(now)
	there := fakeNode(t, now, func(string) string { return "$1\r\nx\r\n" }, nil)
	was := fakeNode(t, now,
		func(key string) string { return fmt.Sprintf("-MOVED %d %s\r\n", record.SlotOf([]byte(key)), there) },
		func() string {
			return fmt.Sprintf("id %s@1 master - 0 0 1 connected 0-16383\n", there)
		})
	ctx, stop := context.WithTimeout(t.Context(), await.Patience)
	defer stop()
	keys := make([]uint32, 1000)
	for i := range keys {
		keys[i] = uint32(i)
	}
	last := record.PlaceSlots - 1 // Redirections of few keys leave it as it was.
	drawn := uint32(0)
	draw := func(r *roamer) uint32 { // The first one again and again, and the others when the map has come.
		if r.owner[last] == 1 {
			drawn++
		}
		if int(drawn) == len(keys)-1 {
			stop()
		}
		return min(drawn, uint32(len(keys)-1))
	}
	total := roam(t, ctx, []string{was, there}, 4, 1, keys, draw)
	if len(total.trail) < len(keys) || total.late != 0 || len(total.errors) > 0 || total.moved == 0 || total.moved > 4 {
		t.Errorf("%d were answered, %d not, %d redirected, errors %v", len(total.trail), total.late, total.moved, total.errors)
	}
}

// One connection is shared by all, and every other key has moved: each reply is that of its operation.
func TestOperationsThatShareAConnectionGetTheirOwnReplies(t *testing.T) {
	release := make(chan struct{})
	now := make(chan struct{})
	close(now)
	var there string
	keys := make([]uint32, 64)
	isHere := map[string]bool{}
	for i := range keys {
		keys[i] = uint32(i)
		var key [32]byte
		k := key[:workload.Text30.Len()]
		workload.Text30.Put(k, uint64(i))
		isHere[string(k)] = record.SlotOf(k)%2 == 0
	}
	found := "$1\r\nx\r\n"
	answer := func(here bool) func(string) string {
		return func(key string) string {
			switch {
			case isHere[key] == here:
				return found
			case here:
				return fmt.Sprintf("-ASK %d %s\r\n", record.SlotOf([]byte(key)), there)
			}
			return "$-1\r\n"
		}
	}
	none := func() string { return "" }
	there = fakeNode(t, now, answer(false), none)
	was := fakeNode(t, release, answer(true), none)
	ctx, stop := context.WithCancel(t.Context())
	drawn := uint32(0)
	draw := func(r *roamer) uint32 {
		if drawn++; drawn == 200 { // More than share it wait.
			if got := len(r.conns[0].ops); got != 16 {
				t.Errorf("%d operations share a connection", got)
			}
			close(release)
			stop()
		}
		return drawn % uint32(len(keys))
	}
	total := roam(t, ctx, []string{was, there}, 1, 16, keys, draw)
	if len(total.trail) < 200 || total.late != 0 || len(total.errors) > 0 || total.asked == 0 {
		t.Errorf("%d were answered, %d not, %d redirected, errors %v", len(total.trail), total.late, total.asked, total.errors)
	}
}

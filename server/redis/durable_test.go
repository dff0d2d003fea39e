package redis_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/server/redis"
)

func TestRepliesThatWaitForTheDiskKeepTheirOrder(t *testing.T) {
	srv := startServer(t, store.Options{Dir: t.TempDir(), Durability: store.Always}, redis.Config{Loops: 2})
	var wg sync.WaitGroup
	for i := range 8 {
		c := dial(t, "tcp", srv.Addr().String())
		wg.Go(func() {
			for n := range 50 {
				// Later commands need not wait for the disk, but for their turn.
				key, value := fmt.Sprint("k", i), fmt.Sprint(1000+n)
				sendTo(t, c, bulk("SET", key, value), bulk("GET", "none")+bulk("PING"), bulk("GET", key))
				expect(t, c, "+OK\r\n$-1\r\n+PONG\r\n$4\r\n"+value+"\r\n")
			}
		})
	}
	wg.Wait()
}

// TestColdKeysWaitAloneAndComeBackInOrder reads data that is several times
// larger than the memory it may take.
func TestColdKeysWaitAloneAndComeBackInOrder(t *testing.T) {
	const keys, valueBytes = 20_000, 2000
	srv := startServer(t, store.Options{Dir: t.TempDir(), MemoryBytes: 16 << 20, SegmentBytes: 1 << 20}, redis.Config{Loops: 2})
	value := func(i int) string { return fmt.Sprint(i) + strings.Repeat("x", valueBytes-len(fmt.Sprint(i))) }
	load := dial(t, "tcp", srv.Addr().String())
	for i := 0; i < keys; i += 100 {
		var set strings.Builder
		for j := i; j < i+100; j++ {
			set.WriteString(bulk("SET", fmt.Sprint("k", j), value(j)))
		}
		sendTo(t, load, set.String())
		expect(t, load, strings.Repeat("+OK\r\n", 100))
	}
	var wg sync.WaitGroup
	for seed := range 8 {
		c := dial(t, "tcp", srv.Addr().String())
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(seed), 1))
			for range 30 {
				var ask, answer strings.Builder
				for range 1 + r.IntN(60) {
					i := r.IntN(keys)
					switch r.IntN(5) {
					case 0:
						ask.WriteString(bulk("STRLEN", fmt.Sprint("k", i)))
						fmt.Fprintf(&answer, ":%d\r\n", valueBytes)
					case 1:
						ask.WriteString("PING\r\n")
						answer.WriteString("+PONG\r\n")
					default:
						ask.WriteString(bulk("GET", fmt.Sprint("k", i)))
						fmt.Fprintf(&answer, "$%d\r\n%s\r\n", valueBytes, value(i))
					}
				}
				sendTo(t, c, ask.String())
				expect(t, c, answer.String())
			}
		})
	}
	wg.Wait()
}

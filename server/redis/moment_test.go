package redis_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/server/redis"
)

// Commands that write several keys do so at one moment, and those that read several must not see a half of it.
func TestCommandsThatReadSeveralKeysReadThemAtOneMoment(t *testing.T) {
	for _, d := range []store.Durability{store.None, store.EverySec} {
		t.Run(fmt.Sprint(d), func(t *testing.T) {
			o := store.Options{Durability: d}
			if d != store.None {
				o.Dir = t.TempDir()
			}
			addr := startOstroOn(t, o, redis.Config{Loops: 2})
			writer, reader := dialRaw(t, addr), dialRaw(t, addr)
			ask(t, writer, "mset", "a", "0", "b", "0", "here", "x")
			var stop atomic.Bool
			var writing sync.WaitGroup
			defer writing.Wait()
			defer stop.Store(true)
			var changes [][]string
			for range 20 {
				changes = append(changes, []string{"mset", "a", "1", "b", "1"}, []string{"rename", "here", "there"},
					[]string{"del", "a", "b"}, []string{"rename", "there", "here"})
			}
			writing.Go(func() {
				for !stop.Load() {
					if err := writer.sendAll(changes); err != nil {
						t.Error(err)
						return
					}
					for range changes {
						if r, err := writer.receive(); err != nil || r.kind == '-' {
							t.Error(r, err)
							return
						}
					}
				}
			})
			const burst, bursts = 100, 100
			var commands [][]string
			for range burst {
				commands = append(commands, []string{"mget", "a", "b"}, []string{"exists", "here", "there"})
			}
			for range bursts {
				must(t, reader.sendAll(commands))
				for range burst {
					both, err := reader.receive()
					must(t, err)
					one, err := reader.receive()
					must(t, err)
					if len(both.items) != 2 || both.items[0].null != both.items[1].null || one.text != "1" {
						t.Fatalf("MGET of both or none says %q, EXISTS of one or the other %s", both.raw, one.text)
					}
				}
			}
		})
	}
}

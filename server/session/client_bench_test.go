package session_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/ostrodb/ostro/client"
	"github.com/ostrodb/ostro/engine/store"
)

// BenchmarkClient measures a client and a server in one process: callers that wait for each
// operation, and callbacks with many under way.
func BenchmarkClient(b *testing.B) {
	for _, recorded := range []bool{false, true} {
		c := alone(b, store.Options{Dir: b.TempDir(), Durability: store.EverySec}, client.Options{Unrecorded: !recorded})
		keys := make([][]byte, 1<<15)
		for i := range keys {
			keys[i] = fmt.Appendf(nil, "key-%026d", i)
			c.Put(context.Background(), 0, keys[i], make([]byte, 100))
		}
		value := make([]byte, 100)
		for name, op := range map[string]func(key []byte) client.Op{
			"get": func(key []byte) client.Op { return client.Get(0, key) },
			"put": func(key []byte) client.Op { return client.Put(0, key, value) },
		} {
			if recorded && name == "get" {
				continue
			}
			for _, callers := range []int{1, 16, 128} {
				b.Run(fmt.Sprintf("%s/recorded=%v/callers=%d", name, recorded, callers), func(b *testing.B) {
					b.ReportAllocs()
					var all sync.WaitGroup
					for i := range callers {
						all.Go(func() {
							for j := i; j < b.N; j += callers {
								if _, err := c.Do(context.Background(), op(keys[j*7919%len(keys)])); err != nil {
									b.Error(err)
									return
								}
							}
						})
					}
					all.Wait()
				})
			}
			b.Run(fmt.Sprintf("%s/recorded=%v/callbacks", name, recorded), func(b *testing.B) {
				b.ReportAllocs()
				var all sync.WaitGroup
				all.Add(b.N)
				room := make(chan struct{}, 4096)
				for j := range b.N {
					room <- struct{}{}
					c.Call(context.Background(), op(keys[j*7919%len(keys)]), func(_ client.Result, err error) {
						if err != nil {
							b.Error(err)
						}
						<-room
						all.Done()
					})
				}
				all.Wait()
			})
		}
	}
}

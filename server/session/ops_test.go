package session_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/ostrodb/ostro/client"
	"github.com/ostrodb/ostro/engine/store"
)

func TestWhatIsPutIsRead(t *testing.T) {
	for _, d := range []store.Durability{store.None, store.EverySec, store.Always} {
		t.Run(d.String(), func(t *testing.T) {
			so := store.Options{Durability: d}
			if d != store.None {
				so.Dir = t.TempDir()
			}
			c := alone(t, so, client.Options{Unrecorded: true})
			ctx := t.Context()
			for i := range 1000 {
				key := fmt.Append(nil, "key", i)
				if _, err := c.Do(ctx, client.Put(0, key, key)); err != nil {
					t.Fatal(err)
				}
			}
			var futures []*client.Future
			for i := range 1100 {
				futures = append(futures, c.Get(ctx, 0, fmt.Append(nil, "key", i)))
			}
			for i, f := range futures {
				r, err := f.Wait()
				if want := fmt.Sprint("key", i); i < 1000 && (err != nil || string(r.Value) != want) || i >= 1000 && !errors.Is(err, client.ErrNotFound) {
					t.Fatalf("%d: %q, %v", i, r.Value, err)
				}
			}
		})
	}
}

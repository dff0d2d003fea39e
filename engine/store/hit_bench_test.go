package store_test

import (
	"encoding/binary"
	"testing"

	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
)

// BenchmarkHit is what a read or a write of a record that is there costs, while nothing moves, while other places arrive, and while
// its own do: at the target of a migration all its keys are of the last kind.
func BenchmarkHit(b *testing.B) {
	const n = 4096
	half := ^record.Place(0) / 2
	for _, c := range []struct {
		name     string
		arriving []store.Range
		here     bool // keys are of what arrives
	}{
		{"calm", nil, false},
		{"others-arrive", []store.Range{{First: half + 1, Last: ^record.Place(0)}}, false},
		{"they-arrive", []store.Range{{First: 0, Last: half}}, true},
	} {
		st := open(b, store.Options{Cluster: true})
		ss := session(b, st)
		if c.arriving != nil {
			a, err := st.Arrive(store.ArriveOptions{Ranges: c.arriving, Ceiling: 1 << 20, Puller: noPuller{b}})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(a.End)
		}
		raw, value := make([]byte, 0, n*8), make([]byte, 100)
		var ks []store.Key
		for id := uint64(0); len(ks) < n; id++ {
			at := len(raw)
			raw = binary.LittleEndian.AppendUint64(raw, id)
			k := ss.Key(0, raw[at:at+8])
			if k.Place > half {
				raw = raw[:at]
				continue
			}
			ks = append(ks, k)
			ss.Begin()
			if s := ss.Put(&k, store.Write{Value: value}, nil); s != store.OK {
				b.Fatal(s, ss.Err())
			}
			ss.Seal()
			ss.End()
		}
		benchHits(b, c.name, ss, ks, value)
	}
}

func benchHits(b *testing.B, name string, ss *store.Session, ks []store.Key, value []byte) {
	i := 0
	next := func() *store.Key {
		if i += 7; i%64 == 0 {
			ss.Seal()
			ss.End()
			ss.Begin()
		}
		return &ks[i%len(ks)]
	}
	ss.Begin()
	defer ss.End()
	b.Run(name+"/get", func(b *testing.B) {
		v := store.View{}
		for b.Loop() {
			if s := ss.Read(next(), &v); s != store.OK {
				b.Fatal(s)
			}
			sink += v.Version
		}
	})
	b.Run(name+"/put", func(b *testing.B) {
		for b.Loop() {
			if s := ss.Put(next(), store.Write{Value: value}, nil); s != store.OK {
				b.Fatal(s)
			}
		}
	})
}

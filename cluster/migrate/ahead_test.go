package migrate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/peer"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
)

// busy is a source whose clients write until it yields.
type busy struct {
	given
	keys []store.ArrivingKey
	stop func()
}

func (b busy) Sampled(ID, view.NodeID) []store.ArrivingKey { return b.keys }
func (b busy) Yield(context.Context, ID, view.NodeID, meta.Asked) (meta.Migration, time.Time, error) {
	b.stop()
	return b.m, time.Now(), nil
}

// Values of one length are written in place, and whoever copies them meanwhile has half of one and half of another.
func TestWhatWasSentAheadIsWhatTheSourceHadWhenItYielded(t *testing.T) {
	const keys, rounds = hotKeys + 600, 20
	const busyKeys = keys - 10 // Nobody writes the others: however slow this is, there is something that is not outdated.
	st := newStore(t)
	ss := session(t, st)
	names := make([][]byte, keys)
	var list []store.ArrivingKey
	for i := range names {
		names[i] = fmt.Appendf(nil, "key %d", i)
		k := ss.Key(0, names[i])
		list = append(list, store.ArrivingKey{Place: k.Place, Table: k.Table, Bytes: names[i]})
	}
	touch := func(ss *store.Session, name []byte, n int) {
		inRounds(t, ss, func() store.Status {
			k := ss.Key(0, name)
			if n%7 != 0 {
				return ss.Put(&k, store.Write{Value: bytes.Repeat([]byte{byte(n)}, 400)}, nil)
			}
			if s := ss.Delete(&k, nil); s != store.NotFound {
				return s
			}
			return store.OK
		})
	}
	for i, name := range names {
		touch(ss, name, i)
	}
	for round := range rounds {
		over := make(chan struct{})
		var writers sync.WaitGroup
		for w := range 2 {
			ss, rng := session(t, st), rand.New(rand.NewPCG(uint64(round), uint64(w)))
			writers.Go(func() {
				for {
					select {
					case <-over:
						return
					default:
						touch(ss, names[rng.IntN(busyKeys)], rng.IntN(256))
					}
				}
			})
		}
		ss, rng := session(t, st), rand.New(rand.NewPCG(uint64(round), 2))
		writers.Go(func() { // A transaction locks records, and leaves them as they are.
			for {
				select {
				case <-over:
					return
				default:
				}
				inRounds(t, ss, func() store.Status {
					s := ss.Lock([]store.Key{ss.Key(0, names[rng.IntN(keys)])})
					if s == store.OK {
						ss.Abort()
					}
					return s
				})
			}
		})
		stop := sync.OnceFunc(func() { close(over); writers.Wait() })
		m := moveApart(t, st, func(s *Source, to *peer.Server) {
			NewSource(busy{s.origin.(given), list, stop}).Handle(to)
		}, (*peer.Server).ServeConn)
		_, err := m.ask(t.Context(), meta.Asked{})
		stop()
		check(t, err)
		first := len(m.first)
		var rest yielded
		_, _, err = m.answer.Next(&rest)
		check(t, err)
		if m.first, err = appendValid(m.first, m.rest, rest.Outdated); !rest.Later || err != nil || first == 0 || len(m.first) == first {
			t.Fatalf("round %d: %d bytes at first, %d with what was judged later (%v), %v", round, first, len(m.first), rest.Later, err)
		}
		came := map[string][]byte{}
		for b := m.first; len(b) > 0; b = b[record.PtrOf(b).Length():] {
			p := record.PtrOf(b)
			if came[string(p.Key())] != nil {
				t.Fatalf("round %d: %s came twice", round, p.Key())
			}
			if p.Version()&record.VersionLock != 0 {
				t.Fatalf("round %d: %s came locked", round, p.Key())
			}
			came[string(p.Key())] = bytes.Clone(p.Value())
		}
		for _, name := range names {
			var has []byte
			inRounds(t, ss, func() store.Status {
				k := ss.Key(0, name)
				v, s := ss.Get(&k)
				if s == store.NotFound {
					return store.OK
				}
				has = bytes.Clone(v.Value)
				return s
			})
			// One that was made a moment before the source yielded comes when it is asked for.
			if got, ok := came[string(name)]; ok && !bytes.Equal(got, has) {
				t.Fatalf("round %d: of %s came %.8x… (%d bytes), the source has %.8x… (%d bytes)", round, name, got, len(got), has, len(has))
			}
		}
		if len(came) < keys/2 {
			t.Errorf("round %d: %d of %d keys came", round, len(came), keys)
		}
	}
}

func TestOfWhatWasSentAheadWhatIsOutdatedIsLeftOut(t *testing.T) {
	sent := []byte("aabbbccccd")
	for _, c := range []struct {
		outdated []extent
		want     string
	}{
		{nil, "xaabbbccccd"},
		{[]extent{{0, 2}, {5, 4}}, "xbbbd"},
		{[]extent{{0, 2}, {2, 3}, {5, 4}, {9, 1}}, "x"},
		{[]extent{{9, 2}}, ""},
		{[]extent{{2, 3}, {0, 2}}, ""},
		{[]extent{{2, 3}, {4, 1}}, ""},
		{[]extent{{11, 0}}, ""},
		{[]extent{{1 << 31, 1 << 31}, {1<<32 - 1, 1<<32 - 1}}, ""},
	} {
		got, err := appendValid([]byte("x"), slices.Clone(sent), c.outdated)
		if c.want == "" {
			if !errors.Is(err, peer.ErrMalformed) {
				t.Errorf("%v: %q, %v; want a refusal", c.outdated, got, err)
			}
		} else if err != nil || string(got) != c.want {
			t.Errorf("%v: %q, %v; want %q", c.outdated, got, err, c.want)
		}
	}
}

func TestWhatWasSentAheadIsDividedWhereTheRestBegins(t *testing.T) {
	for n, want := range map[int]struct {
		hot, rest int
		until     uint32
	}{0: {}, 1: {1, 0, 0}, hotKeys: {hotKeys, 0, 0}, hotKeys + 3: {hotKeys, 3, 10 * hotKeys}} {
		var a ahead
		for i := range n {
			a.keys, a.versions = append(a.keys, store.ArrivingKey{}), append(a.versions, 1)
			a.entries = append(a.entries, extent{uint32(10 * i), 10})
		}
		if hot, rest, until := a.part(); len(hot.keys) != want.hot || len(rest.entries) != want.rest || until != want.until {
			t.Errorf("of %d there are %d, and %d from byte %d on; want %v", n, len(hot.keys), len(rest.entries), until, want)
		}
	}
	for at, want := range map[uint32]string{0: "+abc", 2: "ab+c", 3: "abc+", 4: "", 1<<32 - 1: ""} {
		hot, rest, err := cutAt([]byte("abc"), at)
		if want == "" {
			if !errors.Is(err, peer.ErrMalformed) {
				t.Errorf("at %d: %v, want a refusal", at, err)
			}
		} else if got := string(hot) + "+" + string(rest); got != want || err != nil {
			t.Errorf("at %d: %s, %v; want %s", at, got, err, want)
		}
	}
}

// A record that somebody locks while it is copied, and leaves as it is, is not outdated. A target that took it as it was could never write it.
func TestADraftHasTheVersionThatItHadBefore(t *testing.T) {
	entry := make([]byte, record.Size(3, 5, false))
	record.Encode(entry, &record.Header{Type: record.TypePut, Version: 7}, []byte("key"), []byte("value"), true)
	record.PtrOf(entry).LockVersion(7)
	var p parts
	p.add(entry)
	p.addDraft(entry, 7)
	p.addDraft(nil, record.VersionLock)
	if got := record.PtrOf(p.part[len(entry):]).Version(); got != 7 || len(p.part) != 2*len(entry) {
		t.Errorf("%d bytes, version %x, want %d and 7", len(p.part), got, 2*len(entry))
	}
}

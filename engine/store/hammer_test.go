package store_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/hlog/hlogtest"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/internal/await"
)

// The race detector sees neither index nor log. These tests check what sessions
// may rely on while others, the cleaner, checkpoints and truncation are at work.

// hammerConfigs keep segments small, so that all of that happens all the time.
func hammerConfigs(t testing.TB) map[string]func() store.Options {
	const kib = 1 << 10
	return map[string]func() store.Options{
		"memory": func() store.Options { return store.Options{SegmentBytes: 16 * kib, Heads: 3} },
		"checkpoint": func() store.Options {
			return store.Options{SegmentBytes: 16 * kib, Heads: 3, Device: device.NewMemory(), Durability: store.Checkpoint}
		},
		"checkpoint/spill": func() store.Options {
			return store.Options{SegmentBytes: 16 * kib, Heads: 2, Device: device.NewMemory(), Durability: store.Checkpoint, MemoryBytes: 512 * kib}
		},
		"everysec": func() store.Options {
			return store.Options{SegmentBytes: 16 * kib, Heads: 3, Device: device.NewMemory(), Durability: store.EverySec}
		},
		"always/spill": func() store.Options {
			return store.Options{SegmentBytes: 16 * kib, Heads: 2, Device: device.NewMemory(), Durability: store.Always, MemoryBytes: 512 * kib}
		},
		"everysec/spill/copied": func() store.Options {
			return store.Options{
				SegmentBytes: 16 * kib, Heads: 2, Device: device.NewMemory(), Durability: store.EverySec, MemoryBytes: 512 * kib,
				Replicator: hlogtest.New(t, seedOf(t)),
			}
		},
	}
}

func forHammerConfigs(t *testing.T, f func(*testing.T, *store.Store)) {
	for name, o := range hammerConfigs(t) {
		t.Run(name, func(t *testing.T) {
			st := open(t, o())
			stop := disturb(t, st)
			defer stop()
			f(t, st)
		})
	}
}

// crowd runs f in several sessions at once.
func crowd(t *testing.T, st *store.Store, sessions int, f func(ss *store.Session, n int)) {
	t.Helper()
	var wg sync.WaitGroup
	for n := range sessions {
		ss, err := st.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			defer ss.Close()
			f(ss, n)
		})
	}
	wg.Wait()
}

// disturb makes garbage, checkpoints and truncations in the background.
func disturb(t *testing.T, st *store.Store) (stop func()) {
	ss, err := st.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	var ended atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		defer ss.Close()
		rng := rand.New(rand.NewPCG(3, 4))
		for n := 0; !ended.Load() && !t.Failed(); n++ {
			k := ss.Key(9, fmt.Appendf(nil, "garbage:%d", rng.IntN(50)))
			if s := attempt(ss, func() store.Status {
				return ss.Put(&k, store.Write{Value: bytes.Repeat([]byte{byte(n)}, rng.IntN(1500))}, nil)
			}); s != store.OK {
				t.Errorf("garbage: %v %v", s, ss.Err())
			}
			if n%100 == 0 && st.Options().Device != nil {
				if err := st.Checkpoint(context.Background()); err != nil {
					t.Errorf("checkpoint: %v", err)
				}
			}
			if n%150 == 0 {
				if err := st.Truncate(9); err != nil {
					t.Errorf("truncate: %v", err)
				}
			}
			if !await.Comes(func() bool { return st.Metrics().LogBytes < 8<<20 || ended.Load() }) {
				t.Error("the cleaner does not catch up")
			}
		}
	})
	return func() {
		ended.Store(true)
		wg.Wait()
	}
}

// attempt runs an operation in a round of its own, again while it is cold.
func attempt(ss *store.Session, f func() store.Status) store.Status {
	for {
		ss.Begin()
		s := f()
		ss.Seal()
		ss.End()
		if s != store.Cold {
			return s
		}
		if err := ss.Fetch(context.Background()); err != nil {
			return store.Failed
		}
	}
}

func TestCountersAddUpExactly(t *testing.T) {
	forHammerConfigs(t, func(t *testing.T, st *store.Store) {
		const sessions, keys = 4, 5
		rounds := scale(10_000) / keys * keys
		crowd(t, st, sessions, func(ss *store.Session, n int) {
			for i := range rounds {
				k := ss.Key(0, counterKey(i%keys))
				s := attempt(ss, func() store.Status {
					if (i+n)%3 == 0 {
						return ss.RMW(&k, func(old *store.View, _ bool) (store.Write, bool) {
							return store.Write{Value: u64(number(old.Value) + 1)}, true
						})
					}
					_, s := ss.Add(&k, 1)
					return s
				})
				if s != store.OK {
					t.Errorf("add: %v %v", s, ss.Err())
				}
			}
		})
		ss := session(t, st)
		for n := range keys {
			if got := int(number(readKey(t, ss, 0, counterKey(n)))); got != sessions*rounds/keys {
				t.Errorf("counter %d is %d, want %d", n, got, sessions*rounds/keys)
			}
		}
	})
}

func TestOfManyConditionalPutsExactlyOneWins(t *testing.T) {
	forHammerConfigs(t, func(t *testing.T, st *store.Store) {
		const sessions, keys = 4, 4000
		var wins [keys]atomic.Int64
		var turn sync.WaitGroup
		turn.Add(sessions)
		crowd(t, st, sessions, func(ss *store.Session, n int) {
			turn.Done()
			turn.Wait()
			for i := range keys {
				k := ss.Key(0, fmt.Appendf(nil, "once:%d", i))
				s := attempt(ss, func() store.Status {
					v, s := ss.Get(&k)
					if s == store.OK {
						return store.Conflict
					}
					if s == store.Cold {
						return s
					}
					return ss.Put(&k, store.Write{Value: u64(uint64(n))}, &v)
				})
				if s == store.OK {
					wins[i].Add(1)
				} else if s != store.Conflict {
					t.Errorf("put: %v %v", s, ss.Err())
				}
			}
		})
		for i := range wins {
			// A conflict may be due to another key of the same stripe: nobody need win.
			if n := wins[i].Load(); n > 1 {
				t.Errorf("%d sessions made key %d", n, i)
			}
		}
	})
}

func TestTransfersKeepTheSum(t *testing.T) {
	t.Parallel()
	forHammerConfigs(t, func(t *testing.T, st *store.Store) {
		seed := seedOf(t)
		setup := session(t, st)
		for n := range accounts {
			k := setup.Key(0, accountKey(n))
			until(t, setup, func() store.Status { return setup.Put(&k, store.Write{Value: u64(opening)}, nil) })
		}
		crowd(t, st, 4, func(ss *store.Session, n int) {
			rng := rand.New(rand.NewPCG(seed, uint64(n)))
			for range scale(3000) {
				transferOrSum(t, ss, rng)
			}
		})
	})
}

// transferOrSum moves money between two accounts, or adds all of them up.
func transferOrSum(t *testing.T, ss *store.Session, rng *rand.Rand) {
	var keys []store.Key
	for n := range accounts {
		keys = append(keys, ss.Key(0, accountKey(n)))
	}
	all := rng.IntN(3) == 0
	if !all {
		pair := rng.Perm(accounts)
		keys = []store.Key{keys[pair[0]], keys[pair[1]]}
	}
	amount := uint64(rng.IntN(100))
	s := attempt(ss, func() store.Status {
		if s := ss.Lock(keys); s != store.OK {
			return s
		}
		var sum uint64
		var held []uint64
		for i := range keys {
			v, _ := ss.Get(&keys[i])
			held = append(held, number(v.Value))
			sum += number(v.Value)
		}
		if all {
			if sum != accounts*opening {
				t.Errorf("accounts hold %d, want %d", sum, accounts*opening)
			}
			ss.Abort()
			return store.OK
		}
		// Of another length at times, so that it is not always in place.
		ss.Put(&keys[0], store.Write{Value: u64(held[0] - amount)}, nil)
		ss.Put(&keys[1], store.Write{Value: u64(held[1] + amount)}, nil)
		return ss.Commit()
	})
	if s != store.OK {
		t.Errorf("transfer: %v %v", s, ss.Err())
	}
}

// pattern makes a value that shows whether it is whole.
func pattern(seed uint64, n int) []byte {
	b := bytes.Repeat(u64(seed), n)
	return binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

func whole(b []byte) bool {
	return len(b) >= 4 && crc32.ChecksumIEEE(b[:len(b)-4]) == binary.LittleEndian.Uint32(b[len(b)-4:])
}

func TestReadersSeeNoTornValues(t *testing.T) {
	t.Parallel()
	forHammerConfigs(t, func(t *testing.T, st *store.Store) {
		seed := seedOf(t)
		const keys = 6
		crowd(t, st, 4, func(ss *store.Session, n int) {
			rng := rand.New(rand.NewPCG(seed, uint64(n)))
			for range scale(15_000) {
				k := ss.Key(0, fmt.Appendf(nil, "torn:%d", rng.IntN(keys)))
				s := attempt(ss, func() store.Status {
					if n%2 == 0 {
						// Mostly of one length, so that they are updated in place; some large.
						length := 12
						if rng.IntN(10) == 0 {
							length = 1 + rng.IntN(100)
						}
						return ss.Put(&k, store.Write{Value: pattern(rng.Uint64(), length)}, nil)
					}
					v, s := ss.Get(&k)
					if s == store.OK && !whole(v.Value) {
						t.Errorf("a torn value of %d bytes: %x", len(v.Value), v.Value)
					}
					if s == store.NotFound {
						return store.OK
					}
					return s
				})
				if s != store.OK {
					t.Errorf("%v %v", s, ss.Err())
				}
			}
		})
	})
}

func TestABatchOfReadsSeesNoTornValues(t *testing.T) {
	forHammerConfigs(t, func(t *testing.T, st *store.Store) {
		seed := seedOf(t)
		const keys = 80
		crowd(t, st, 4, func(ss *store.Session, n int) {
			rng := rand.New(rand.NewPCG(seed, uint64(n)))
			ks, views, sts := make([]store.Key, keys), make([]store.View, keys), make([]store.Status, keys)
			for i := range ks {
				ks[i] = ss.Key(0, fmt.Appendf(nil, "batch:%d", i))
			}
			for range scale(600) {
				attempt(ss, func() store.Status {
					if n%2 == 0 {
						i := rng.IntN(keys)
						return ss.Put(&ks[i], store.Write{Value: pattern(rng.Uint64(), 1+i%8)}, nil)
					}
					ss.GetBatch(ks, views, sts)
					worst := store.OK
					for i := range ks {
						if sts[i] == store.OK && (!whole(views[i].Value) || len(views[i].Value) != 8*(1+i%8)+4) {
							t.Errorf("key %d: a torn or another key's value: %x", i, views[i].Value)
						}
						if sts[i] == store.Cold {
							worst = store.Cold
						}
					}
					return worst
				})
			}
		})
	})
}

func TestAScanSeesEveryKeyThatStays(t *testing.T) {
	t.Parallel()
	forHammerConfigs(t, func(t *testing.T, st *store.Store) {
		const stable = 1500
		setup := session(t, st)
		for n := range stable {
			k := setup.Key(0, fmt.Appendf(nil, "stable:%d", n))
			if s := until(t, setup, func() store.Status { return setup.Put(&k, store.Write{Value: u64(uint64(n))}, nil) }); s != store.OK {
				t.Fatal(s, setup.Err())
			}
		}
		crowd(t, st, 3, func(ss *store.Session, n int) {
			if n > 0 { // Others come and go, and the stable ones change their place.
				for i := range 3000 {
					k := ss.Key(0, fmt.Appendf(nil, "passing:%d:%d", n, i))
					attempt(ss, func() store.Status { return ss.Put(&k, store.Write{Value: u64(1)}, nil) })
					old := ss.Key(0, fmt.Appendf(nil, "passing:%d:%d", n, i-300))
					attempt(ss, func() store.Status { return ss.Delete(&old, nil) })
					k = ss.Key(0, fmt.Appendf(nil, "stable:%d", i%stable))
					attempt(ss, func() store.Status {
						return ss.Put(&k, store.Write{Value: bytes.Repeat([]byte{1}, i%50)}, nil)
					})
				}
				return
			}
			for range 4 {
				seen := scanned(t, ss, 0)
				for i := range stable {
					if key := fmt.Sprintf("stable:%d", i); seen[key] == 0 {
						t.Errorf("a scan missed %s", key)
					}
				}
			}
		})
	})
}

package ostropebble

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// tape is a sink that keeps everything.
type tape struct {
	pieces []piece
	syncs  int
}

func (k *tape) write(log, off uint64, p []byte) error {
	k.pieces = append(k.pieces, piece{session: 1, log: log, off: off, data: bytes.Clone(p)})
	return nil
}

func (k *tape) sync() error {
	k.syncs++
	return nil
}

// quiet is a logger that says nothing.
type quiet struct{}

func (quiet) Infof(string, ...any)           {}
func (quiet) Errorf(string, ...any)          {}
func (quiet) Fatalf(format string, a ...any) { panic(fmt.Sprintf(format, a...)) }

// recorded writes random batches through the file system of a front end and returns what its
// logs were, and what is in the database.
func recorded(t *testing.T, r *rand.Rand, batches int) (*tape, map[string]string) {
	t.Helper()
	k := &tape{}
	fs, err := newWALFS("db", vfs.NewMem(), k)
	if err != nil {
		t.Fatal(err)
	}
	db, err := pebble.Open("db", &pebble.Options{FS: fs, Logger: quiet{}, MemTableSize: 256 << 10})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for range batches {
		b := db.NewBatch()
		for range 1 + r.IntN(5) {
			key, value := fmt.Sprintf("key%04d", r.IntN(300)), fmt.Sprint(r.Uint64(), string(make([]byte, size(r))))
			want[key] = value
			if err := b.Set([]byte(key), []byte(value), nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.Commit([]*pebble.WriteOptions{pebble.Sync, pebble.NoSync}[r.IntN(2)]); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return k, want
}

// size is mostly small, and sometimes larger than a block.
func size(r *rand.Rand) int {
	if r.IntN(20) == 0 {
		return r.IntN(100 << 10)
	}
	return r.IntN(2000)
}

func TestBatchesComeOutOfTheStreamAsTheyWentIn(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	k, want := recorded(t, r, 400)
	if k.pieces[0].log == k.pieces[len(k.pieces)-1].log {
		t.Fatal("all was one log; the test wants several")
	}
	copied, err := pebble.Open("copy", &pebble.Options{FS: vfs.NewMem(), Logger: quiet{}})
	if err != nil {
		t.Fatal(err)
	}
	defer copied.Close()
	var s stream
	for _, p := range k.pieces {
		if err := s.add(p, func(b []byte) error { return applyBatch(copied, b) }); err != nil {
			t.Fatal(err)
		}
		if len(s.Buf) > 10*blockBytes {
			t.Fatalf("the stream holds %d bytes", len(s.Buf))
		}
	}
	checkContent(t, copied, want)
}

func TestAStreamGoesOnWhereItWasStored(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	k, _ := recorded(t, r, 150)
	var straight, broken [][]byte
	var a, b stream
	for _, p := range k.pieces {
		add := func(s *stream, into *[][]byte) {
			if err := s.add(p, func(batch []byte) error { *into = append(*into, batch); return nil }); err != nil {
				t.Fatal(err)
			}
		}
		add(&a, &straight)
		add(&b, &broken)
		b.Buf = bytes.Clone(b.Buf)
	}
	if len(straight) == 0 || !slices.EqualFunc(straight, broken, bytes.Equal) {
		t.Fatalf("%d batches became %d", len(straight), len(broken))
	}
}

func TestAStreamWithAGapIsRefused(t *testing.T) {
	k, _ := recorded(t, rand.New(rand.NewPCG(1, 2)), 20)
	var s stream
	nothing := func([]byte) error { return nil }
	if err := s.add(k.pieces[0], nothing); err != nil {
		t.Fatal(err)
	}
	if err := s.add(k.pieces[2], nothing); err == nil {
		t.Fatal("a piece was left out and nothing was said")
	}
}

func checkContent(t testing.TB, db pebble.Reader, want map[string]string) {
	t.Helper()
	it, err := db.NewIter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	n := 0
	for it.First(); it.Valid(); it.Next() {
		n++
		if w, ok := want[string(it.Key())]; !ok || w != string(it.Value()) {
			t.Fatalf("key %s has %d bytes, want %d (there: %v)", it.Key(), len(it.Value()), len(w), ok)
		}
	}
	if n != len(want) {
		t.Fatalf("%d keys, want %d", n, len(want))
	}
}

package migrate

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/peer"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/internal/await"
)

// putValue writes a value of some bytes.
func putValue(t *testing.T, ss *store.Session, key string, size int) {
	t.Helper()
	inRounds(t, ss, func() store.Status {
		k := ss.Key(0, []byte(key))
		return ss.Put(&k, store.Write{Value: bytes.Repeat([]byte{'v'}, size)}, nil)
	})
}

// inRounds runs an operation in as many rounds as it needs.
func inRounds(t *testing.T, ss *store.Session, operation func() store.Status) {
	t.Helper()
	for s := store.Cold; s != store.OK; {
		ss.Begin()
		s = operation()
		ss.Seal()
		ss.End()
		if s == store.Cold {
			check(t, ss.Fetch(t.Context()))
		} else if s != store.OK {
			t.Fatal(s, ss.Err())
		}
	}
}

// askedBy is a migration in which only the test asks for keys.
func askedBy(t *testing.T, source *store.Store) *pulls {
	return pullsWith(t, source, 1000, 3, meta.MigrationOptions{PriorityPulls: meta.PriorityPullsNone})
}

func wishFor(key string) *wish {
	return &wish{key: store.ArrivingKey{Place: record.PlaceOf(0, []byte(key)), Bytes: []byte(key)}}
}

// missingOf is those of a batch that have not come.
func missingOf(batch []*wish) []*wish {
	return parted(batch, func(i int) bool { return !batch[i].here })
}

func TestASmallKeyDoesNotWaitForTheLargeOnesOfItsBatch(t *testing.T) {
	const large, pieces = 20, 5
	source := newStore(t)
	ss := session(t, source)
	var batch []*wish
	for i := range large {
		key := fmt.Sprint("large", i)
		putValue(t, ss, key, (pieces-1)*urgentBytes+100)
		batch = append(batch, wishFor(key))
	}
	putValue(t, ss, "small", 100)
	small, absent := wishFor("small"), wishFor("absent")
	batch = append(batch, small, absent)

	p := askedBy(t, source)
	check(t, p.fetch(batch))
	if !small.here || !absent.here || len(missingOf(batch)) != large {
		t.Fatalf("after one answer the small key is here: %v, it is known that one is absent: %v, and %d of %d are missing", small.here, absent.here, len(missingOf(batch)), large)
	}
	if got := p.m.bytes.Load(); got > 3*urgentBytes {
		t.Errorf("one answer had %d bytes", got)
	}
	for left := missingOf(batch); len(left) > 0; left = missingOf(batch) {
		check(t, p.fetch(left))
		if now := missingOf(batch); len(now) < len(left)-1 || !slices.Equal(now, left[len(left)-len(now):]) {
			t.Fatal("large values come in another order than they were asked for")
		}
	}
	if got := p.m.records.Load(); got != large*(pieces+1)+1 {
		t.Errorf("%d entries came, there are %d: some came twice", got, large*(pieces+1)+1)
	}
	if got := p.m.asked.Load(); got != large+2 {
		t.Errorf("%d keys count as asked for, there are %d", got, large+2)
	}
	mine := session(t, p.m.o.Store)
	for _, w := range batch[:large+1] {
		mine.Begin()
		k := mine.Key(0, w.key.Bytes)
		_, s := mine.Get(&k)
		mine.End()
		if s != store.OK {
			t.Errorf("%s is %s", w.key.Bytes, s)
		}
	}
}

func TestAnAnswerHasAboutAsMuchAsItMay(t *testing.T) {
	const n, size = 40, 20 << 10
	source := newStore(t)
	ss := session(t, source)
	var batch []*wish
	for i := range n {
		key := fmt.Sprint("key", i)
		putValue(t, ss, key, size)
		batch = append(batch, wishFor(key))
	}
	p := askedBy(t, source)
	asks, before := 0, int64(0)
	for left := batch; len(left) > 0; left = missingOf(batch) {
		check(t, p.fetch(left))
		now := p.m.bytes.Load()
		if got := now - before; got > urgentBytes+2*size {
			t.Errorf("an answer of %d bytes", got)
		}
		asks, before = asks+1, now
	}
	if most := n*size/urgentBytes + 1; asks > most {
		t.Errorf("%d answers for what fits into %d", asks, most)
	}
	if got := p.m.records.Load(); got != n {
		t.Errorf("%d records came, there are %d", got, n)
	}
}

func TestColdKeysOfABatchComeTogetherAndEachOnce(t *testing.T) {
	p := pullsWith(t, coldSource(t, coldRecords), 1000, 3, meta.MigrationOptions{PriorityPulls: meta.PriorityPullsNone, Cold: meta.ColdRead})
	var batch []*wish
	for i := range maxKeys {
		key := make([]byte, 30)
		binary.LittleEndian.PutUint64(key, uint64(i)*0x9E3779B97F4A7C15)
		batch = append(batch, wishFor(string(key)))
	}
	asks := 0
	for left := batch; len(left) > 0; left = missingOf(batch) {
		check(t, p.fetch(left))
		asks++
	}
	if got := p.m.records.Load(); got != maxKeys || asks > 6 {
		t.Errorf("%d records came by %d answers, of %d keys that are on disk", got, asks, maxKeys)
	}
}

// numbered is the i-th key of filled.
func numbered(i int) string {
	return string(binary.LittleEndian.AppendUint64(nil, uint64(i)*0x9E3779B97F4A7C15)) + string(make([]byte, 22))
}

// damage changes a byte of a key in the segment's file that has it, once no memory has it any more. To call it again mends that.
func damage(t *testing.T, st *store.Store, dir, key string) {
	t.Helper()
	ss := session(t, st)
	await.True(t, "the record is on disk only", func() bool {
		ss.Begin()
		defer ss.End()
		k := ss.Key(0, []byte(key))
		_, is := ss.Get(&k)
		return is == store.Cold
	})
	whole, damaged := []byte(key), []byte(key)
	damaged[7] ^= 1
	segments, err := filepath.Glob(filepath.Join(dir, "segments", "*.seg"))
	check(t, err)
	for _, path := range segments {
		b, err := os.ReadFile(path)
		check(t, err)
		at := max(bytes.Index(b, whole), bytes.Index(b, damaged))
		if at < 0 {
			continue
		}
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		check(t, err)
		_, err = f.WriteAt([]byte{b[at+7] ^ 1}, int64(at+7))
		check(t, errors.Join(err, f.Close()))
		return
	}
	t.Fatal("the key is in no file")
}

func TestARecordThatCannotBeReadHoldsUpOnlyThoseWhoWantIt(t *testing.T) {
	const good = 20
	for name, mode := range map[string]string{"of which nothing is known": meta.ColdRead, "that are known of": meta.ColdIndirect} {
		t.Run("keys "+name, func(t *testing.T) {
			dir := t.TempDir()
			source := coldSourceIn(t, dir, coldRecords)
			p := pullsWith(t, source, 1000, 3, meta.MigrationOptions{Cold: mode})
			if mode == meta.ColdIndirect {
				check(t, p.all(t.Context()))
				await.True(t, "all ranges count as pulled", p.m.arrival.AllPulled)
			}
			damage(t, source, dir, numbered(1))
			mended := sync.OnceFunc(func() { damage(t, source, dir, numbered(1)) })
			defer mended()

			var waits sync.WaitGroup
			bad := session(t, p.m.o.Store)
			waits.Go(func() {
				if st := readKey(t, bad, 1); st != store.OK {
					t.Errorf("when it can be read it is %s", st)
				}
			})
			await.True(t, "the key is asked for", func() bool { return p.m.asked.Load() > 0 })
			ss := session(t, p.m.o.Store)
			for i := 2; i < 2+good; i++ {
				if st := readKey(t, ss, i); st != store.OK {
					t.Errorf("key %d is %s", i, st)
				}
			}
			if n := p.m.priority.waiting(); n != 1 {
				t.Errorf("%d keys are waited for, want that which cannot be read", n)
			}
			mended()
			waits.Wait()
		})
	}
}

// A disk that cannot read a record may take seconds to say so.
func TestARecordThatIsReadInVainForLongHoldsUpOnlyThoseWhoWantIt(t *testing.T) {
	const good = 10
	var tried atomic.Int64
	mended, slow := make(chan struct{}), make(chan struct{})
	p := pullsOf(t, filled(t, good+2), 1000, 3, meta.MigrationOptions{}, func(s *Source, to *peer.Server) {
		s.Handle(to)
		to.HandleInOrder(methodKeys, func(ctx context.Context, c *peer.Call) (any, []byte, error) {
			list, err := decodeKeys(c.Bulk)
			if !slices.ContainsFunc(list, func(k store.ArrivingKey) bool { return string(k.Bytes) == numbered(1) }) {
				return s.keys(ctx, c)
			}
			switch tried.Add(1) {
			case 1, 2: // Once with all of its batch, and once alone in turn.
				return nil, nil, errors.Join(err, errUnreadable)
			case 3:
				close(slow)
			}
			<-mended // Whoever asks for others over this connection waits as well.
			return s.keys(ctx, c)
		})
	})
	var waits sync.WaitGroup
	bad := session(t, p.m.o.Store)
	waits.Go(func() {
		if st := readKey(t, bad, 1); st != store.OK {
			t.Errorf("when it can be read it is %s", st)
		}
	})
	defer waits.Wait()
	defer close(mended)
	<-slow
	ss := session(t, p.m.o.Store)
	for i := 2; i < 2+good; i++ {
		if st := readKey(t, ss, i); st != store.OK {
			t.Errorf("key %d is %s", i, st)
		}
	}
}

func TestKeysThatWereAskedForTogetherWithOneThatCannotBeReadComeAtOnce(t *testing.T) {
	dir := t.TempDir()
	source := coldSourceIn(t, dir, coldRecords)
	p := pullsWith(t, source, 1000, 3, meta.MigrationOptions{PriorityPulls: meta.PriorityPullsNone, Cold: meta.ColdRead})
	damage(t, source, dir, numbered(3))
	var batch []*wish
	for i := range 5 {
		batch = append(batch, wishFor(numbered(i+1)))
	}
	check(t, p.fetch(batch))
	if left := missingOf(batch); len(left) != 1 || left[0] != batch[2] {
		t.Fatalf("%d of %d are missing", len(left), len(batch))
	}
	damage(t, source, dir, numbered(3))
	check(t, p.fetch(batch[2:3]))
	if !batch[2].here {
		t.Error("it can be read, and does not come")
	}
}

func TestAnAnswerThatCannotBeIsRefusedAndTheKeyAskedForAgain(t *testing.T) {
	wrong := []peer.Raw{
		{},
		(&gave{Unsent: store.Unsent{Keys: 1}}).encode(),
		(&gave{Unsent: store.Unsent{Keys: 2}}).encode(),
		(&gave{Unsent: store.Unsent{Next: store.PullCursor{Value: 1, Piece: 1}}}).encode(),
	}
	p := pullsOf(t, filled(t, 10), 1000, 3, meta.MigrationOptions{}, func(s *Source, to *peer.Server) {
		to.HandleInOrder(methodKeys, func(ctx context.Context, c *peer.Call) (any, []byte, error) {
			if len(wrong) == 0 {
				return s.keys(ctx, c)
			}
			head := wrong[0]
			wrong = wrong[1:]
			return head, nil, nil
		})
	})
	if st := readKey(t, session(t, p.m.o.Store), 3); st != store.OK || len(wrong) > 0 {
		t.Fatalf("the key is %s after all but %d wrong answers", st, len(wrong))
	}
}

func TestASourceRefusesMoreKeysThanAnAnswerCanTellOf(t *testing.T) {
	p := askedBy(t, filled(t, 10))
	var bulk []byte
	for i := range maxKeys + 1 {
		k := arriving(i)
		bulk = appendKey(bulk, &k)
	}
	if _, err := p.pullUrgently(t.Context(), p.urgent, methodKeys, bulk, maxKeys+1, store.PullCursor{}); err == nil {
		t.Error("too many keys were answered")
	}
	if _, err := p.pullUrgently(t.Context(), p.urgent, methodKnown, make([]byte, 8*(maxKeys+1)), maxKeys+1, store.PullCursor{}); err == nil {
		t.Error("too many places were answered")
	}
}

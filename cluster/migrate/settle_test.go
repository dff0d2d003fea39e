package migrate

import (
	"context"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/internal/await"
)

// coldSource is a store whose records are mostly on disk.
func coldSource(t *testing.T, n int) *store.Store {
	t.Helper()
	return coldSourceIn(t, t.TempDir(), n)
}

// coldSourceIn is coldSource in a directory.
func coldSourceIn(t *testing.T, dir string, n int) *store.Store {
	t.Helper()
	st, err := store.Open(store.Options{
		Dir: dir, Durability: store.EverySec, Cluster: true, LogID: 7, SegmentBytes: 64 << 10, MemoryBytes: 1 << 20, Heads: 1,
	})
	check(t, err)
	t.Cleanup(func() { check(t, st.Close()) })
	return fill(t, st, n)
}

const coldRecords = 20_000 // three times what fits

func TestColdRecordsComeInEveryMode(t *testing.T) {
	source := coldSource(t, coldRecords)
	for _, mode := range []string{meta.ColdIndirect, meta.ColdRead, meta.ColdScan} {
		t.Run(mode, func(t *testing.T) {
			p := pullsWith(t, source, 1000, 3, meta.MigrationOptions{Cold: mode})
			if mode == meta.ColdScan {
				check(t, p.scan(t.Context()))
			}
			check(t, p.all(t.Context()))
			if known := p.m.arrival.Indirections(); (known > coldRecords/2) != (mode == meta.ColdIndirect) {
				t.Fatalf("%d of %d records are known of only", known, coldRecords)
			}
			check(t, p.settle(t.Context()))
			if left := p.m.arrival.Indirections(); left != 0 {
				t.Fatalf("%d records are still at the source", left)
			}
			if got := p.m.records.Load(); got < coldRecords || got > coldRecords*5/4 {
				t.Errorf("%d records came, there are %d", got, coldRecords)
			}
			check(t, p.m.arrival.Finish(t.Context()))
			ss := session(t, p.m.o.Store)
			for i := range coldRecords {
				if st := readKey(t, ss, i); st != store.OK {
					t.Fatalf("key %d is %s", i, st)
				}
			}
			if asked := p.m.asked.Load(); asked != 0 {
				t.Errorf("%d keys were asked for though all were there", asked)
			}
		})
	}
}

func TestALogIsReadAgainWhenTheSourceHasStartedAgainSinceItWasListed(t *testing.T) {
	p := pullsWith(t, coldSource(t, coldRecords), 1000, 3, meta.MigrationOptions{Cold: meta.ColdScan})
	check(t, p.scan(t.Context()))
	p.log.life++ // Another process listed them.
	if err := p.all(t.Context()); !errors.Is(err, errOtherLife) {
		t.Fatalf("pulls that leave out what another life's log had end with %v", err)
	}
	if len(p.log.left) != 0 {
		t.Fatal("segments are left before the log is listed again")
	}
	before := p.m.records.Load()
	check(t, p.scan(t.Context()))
	if read := p.m.records.Load() - before; read < coldRecords/2 {
		t.Errorf("%d records were read again", read)
	}
	check(t, p.all(t.Context()))
	check(t, p.m.arrival.Finish(t.Context()))
	ss := session(t, p.m.o.Store)
	for i := range coldRecords {
		if st := readKey(t, ss, i); st != store.OK {
			t.Fatalf("key %d is %s", i, st)
		}
	}
}

func TestAColdRecordComesWhenItIsAskedForAndAnAbsentOneIsNotAskedFor(t *testing.T) {
	p := pullsWith(t, coldSource(t, coldRecords), 1000, 3, meta.MigrationOptions{})
	check(t, p.all(t.Context()))
	await.True(t, "all ranges count as pulled", p.m.arrival.AllPulled)
	before := p.m.arrival.Indirections()
	ss := session(t, p.m.o.Store)
	for i := coldRecords; i < coldRecords+500; i++ {
		if st := readKey(t, ss, i); st != store.NotFound {
			t.Fatalf("key %d, which is nowhere, is %s", i, st)
		}
	}
	if asked := p.m.asked.Load(); asked != 0 {
		t.Errorf("%d keys were asked for that nobody wrote", asked)
	}
	for i := range 500 {
		if st := readKey(t, ss, i); st != store.OK {
			t.Fatalf("key %d is %s", i, st)
		}
	}
	asked, left := p.m.asked.Load(), p.m.arrival.Indirections()
	if asked == 0 || asked > 500 || before-left != asked {
		t.Errorf("%d keys were asked for, and %d of %d indirections are left", asked, left, before)
	}
}

func TestOnlyWhatIsInMemoryIsSentAhead(t *testing.T) {
	source := coldSource(t, coldRecords)
	shelf := NewShelf(source)
	defer shelf.Close()
	var list []store.ArrivingKey
	for i := range coldRecords {
		key := make([]byte, 30)
		binary.LittleEndian.PutUint64(key, uint64(i)*0x9E3779B97F4A7C15)
		list = append(list, store.ArrivingKey{Place: record.PlaceOf(0, key), Bytes: key})
	}
	sent, parts := 0, 0
	check(t, shelf.sendKeys(list, func(part []byte) error {
		sent += entriesIn(part)
		parts++
		return nil
	}))
	if sent == 0 || sent > coldRecords/2 {
		t.Errorf("%d of %d records were sent, most of which are on disk", sent, coldRecords)
	}
	if parts > 10 {
		t.Errorf("%d records were sent in %d parts", sent, parts)
	}
}

// settles is a move of some records that have all come. Its source may send it others.
func settles(t *testing.T) *move {
	t.Helper()
	p := pullsWith(t, filled(t, 10), 1000, 1, meta.MigrationOptions{})
	check(t, p.all(t.Context()))
	m, now := p.m, meta.Migration{ID: 1, Source: "source", Target: "target", Stage: meta.Moving}
	m.o.Cache = &unchanging{meta.Snapshot{Migrations: map[uint64]meta.Migration{now.ID: now}}}
	m.enter(settling)
	m.knows.Store(m.arrival)
	m.d.moves[m.id] = m
	return m
}

// send is what the cleaner of a move's source does.
func send(t *testing.T, m *move) error {
	return m.d.receive(t.Context(), m.id, "source", store.Parcel{})
}

// The store of a node that stops is closed soon, and who sends does not know.
func TestANodeThatStopsTakesNothingMoreFromTheCleanerOfASource(t *testing.T) {
	m := settles(t)
	check(t, send(t, m))
	m.stop()
	if err := send(t, m); !errors.Is(err, errNotSettling) {
		t.Errorf("it says %v", err)
	}
}

func TestWhatTheCleanerOfASourceSendsIsGivenUpByANodeThatStops(t *testing.T) {
	m := settles(t)
	ends, stop := context.WithCancel(t.Context())
	m.ends = ends
	check(t, send(t, m))
	stop()
	await.True(t, "it is given up", func() bool { return errors.Is(send(t, m), context.Canceled) })
}

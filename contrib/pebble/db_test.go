package ostropebble

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
)

func newRand(t *testing.T) *rand.Rand {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// appending is a merger of which every operand shows.
var appending = &pebble.Options{Logger: quiet{}, MemTableSize: 256 << 10, Merger: pebble.DefaultMerger}

// load commits random batches, and says what is in the database then. Merges tell a batch that
// was applied twice from one that was once.
func load(t *testing.T, r *rand.Rand, db *DB, want map[string]string, batches, bytes int) {
	t.Helper()
	for range batches {
		b := db.NewBatch()
		for range 1 + r.IntN(5) {
			key := fmt.Sprintf("key%03d", r.IntN(200))
			value := fmt.Sprint(r.Uint64(), strings.Repeat("x", r.IntN(bytes)))
			switch {
			case r.IntN(8) == 0:
				delete(want, key)
				check(t, b.Delete([]byte(key), nil))
			case r.IntN(3) == 0 && len(want[key]) < 4*bytes:
				want[key] += value
				check(t, b.Merge([]byte(key), []byte(value), nil))
			default:
				want[key] = value
				check(t, b.Set([]byte(key), []byte(value), nil))
			}
		}
		check(t, b.Commit(pebble.Sync))
	}
}

func TestEveryCopyHasWhatWasCommitted(t *testing.T) {
	r, want := newRand(t), map[string]string{}
	s := newScene(t, 8<<20, appending)
	s.open(0)
	load(t, r, s.db, want, 300, 2000)
	s.wantEverywhere(want)
	s.close()
}

func TestAJournalIsUsedAgainAndAgain(t *testing.T) {
	r, want := newRand(t), map[string]string{}
	s := newScene(t, 1<<20, appending)
	s.open(0)
	ring := s.db.writer.ring
	for s.db.Position() < 5*ring {
		load(t, r, s.db, want, 50, 4000)
	}
	s.wantEverywhere(want)
	s.close()
}

func TestADatabaseOpensFromAnyReplicaAfterACrash(t *testing.T) {
	r, want := newRand(t), map[string]string{}
	s := newScene(t, 2<<20, appending)
	for i := range 6 {
		s.open(i % 3)
		s.wantEverywhere(want)
		load(t, r, s.db, want, 30+r.IntN(100), 3000)
		if r.IntN(4) == 0 {
			s.close()
		} else {
			s.crash()
		}
		// A replica that comes back goes on from its base.
		back := r.IntN(3)
		check(t, s.copies[back].Close())
		s.startCopy(back)
	}
}

func TestACopyThatHasNothingToApplyIsWhole(t *testing.T) {
	r, want := newRand(t), map[string]string{}
	s := newScene(t, 2<<20, appending)
	s.open(0)
	load(t, r, s.db, want, 30, 2000)
	s.wantEverywhere(want) // All have a base at the journal's end.
	s.crash()
	for i := range s.copies {
		check(t, s.copies[i].Close())
		s.startCopy(i)
	}
	for i := range s.copies {
		s.open(i)
		checkContent(t, s.db, want)
		s.crash()
	}
}

func TestABatchLargerThanTheGroupsLogIsReplicated(t *testing.T) {
	s := newScene(t, 8<<20, appending)
	s.open(0)
	value := strings.Repeat("large", 200_000)
	check(t, s.db.Set([]byte("k"), []byte(value), pebble.Sync))
	s.wantEverywhere(map[string]string{"k": value})
	s.crash()
	s.open(1)
	checkContent(t, s.db, map[string]string{"k": value})
	s.close()
}

func TestANewReplicaBeginsWithAnotherOnesCopy(t *testing.T) {
	r, want := newRand(t), map[string]string{}
	s := newScene(t, 1<<20, appending)
	s.open(0)
	for s.db.Position() < 2*s.db.writer.ring {
		load(t, r, s.db, want, 50, 4000)
	}
	at := filepath.Join(s.dir, "checkpoint")
	check(t, s.copies[0].Checkpoint(s.ctx(), 0, at))
	s.crash()
	dir := filepath.Join(s.dir, "2")
	check(t, s.copies[2].Close())
	check(t, os.RemoveAll(dir))
	clear(s.mems[2].Bytes())

	// Without a copy to begin with it is refused: the journal does not go back that far.
	s.startCopy(2)
	err := func() (err error) {
		defer func() { err = recovered(recover()) }()
		s.t = failing{t}
		defer func() { s.t = t }()
		s.open(0)
		return nil
	}()
	if err == nil || !strings.Contains(err.Error(), "Seed") {
		t.Fatalf("a replica without a copy: %v", err)
	}
	check(t, s.log.Close())
	check(t, s.g.Close())

	check(t, s.copies[2].Close())
	check(t, Seed(dir, at))
	s.startCopy(2)
	s.open(2)
	s.wantEverywhere(want)
	load(t, r, s.db, want, 50, 2000)
	s.wantEverywhere(want)
	s.close()
}

// failing turns the end of a test into a panic that it can look at.
type failing struct{ *testing.T }

func (f failing) Fatal(args ...any) { panic(args[0]) }

func recovered(v any) error {
	if err, ok := v.(error); ok {
		return err
	}
	if v != nil {
		panic(v)
	}
	return nil
}

func TestACommitWithoutReplicasIsNotAcknowledged(t *testing.T) {
	s := newScene(t, 1<<20, &pebble.Options{Logger: onlyFailures{}})
	s.open(0)
	check(t, s.db.Set([]byte("a"), []byte("1"), pebble.Sync))
	check(t, s.g.Close())
	said := func() (said any) {
		defer func() { said = recover() }()
		return s.db.Set([]byte("b"), []byte("2"), pebble.Sync)
	}()
	if word, ok := said.(string); !ok || !strings.Contains(word, ErrLost.Error()) {
		t.Fatalf("the commit ended with %v", said)
	}
	check(t, s.log.Close())
	s.db.writer.close()
}

func TestWhatGoesPastTheLogIsRefused(t *testing.T) {
	s := newScene(t, 1<<20, &pebble.Options{Logger: quiet{}})
	s.open(0)
	_, stats := s.db.IngestWithStats(context.Background(), nil)
	_, external := s.db.IngestExternalFiles(context.Background(), nil)
	_, excise := s.db.IngestAndExcise(context.Background(), nil, nil, nil, pebble.KeyRange{})
	for i, err := range []error{
		s.db.Ingest(context.Background(), nil), stats, external, excise, s.db.Excise(context.Background(), pebble.KeyRange{}),
	} {
		if !errors.Is(err, ErrNotReplicated) {
			t.Errorf("way %d ended with %v", i, err)
		}
	}
	s.close()
}

func TestAFrontEndEmptiesNoDirectoryOfOthers(t *testing.T) {
	dir := t.TempDir()
	check(t, os.WriteFile(filepath.Join(dir, "letter"), []byte("dear"), 0o600))
	if _, err := ownDirectory(dir); err == nil {
		t.Fatal("a directory with something in it was taken")
	}
	if _, err := os.Stat(filepath.Join(dir, "letter")); err != nil {
		t.Fatal(err)
	}
}

func TestACheckpointOfTheFrontEndIsWhole(t *testing.T) {
	r, want := newRand(t), map[string]string{}
	s := newScene(t, 4<<20, appending)
	s.open(0)
	load(t, r, s.db, want, r.IntN(100), 2000)
	dir := filepath.Join(s.dir, "checkpoint")
	check(t, s.db.Checkpoint(dir))
	then := maps.Clone(want)
	load(t, r, s.db, want, 20, 2000)
	s.close()
	db := must(pebble.Open(dir, appending.Clone()))(t)
	defer db.Close()
	checkContent(t, db, then)
}

package server_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/migrate"
)

// forget removes what a folder has of a log's segments, though the manifest names them.
func (w *world) forget(dir string) {
	w.t.Helper()
	w.must(filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".seg") {
			err = os.Remove(path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // Its log has removed it.
		}
		return err
	}))
}

func TestColdRecordsComeFromTheSharedTierWithoutTheirSource(t *testing.T) {
	w, c, _ := blobWorld(t, map[string]string{"n2": "settling"})
	m := w.migrate("n1", "n2", half(w.cache.Snapshot(), "n1"), meta.MigrationOptions{})
	w.halted(m.ID, migrate.Settling)
	w.check(c, 0, coldKeys/2) // Each is read when it is asked for.
	p := w.cache.Snapshot().Moves[m.ID].Followed
	w.until("it is told how they came", func() bool {
		p = w.cache.Snapshot().Moves[m.ID].Followed
		return p.Shared+p.Asked > 100
	})
	if p.Shared < 2*p.Asked { // What was not uploaded yet is asked for.
		t.Errorf("most was asked for: %+v", p)
	}
	w.must(w.meta.CancelMigration(patient(t), m.ID))
	w.ended(m.ID)
	w.check(c, 0, coldKeys)
	w.tiered("n1") // What was returned, too.

	m = w.migrate("n1", "n3", half(w.cache.Snapshot(), "n1"), meta.MigrationOptions{}) // All follows in the background.
	if m = w.ended(m.ID); m.Stage != meta.Done || m.Followed.Shared < 2*m.Followed.Asked || m.Followed.Shared == 0 {
		t.Errorf("the migration ended as %+v", m)
	}
	w.check(c, 0, coldKeys)
	if text := w.scrape("n3"); strings.Contains(text, "ostro_migrate_cold_shared_total 0\n") || !strings.Contains(text, "ostro_migrate_cold_remaining 0\n") {
		t.Error("the metrics do not tell of it")
	}
}

func TestColdRecordsThatLeftTheSharedTierAreAskedForAtTheirSource(t *testing.T) {
	long(t)
	w, c, dir := blobWorld(t, map[string]string{"n2": "settling"})
	k := w.count(100, "n1", "n2", "n3")
	m := w.migrate("n1", "n2", half(w.cache.Snapshot(), "n1"), meta.MigrationOptions{})
	w.halted(m.ID, migrate.Settling)
	w.check(c, 0, coldKeys/4)
	w.forget(dir)
	w.check(c, 0, coldKeys)
	w.until("the source was asked", func() bool { return w.cache.Snapshot().Moves[m.ID].Followed.Asked > 0 })
	k.beyond(100)
	w.drop("n1") // It has nothing in the tier, and its backups have all.
	w.await("the death is over", func(s *meta.Snapshot) bool { return settled(s) && !s.IsAlive("n1") && s.Migrations[m.ID].Stage.Ended() })
	k.beyond(100)
	k.end()
	w.check(w.client("n2", "n3"), 0, coldKeys)
}

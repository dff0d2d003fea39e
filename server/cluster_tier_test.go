package server_test

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
)

// blobWorld is a cluster whose nodes have most of their records in the shared tier, a folder.
func blobWorld(t *testing.T, halt map[string]string) (*world, *redis.ClusterClient, string) {
	t.Helper()
	dir := t.TempDir()
	w := newWorld(t)
	w.memory, w.wide, w.halt = 1<<20, 1000, halt
	w.blob, w.disk = "file://"+dir, 256<<10
	w.start("n1", "n2", "n3")
	w.await("copies", copied)
	c := w.client("n1", "n2", "n3")
	w.write(c, 0, coldKeys)
	w.tiered("n1", "n2", "n3")
	return w, c, dir
}

// tiered waits until nodes have no more on their own disks than they may, and the segments that are written to.
func (w *world) tiered(names ...string) {
	w.t.Helper()
	w.until("segments are in the shared tier only", func() bool {
		for _, name := range names {
			m, ok := w.nodes[name].Store()
			if !ok || m.SegmentsOnBlob < 8 || m.DiskBytes > int64(w.disk)+4*int64(w.config(name).SegmentSize) {
				return false
			}
		}
		return true
	})
}

// until waits for what background work brings about.
func (w *world) until(what string, f func() bool) {
	w.t.Helper()
	ctx := patient(w.t)
	for !f() {
		select {
		case <-ctx.Done():
			w.t.Fatalf("waited in vain until %s", what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// objects counts the files of a log in a folder.
func objects(t *testing.T, dir string, log record.LogID) (n int) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(dir, fmt.Sprintf("log-%016x", uint64(log))), func(_ string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			n++
		}
		return nil // What is removed meanwhile is no matter.
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestDataOfAClusterLivesInTheSharedTierAndSurvivesRestartsAndDeaths(t *testing.T) {
	w, c, dir := blobWorld(t, nil)
	w.check(c, 0, coldKeys)

	// One that comes back has its log again, though its disk lacks most of it.
	w.must(w.nodes["n2"].Stop(patient(t)))
	w.start("n2")
	w.await("it is back", func(s *meta.Snapshot) bool { return settled(s) && s.IsAlive("n2") })
	w.check(w.client("n1", "n2", "n3"), 0, coldKeys)

	// Of one that dies others have all from its backups; its part of the tier is of no use to anybody then.
	was := w.cache.Snapshot().Nodes["n1"].Log
	w.drop("n1")
	w.await("heirs", func(s *meta.Snapshot) bool { return settled(s) && len(s.Map.Ranges("n1")) == 0 })
	c = w.client("n2", "n3")
	w.check(c, 0, coldKeys)
	w.until("its part of the tier is removed", func() bool { return objects(t, dir, was) == 0 })
	w.start("n1")
	w.await("it is back with another log", func(s *meta.Snapshot) bool { return settled(s) && s.IsAlive("n1") && s.Nodes["n1"].Log != was })
	w.write(c, coldKeys, coldKeys+300)
	w.check(c, 0, coldKeys+300)
	for _, n := range []view.NodeID{"n2", "n3"} {
		w.until(fmt.Sprintf("the tier has something of %s, which lives", n), func() bool { return objects(t, dir, w.cache.Snapshot().Nodes[n].Log) > 0 })
	}
}

func TestATierThatLosesEverythingTakesNothingWithIt(t *testing.T) {
	long(t)
	w, c, dir := blobWorld(t, nil)
	w.forget(dir)
	w.check(c, 0, coldKeys) // From the backups.
	w.must(w.nodes["n3"].Stop(patient(t)))
	w.blob, w.disk = "", 0 // Nor does it find the tier when it is started without it.
	w.start("n3")
	w.await("it is back", func(s *meta.Snapshot) bool { return settled(s) && s.IsAlive("n3") })
	w.check(w.client("n1", "n2", "n3"), 0, coldKeys)
}

func TestADeposedNodeChangesNothingInTheTierThatCounts(t *testing.T) {
	long(t)
	w, _, dir := blobWorld(t, nil)
	was := w.cache.Snapshot().Nodes["n2"].Log
	deposed := w.nodes["n2"]
	deposed.Isolate()
	w.await("others have taken over", func(s *meta.Snapshot) bool { return settled(s) && s.Logs[was].Retired && !s.IsAlive("n2") })
	w.until("its log is gone from the tier", func() bool { return objects(t, dir, was) == 0 })
	// It is still there, has cold segments, and cleans and uploads as it always did.
	deposed.Engine().SetMemoryLimit(1<<20, store.Spill)
	delete(w.nodes, "n2")
	c := w.client("n1", "n3")
	w.write(c, coldKeys, coldKeys+1000)
	w.check(c, 0, coldKeys+1000)
	w.tiered("n1", "n3")
	if n := objects(t, dir, was); n != 0 {
		t.Errorf("the deposed node has written %d objects", n)
	}
	deposed.Drop()
	w.start("n2")
	w.await("it is back with another log", func(s *meta.Snapshot) bool { return settled(s) && s.IsAlive("n2") && s.Nodes["n2"].Log != was })
	w.check(c, 0, coldKeys+1000)
}

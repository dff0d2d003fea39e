package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
)

const testSegmentBytes = 1 << 16

// segmentBuilder writes a segment as a head does.
type segmentBuilder struct {
	id    record.SegmentID
	bytes []byte
	used  int
	chain record.Chain
	batch record.BatchID
}

func newSegment(id record.SegmentID) *segmentBuilder {
	b := &segmentBuilder{id: id, bytes: make([]byte, testSegmentBytes), chain: record.NewChain(id)}
	return b.took(record.EncodeSegmentHeader(b.bytes, 7, id, 1_700_000_000_000, testSegmentBytes))
}

func (b *segmentBuilder) took(n int) *segmentBuilder {
	b.chain.Add(record.PtrOf(b.bytes[b.used:]))
	b.used += n
	return b
}

func (b *segmentBuilder) put(version uint64, key string) *segmentBuilder {
	return b.entry(record.Header{Type: record.TypePut, Version: version}, key)
}

func (b *segmentBuilder) entry(h record.Header, key string) *segmentBuilder {
	return b.took(record.Encode(b.bytes[b.used:], &h, []byte(key), []byte("value of "+key), true))
}

func (b *segmentBuilder) seal(closed bool) *segmentBuilder {
	b.batch++
	b.chain.PutSeal(b.bytes[b.used:], b.batch, closed)
	b.used += record.SealBytes
	return b
}

// closed is the file of a finished segment: cut at its end.
func (b *segmentBuilder) closed() []byte { return b.seal(true).bytes[:b.used] }

// write makes a data directory of segment files.
func writeDataDir(t *testing.T, files map[record.SegmentID][]byte) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, device.SegmentsDir), 0o700); err != nil {
		t.Fatal(err)
	}
	for id, b := range files {
		if err := os.WriteFile(segmentPath(dir, id), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func segmentPath(dir string, id record.SegmentID) string {
	return filepath.Join(dir, device.SegmentsDir, fmt.Sprintf("%016x%s", uint64(id), device.SegmentSuffix))
}

func TestAWholeDirectoryIsWhole(t *testing.T) {
	dir := writeDataDir(t, map[record.SegmentID][]byte{
		1: newSegment(1).put(1, "a").put(2, "b").seal(false).put(3, "a").closed(),
		2: newSegment(2).put(4, "c").seal(false).bytes, // open
		3: make([]byte, testSegmentBytes),              // prepared
	})
	out, err := ostro(t, "check", dir)
	if err != nil || !strings.Contains(out, dir+" is whole.") || !strings.Contains(out, "6 entries, 3 seals") {
		t.Fatalf("%v\n%s", err, out)
	}
}

func TestATornTailIsHarmlessAndRepairCutsIt(t *testing.T) {
	b := newSegment(1).put(1, "a").seal(false)
	good := b.used
	dir := writeDataDir(t, map[record.SegmentID][]byte{1: b.put(2, "never sealed").bytes})
	out, err := ostro(t, "check", dir)
	if err != nil || !strings.Contains(out, "harmless: segment 1") || !strings.Contains(out, "never acknowledged") {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err = ostro(t, "check", dir, "--repair")
	if err != nil || !strings.Contains(out, fmt.Sprintf("Repaired: cut at byte %d", good)) {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err = ostro(t, "check", dir)
	if err != nil || strings.Contains(out, "harmless") {
		t.Fatalf("after the repair: %v\n%s", err, out)
	}
	if b, _ := os.ReadFile(segmentPath(dir, 1)); len(b) != good+record.SealBytes {
		t.Fatalf("the file has %d bytes, want %d", len(b), good+record.SealBytes)
	}
}

func TestEveryFlippedByteOfAClosedSegmentIsFound(t *testing.T) {
	whole := newSegment(1).put(1, "a").seal(false).put(2, "b").closed()
	dir := writeDataDir(t, map[record.SegmentID][]byte{1: whole})
	for at := range whole {
		b := append([]byte(nil), whole...)
		b[at] ^= 0x10
		if err := os.WriteFile(segmentPath(dir, 1), b, 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := ostro(t, "check", dir); exitCode(err) != exitDamaged {
			t.Fatalf("byte %d: exit %d\n%s", at, exitCode(err), out)
		}
	}
}

func TestDamageIsNamedWithWhatToDoAndQuarantineKeepsTheRest(t *testing.T) {
	b := newSegment(5).put(1, "a").seal(false)
	good := b.used
	whole := b.put(2, "b").closed()
	whole[good+30] ^= 1
	dir := writeDataDir(t, map[record.SegmentID][]byte{5: whole, 6: newSegment(6).put(3, "c").closed()})

	out, err := ostro(t, "check", dir)
	for _, want := range []string{"damage: segment 5 (" + segmentPath(dir, 5), fmt.Sprintf("corrupt at byte %d", good), "Restore the file from a backup", "DAMAGED"} {
		if exitCode(err) != exitDamaged || !strings.Contains(out, want) {
			t.Fatalf("exit %d, want %q in\n%s", exitCode(err), want, out)
		}
	}
	if out, err = ostro(t, "check", dir, "--repair"); exitCode(err) != exitDamaged {
		t.Fatalf("--repair alone touched damage: %s", out)
	}
	if now, _ := os.ReadFile(segmentPath(dir, 5)); string(now) != string(whole) {
		t.Fatal("--repair alone changed a damaged segment")
	}
	if out, err = ostro(t, "check", dir, "--repair", "--quarantine"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if aside, _ := os.ReadFile(filepath.Join(dir, quarantineFolder, filepath.Base(segmentPath(dir, 5)))); string(aside) != string(whole) {
		t.Fatal("the damaged file is not in quarantine")
	}
	out, err = ostro(t, "inspect", dir)
	if err != nil || !strings.Contains(out, "database 0: 2 keys") {
		t.Fatalf("a and c should be left: %v\n%s", err, out)
	}
}

func TestSealsBehindATearMeanThatMoreThanATailIsLost(t *testing.T) {
	b := newSegment(1).put(1, "a").seal(false)
	at := b.used
	b.put(2, "b").seal(false).put(3, "c").seal(false)
	b.bytes[at+25] ^= 1 // in b's key
	out, err := ostro(t, "check", writeDataDir(t, map[record.SegmentID][]byte{1: b.bytes}))
	if exitCode(err) != exitDamaged || !strings.Contains(out, "yet hold 1 seal") {
		t.Fatalf("exit %d\n%s", exitCode(err), out)
	}
}

// from numbers the batches that follow from n on.
func (b *segmentBuilder) from(n record.BatchID) *segmentBuilder {
	b.batch = n - 1
	return b
}

func TestBatchesWithoutThoseBeforeThemAreHarmlessAndRepairCutsThem(t *testing.T) {
	lost := newSegment(2).from(2).put(2, "b").seal(false).bytes
	ahead := newSegment(3).put(3, "c").seal(false)
	good := ahead.used
	files := map[record.SegmentID][]byte{
		1: newSegment(1).from(1).put(1, "a").seal(false).from(5).put(4, "d").seal(false).bytes,
		2: lost,
		3: ahead.from(3).put(5, "e").seal(false).put(6, "f").seal(false).bytes,
	}
	clear(lost) // Batch 2; what is left is 1, and 3, 4 and 5.
	ahead.bytes = nil
	dir := writeDataDir(t, files)
	out, err := ostro(t, "check", dir)
	for _, want := range []string{"harmless: segment 1", "1 batch at its end must not count", "harmless: segment 3", "2 batches at its end", fmt.Sprintf("up to byte %d", good)} {
		if err != nil || !strings.Contains(out, want) {
			t.Fatalf("%v: want %q in\n%s", err, want, out)
		}
	}
	out, err = ostro(t, "inspect", dir)
	for _, want := range []string{"2 batches at its end must not count", "ahead", "database 0: 2 keys"} {
		if err != nil || !strings.Contains(out, want) {
			t.Fatalf("%v: want %q in\n%s", err, want, out)
		}
	}
	if out, err = ostro(t, "check", dir, "--repair"); err != nil || strings.Count(out, "Repaired: cut at byte") != 2 {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err = ostro(t, "check", dir); err != nil || strings.Contains(out, "harmless") {
		t.Fatalf("after the repair: %v\n%s", err, out)
	}
}

func TestWhatASegmentThatIsGoneHeldIsNotMissed(t *testing.T) {
	dir := writeDataDir(t, map[record.SegmentID][]byte{4: newSegment(4).from(8).put(1, "a").seal(false).bytes})
	out, err := ostro(t, "check", dir)
	if err != nil || !strings.Contains(out, "1 batch at its end must not count") {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := os.WriteFile(filepath.Join(dir, "synced.json"), []byte(`{"batch":7}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err = ostro(t, "check", dir); err != nil || strings.Contains(out, "must not count") {
		t.Fatalf("%v\n%s", err, out)
	}
}

func TestQuarantineOfASyncedSegmentLetsTheTailCount(t *testing.T) {
	damaged := newSegment(1).from(1).put(1, "a").seal(false).put(2, "b").closed() // 1 and 2
	damaged[len(damaged)-record.SealBytes-20] ^= 1
	dir := writeDataDir(t, map[record.SegmentID][]byte{1: damaged, 2: newSegment(2).from(3).put(3, "c").seal(false).bytes})
	if out, err := ostro(t, "check", dir, "--repair", "--quarantine"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := ostro(t, "inspect", dir)
	if err != nil || !strings.Contains(out, "database 0: 2 keys") || strings.Contains(out, "must not count") {
		t.Fatalf("a and c should be left: %v\n%s", err, out)
	}
}

func TestASegmentOfAnotherLogIsFound(t *testing.T) {
	other := &segmentBuilder{id: 2, bytes: make([]byte, testSegmentBytes), chain: record.NewChain(2)}
	other.took(record.EncodeSegmentHeader(other.bytes, 8, 2, 1_700_000_000_000, testSegmentBytes))
	dir := writeDataDir(t, map[record.SegmentID][]byte{1: newSegment(1).put(1, "a").closed(), 2: other.put(2, "b").closed()})
	if err := os.WriteFile(filepath.Join(dir, store.IdentityMeta), []byte(`{"log":7,"segmentBytes":65536,"format":2}`), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := ostro(t, "check", dir)
	if exitCode(err) != exitDamaged || !strings.Contains(out, "belongs to log 8") {
		t.Fatalf("exit %d\n%s", exitCode(err), out)
	}
}

func TestOnlySegmentsOfTheCheckpointCount(t *testing.T) {
	damaged := newSegment(2).put(2, "b").closed()
	damaged[70] ^= 1
	dir := writeDataDir(t, map[record.SegmentID][]byte{1: newSegment(1).put(1, "a").closed(), 2: damaged})
	manifest := func(text string) {
		if err := os.WriteFile(filepath.Join(dir, store.ManifestMeta), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		text string
		code int
		want string
	}{
		{`{"millis":1,"segments":[1]}`, exitOK, "harmless: segment 2"},
		{`{"millis":1,"segments":[1,2]}`, exitDamaged, "damage: segment 2"},
		{`{"millis":1,"segments":[1,3]}`, exitDamaged, "names segment 3, which is not there"},
		{`{"millis":`, exitDamaged, "checkpoint.json is damaged"},
	} {
		manifest(c.text)
		if out, err := ostro(t, "check", dir); exitCode(err) != c.code || !strings.Contains(out, c.want) {
			t.Errorf("%s: exit %d, want %d and %q\n%s", c.text, exitCode(err), c.code, c.want, out)
		}
	}
}

func TestADamagedSnapshotCostsOnlyTime(t *testing.T) {
	dir := writeDataDir(t, map[record.SegmentID][]byte{1: newSegment(1).put(1, "a").closed()})
	if err := os.WriteFile(filepath.Join(dir, store.SnapshotMeta), []byte("not a snapshot"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := ostro(t, "check", dir); err != nil || !strings.Contains(out, "the snapshot of the index is of no use") {
		t.Fatalf("%v\n%s", err, out)
	}
}

func TestUnfinishedFilesAreRemovedByRepairOnly(t *testing.T) {
	dir := writeDataDir(t, map[record.SegmentID][]byte{1: newSegment(1).put(1, "a").closed()})
	temp := filepath.Join(dir, device.SegmentsDir, "x"+device.TempSuffix)
	if err := os.WriteFile(temp, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		left bool
	}{{[]string{"check", dir}, true}, {[]string{"check", dir, "--repair"}, false}} {
		if out, err := ostro(t, c.args...); err != nil || !strings.Contains(out, "an unfinished write") {
			t.Fatalf("%v\n%s", err, out)
		}
		if _, err := os.Stat(temp); (err == nil) != c.left {
			t.Fatalf("after %v: %v", c.args, err)
		}
	}
}

func TestADirectoryInUseIsNotChecked(t *testing.T) {
	dir := writeDataDir(t, map[record.SegmentID][]byte{1: newSegment(1).put(1, "a").closed()})
	disk, err := device.OpenDisk(dir)
	if err != nil {
		t.Fatal(err)
	}
	release, err := disk.Lock()
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	for _, args := range [][]string{{"check", dir}, {"check", dir, "--repair"}} {
		_, err := ostro(t, args...)
		if exitCode(err) != exitFailure || !strings.Contains(said(err), fmt.Sprintf("in use by process %d", os.Getpid())) {
			t.Errorf("%v: %v", args, err)
		}
	}
	if out, err := ostro(t, "inspect", dir); err != nil || !strings.Contains(out, "a moment that has passed") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestInspectCountsOnlyTheNewestOfEachKey(t *testing.T) {
	past := time.Now().Add(-time.Hour).UnixMilli()
	dir := writeDataDir(t, map[record.SegmentID][]byte{
		1: newSegment(1).put(1, "a").put(2, "b").put(3, "c").closed(),
		2: newSegment(2).
			put(4, "a").
			entry(record.Header{Type: record.TypeTombstone, Version: 5}, "b").
			entry(record.Header{Type: record.TypePut, Version: 6, ExpireAt: past}, "c").
			entry(record.Header{Type: record.TypePut, Version: 7, Table: 20}, "flushed").closed(),
	})
	tables := `{"next":21,"databases":[0,1]}`
	if err := os.WriteFile(filepath.Join(dir, store.TablesMeta), []byte(tables), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := ostro(t, "inspect", dir, "--json")
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Keys     map[string]int
		Expired  int
		Segments []segmentReport
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	if got.Keys["0"] != 1 || len(got.Keys) != 1 || got.Expired != 1 || got.Segments[0].LiveBytes != 0 || got.Segments[1].LiveBytes == 0 {
		t.Fatalf("got %+v", got)
	}
}

func TestInspectCountsTheKeysOfTenants(t *testing.T) {
	const tenant, gone = store.FirstPrivate, store.FirstPrivate + 1
	dir := t.TempDir()
	st, err := store.Open(store.Options{Dir: dir, Durability: store.EverySec, SegmentBytes: testSegmentBytes})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	ss, err := st.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	if err := st.OpenPrivate(tenant, gone); err != nil {
		t.Fatal(err)
	}
	for _, db := range []int{0, tenant, gone} {
		ss.Begin()
		k := ss.Key(db, []byte("k"))
		status := ss.Put(&k, store.Write{Value: []byte("v")}, nil)
		ss.End()
		if status != store.OK {
			t.Fatal(status, ss.Err())
		}
	}
	if err := st.DropPrivate(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	ss.Close()
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	if got := inspectedKeys(t, dir); !maps.Equal(got, map[string]int{"0": 1, "65536": 1}) {
		t.Fatalf("got %v", got)
	}
}

// Nodes of a cluster have no table of their own for what they hear of from others.
func TestInspectCountsTheKeysOfACluster(t *testing.T) {
	dir := writeDataDir(t, map[record.SegmentID][]byte{
		1: newSegment(1).put(1, "a").entry(record.Header{Type: record.TypePut, Version: 2, Table: store.FirstPrivate + 3}, "b").
			entry(record.Header{Type: record.TypePut, Version: 3, Table: 20}, "nobody's").closed(),
	})
	if err := os.WriteFile(filepath.Join(dir, store.TablesMeta), []byte(`{"next":2,"databases":[0,1]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := inspectedKeys(t, dir); !maps.Equal(got, map[string]int{"0": 1, "65539": 1}) {
		t.Fatalf("got %v", got)
	}
}

func inspectedKeys(t *testing.T, dir string) map[string]int {
	t.Helper()
	out, err := ostro(t, "inspect", dir, "--json")
	if err != nil {
		t.Fatal(err)
	}
	var got struct{ Keys map[string]int }
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	return got.Keys
}

func TestADumpListsEveryEntry(t *testing.T) {
	dir := writeDataDir(t, map[record.SegmentID][]byte{12: newSegment(12).put(1, "a\n").seal(false).closed()})
	for _, name := range []string{"12", "0xc", "000000000000000c.seg"} {
		out, err := ostro(t, "inspect", dir, "--segment", name)
		for _, want := range []string{"segment header", `"a\n"  -> string of 11 B`, "seal", "segment 12 is closed"} {
			if err != nil || !strings.Contains(out, want) {
				t.Fatalf("%s: %v, want %q in\n%s", name, err, want, out)
			}
		}
	}
	out, err := ostro(t, "inspect", dir, "--segment", "12", "--json")
	if err != nil || strings.Count(out, "\n") != 4 {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range []string{"99", "x"} {
		if _, err := ostro(t, "inspect", dir, "--segment", name); exitCode(err) != exitUsage {
			t.Errorf("--segment %s: %v", name, err)
		}
	}
}

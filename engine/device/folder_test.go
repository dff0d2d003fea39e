package device_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/device/devicetest"
	"github.com/ostrodb/ostro/engine/record"
)

func openBlob(t testing.TB, dir string, log record.LogID) *device.Blob {
	t.Helper()
	b, err := device.OpenBlob(t.Context(), "file://"+dir, log, nil)
	must(t, err)
	t.Cleanup(func() { must(t, b.Close()) })
	return b
}

func TestAFolderCarriesTheBlobTier(t *testing.T) {
	dir := t.TempDir()
	files := openFiles(t)
	devicetest.BlobSuite{
		Open:    func(t testing.TB, log record.LogID) *device.Blob { return openBlob(t, dir, log) },
		Writers: 4, Rounds: 100,
	}.Run(t)
	must(t, filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if strings.HasSuffix(path, ".tmp") {
			t.Errorf("left behind: %s", path)
		}
		if e.Name() == "manifest" && len(names(t, path)) > 32 {
			t.Errorf("%d manifests are left in %s", len(names(t, path)), path)
		}
		return err
	}))
	if got := openFiles(t); got != files {
		t.Errorf("%d descriptors are open, %d were before", got, files)
	}
}

func init() { roles["race"] = roleRace }

const raceRounds = 150

// roleRace is one writer of many processes; it tells what it won.
func roleRace(args []string) {
	b, err := device.OpenBlob(context.Background(), args[0], 1, nil)
	if err != nil {
		panic(err)
	}
	report("ready")
	writer, _ := strconv.ParseUint(args[1], 10, 32)
	won, err := devicetest.RaceManifest(context.Background(), b, writer, raceRounds)
	if err != nil {
		panic(err)
	}
	report("%d", len(won))
	for _, id := range won {
		report("%d", id)
	}
}

func TestProcessesThatRaceOverAFolderNeverBothWin(t *testing.T) {
	dir := t.TempDir()
	b := openBlob(t, dir, 1)
	must(t, b.ReplaceManifest(t.Context(), device.Manifest{Version: 1}))
	var processes []*process
	for writer := range 3 {
		processes = append(processes, start(t, "race", "file://"+dir, fmt.Sprint(writer+1)))
	}
	for _, p := range processes {
		p.line(t)
	}
	var won []record.SegmentID
	for _, p := range processes {
		for range p.number(t) {
			won = append(won, record.SegmentID(p.number(t)))
		}
	}
	m, err := b.LoadManifest(t.Context())
	must(t, err)
	devicetest.CheckRace(t, m, won)
}

func TestAFolderForgetsUnfinishedWritesAfterADay(t *testing.T) {
	dir := t.TempDir()
	old, fresh := filepath.Join(dir, "a.1.tmp"), filepath.Join(dir, "b.2.tmp")
	for _, path := range []string{old, fresh} {
		must(t, os.WriteFile(path, nil, 0o600))
	}
	then := time.Now().Add(-25 * time.Hour)
	must(t, os.Chtimes(old, then, then))
	f, err := device.OpenFolder(dir)
	must(t, err)
	if got := names(t, dir); len(got) != 1 || got[0] != "b.2.tmp" {
		t.Errorf("left: %q", got)
	}
	if keys, err := f.List(t.Context(), ""); err != nil || len(keys) != 0 {
		t.Errorf("unfinished writes are listed: %q, %v", keys, err)
	}
}

func TestBlobURLsThatCannotWorkSayWhy(t *testing.T) {
	for url, want := range map[string]string{
		"s3://bucket?secret=1": "engine/device/cloud",
		"file://relative/dir":  "file:///absolute/path",
		"file:///proc/no":      "/proc/no",
		":":                    "file:///dir",
		"":                     "file",
	} {
		_, err := device.OpenBlob(t.Context(), url, 1, nil)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v, want an error that mentions %s and no secret", url, err, want)
		}
	}
}

func TestACorruptManifestIsNeverTakenForAnOlderOne(t *testing.T) {
	dir := t.TempDir()
	b := openBlob(t, dir, 1)
	for version := range uint64(2) {
		must(t, b.ReplaceManifest(t.Context(), device.Manifest{Version: version + 1, Segments: []device.ManifestSegment{{ID: 77}}}))
	}
	path := filepath.Join(dir, "log-0000000000000001", "manifest", "0000000000000002.json")
	whole, err := os.ReadFile(path)
	must(t, err)
	for cut := range whole {
		damaged := append([]byte(nil), whole...)
		damaged[cut] ^= 1
		for _, data := range [][]byte{whole[:cut], damaged} {
			must(t, os.WriteFile(path, data, 0o600))
			m, err := b.LoadManifest(t.Context())
			if !errors.Is(err, device.ErrCorrupt) {
				t.Fatalf("byte %d: loaded %+v, %v; want ErrCorrupt", cut, m, err)
			}
		}
	}
}

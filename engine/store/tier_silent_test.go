package store_test

import (
	"context"
	"fmt"
	"io/fs"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
)

// silentFolder is a folder that can cease to answer reads of segments.
type silentFolder struct {
	*device.Folder
	silent atomic.Bool
	asked  atomic.Int64 // while it was silent
}

func (f *silentFolder) ReadAt(ctx context.Context, key string, p []byte, off int64) (int, error) {
	if f.silent.Load() {
		f.asked.Add(1)
		<-ctx.Done()
		return 0, ctx.Err()
	}
	return f.Folder.ReadAt(ctx, key, p, off)
}

func TestATierThatDoesNotAnswerIsLeftAloneWhereOthersHaveCopies(t *testing.T) {
	const keys, asked = 20000, 200
	folder, err := device.OpenFolder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	tier := &silentFolder{Folder: folder}
	device.RegisterObjects("silent", func(context.Context, *url.URL) (device.Objects, error) { return tier, nil })
	store.TierImpatience(t, 50*time.Millisecond)

	const id = 7
	var copies atomic.Int64
	st := open(t, store.Options{
		Device: device.NewMemory(), LogID: id, Durability: store.EverySec, SegmentBytes: 64 << 10, MemoryBytes: 4 << 20,
		BlobURL: "silent://anywhere", DiskBytes: 256 << 10,
		Elsewhere: func(ctx context.Context, segment record.SegmentID) ([]byte, error) {
			copies.Add(1)
			key := fmt.Sprintf("log-%016x/segments/%016x.seg", id, uint64(segment))
			info, err := folder.Stat(ctx, key)
			if err != nil {
				return nil, err
			}
			b := make([]byte, info.Bytes)
			n, err := folder.ReadAt(ctx, key, b, 0)
			if n < len(b) {
				return nil, fmt.Errorf("%w: %v", fs.ErrNotExist, err)
			}
			return b, nil
		},
	})
	ss := session(t, st)
	tiered(t, st, ss, keys)
	tier.silent.Store(true)
	readTiered(t, ss, asked)
	if got := tier.asked.Load(); got == 0 || got > asked/10 {
		t.Errorf("a tier that does not answer was asked %d times for %d keys", got, asked)
	}
	if copies.Load() == 0 {
		t.Error("nobody was asked for copies")
	}
}

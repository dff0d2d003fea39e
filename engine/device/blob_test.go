package device_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/device/devicetest"
	"github.com/ostrodb/ostro/engine/record"
)

var (
	errPassing = errors.New("a passing failure")
	errLasting = errors.New("a lasting failure")
)

// flaky is a store whose calls go wrong as a test wants.
type flaky struct {
	device.Objects
	// before may fail a call instead of making it, after may fail it although it
	// was made. Either may be nil.
	before, after func(ctx context.Context, call string) error

	mu    sync.Mutex
	calls []string
}

func newFlaky(t *testing.T) *flaky {
	t.Helper()
	folder, err := device.OpenFolder(t.TempDir())
	must(t, err)
	return &flaky{Objects: folder}
}

func (f *flaky) around(ctx context.Context, call string, act func() error) error {
	f.mu.Lock()
	f.calls = append(f.calls, call)
	f.mu.Unlock()
	if f.before != nil {
		if err := f.before(ctx, call); err != nil {
			return err
		}
	}
	err := act()
	if err == nil && f.after != nil {
		err = f.after(ctx, call)
	}
	return err
}

func (f *flaky) Put(ctx context.Context, key string, r io.ReaderAt, size int64, sum device.Checksum) error {
	return f.around(ctx, "put", func() error { return f.Objects.Put(ctx, key, r, size, sum) })
}

func (f *flaky) PutNew(ctx context.Context, key string, data []byte) error {
	call := "new"
	if strings.HasSuffix(key, "/conditional") {
		call = "probe"
	}
	return f.around(ctx, call, func() error { return f.Objects.PutNew(ctx, key, data) })
}

func (f *flaky) ReadAt(ctx context.Context, key string, p []byte, off int64) (n int, err error) {
	err = f.around(ctx, "read", func() error {
		n, err = f.Objects.ReadAt(ctx, key, p, off)
		return err
	})
	return n, err
}

func (f *flaky) Stat(ctx context.Context, key string) (info device.ObjectInfo, err error) {
	err = f.around(ctx, "stat", func() error {
		info, err = f.Objects.Stat(ctx, key)
		return err
	})
	return info, err
}

func (f *flaky) List(ctx context.Context, prefix string) (keys []string, err error) {
	err = f.around(ctx, "list", func() error {
		keys, err = f.Objects.List(ctx, prefix)
		return err
	})
	return keys, err
}

func (f *flaky) Retryable(err error) bool { return errors.Is(err, errPassing) }

// count tells how often a call was made.
func (f *flaky) count(call string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.calls {
		if c == call {
			n++
		}
	}
	return n
}

// failTimes fails the first n calls of a kind with err.
func failTimes(call string, n int, err error) func(context.Context, string) error {
	return func(_ context.Context, c string) error {
		if c != call || n == 0 {
			return nil
		}
		n--
		return err
	}
}

func TestPassingFailuresAreRetriedAndLastingOnesAreNot(t *testing.T) {
	for _, test := range []struct {
		failures int
		err      error
		attempts int
		ok       bool
	}{
		{failures: 0, attempts: 1, ok: true},
		{failures: 4, err: errPassing, attempts: 5, ok: true},
		{failures: 5, err: errPassing, attempts: 5},
		{failures: 1, err: errLasting, attempts: 1},
	} {
		t.Run(fmt.Sprintf("%d times %v", test.failures, test.err), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFlaky(t)
				f.before = failTimes("put", test.failures, test.err)
				b := device.NewBlob(f, 1, nil)
				p, crc := devicetest.Segment(1, 100)
				began := time.Now()
				err := b.Upload(t.Context(), 1, bytes.NewReader(p), 100, crc)
				if test.ok != (err == nil) || !test.ok && !errors.Is(err, test.err) {
					t.Fatalf("got %v", err)
				}
				if got := f.count("put"); got != test.attempts {
					t.Errorf("%d attempts, want %d", got, test.attempts)
				}
				if took := time.Since(began); took > 5*time.Second {
					t.Errorf("it paused for %v", took)
				}
				if m := b.Metrics(); m.Retries != int64(test.attempts-1) || (m.Failures == 0) != test.ok {
					t.Errorf("counted %+v", m)
				}
			})
		})
	}
}

func TestAnAttemptThatHangsIsGivenUpAndRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlaky(t)
		hung := false
		f.before = func(ctx context.Context, call string) error {
			if call != "put" || hung {
				return nil
			}
			hung = true
			<-ctx.Done()
			return ctx.Err()
		}
		p, crc := devicetest.Segment(1, 100)
		must(t, device.NewBlob(f, 1, nil).Upload(t.Context(), 1, bytes.NewReader(p), 100, crc))
	})
}

func TestACancelledContextEndsAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlaky(t)
		f.before = failTimes("list", 100, errPassing)
		ctx, cancel := context.WithCancelCause(t.Context())
		began := time.Now()
		time.AfterFunc(time.Millisecond, func() { cancel(nil) })
		_, err := device.NewBlob(f, 1, nil).List(ctx)
		if !errors.Is(err, context.Canceled) || !errors.Is(err, errPassing) {
			t.Fatalf("got %v, want the cancellation and what went wrong before", err)
		}
		if took := time.Since(began); took != time.Millisecond {
			t.Fatalf("it ended after %v", took)
		}
	})
}

// TestAnAnswerThatGotLostIsNoConflict makes the store fail after it did its work,
// at each call of a replacement in turn.
func TestAnAnswerThatGotLostIsNoConflict(t *testing.T) {
	for _, call := range []string{"probe", "new", "list", "stat", "read"} {
		synctest.Test(t, func(t *testing.T) {
			f := newFlaky(t)
			b := device.NewBlob(f, 1, nil)
			for version := range uint64(3) {
				f.after = failTimes(call, 1, errPassing)
				if err := b.ReplaceManifest(t.Context(), device.Manifest{Version: version + 1}); err != nil {
					t.Fatalf("lost the answer to %s: %v", call, err)
				}
			}
			if m := b.Metrics(); m.ManifestReplaces != 3 || m.ManifestConflicts != 0 {
				t.Errorf("counted %+v", m)
			}
		})
	}
}

func TestAReplacementOfUnknownOutcomeIsSettledByLoading(t *testing.T) {
	f := newFlaky(t)
	b := device.NewBlob(f, 1, nil)
	must(t, b.ReplaceManifest(t.Context(), device.Manifest{Version: 1}))
	f.after = failTimes("new", 1, errLasting)
	err := b.ReplaceManifest(t.Context(), device.Manifest{Version: 2, Writer: 5})
	if !errors.Is(err, errLasting) || !errors.Is(err, device.ErrManifestUnknown) {
		t.Fatalf("got %v, want ErrManifestUnknown", err)
	}
	err = b.ReplaceManifest(t.Context(), device.Manifest{Version: 2, Writer: 6})
	if !errors.Is(err, device.ErrManifestUnknown) || errors.Is(err, device.ErrManifestConflict) {
		t.Fatalf("without loading: %v, want ErrManifestUnknown, for the other writer was this one", err)
	}
	m, err := b.LoadManifest(t.Context())
	must(t, err)
	if m.Version != 2 || m.Writer != 5 {
		t.Fatalf("loaded %+v", m)
	}
	must(t, b.ReplaceManifest(t.Context(), device.Manifest{Version: 3}))
}

// TestAWriterOvertakenByManyIsToldTheTruth lets others replace the manifest again
// and again between the creation of one version and the question who won.
func TestAWriterOvertakenByManyIsToldTheTruth(t *testing.T) {
	for overtaken, want := range map[int]string{1: "won", 100: "won", 256: "won", 257: "unknown"} {
		f := newFlaky(t)
		slow, fast := device.NewBlob(f, 1, nil), device.NewBlob(f.Objects, 1, nil)
		f.after = func(ctx context.Context, call string) error {
			if call != "new" {
				return nil
			}
			m, err := fast.LoadManifest(ctx)
			for range overtaken {
				m.Version++
				err = errors.Join(err, fast.ReplaceManifest(ctx, m))
			}
			return err
		}
		err := slow.ReplaceManifest(t.Context(), device.Manifest{Version: 1, Writer: 77})
		got := "won"
		if errors.Is(err, device.ErrManifestConflict) {
			got = "lost"
		} else if errors.Is(err, device.ErrManifestUnknown) {
			got = "unknown"
		}
		if got != want {
			t.Errorf("overtaken by %d: %s (%v), want %s", overtaken, got, err, want)
		}
	}
}

// forgetful ignores that an object is there, as some servers do.
type forgetful struct{ device.Objects }

func (f forgetful) PutNew(ctx context.Context, key string, data []byte) error {
	return f.Put(ctx, key, bytes.NewReader(data), int64(len(data)), sumOf(data))
}

func TestAStoreThatIgnoresConditionsIsRefused(t *testing.T) {
	b := device.NewBlob(forgetful{newFlaky(t).Objects}, 1, nil)
	err := b.ReplaceManifest(t.Context(), device.Manifest{Version: 1})
	if err == nil || !strings.Contains(err.Error(), "If-None-Match") {
		t.Fatalf("got %v, want a refusal", err)
	}
	if m, err := b.LoadManifest(t.Context()); err != nil || m.Version != 0 {
		t.Fatalf("a manifest was written all the same: %+v, %v", m, err)
	}
}

// halting gives few bytes at a time and then breaks off.
type halting struct{ device.Objects }

func (h halting) ReadAt(ctx context.Context, key string, p []byte, off int64) (int, error) {
	n, err := h.Objects.ReadAt(ctx, key, p[:min(len(p), 400)], off)
	if err == nil && n < len(p) {
		err = fmt.Errorf("%w: %w", errPassing, io.ErrUnexpectedEOF)
	}
	return n, err
}

func (h halting) Retryable(err error) bool { return errors.Is(err, errPassing) }

func TestAReadThatBreaksOffGoesOnWhereItWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := device.NewBlob(halting{newFlaky(t).Objects}, 1, nil)
		want, crc := devicetest.Segment(1, 1000)
		must(t, b.Upload(t.Context(), 1, bytes.NewReader(want), 1000, crc))
		got := make([]byte, 1000)
		n, err := b.ReadAt(t.Context(), 1, got, 0)
		if n != 1000 || err != nil || !bytes.Equal(got, want) {
			t.Fatalf("read %d bytes, %v", n, err)
		}
		if m := b.Metrics(); m.Retries != 2 || m.ReadBytes != 1000 {
			t.Errorf("counted %+v", m)
		}
	})
}

// rotting keeps other bytes than it was given.
type rotting struct{ device.Objects }

func (r rotting) Put(ctx context.Context, key string, from io.ReaderAt, size int64, _ device.Checksum) error {
	p := make([]byte, size)
	if _, err := from.ReadAt(p, 0); err != nil {
		return err
	}
	p[size/2] ^= 1
	return r.Objects.Put(ctx, key, bytes.NewReader(p), size, sumOf(p))
}

func TestAnUploadLooksWhatTheStoreMadeOfIt(t *testing.T) {
	b := device.NewBlob(rotting{newFlaky(t).Objects}, 1, nil)
	p, crc := devicetest.Segment(1, 1000)
	err := b.Upload(t.Context(), 1, bytes.NewReader(p), 1000, crc)
	if !errors.Is(err, device.ErrCorrupt) {
		t.Fatalf("got %v, want ErrCorrupt", err)
	}
}

func TestManyGoroutinesUseOneTier(t *testing.T) {
	b := device.NewBlob(newFlaky(t), 1, nil)
	var group sync.WaitGroup
	for worker := range 4 {
		group.Go(func() {
			for round := range 5 {
				id, p, crc := segmentOf(worker*100 + round)
				if err := errors.Join(
					b.Upload(t.Context(), id, bytes.NewReader(p), int64(len(p)), crc),
					b.Verify(t.Context(), id, int64(len(p)), crc),
				); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	ids, err := b.List(t.Context())
	must(t, err)
	if len(ids) != 20 || !slices.IsSorted(ids) {
		t.Fatalf("the tier holds %v", ids)
	}
}

func sumOf(p []byte) device.Checksum {
	return device.Checksum{CRC: crc32.Checksum(p, crc32.MakeTable(crc32.Castagnoli))}
}

func segmentOf(n int) (id record.SegmentID, p []byte, crc uint32) {
	p, crc = devicetest.Segment(uint64(n), 1000)
	return record.SegmentID(n), p, crc
}

package direct

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// aligned is memory that begins with a block.
func aligned(t testing.TB, n int) []byte {
	t.Helper()
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(b) })
	for i := range b {
		b[i] = byte(rand.Uint32())
	}
	return b
}

// wholly writes b at off, past the cache as far as that goes, and gives what the file has then.
func wholly(t *testing.T, b []byte, off int64) (direct int, got []byte) {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	direct, err = Write(f, b, off)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(b[direct:], off+int64(direct)); err != nil {
		t.Fatal(err)
	}
	got, err = os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	return direct, got[off:]
}

// can tells whether the file system of temporary files writes past the cache.
func can(t *testing.T, block []byte) bool {
	t.Helper()
	fd, err := unix.Open(filepath.Join(t.TempDir(), "f"), unix.O_CREAT|unix.O_WRONLY|unix.O_DIRECT, 0o600)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	n, err := unix.Pwrite(fd, block, 0)
	return err == nil && n == len(block)
}

func TestWhatGoesPastTheCacheAndWhatDoesNotIsOneFile(t *testing.T) {
	b := aligned(t, 3*piece)
	able := can(t, b[:block])
	for _, c := range []struct {
		name  string
		b     []byte
		off   int64
		never bool // it cannot go past the cache
	}{
		{"nothing", nil, 0, true},
		{"less than a block", b[:block-1], 0, true},
		{"one block", b[:block], 0, false},
		{"pieces and some bytes", b[:2*piece+block+77], 0, false},
		{"all", b, 0, false},
		{"behind others", b[:piece+1], 3 * block, false},
		{"odd memory", b[1:piece], 0, true},
		{"an odd place", b[:piece], 100, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, got := wholly(t, c.b, c.off)
			if !bytes.Equal(got, c.b) {
				t.Error("the file has other bytes")
			}
			want := 0
			if able && !c.never {
				want = len(c.b) / block * block
			}
			if n != want {
				t.Errorf("%d bytes went past the cache, want %d of %d", n, want, len(c.b))
			}
		})
	}
}

func TestAFileThatIsClosedOrCannotBeWrittenSaysSo(t *testing.T) {
	b := aligned(t, block)
	name := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := Write(f, b, 0); err == nil || n != 0 {
		t.Errorf("wrote %d bytes to a file that is only read: %v", n, err)
	}
	_ = f.Close()
	if n, err := Write(f, b, 0); err == nil || n != 0 {
		t.Errorf("wrote %d bytes to a closed file: %v", n, err)
	}
}

// BenchmarkWrite has a segment's bytes in a file, safe, past the cache and through it.
func BenchmarkWrite(b *testing.B) {
	bytes := aligned(b, 8<<20)
	dir := b.TempDir()
	for _, past := range []bool{true, false} {
		name := "cached"
		if past {
			name = "direct"
		}
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(bytes)))
			before := busy()
			for b.Loop() {
				f, err := os.CreateTemp(dir, "")
				if err != nil {
					b.Fatal(err)
				}
				n := 0
				if past {
					n, err = Write(f, bytes, 0)
				}
				for ; n < len(bytes) && err == nil; n += 64 << 10 {
					_, err = f.WriteAt(bytes[n:n+64<<10], int64(n))
				}
				if err == nil {
					err = f.Sync()
				}
				_, _ = f.Close(), os.Remove(f.Name())
				if err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(busy()-before)/float64(b.N)/1e6, "cpu-ms/op")
		})
	}
}

// busy is how many nanoseconds this process has had of the cores.
func busy() int64 {
	var r unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &r)
	return r.Utime.Nano() + r.Stime.Nano()
}

package record

import (
	"sync"
	"testing"
	"unsafe"
)

// encoded returns an entry alone.
func encoded(h Header, key, value string) []byte {
	b := make([]byte, Size(len(key), len(value), h.ExpireAt != 0))
	Encode(b, &h, []byte(key), []byte(value), true)
	return b
}

func TestAccessorsReadWhatWasEncoded(t *testing.T) {
	for _, c := range []struct {
		name       string
		h          Header
		key, value string
		length     int
	}{
		{"nothing", Header{Type: TypePut}, "", "", 24},
		{"a full word", Header{Type: TypePut, Table: 1, Version: 5}, "key1", "val1", 32},
		{"seven bytes of pad", Header{Type: TypePut, Table: 1 << 31, Version: VersionLock - 1}, "key12", "val1", 40},
		{"expiry", Header{Type: TypePut, Kind: KindZSet, ExpireAt: -1}, "k", "", 40},
		{"all at once", Header{Type: TypeTombstone, Kind: KindStream, Chunked: true, Table: 9, Version: 2, ExpireAt: 77}, "kk", "vvvvvv", 40},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := encoded(c.h, c.key, c.value)
			if len(b) != c.length {
				t.Errorf("size %d, want %d", len(b), c.length)
			}
			checkEntry(t, PtrOf(b), &c.h, c.key, c.value)
		})
	}
}

// checkEntry compares the entry at p to what it was made of.
func checkEntry(t *testing.T, p Ptr, h *Header, key, value string) {
	t.Helper()
	got := Header{p.Type(), p.Kind(), p.Chunked(), p.Table(), p.Version(), p.ExpireAt()}
	if got != *h || p.HasExpiry() != (h.ExpireAt != 0) {
		t.Errorf("header %+v, want %+v", got, *h)
	}
	if string(p.Key()) != key {
		t.Errorf("key %q, want %q", p.Key(), key)
	}
	if string(p.Value()) != value || p.ValueLen() != len(value) {
		t.Errorf("value %q of %d bytes, want %q", p.Value(), p.ValueLen(), value)
	}
	if p.Length() != Size(len(key), len(value), h.ExpireAt != 0) || len(p.Bytes()) != p.Length() {
		t.Errorf("length %d, bytes %d", p.Length(), len(p.Bytes()))
	}
	if !p.CRCValid() {
		t.Errorf("CRC %#x is not that of the payload", p.CRC())
	}
}

func TestKeyAndValueLieBehindTheClientExtension(t *testing.T) {
	for _, expireAt := range []int64{0, 99} {
		// A client's id and sequence are 16 bytes in front of the key.
		b := encoded(Header{Type: TypePut, ExpireAt: expireAt}, "0123456789abcdefkey", "value")
		b[1] |= flagClient
		b[2] -= 16
		p := PtrOf(b)
		if string(p.Key()) != "key" || string(p.Value()) != "value" || p.ValueLen() != 5 || p.ExpireAt() != expireAt {
			t.Errorf("expiry %d: key %q, value %q, expires at %d", expireAt, p.Key(), p.Value(), p.ExpireAt())
		}
		if _, err := Check(b); err != nil {
			t.Errorf("expiry %d: %v", expireAt, err)
		}
	}
}

func TestKeyIsComparesTableAndKey(t *testing.T) {
	p := PtrOf(encoded(Header{Type: TypePut, Table: 4}, "the key", "the value"))
	for _, c := range []struct {
		table TableID
		key   string
		want  bool
	}{
		{4, "the key", true},
		{5, "the key", false},
		{4, "the kez", false},
		{4, "the ke", false},
		{4, "the keyt", false},
		{4, "", false},
	} {
		if got := p.KeyIs(c.table, []byte(c.key)); got != c.want {
			t.Errorf("table %d, key %q: %t", c.table, c.key, got)
		}
	}
}

func TestAtFindsTheEntryByItsOffset(t *testing.T) {
	b := threeBatches()
	for off, want := range Entries(b.seg) {
		if got := At(unsafe.Pointer(&b.seg[0]), off); got != want || got.IsNil() {
			t.Fatalf("entry at %d is %v, want %v", off, got.Pointer(), want.Pointer())
		}
	}
	if !(Ptr{}).IsNil() {
		t.Error("the zero Ptr is not nil")
	}
}

func TestVersionLockAdmitsOneAtATime(t *testing.T) {
	const workers, rounds = 4, 2000
	p := PtrOf(encoded(Header{Type: TypePut, Version: 1}, "k", "v"))
	inside, total := 0, 0
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range rounds {
				v := lockAnyVersion(p)
				inside++
				total += inside
				inside--
				p.UnlockVersion(v + 1)
			}
		})
	}
	wg.Wait()
	if total != workers*rounds || p.Version() != 1+workers*rounds {
		t.Fatalf("total %d, version %d after %d updates", total, p.Version(), workers*rounds)
	}
}

// lockAnyVersion locks p whatever its version, and returns that.
func lockAnyVersion(p Ptr) uint64 {
	for {
		if v := p.Version(); v&VersionLock == 0 && p.LockVersion(v) {
			return v
		}
	}
}

func TestLockVersionRefusesAnotherVersion(t *testing.T) {
	p := PtrOf(encoded(Header{Type: TypePut, Version: 7}, "k", "v"))
	if p.LockVersion(6) {
		t.Fatal("locked at a version it does not have")
	}
	if !p.LockVersion(7) || p.Version() != 7|VersionLock || p.LockVersion(7) {
		t.Fatalf("version %#x after the lock", p.Version())
	}
	p.UnlockVersion(8)
	p.SetVersion(p.Version() + 1)
	if p.Version() != 9 {
		t.Fatalf("version %d, want 9", p.Version())
	}
}

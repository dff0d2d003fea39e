package ostrobbolt

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"go.etcd.io/bbolt"
)

// follow applies what the tracker says was written to a copy.
func follow(t *testing.T, tr *tracker, l *local, replica []byte) {
	t.Helper()
	spans, err := tr.advance(l.bytes)
	if err != nil {
		t.Fatal(err)
	}
	ps := tr.now.pageBytes
	for _, s := range spans {
		copy(replica[s.first*ps:(s.first+s.pages)*ps], l.bytes[s.first*ps:])
	}
	at := tr.now.slot() * ps
	copy(replica[at:at+pageHeader+metaBytes], l.bytes[at:])
}

func TestPagesInUseAreAllThatACommitHasWritten(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for _, pageBytes := range []int{1024, 4096} {
		t.Run(fmt.Sprint(pageBytes), func(t *testing.T) { commits(t, rand.New(rand.NewPCG(seed, 0)), pageBytes) })
	}
}

func commits(t *testing.T, r *rand.Rand, pageBytes int) {
	const limit = 16 << 20
	l, err := newLocal(limit, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	db, err := l.open(pageBytes)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	replica := make([]byte, limit)
	copy(replica, l.bytes[:4*pageBytes])
	tr, err := newTracker(l.bytes, uint64(pageBytes))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]byte{}
	var reader *bbolt.Tx
	for range 300 {
		if r.IntN(10) == 0 {
			reader = switchReader(t, db, reader)
		}
		change(t, r, db, want)
		follow(t, tr, l, replica)
		// Every page in use is the same, so every reader sees the same.
		for _, s := range tr.used.minus(nil) {
			from, to := s.first*tr.now.pageBytes, (s.first+s.pages)*tr.now.pageBytes
			if !bytes.Equal(replica[from:to], l.bytes[from:to]) {
				t.Fatalf("after transaction %d, the copy differs in pages %v", tr.now.tx, s)
			}
		}
	}
	if reader != nil {
		_ = reader.Rollback()
	}
	compare(t, replica[:tr.now.bytes()], pageBytes, want)
}

// switchReader begins or ends a transaction that holds an old version.
func switchReader(t *testing.T, db *bbolt.DB, reader *bbolt.Tx) *bbolt.Tx {
	t.Helper()
	if reader != nil {
		_ = reader.Rollback()
		return nil
	}
	tx, err := db.Begin(false)
	if err != nil {
		t.Fatal(err)
	}
	return tx
}

// change commits a random transaction, after one that was rolled back sometimes.
func change(t *testing.T, r *rand.Rand, db *bbolt.DB, want map[string][]byte) {
	t.Helper()
	if r.IntN(5) == 0 {
		_ = db.Update(func(tx *bbolt.Tx) error {
			b, _ := tx.CreateBucketIfNotExists([]byte("b"))
			_ = b.Put([]byte("never"), make([]byte, 3000))
			return fmt.Errorf("not this one")
		})
	}
	err := db.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucketIfNotExists([]byte("b"))
		for range 1 + r.IntN(20) {
			key := fmt.Sprintf("key%05d", r.IntN(500))
			if r.IntN(4) == 0 {
				delete(want, key)
				if err == nil {
					err = b.Delete([]byte(key))
				}
				continue
			}
			want[key] = bytes.Repeat([]byte{byte(r.Uint32())}, r.IntN(5000))
			if err == nil {
				err = b.Put([]byte(key), want[key])
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// compare opens a copy as a database of its own.
func compare(t *testing.T, image []byte, pageBytes int, want map[string][]byte) {
	t.Helper()
	l, err := newLocal(len(image), image)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	db, err := l.open(pageBytes)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.View(func(tx *bbolt.Tx) error {
		for e := range tx.Check() {
			t.Error(e)
		}
		b, n := tx.Bucket([]byte("b")), 0
		err := b.ForEach(func(k, v []byte) error {
			n++
			if w, ok := want[string(k)]; !ok || !bytes.Equal(v, w) {
				t.Errorf("key %s has %d bytes, want %d (there: %v)", k, len(v), len(w), ok)
			}
			return nil
		})
		if n != len(want) {
			t.Errorf("%d keys, want %d", n, len(want))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestADatabaseThatOutgrowsItsReplicasIsRefusedAndGoesOn(t *testing.T) {
	l, err := newLocal(64<<10, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	db, err := l.open(4096)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	put := func(n int) error {
		return db.Update(func(tx *bbolt.Tx) error {
			b, err := tx.CreateBucketIfNotExists([]byte("b"))
			if err != nil {
				return err
			}
			return b.Put([]byte("k"), make([]byte, n))
		})
	}
	if err := put(80 << 10); err == nil {
		t.Fatal("80 KiB went into 64")
	}
	if err := put(8 << 10); err != nil {
		t.Fatal(err)
	}
	m, err := readMeta(l.bytes, 4096)
	if err != nil || m.bytes() > 64<<10 {
		t.Fatalf("the database has %d bytes of 65536: %v", m.bytes(), err)
	}
}

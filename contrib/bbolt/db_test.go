package ostrobbolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/ostrodb/ostro/cluster/group"
	"github.com/ostrodb/ostro/cluster/txn"
	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/inproc"
	"github.com/ostrodb/ostro/fabric/nic"
)

// scene is a front end and its replicas in this process.
type scene struct {
	t        testing.TB
	conf     txn.Config
	network  *inproc.Network
	client   fabric.Device
	mems     []*fabric.Memory
	replicas []*group.Replica
	readers  []*Reader

	g   *group.Group
	log *txn.Log
	db  *DB
}

func newScene(t testing.TB, memory int, c txn.Config) *scene {
	t.Helper()
	s := &scene{t: t, conf: c}
	s.network = must(inproc.New(nic.Config{}))(t)
	t.Cleanup(func() { check(t, s.network.Close()) })
	s.client = s.device("client")
	for i := range 3 {
		mem := must(fabric.NewMemory(memory))(t)
		t.Cleanup(func() { check(t, mem.Close()) })
		r := group.NewReplica(s.device(fmt.Sprintf("replica-%d", i)), mem)
		t.Cleanup(r.Leave)
		reader := NewReader(r, mem, 0)
		t.Cleanup(func() { check(t, reader.Close()) })
		s.mems, s.replicas, s.readers = append(s.mems, mem), append(s.replicas, r), append(s.readers, reader)
	}
	return s
}

func (s *scene) device(name string) fabric.Device {
	s.t.Helper()
	d := must(s.network.Device(name))(s.t)
	s.t.Cleanup(func() { check(s.t, d.Close()) })
	return d
}

// join makes a group of the replicas, and a log on it.
func (s *scene) join() {
	s.t.Helper()
	var members []group.Member
	for _, r := range s.replicas {
		r.Leave()
		members = append(members, r)
	}
	s.g = must(group.Open(s.ctx(), s.client, group.Spec{Window: 16}, members...))(s.t)
	s.log = must(txn.Initialize(s.ctx(), s.g, s.conf))(s.t)
}

// open opens the database as a new front end, from a replica.
func (s *scene) open(source int) {
	s.t.Helper()
	s.join()
	s.db = must(Open(s.ctx(), s.log, Options{Source: source}))(s.t)
}

// crash ends the front end: what was not on its way never will be.
func (s *scene) crash() {
	s.t.Helper()
	check(s.t, s.g.Close())
	check(s.t, s.log.Close())
	check(s.t, s.db.Close())
}

// ctx bounds what must happen.
func (s *scene) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	s.t.Cleanup(cancel)
	return ctx
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		check(t, err)
		return v
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newRand(t *testing.T) *rand.Rand {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

func bucket(tx *bbolt.Tx) *bbolt.Bucket { return tx.Bucket([]byte("b")) }

// put changes some keys at random, in one transaction.
func put(t *testing.T, r *rand.Rand, db *DB, want map[string]string) {
	t.Helper()
	check(t, db.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucketIfNotExists([]byte("b"))
		for range 1 + r.IntN(10) {
			key, value := fmt.Sprintf("key%03d", r.IntN(200)), fmt.Sprint(r.Uint64(), string(make([]byte, r.IntN(3000))))
			if r.IntN(5) == 0 {
				delete(want, key)
				err = errors.Join(err, b.Delete([]byte(key)))
				continue
			}
			want[key] = value
			err = errors.Join(err, b.Put([]byte(key), []byte(value)))
		}
		return err
	}))
}

// same compares a transaction's view with what should be there.
func same(tx *bbolt.Tx, want map[string]string) error {
	n := 0
	err := bucket(tx).ForEach(func(k, v []byte) error {
		n++
		if w, ok := want[string(k)]; !ok || w != string(v) {
			return fmt.Errorf("key %s has %d bytes, want %d (there: %v)", k, len(v), len(w), ok)
		}
		return nil
	})
	if err == nil && n != len(want) {
		err = fmt.Errorf("%d keys, want %d", n, len(want))
	}
	return err
}

func TestEveryReplicaReadsWhatWasCommitted(t *testing.T) {
	for _, background := range []bool{false, true} {
		t.Run(fmt.Sprint(background), func(t *testing.T) {
			r, want := newRand(t), map[string]string{}
			s := newScene(t, 8<<20, txn.Config{Background: background})
			s.open(0)
			for range 100 {
				put(t, r, s.db, want)
				check(t, s.readers[r.IntN(3)].View(s.ctx(), func(tx *bbolt.Tx) error { return same(tx, want) }))
			}
			check(t, s.db.View(func(tx *bbolt.Tx) error { return same(tx, want) }))
			s.crash()
		})
	}
}

func TestADatabaseOpensFromAnyReplicaAfterACrash(t *testing.T) {
	r, want := newRand(t), map[string]string{}
	s := newScene(t, 8<<20, txn.Config{Background: true})
	for i := range 6 {
		s.open(i % 3)
		if i > 0 {
			check(t, s.db.View(func(tx *bbolt.Tx) error {
				for err := range tx.Check() {
					t.Error(err)
				}
				return same(tx, want)
			}))
		}
		for range 20 + r.IntN(20) {
			put(t, r, s.db, want)
		}
		s.crash()
	}
}

func TestACommitLargerThanTheGroupsLogIsReplicatedWhole(t *testing.T) {
	s := newScene(t, 8<<20, txn.Config{Background: true, LogBytes: 64 << 10})
	s.open(0)
	want := map[string]string{}
	check(t, s.db.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucket([]byte("b"))
		for i := range 300 {
			key := fmt.Sprint(i)
			want[key] = string(bytes.Repeat([]byte{byte(i)}, 2000))
			err = errors.Join(err, b.Put([]byte(key), []byte(want[key])))
		}
		return err
	}))
	for _, reader := range s.readers {
		check(t, reader.View(s.ctx(), func(tx *bbolt.Tx) error { return same(tx, want) }))
	}
	s.crash()
}

// Two keys always have the same value. A reader that sees two has seen half a commit.
func TestReadersOnAllReplicasSeeWholeCommitsInOrder(t *testing.T) {
	s := newScene(t, 8<<20, txn.Config{Background: true})
	s.open(0)
	write := func(i int) {
		check(t, s.db.Update(func(tx *bbolt.Tx) error {
			b, err := tx.CreateBucketIfNotExists([]byte("b"))
			value := bytes.Repeat([]byte(fmt.Sprintf("%08d", i)), 300)
			return errors.Join(err, b.Put([]byte("first"), value), b.Put([]byte("second"), value))
		}))
	}
	write(0)
	var mu sync.Mutex
	acknowledged := 0
	ctx, stop := context.WithCancel(s.ctx())
	var all sync.WaitGroup
	for _, reader := range s.readers {
		all.Go(func() {
			for ctx.Err() == nil {
				mu.Lock()
				least := acknowledged
				mu.Unlock()
				err := reader.View(s.ctx(), func(tx *bbolt.Tx) error {
					one, two := bucket(tx).Get([]byte("first")), bucket(tx).Get([]byte("second"))
					if !bytes.Equal(one, two) || len(one) != 2400 || string(one) < fmt.Sprintf("%08d", least) {
						return fmt.Errorf("read %.8s and %.8s when %d was acknowledged", one, two, least)
					}
					return nil
				})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for i := range 150 {
		write(i + 1)
		mu.Lock()
		acknowledged = i + 1
		mu.Unlock()
	}
	stop()
	all.Wait()
	s.crash()
}

func TestACommitWithoutReplicasIsNotAcknowledged(t *testing.T) {
	s := newScene(t, 4<<20, txn.Config{Background: true})
	s.open(0)
	write := func() error {
		return s.db.Update(func(tx *bbolt.Tx) error {
			_, err := tx.CreateBucketIfNotExists([]byte("b"))
			return err
		})
	}
	check(t, write())
	check(t, s.g.Close())
	if err := write(); !errors.Is(err, ErrLost) {
		t.Fatalf("the commit ended with %v", err)
	}
	if err := s.db.View(func(*bbolt.Tx) error { return nil }); !errors.Is(err, ErrLost) {
		t.Fatalf("reading what nobody else has ended with %v", err)
	}
	check(t, s.log.Close())
	check(t, s.db.Close())
}

func TestAReaderWithoutADatabaseSaysSo(t *testing.T) {
	s := newScene(t, 4<<20, txn.Config{})
	s.join()
	if err := s.readers[0].View(s.ctx(), func(*bbolt.Tx) error { return nil }); !errors.Is(err, ErrNoDatabase) {
		t.Fatalf("it ended with %v", err)
	}
	check(t, s.log.Close())
	check(t, s.g.Close())
}

func TestAPanicOfAReaderReleasesTheLock(t *testing.T) {
	s := newScene(t, 4<<20, txn.Config{Background: true})
	s.open(0)
	func() {
		defer func() {
			if recover() != "mine" {
				t.Error("the panic was lost")
			}
		}()
		_ = s.readers[1].View(s.ctx(), func(*bbolt.Tx) error { panic("mine") })
	}()
	check(t, s.db.Update(func(*bbolt.Tx) error { return nil }))
	s.crash()
}

func TestADataAreaOfSomethingElseIsRefused(t *testing.T) {
	s := newScene(t, 4<<20, txn.Config{})
	s.join()
	check(t, s.log.Update(s.ctx(), nil, func(tx *txn.Tx) error {
		tx.Write(100, []byte("somebody's"))
		return nil
	}))
	if db, err := Open(s.ctx(), s.log, Options{}); err == nil {
		_ = db.Close()
		t.Fatal("it was opened, and overwritten")
	}
	check(t, s.log.Close())
	check(t, s.g.Close())
}

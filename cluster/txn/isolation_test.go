package txn_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/ostrodb/ostro/cluster/group"
	"github.com/ostrodb/ostro/cluster/txn"
)

// A bank has accounts of 8 bytes, far from each other, with a lock each. Money
// moves between them; there is always the same amount of it.
const (
	accounts = 6
	stride   = 700
	deposit  = 1000
)

func money(b []byte) int64   { return int64(binary.LittleEndian.Uint64(b)) }
func account(i int) uint64   { return uint64(i) * stride }
func amount(v int64) []byte  { return binary.LittleEndian.AppendUint64(nil, uint64(v)) }
func everyLock() (all []int) { return []int{0, 1, 2, 3, 4, 5} }
func errSum(who string, s int64) error {
	return fmt.Errorf("%s sees %d, not %d", who, s, accounts*deposit)
}

func fund(ctx context.Context, l *txn.Log) error {
	return l.Update(ctx, everyLock(), func(tx *txn.Tx) error {
		for i := range accounts {
			tx.Write(account(i), amount(deposit))
		}
		return nil
	})
}

// transfer moves money from one account to another.
func transfer(ctx context.Context, l *txn.Log, from, to int, v int64) error {
	return l.Update(ctx, []int{from, to}, func(tx *txn.Tx) error {
		var a, b [8]byte
		if err := errors.Join(tx.Read(account(from), a[:]), tx.Read(account(to), b[:])); err != nil {
			return err
		}
		tx.Write(account(from), amount(money(a[:])-v))
		tx.Write(account(to), amount(money(b[:])+v))
		return nil
	})
}

func audit(ctx context.Context, l *txn.Log, replica int) error {
	return l.View(ctx, replica, everyLock(), func(s *txn.Snapshot) error {
		sum, b := int64(0), make([]byte, 8)
		for i := range accounts {
			if err := s.Read(account(i), b); err != nil {
				return err
			}
			sum += money(b)
		}
		if sum != accounts*deposit {
			return errSum(fmt.Sprintf("the client at replica %d", replica), sum)
		}
		return nil
	})
}

func auditOwn(ctx context.Context, r *txn.Reader) error {
	return r.View(ctx, everyLock(), func(data []byte) error {
		sum := int64(0)
		for i := range accounts {
			sum += money(data[account(i):])
		}
		if sum != accounts*deposit {
			return errSum("a replica", sum)
		}
		return nil
	})
}

func TestReadersOfAllReplicasSeeWholeTransactions(t *testing.T) {
	for _, mode := range []group.Mode{group.Chain, group.NaiveEvents, group.FanOut} {
		for _, background := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, background %v", mode, background), func(t *testing.T) {
				spec := small
				spec.Mode = mode
				s := newScene(t, spec, txn.Config{LogBytes: 4096, Locks: accounts, Background: background}, 3)
				check(t, fund(s.ctx(), s.l))
				if mode == group.NaiveEvents || testing.Short() {
					s.trade(t, 2, 5) // Replicas' programs share two cores with all readers.
				} else {
					s.trade(t, 8, 25)
				}
				for i := range 3 {
					check(t, audit(s.ctx(), s.l, i))
				}
			})
		}
	}
}

// trade moves money from many goroutines at once while readers watch at every replica.
func (s *scene) trade(t *testing.T, traders, times int) {
	t.Helper()
	reading, cancel := context.WithCancel(s.ctx())
	var readers, writers sync.WaitGroup
	watch := func(audit func(ctx context.Context) error) {
		readers.Go(func() {
			for reading.Err() == nil {
				if err := audit(reading); err != nil && !errors.Is(err, context.Canceled) {
					t.Error(err)
					return
				}
			}
		})
	}
	for i := range s.replicas {
		own := txn.NewReader(s.replicas[i], s.mems[i])
		watch(func(ctx context.Context) error { return auditOwn(ctx, own) })
		watch(func(ctx context.Context) error { return audit(ctx, s.l, i) })
	}
	for range traders {
		writers.Go(func() {
			for range times {
				from := rand.IntN(accounts)
				if err := transfer(s.ctx(), s.l, from, (from+1+rand.IntN(accounts-1))%accounts, rand.Int64N(50)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	writers.Wait()
	cancel()
	readers.Wait()
}

func TestWhoReadsAfterAnUpdateSeesItOnEveryReplica(t *testing.T) {
	for _, background := range []bool{false, true} {
		s := newScene(t, small, txn.Config{LogBytes: 4096, Locks: 1, Background: background}, 3)
		for v := range int64(50) {
			check(t, s.l.Update(s.ctx(), []int{0}, func(tx *txn.Tx) error {
				tx.Write(0, amount(v))
				var b [8]byte
				if check(t, tx.Read(0, b[:])); money(b[:]) != v {
					t.Fatalf("a transaction reads %d of its own, not %d", money(b[:]), v)
				}
				return nil
			}))
			for i := range 3 {
				check(t, s.l.View(s.ctx(), i, []int{0}, func(p *txn.Snapshot) error {
					var b [8]byte
					if check(t, p.Read(0, b[:])); money(b[:]) != v {
						t.Fatalf("replica %d has %d, not %d", i, money(b[:]), v)
					}
					return nil
				}))
				check(t, txn.NewReader(s.replicas[i], s.mems[i]).View(s.ctx(), []int{0}, func(data []byte) error {
					if money(data) != v {
						t.Fatalf("replica %d reads %d of its own, not %d", i, money(data), v)
					}
					return nil
				}))
			}
		}
	}
}

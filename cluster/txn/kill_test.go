package txn_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/ostrodb/ostro/cluster/group"
	"github.com/ostrodb/ostro/cluster/txn"
	"github.com/ostrodb/ostro/fabric/shm"
)

var kills = flag.Int("kills", 6, "how often processes are killed")

const (
	workers     = 4
	counterAt   = accounts * stride // a counter for each worker behind the accounts
	counterStep = 64
)

var (
	threeNames = []string{"replica-0", "replica-1", "replica-2"}
	killConfig = txn.Config{LogBytes: 8192, Locks: accounts + workers}
)

// beClient recovers the bank, tells what it found at every replica, and then trades and
// tells of each acknowledged transfer, until something ends it.
func beClient(folder string) error {
	ctx := context.Background()
	dev, err := shm.Open(nicPath(folder), fmt.Sprintf("client-%d", os.Getpid()))
	if err != nil {
		return err
	}
	g, err := meetAll(ctx, dev, folder, group.Spec{Window: 32, MaxWrite: 512}, threeNames)
	if err != nil {
		return err
	}
	l, err := txn.Initialize(ctx, g, killConfig)
	if err != nil {
		return err
	}
	if err := report(ctx, l); err != nil {
		return err
	}
	var tell sync.Mutex
	failed := make(chan error)
	for w := range workers {
		go func() {
			for {
				if err := earn(ctx, l, w, func(n int64) {
					tell.Lock()
					defer tell.Unlock()
					fmt.Println("earned", w, n)
				}); err != nil {
					failed <- err
					return
				}
			}
		}()
	}
	if err := <-failed; !errors.Is(err, group.ErrBroken) {
		return err
	}
	fmt.Println("broken")
	return nil
}

// report checks the sum at every replica and tells of the counters. The first client funds the bank.
func report(ctx context.Context, l *txn.Log) error {
	for i := range l.Group().Replicas() {
		var sum int64
		var counts [workers]int64
		read := func(off uint64) (v int64, err error) {
			b := make([]byte, 8)
			err = l.Read(ctx, i, off, b)
			return money(b), err
		}
		for a := range accounts {
			v, err := read(account(a))
			if err != nil {
				return err
			}
			sum += v
		}
		for w := range counts {
			var err error
			if counts[w], err = read(counterAt + uint64(w)*counterStep); err != nil {
				return err
			}
		}
		fmt.Println("found", i, sum, counts[0], counts[1], counts[2], counts[3])
		if sum == 0 && i == l.Group().Replicas()-1 {
			if err := fund(ctx, l); err != nil {
				return err
			}
		}
	}
	fmt.Println("trading")
	return nil
}

// earn is a transfer and a worker's count of it, in one transaction.
func earn(ctx context.Context, l *txn.Log, w int, tell func(n int64)) error {
	from, v := rand.IntN(accounts), rand.Int64N(9)
	to, n := (from+1)%accounts, int64(0)
	counter := uint64(counterAt + w*counterStep)
	err := l.Update(ctx, []int{from, to, accounts + w}, func(tx *txn.Tx) error {
		var a, b, c [8]byte
		if err := errors.Join(tx.Read(account(from), a[:]), tx.Read(account(to), b[:]), tx.Read(counter, c[:])); err != nil {
			return err
		}
		n = money(c[:]) + 1
		tx.Write(account(from), amount(money(a[:])-v))
		tx.Write(account(to), amount(money(b[:])+v))
		tx.Write(counter, amount(n))
		return nil
	})
	if err == nil {
		tell(n)
	}
	return err
}

// town is the processes of one test, and what clients were told.
type town struct {
	*rand.Rand
	t        *testing.T
	folder   string
	nic      *process
	replicas [3]*process
	told     [workers]int64
	funded   bool
}

func TestNothingIsLostWhenProcessesAreKilled(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	n := *kills
	if testing.Short() {
		n = min(n, 3)
	}
	w := &town{Rand: rand.New(rand.NewPCG(seed, 0)), t: t, folder: t.TempDir()}
	for round := range n {
		w.revive()
		c := spawn(t, w.folder, "client")
		w.hear(c, round)
		w.strike(c)
		w.listen(c)
		c.kill()
	}
	w.revive()
	w.hear(spawn(t, w.folder, "client"), n)
	t.Logf("%d transfers were acknowledged", w.told[0]+w.told[1]+w.told[2]+w.told[3])
}

// revive starts everything that is dead.
func (w *town) revive() {
	if w.nic == nil {
		w.nic = spawn(w.t, w.folder, "nic")
	}
	for i, p := range w.replicas {
		if p == nil {
			w.replicas[i] = spawn(w.t, w.folder, threeNames[i])
		}
	}
}

// hear checks what a new client found.
func (w *town) hear(c *process, round int) {
	w.t.Helper()
	var first [workers]int64
	for i := range threeNames {
		var replica int
		var sum int64
		var n [workers]int64
		if !c.out.Scan() {
			w.t.Fatalf("round %d: the client found nothing", round)
		}
		if _, err := fmt.Sscan(c.out.Text(), new(string), &replica, &sum, &n[0], &n[1], &n[2], &n[3]); err != nil {
			w.t.Fatalf("round %d: the client says %q", round, c.out.Text())
		}
		if i == 0 {
			first = n
		}
		if want := int64(accounts * deposit); sum != want && (sum != 0 || w.funded) {
			w.t.Fatalf("round %d: replica %d has a sum of %d, not %d", round, replica, sum, want)
		}
		for k := range n {
			if n[k] != first[k] || n[k] < w.told[k] || n[k] > w.told[k]+1 {
				w.t.Fatalf("round %d: replica %d has %v, replica 0 %v, and %v were acknowledged", round, replica, n, first, w.told)
			}
		}
	}
	w.told = first
	for c.out.Scan() && c.out.Text() != "trading" {
		w.t.Fatalf("round %d: the client says %q", round, c.out.Text())
	}
	w.funded = true
}

// strike listens for a while and then kills some.
func (w *town) strike(c *process) {
	for range w.IntN(60) {
		if !w.one(c) {
			break
		}
	}
	switch w.IntN(4) {
	case 0:
		c.shoot()
	case 1:
		w.killReplica(w.IntN(3))
	case 2:
		c.shoot()
		w.killReplica(w.IntN(3))
		w.killReplica(w.IntN(3))
	case 3: // Everything.
		w.nic.shoot()
		w.nic = nil
		c.shoot()
		for i := range w.replicas {
			w.killReplica(i)
		}
	}
}

func (w *town) killReplica(i int) {
	if w.replicas[i] != nil {
		w.replicas[i].kill()
		w.replicas[i] = nil
	}
}

// one hears of one transfer.
func (w *town) one(c *process) bool {
	var who int
	var n int64
	if !c.out.Scan() {
		return false
	}
	if _, err := fmt.Sscan(c.out.Text(), new(string), &who, &n); err != nil {
		return c.out.Text() != "broken"
	}
	w.told[who] = n
	return true
}

// listen hears the client out: what it was told before it died counts.
func (w *town) listen(c *process) {
	for w.one(c) {
	}
}

func TestTransactionsGoOnWhileAllReplicasAreStopped(t *testing.T) {
	folder := t.TempDir()
	spawn(t, folder, "nic")
	var children []*process
	for _, name := range threeNames {
		children = append(children, spawn(t, folder, name))
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	dev := must(shm.Open(nicPath(folder), "client"))(t)
	defer dev.Close()
	g := must(meetAll(ctx, dev, folder, group.Spec{Window: 32, Slots: 1024, MaxWrite: 512, Patience: time.Minute}, threeNames))(t)
	defer g.Close()
	l := must(txn.Initialize(ctx, g, killConfig))(t)
	defer l.Close()
	for _, p := range children {
		p.stop()
	}
	check(t, fund(ctx, l))
	for range 30 {
		check(t, transfer(ctx, l, rand.IntN(3), 3+rand.IntN(3), 5))
	}
	for i, p := range children {
		check(t, audit(ctx, l, i))
		if s := p.state(); s != "T" {
			t.Fatalf("replica %d is in state %s", i, s)
		}
	}
}

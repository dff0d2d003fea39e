package crash

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync/atomic"

	"github.com/ostrodb/ostro/test/harness"
)

const flushedDB = "14"

// hours is a clock that ticks whenever somebody looks: it orders what clients
// send and receive.
type hours struct{ now atomic.Int64 }

func (h *hours) tick() int64 { return h.now.Add(1) }

// span is when something was sent and when it was answered; 0: never.
type span struct{ sent, answered int64 }

// before tells whether s was over when o had not yet begun.
func (s span) before(o span) bool { return s.answered != 0 && s.answered < o.sent }

// setter sets keys, each of them once, in a database that a flusher empties.
type setter struct {
	ledger
	halt
	rng   *rand.Rand
	name  string
	clock *hours
	next  int
	keys  map[string]span // since the last look, and what was there then
}

func newSetter(n int, rng *rand.Rand, clock *hours) *setter {
	return &setter{rng: rng, clock: clock, name: "setter" + strconv.Itoa(n) + ":", keys: map[string]span{}}
}

func (s *setter) run(c *harness.Conn, _ bool) error {
	s.open()
	if _, err := c.Do("SELECT", flushedDB); err != nil {
		return nil
	}
	for !s.halted() {
		broken, err := s.round(c, 1+s.rng.IntN(8))
		if broken || err != nil {
			return err
		}
	}
	return nil
}

func (s *setter) round(c *harness.Conn, batch int) (broken bool, err error) {
	first := s.next
	for range batch {
		k := s.name + strconv.Itoa(s.next)
		s.next++
		s.sent++
		s.keys[k] = span{sent: s.clock.tick()}
		_ = c.Send("SET", k, k)
	}
	if c.Flush() != nil {
		return true, nil
	}
	for n := first; n < s.next; n++ {
		v, err := c.Receive()
		if err != nil {
			return true, hang(err)
		}
		if harness.Text(v) != "OK" {
			return false, fmt.Errorf("SET was answered by %s", harness.Text(v))
		}
		k := s.name + strconv.Itoa(n)
		s.keys[k] = span{s.keys[k].sent, s.clock.tick()}
		s.acknowledged.Add(1)
	}
	return false, nil
}

// flusher empties the setters' database now and then.
type flusher struct {
	ledger
	halt
	rng     *rand.Rand
	clock   *hours
	setters []*setter
	flushes []span
}

func (f *flusher) run(c *harness.Conn, _ bool) error {
	f.open()
	if _, err := c.Do("SELECT", flushedDB); err != nil {
		return nil
	}
	for !f.halted() {
		for range f.rng.IntN(100) {
			if _, err := c.Do("GET", "nothing"); err != nil {
				return hang(err)
			}
		}
		f.flushes = append(f.flushes, span{sent: f.clock.tick()})
		f.sent++
		v, err := c.Do("FLUSHDB")
		if err != nil {
			return hang(err)
		}
		if harness.Text(v) != "OK" {
			return fmt.Errorf("FLUSHDB was answered by %s", harness.Text(v))
		}
		f.flushes[len(f.flushes)-1].answered = f.clock.tick()
		f.acknowledged.Add(1)
	}
	return nil
}

// verify looks whether a key is there that was flushed for sure, or none that
// was not.
func (f *flusher) verify(c *harness.Conn, logged bool) error {
	d, err := readAll(c, flushedDB)
	if err != nil {
		return err
	}
	if d.size != int64(len(d.keys)) {
		return fmt.Errorf("the flushed database: DBSIZE says %d, SCAN finds %d", d.size, len(d.keys))
	}
	f.forgetUndone(d)
	known := 0
	for _, s := range f.setters {
		for k, set := range s.keys {
			got, there := d.keys[k]
			switch {
			case there && got.value != k:
				return fmt.Errorf("%s holds %s", k, brief(got.value))
			case there && f.surelyGone(set):
				return fmt.Errorf("%s came back: it was set at %v, and flushed later (%d flushes)", k, set, len(f.flushes))
			case !there && logged && set.answered != 0 && f.surelyKept(set):
				return fmt.Errorf("%s is lost: it was set at %v, and no flush came later (flushes %v)", k, set, f.flushes)
			case there:
				known++
				s.keys[k] = span{0, -1}
			default:
				delete(s.keys, k)
			}
		}
		s.settled(s.sent)
	}
	if known != len(d.keys) {
		return fmt.Errorf("the flushed database has %d keys that were never written", len(d.keys)-known)
	}
	f.flushes = nil
	f.settled(f.sent)
	return nil
}

// forgetUndone forgets the last flush if it was not answered and a key of
// before is there: then it must not have taken any other key either.
func (f *flusher) forgetUndone(d dump) {
	last := len(f.flushes) - 1
	if last < 0 || f.flushes[last].answered != 0 {
		return
	}
	for _, s := range f.setters {
		for k, set := range s.keys {
			if _, there := d.keys[k]; there && set.before(f.flushes[last]) {
				f.flushes = f.flushes[:last]
				return
			}
		}
	}
}

// surelyGone tells whether a flush that was answered began after the set was.
func (f *flusher) surelyGone(set span) bool {
	for _, fl := range f.flushes {
		if fl.answered != 0 && set.before(fl) {
			return true
		}
	}
	return false
}

// surelyKept tells whether every flush was over before the set began.
func (f *flusher) surelyKept(set span) bool {
	for _, fl := range f.flushes {
		if !fl.before(set) {
			return false
		}
	}
	return true
}

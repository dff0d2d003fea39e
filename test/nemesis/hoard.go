package nemesis

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/ostrodb/ostro/test/harness"
)

// hoard keeps what other clients do not have, and changes it now and then: values of about a megabyte, a collection of
// thousands of keys in one slot, keys that expire far ahead, and keys that expire soon, of which none may be seen again.
type hoard struct {
	*Router
	ledger
	rng      *rand.Rand
	name     string
	complete atomic.Bool // all was written once
	passing  []passing
	gone     int // keys that were seen to have expired
	wrong    error
}

// passing is a key that was acknowledged to expire at this moment or before.
type passing struct {
	key  string
	ends time.Time
}

const (
	largeValues = 3
	largeBytes  = 1 << 20
	elements    = 2000 // of the collection
	atATime     = 50   // of them, written or read together
	lastings    = 20
	lastingDays = 30
	soon        = 500 // milliseconds, within which keys expire
	// belated is how long after its end a key may still be seen: machines that run tests halt at times.
	belated = time.Second
)

func newHoard(r *Router, rng *rand.Rand, name string) *hoard {
	return &hoard{Router: r, ledger: newLedger(), rng: rng, name: name}
}

func (h *hoard) large(n int) string   { return fmt.Sprintf("{%s.large.%d}", h.name, n) }
func (h *hoard) element(n int) string { return fmt.Sprintf("{%s.all}:%d", h.name, n) }
func (h *hoard) lasting(n int) string { return fmt.Sprintf("{%s.lasting.%d}", h.name, n) }

func largeContent(key string, v int) string { return filled(key, v, largeBytes-v*7919%(largeBytes/2)) }
func smallContent(key string, v int) string { return filled(key, v, v%50) }

func (h *hoard) run(stop <-chan struct{}) {
	defer h.Close()
	h.fill(stop)
	for h.Odd == "" && h.wrong == nil {
		select {
		case <-stop:
			return
		default:
		}
		h.step()
		time.Sleep(time.Duration(h.rng.IntN(5000)) * time.Microsecond) // Servers need the cores more.
	}
}

// fill writes all once, however often it has to try.
func (h *hoard) fill(stop <-chan struct{}) {
	var acts []func() int
	for n := range largeValues {
		acts = append(acts, func() int { return h.putLarge(n) })
	}
	for n := 0; n < elements; n += atATime {
		acts = append(acts, func() int { return h.putElements(n, 0) })
	}
	for n := range lastings {
		acts = append(acts, func() int { return h.putLasting(n) })
	}
	for i := 0; i < len(acts) && h.Odd == ""; {
		select {
		case <-stop:
			return
		default:
		}
		if acts[i]() > 0 {
			i++
		}
	}
	h.complete.Store(true)
}

// step changes something.
func (h *hoard) step() {
	switch n := h.rng.IntN(40); {
	case n == 0:
		h.putLarge(h.rng.IntN(largeValues))
	case n == 1:
		h.remove(h.large(h.rng.IntN(largeValues)))
	case n < 10:
		h.putLasting(h.rng.IntN(lastings))
	case n < 20:
		h.putPassing()
	case n < 30:
		h.lookBack()
	default:
		h.putElements(h.rng.IntN(elements/atATime)*atATime, 4)
	}
}

func (h *hoard) putLarge(n int) int {
	key, v := h.large(n), h.version()
	return h.put(&h.ledger, []put{{key, v, []string{"SET", key, largeContent(key, v)}}})
}

func (h *hoard) remove(key string) { h.put(&h.ledger, []put{{key, 0, []string{"DEL", key}}}) }

// putElements writes some of the collection, or deletes one of so many, if that is not 0.
func (h *hoard) putElements(from, deleted int) int {
	var all []put
	for n := from; n < from+atATime; n++ {
		key, v := h.element(n), h.version()
		if deleted > 0 && h.rng.IntN(deleted) == 0 {
			all = append(all, put{key, 0, []string{"DEL", key}})
			continue
		}
		all = append(all, put{key, v, []string{"SET", key, smallContent(key, v)}})
	}
	return h.put(&h.ledger, all)
}

func (h *hoard) putLasting(n int) int {
	key, v := h.lasting(n), h.version()
	return h.put(&h.ledger, []put{{key, v, []string{"SET", key, smallContent(key, v), "EX", strconv.Itoa(lastingDays * 86400)}}})
}

// putPassing writes a new key that soon expires. If its answer is lost nobody knows when that is.
func (h *hoard) putPassing() {
	v := h.version()
	key, lives := fmt.Sprintf("{%s.passing.%d}", h.name, v), 1+h.rng.IntN(soon)
	if _, fate := h.Try(key, []string{"SET", key, "x", "PX", strconv.Itoa(lives)}); fate == Answered {
		h.passing = append(h.passing, passing{key, time.Now().Add(time.Duration(lives) * time.Millisecond)})
	}
}

// lookBack looks for a key that has expired.
func (h *hoard) lookBack() {
	if len(h.passing) == 0 {
		return
	}
	p := h.passing[h.rng.IntN(len(h.passing))]
	if time.Since(p.ends) < belated {
		return
	}
	if replies, fate := h.Try(p.key, []string{"GET", p.key}); fate == Answered {
		h.note(p, harness.Text(replies[0]))
	}
}

// note notes what was found of a key that has expired.
func (h *hoard) note(p passing, value string) {
	h.gone++
	if value != nothing && h.wrong == nil {
		h.wrong = fmt.Errorf("%s is there %v after it expired", p.key, time.Since(p.ends))
	}
}

// verify reads everything, compares it with the ledger, and leaves nothing behind that is large.
func (h *hoard) verify() error {
	defer h.Close()
	for n := range largeValues {
		if err := h.verifyKeys(&h.ledger, []string{h.large(n)}, largeContent); err != nil {
			return err
		}
		h.remove(h.large(n))
	}
	for from := 0; from < elements; from += atATime {
		var keys []string
		for n := from; n < from+atATime; n++ {
			keys = append(keys, h.element(n))
		}
		if err := h.verifyKeys(&h.ledger, keys, smallContent); err != nil {
			return err
		}
	}
	for n := range lastings {
		if err := h.verifyLasting(h.lasting(n)); err != nil {
			return err
		}
	}
	return h.verifyPassing()
}

// verifyLasting finds a key with the end that it was given.
func (h *hoard) verifyLasting(key string) error {
	if err := h.verifyKeys(&h.ledger, []string{key}, smallContent); err != nil {
		return err
	}
	replies, err := h.ask(key, []string{"TTL", key})
	if err != nil {
		return err
	}
	const most = lastingDays * 86400
	left, err := strconv.Atoi(harness.Text(replies[0]))
	if h.entries[key].acknowledged > 0 && (err != nil || left > most || left < most-86400) {
		return fmt.Errorf("%s expires in %s s, not in %d or some less", key, harness.Text(replies[0]), most)
	}
	return nil
}

// verifyPassing finds none of the keys that expired.
func (h *hoard) verifyPassing() error {
	for _, p := range h.passing {
		time.Sleep(time.Until(p.ends.Add(belated))) // The clock is what is tested.
		replies, err := h.ask(p.key, []string{"GET", p.key})
		if err != nil {
			return err
		}
		h.note(p, harness.Text(replies[0]))
	}
	return h.wrong
}

// String tells what there was.
func (h *hoard) String() string {
	return fmt.Sprintf("a hoard of %d keys, %d were seen to have expired", len(h.entries), h.gone)
}

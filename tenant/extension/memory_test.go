package extension_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/ostrodb/ostro/tenant/extension"
	"github.com/ostrodb/ostro/tenant/extension/local"
)

// purse is an allowance of so many bytes.
type purse struct{ limit, used, held, most int64 }

var errSpent = errors.New("the purse is empty")

func (p *purse) Take(n int64) error {
	if p.used+n > p.limit {
		return errSpent
	}
	p.used += n
	return nil
}

func (p *purse) Give(n int64) { p.used -= n }

func (p *purse) Hold(n int64) error {
	if p.held+n > p.limit {
		return errSpent
	}
	p.held += n
	p.most = max(p.most, p.held)
	return nil
}

func (p *purse) Release(n int64) { p.held -= n }

func (p *purse) Scarce() bool { return p.used > p.limit/4*3 }

const page = 64 << 10

func TestGuestMemoryIsTakenFromAnAllowanceAndComesBack(t *testing.T) {
	money := &purse{limit: 1 << 30}
	p := newPool(t, "hostile", extension.PoolOptions{Memory: money})
	if call(t, p, local.New(nil), "logflood", "k"); money.used == 0 {
		t.Fatal("an instance has memory that nobody paid for")
	}
	p.Close()
	if money.used != 0 {
		t.Fatalf("%d bytes did not come back", money.used)
	}
}

func TestWhatACallKeepsIsAskedForAndComesBack(t *testing.T) {
	for fn, least := range map[string]int64{"giantresponse": 8 << 20, "writeflood": 1 << 20} {
		money := &purse{limit: 1 << 30}
		p := newPool(t, "hostile", extension.PoolOptions{Memory: money})
		if _, err := invoke(p, local.New(nil), fn, "k"); err == nil {
			t.Errorf("%s has ended well", fn)
		}
		if money.most < least || money.held != 0 {
			t.Errorf("%s was given %d bytes, of which %d are left", fn, money.most, money.held)
		}
		money.limit = money.used + 4<<20
		if _, err := invoke(p, local.New(nil), "giantresponse", "k"); err == nil || !strings.Contains(err.Error(), "keeps too much: the purse is empty") {
			t.Errorf("with little left: %v", err)
		}
	}
}

func TestAGuestThatHoardsGetsNoMoreThanTheAllowanceAndIsNotKept(t *testing.T) {
	m := compile(t, "hostile")
	money := &purse{limit: int64(m.About().MemoryPages+8) * page}
	p := poolOf(t, m, extension.DefaultLimits(), extension.PoolOptions{Memory: money})
	if got := call(t, p, local.New(nil), "hoard", "k"); got != u32(8) {
		t.Fatalf("it got %q more pages, want 8", got)
	}
	if n := p.Metrics().Idle; n != 0 || money.used != 0 {
		t.Fatalf("%d instances are kept with %d bytes although memory is scarce", n, money.used)
	}
}

func TestAnInstanceThatCannotBePaidForSaysWhy(t *testing.T) {
	money := &purse{limit: 1}
	p := newPool(t, "hostile", extension.PoolOptions{Memory: money})
	_, err := invoke(p, local.New(nil), "logflood", "k")
	if !errors.Is(err, errSpent) || strings.Contains(err.Error(), "runtime error") {
		t.Fatalf("error %v, want %v", err, errSpent)
	}
	if money.used != 0 || p.Metrics().Instances != 0 {
		t.Fatalf("%d bytes are taken by %d instances", money.used, p.Metrics().Instances)
	}
}

// counting is an allowance that says no, and counts how often.
type counting struct {
	purse
	asked int
}

func (c *counting) Take(n int64) error {
	c.asked++
	return c.purse.Take(n)
}

func TestAGuestThatAsksForMemoryAgainAndAgainIsHeardOnce(t *testing.T) {
	m := function(0x03, 0x40, 0x41, 1, 0x40, 0, 0x1a, 0x0c, 0, 0x0b) // loop: i32.const 1, memory.grow, drop, br 0
	money := &counting{purse: purse{limit: 2 * page}}
	p := poolOf(t, compiled(t, m), extension.DefaultLimits(), extension.PoolOptions{Memory: money})
	for range 2 {
		if _, err := attempt(t, p, trial("f", "k", local.New(nil))); err != extension.ErrAbandoned {
			t.Fatal(err)
		}
	}
	if money.asked > 8 {
		t.Fatalf("two calls have asked for memory %d times", money.asked)
	}
}

package extension

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// stage is where scripts run: an instance of the module as it is, metered, and one as it came.
type stage struct {
	pools  [2]*Pool
	leases [2]Lease
	purse  purse
	used   [2]pages        // of the instances, by calls so far
	into   [keptBytes]byte // what responses are appended to
	chance *rand.ChaCha8
	ref    machine
	// thorough is to look at all memory, and not at what a script can have to do with only: most of the time would go into that.
	thorough bool
	seen     seen

	scripts, calls, hostCalls, yields int64
}

// Instances of a stage.
const (
	metered = iota
	plain
)

// pristine is what memory is before the first call.
var pristine = firstMemory()

func newStage(tb testing.TB) *stage {
	s := &stage{chance: rand.NewChaCha8(modelSeed), ref: machine{chance: rand.NewChaCha8(modelSeed)}}
	limits := DefaultLimits()
	limits.Module.MemoryPages = pagesMost
	for which := range s.pools {
		rt, err := NewRuntime(context.Background(), Options{Unmetered: which == plain})
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { _ = rt.Close(context.Background()) })
		m, err := rt.Compile(context.Background(), interpreter(), limits)
		if err != nil {
			tb.Fatal(err)
		}
		m.interrupted.Store(true) // So that instances leave an image, and can begin anew.
		clock := &Clock{Source: func() time.Time { return modelTime }}
		if s.pools[which], err = m.NewPool(limits, PoolOptions{Memory: &s.purse, Clock: clock}); err != nil {
			tb.Fatal(err)
		}
	}
	return s
}

// restore makes memory pristine, of which some may have been written.
func restore(mem []byte, used *pages) []byte {
	mem = mem[:pageBytes]
	for i, yes := range used {
		if yes {
			copy(mem[i*partBytes:][:partBytes], pristine[i*partBytes:])
		}
	}
	*used = pages{}
	return mem
}

// anew has an instance with pristine memory. The host's way to it takes longer than a script.
func (s *stage) anew(t testing.TB, which int, hostsWay bool) {
	p, l := s.pools[which], &s.leases[which]
	switch used := &s.used[which]; {
	case l.in == nil:
	case len(l.in.mem.buf) > pageBytes || hostsWay && !l.in.reset():
		p.drop(l.in)
		l.in = nil
	case hostsWay:
	default:
		if s.thorough {
			used.add(0, pageBytes)
		}
		restore(l.in.mem.buf, used)
	}
	s.used[which] = pages{}
	s.ready(t, which)
}

// ready has an instance, which a tenant without memory, and a trial, would not get.
func (s *stage) ready(t testing.TB, which int) {
	p, l := s.pools[which], &s.leases[which]
	if l.in != nil {
		return
	}
	if err := l.take(p, &Invocation{}); err != nil {
		t.Fatal(err)
	}
	l.in.chance = s.chance
}

// foresee has the host put the first key's value, or not, whatever it has learnt.
func (h *habits) foresee(first bool) {
	h.vain.Store(0)
	h.reads.Store(0)
	if first {
		h.reads.Store(^uint64(0))
	}
}

// outcome is all that can be seen of a call.
type outcome struct {
	ending
	text     string // of the error
	response []byte
	changes  Changes
	lines    []byte
	lost     int
	calls    int64 // of the host
	reads    int
	writes   int
	fuel     int64
}

// run is one call of a script.
type run struct {
	how    how
	script []byte
	fuel   int64
	slice  int64
	turns  Turns
	want   *machine // whose memory it must have in the end; nil: that is not known
}

// call executes a script in an instance.
func (s *stage) call(t testing.TB, which int, r run) (o outcome) {
	store := r.how.store(t)
	inv := &Invocation{
		Function: "script", Keys: scriptKeys, Args: [][]byte{r.script}, Store: store, Ahead: store, Placed: store, Prompt: store,
		Into: s.into[:copy(s.into[:], modelHead)], Log: func(level int, line []byte) { o.lines = appendLine(o.lines, level, line) },
		ReadOnly: r.how.has(forReading), Trial: r.how.has(waits), Turns: r.turns, Fuel: r.fuel,
	}
	p, l := s.pools[which], &s.leases[which]
	p.limits = r.how.limits()
	p.limits.Slice = r.slice
	s.ready(t, which)
	s.chance.Seed(modelSeed)
	p.module.habits.foresee(r.how.has(expected))
	s.purse.closed = r.how.has(poor)
	defer func() { s.purse.closed = false }()
	if err := l.Prepare(p, inv); err != nil {
		t.Fatal(err)
	}
	err := l.Enter()
	s.used[which].addAll(&s.ref.used)
	if r.want != nil {
		s.compareMemory(t, l.in.mem.buf, r.want)
	}
	var res Result
	err = l.Finish(err, &res)
	if wrong := store.verdict(&res, err, inv.Trial); wrong != nil {
		t.Errorf("%v", wrong)
	}
	if s.purse.held != 0 {
		t.Errorf("%d bytes are still held", s.purse.held)
	}
	s.calls++
	s.hostCalls += res.HostCalls
	o.take(&res, err, store)
	if o.ended() {
		s.used[which] = pages{} // It has begun anew.
	}
	return o
}

func (o *outcome) take(res *Result, err error, store *model) {
	o.response, o.changes, o.lost, o.calls, o.fuel = res.Response, store.last, res.LogsLost, res.HostCalls, res.Fuel
	o.reads, o.writes = res.Reads, res.Writes
	var e *CallError
	switch {
	case err == ErrAbandoned:
		o.abandoned = true
	case errors.As(err, &e):
		o.kind, o.code = e.Kind, e.Code
	}
	if err != nil {
		o.text = err.Error()
	}
}

func (s *stage) compareMemory(t testing.TB, got []byte, m *machine) {
	if len(got) != len(m.mem) {
		t.Errorf("memory has %d bytes, not %d", len(got), len(m.mem))
		return
	}
	for at := 0; at < len(got); at += partBytes {
		if !s.thorough && at < pageBytes && !m.used[at/partBytes] {
			continue
		}
		if a, b := got[at:at+partBytes], m.mem[at:at+partBytes]; !bytes.Equal(a, b) {
			i := 0
			for a[i] == b[i] {
				i++
			}
			t.Errorf("memory at %d is %x..., not %x", at+i, a[i:min(i+16, partBytes)], b[i:min(i+16, partBytes)])
			return
		}
	}
}

// compare finds what a call has done that it should not have, or not done that it should have.
func (o *outcome) compare(t testing.TB, e ending, m *machine) {
	t.Helper()
	if o.ending != e {
		t.Errorf("it ended with %+v (%s), not %+v", o.ending, o.text, e)
		return
	}
	lines := m.lines
	if e.abandoned {
		lines = nil
	}
	if !bytes.Equal(o.lines, lines) {
		t.Errorf("the log has %q, not %q", o.lines, lines)
	}
	if e != (ending{}) {
		return
	}
	if !bytes.Equal(o.response, m.response) {
		t.Errorf("the response is %q, not %q", o.response, m.response)
	}
	if o.calls != m.hostCalls || o.lost != m.lost || o.reads != len(m.reads) || o.writes != len(m.writes) {
		t.Errorf("%d calls, %d lines lost, %d reads, %d writes, not %d, %d, %d, %d", o.calls, o.lost, o.reads, o.writes, m.hostCalls, m.lost, len(m.reads), len(m.writes))
	}
	if len(m.writes) == 0 && len(m.reads) < 2 {
		return
	}
	if !slices.EqualFunc(o.changes.Reads, m.reads, sameRead) || !slices.EqualFunc(o.changes.Writes, m.writes, sameWrite) {
		t.Errorf("it committed %+v, not reads %+v and writes %+v", o.changes, m.reads, m.writes)
	}
	if !bytes.Equal(o.changes.Response, m.response[len(modelHead):]) {
		t.Errorf("it committed with response %q, not %q", o.changes.Response, m.response[len(modelHead):])
	}
}

func sameRead(a, b Read) bool {
	return a.Table == b.Table && bytes.Equal(a.Key, b.Key) && a.Version == b.Version
}

func sameWrite(a, b Write) bool {
	return a.Table == b.Table && bytes.Equal(a.Key, b.Key) && bytes.Equal(a.Value, b.Value) && a.TTL == b.TTL && a.Delete == b.Delete
}

// prepare makes the reference ready for a script.
func (s *stage) prepare(h how, code []byte) *machine {
	m := &s.ref
	inv := &Invocation{Keys: scriptKeys, Args: [][]byte{code}}
	m.setting, m.seen, m.args = h.setting(), &s.seen, make([]byte, argsLen(inv))
	putSomeArgs(m.args, inv)
	if m.mem == nil {
		m.mem = slices.Clone(pristine)
	}
	m.mem = restore(m.mem, &m.used)
	return m
}

// begin is before each call: the same store, the same chance.
func (m *machine) begin(t testing.TB, h how) ending {
	m.store = h.store(t)
	m.chance.Seed(modelSeed)
	return m.run()
}

// blame knows whether a script is to blame.
type blame struct {
	testing.TB
	failed bool
}

func (b *blame) Errorf(format string, args ...any) {
	b.failed = true
	b.Helper()
	b.TB.Errorf(format, args...)
}

func (b *blame) tell(h how, code []byte) {
	if b.failed {
		b.Logf("in surroundings %#x: %q%s", uint16(h), code, script(code))
	}
}

// play executes a script in every way, and compares.
func (s *stage) play(t testing.TB, h how, code []byte) {
	t.Helper()
	code = code[:min(len(code), scriptMost)]
	b := &blame{TB: t}
	defer b.tell(h, code)
	s.scripts++
	m := s.prepare(h, code)
	e := m.begin(b, h)
	whole := run{how: h, script: code, fuel: enoughFuel, slice: 1 << 30, want: m}
	s.anew(b, metered, false)
	got := s.call(b, metered, whole)
	got.compare(b, e, m)
	s.anew(b, plain, false)
	bare := s.call(b, plain, whole)
	bare.compare(b, e, m)
	if bare.text != got.text {
		t.Errorf("without metering it says %q, with it %q", bare.text, got.text)
	}
	s.interrupt(b, whole, e, got)
	if h.has(again) {
		s.repeat(b, h, code)
	}
}

// interrupt executes it in slices, with others in between, and with fuel that may not suffice.
func (s *stage) interrupt(t testing.TB, r run, e ending, before outcome) {
	t.Helper()
	r.slice = r.how.slice()
	var q queue
	if !r.how.has(waits) {
		r.turns = &q
	}
	m := r.want
	switch r.how.end() {
	case byExactFuel:
		r.fuel = before.fuel
	case byLittleFuel:
		r.fuel, r.want = max(1, r.how.part(min(before.fuel, 20_000))), nil
	case byOthers:
		q.last, r.want = int(r.how.part(32)), nil
	}
	if e != (ending{}) && r.how.end() == byExactFuel {
		r.fuel = enoughFuel // What one that failed has used is not told.
	}
	s.anew(t, metered, false)
	got := s.call(t, metered, r)
	s.yields += int64(q.yields)
	switch {
	case r.how.end() == byLittleFuel && (got.kind == OutOfFuel || got.abandoned && r.how.has(waits)):
	case r.how.end() == byOthers && got.kind == Killed && q.yields >= q.last:
	default:
		got.compare(t, e, m)
		if e == (ending{}) && got.fuel != before.fuel {
			t.Errorf("it used %d units of fuel in slices, and %d without", got.fuel, before.fuel)
		}
	}
}

// repeat calls it twice, and the second call finds memory as the first one has left it.
func (s *stage) repeat(t testing.TB, h how, code []byte) {
	t.Helper()
	s.anew(t, metered, true)
	m := s.prepare(h, code)
	for range 2 {
		e := m.begin(t, h)
		got := s.call(t, metered, run{how: h, script: code, fuel: enoughFuel, slice: 1 << 30, want: m})
		got.compare(t, e, m)
		if e.ended() {
			m.mem = restore(m.mem, &m.used)
		}
	}
}

package replica_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ostrodb/ostro/cluster/replica"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/internal/await"
)

// dead is a log of four segments whose primary died: 1 and 2 closed, 3 and 4 being
// written by two heads in turn. b1 got less of 4 than b2, and b3 has only 1.
func dead(t *testing.T) (*scene, []*text) {
	t.Helper()
	s := newScene(t, 3)
	one, two := closedText(logID, 1, 1), closedText(logID, 2, 11)
	three, four := newText(logID, 3), newText(logID, 4)
	for n := record.BatchID(21); n <= 30; n++ {
		x := three
		if n%2 == 0 {
			x = four
		}
		x.batch(n, 4, false)
	}
	r := roster(1, 20, 1, 2, 3, 4)
	for _, to := range []view.NodeID{"b1", "b2"} {
		check(t, s.put(to, two, r))
		l := s.connect(to, logID)
		s.fill(l, three, three.end, r)
		n := four.end
		if to == "b1" {
			n = four.ends[len(four.ends)-2] + 13
		}
		s.fill(l, four, n, r)
	}
	check(t, s.put("b1", one, r))
	check(t, s.put("b3", one, r))
	return s, []*text{one, two, three, four}
}

func (s *scene) find(nodes ...view.NodeID) *replica.Findings {
	s.t.Helper()
	return must(replica.Survey(s.ctx(), s.pool, nodes, logID, true))(s.t)
}

// gather fetches and returns the keys, sorted.
func gather(t *testing.T, s *scene, f *replica.Findings, o replica.FetchOptions) ([]string, error) {
	t.Helper()
	var mu sync.Mutex
	var keys []string
	o.Sink = func(_ int, entries []byte) error {
		mu.Lock()
		defer mu.Unlock()
		for _, p := range record.Entries(entries) {
			if _, err := record.Check(p.Bytes()); err != nil {
				t.Error(err)
			}
			keys = append(keys, string(p.Key()))
		}
		return nil
	}
	err := f.Fetch(s.ctx(), o)
	slices.Sort(keys)
	return slices.Compact(keys), err
}

// written are the keys of batches up to a cut that lie in ranges, sorted.
func written(rs view.Ranges, cut record.BatchID, texts ...*text) (keys []string) {
	for _, x := range texts {
		for _, p := range record.Entries(x.bytes[:x.end]) {
			if p.Type() != record.TypePut && p.Type() != record.TypeTombstone {
				continue
			}
			if record.BatchID(p.Version()>>8) <= cut && inside(rs, record.PlaceOf(0, p.Key())) {
				keys = append(keys, string(p.Key()))
			}
		}
	}
	slices.Sort(keys)
	return keys
}

func inside(rs view.Ranges, p record.Place) bool {
	return slices.ContainsFunc(rs, func(r view.Range) bool { return r.Contains(p) })
}

var (
	lower = view.Ranges{{First: 0, Last: 1<<63 - 1}}
	upper = view.Ranges{{First: 1 << 63, Last: 1<<64 - 1}}
	whole = view.Ranges{view.Whole}
)

func TestHeirsGetAllEntriesUpToTheCutEachOfItsRange(t *testing.T) {
	s, texts := dead(t)
	f := s.find(s.nodes()...)
	cut := must(f.Cut())(t)
	if cut != 30 {
		t.Fatalf("cut %d, want 30: b2 has all", cut)
	}
	for _, at := range []record.BatchID{cut, 27, 25, 12} {
		for _, rs := range []view.Ranges{lower, upper, whole} {
			got, err := gather(t, s, f, replica.FetchOptions{Ranges: rs, Cut: at})
			if want := written(rs, at, texts...); err != nil || !slices.Equal(got, want) || len(want) == 0 {
				t.Fatalf("cut %d: %d keys, want %d; %v", at, len(got), len(want), err)
			}
		}
	}
}

func TestTheCutStopsWhereABatchIsMissing(t *testing.T) {
	s, texts := dead(t)
	f := s.find("b1", "b3") // The last batch of segment 4 was 30; 29 is in segment 3.
	cut := must(f.Cut())(t)
	if cut != 29 {
		t.Fatalf("cut %d, want 29", cut)
	}
	got, err := gather(t, s, f, replica.FetchOptions{Ranges: whole, Cut: cut})
	if want := written(whole, cut, texts...); err != nil || !slices.Equal(got, want) {
		t.Fatalf("%d keys, want %d; %v", len(got), len(want), err)
	}
}

func TestMissingSegmentsAreNamed(t *testing.T) {
	s, _ := dead(t)
	f := s.find("b3")
	if got := f.Missing(); !slices.Equal(got, []record.SegmentID{2, 3, 4}) {
		t.Fatalf("missing %v", got)
	}
	var lost *replica.LostError
	if _, err := f.Cut(); !errors.As(err, &lost) || len(lost.Segments) != 3 {
		t.Fatalf("got %v", err)
	}
	if _, err := gather(t, s, f, replica.FetchOptions{Ranges: whole, Cut: 30}); !errors.As(err, &lost) || !strings.Contains(err.Error(), "2, 3, 4") {
		t.Fatalf("got %v", err)
	}
	keys, err := gather(t, s, f, replica.FetchOptions{Ranges: whole, Cut: f.CutWithout(), Without: f.Missing()})
	if err != nil || len(keys) == 0 {
		t.Fatalf("%d keys, %v", len(keys), err)
	}
}

func TestOnlyWhatWasGivenUpMayBeMissing(t *testing.T) {
	s, _ := dead(t)
	f := s.find("b2") // Nobody else has segment 1.
	o := replica.FetchOptions{Ranges: whole, Cut: 30, Without: f.Missing()}
	if !slices.Equal(o.Without, []record.SegmentID{1}) {
		t.Fatalf("missing %v", o.Without)
	}
	if _, err := gather(t, s, f, o); err != nil {
		t.Fatal(err)
	}
	damage(t, s.hosts["b2"], 2)
	var lost *replica.LostError
	if _, err := gather(t, s, f, o); !errors.As(err, &lost) || !slices.Equal(lost.Segments, []record.SegmentID{2}) {
		t.Fatalf("got %v", err)
	}
}

func TestAPlanIsFollowedOnlyByWhoFindsAllOfIt(t *testing.T) {
	s, _ := dead(t)
	f := s.find(s.nodes()...)
	roster, cut := f.Roster.Number, must(f.Cut())(t)
	if !f.Covers(roster, cut, nil) {
		t.Fatal("who made the plan cannot follow it")
	}
	if f := s.find("b2"); f.Covers(roster, cut, nil) || !f.Covers(roster, cut, []record.SegmentID{1}) {
		t.Fatal("segment 1 is missing, and only that")
	}
	if f := s.find("b1", "b3"); f.Covers(roster, cut, nil) || !f.Covers(roster, cut-1, nil) {
		t.Fatal("batch 30 is missing, and only that")
	}
	if f.Covers(roster+1, cut, nil) {
		t.Fatal("a later roster is missing")
	}
}

func TestASegmentThatWasWrittenToSinceItWasOpenedIsMissed(t *testing.T) {
	s := newScene(t, 2)
	r := roster(1, 0, 1)
	r.Opening = replica.RunsOf[record.SegmentID](1)
	x := newText(logID, 1)
	x.batch(1, 4, false)
	s.fill(s.connect("b1", logID), x, x.end, r)
	check(t, s.call("b2", replica.MethodRoster, replica.RosterRequest{Log: logID, Roster: r}, nil, nil))
	cut := must(s.find("b1", "b2").Cut())(t)
	if f := s.find("b2"); cut != 1 || len(f.Missing()) > 0 || f.Covers(1, cut, nil) {
		t.Fatalf("cut %d, missing %v: b2 has nothing of batch 1", cut, f.Missing())
	}
}

func TestASegmentThatWasNeverOpenAnywhereIsNotMissed(t *testing.T) {
	s, _ := dead(t)
	r := roster(9, 20, 1, 2, 3, 4, 5)
	r.Opening = replica.RunsOf[record.SegmentID](5)
	check(t, s.call("b3", replica.MethodRoster, replica.RosterRequest{Log: logID, Roster: r}, nil, nil))
	f := s.find(s.nodes()...)
	if f.Roster.Number != 9 || len(f.Missing()) > 0 {
		t.Fatalf("roster %d, missing %v", f.Roster.Number, f.Missing())
	}
}

func TestStaleCopiesDoNotCount(t *testing.T) {
	s, _ := dead(t)
	// The primary gave b1 up: b2 alone was raised, and etcd says so.
	raise := replica.RaiseRequest{Log: logID, Version: 2, Segments: []record.SegmentID{3, 4}}
	check(t, s.call("b2", replica.MethodRaise, raise, nil, nil))
	f := s.find(s.nodes()...)
	f.Version = 2
	if cut, err := f.Cut(); err != nil || cut != 30 {
		t.Fatalf("cut %d, %v", cut, err)
	}
	f = s.find("b1", "b3")
	f.Version = 2
	if got := f.Missing(); !slices.Equal(got, []record.SegmentID{3, 4}) {
		t.Fatalf("missing %v", got)
	}
}

func TestACorruptCopyIsReplacedByAnother(t *testing.T) {
	s, texts := dead(t)
	damage(t, s.hosts["b1"], 1)
	damage(t, s.hosts["b2"], 2)
	f := s.find(s.nodes()...)
	for range 4 { // Whoever is asked first.
		got, err := gather(t, s, f, replica.FetchOptions{Ranges: whole, Cut: 30})
		if want := written(whole, 30, texts...); err != nil || !slices.Equal(got, want) {
			t.Fatalf("%d keys, want %d; %v", len(got), len(want), err)
		}
	}
	damage(t, s.hosts["b3"], 1)
	var lost *replica.LostError
	if _, err := gather(t, s, f, replica.FetchOptions{Ranges: whole, Cut: 30}); !errors.As(err, &lost) || !errors.Is(err, replica.ErrCorrupt) || len(lost.Segments) != 1 || lost.Segments[0] != 1 {
		t.Fatalf("got %v", err)
	}
}

func TestADamagedCopyTakesNothingFromAWholeOne(t *testing.T) {
	s, _ := dead(t)
	noticed := func() (f *replica.Findings, err error) {
		for range 4 { // Whoever is asked first.
			if _, err = gather(t, s, s.find(s.nodes()...), replica.FetchOptions{Ranges: whole, Cut: 30}); err != nil {
				break
			}
		}
		return s.find(s.nodes()...), err
	}
	damage(t, s.hosts["b1"], 1)
	if f, err := noticed(); err != nil || f.Damaged() {
		t.Fatalf("another node has the whole of what is damaged at one: %v, %v", f.Damaged(), err)
	}
	damage(t, s.hosts["b3"], 1)
	if f, err := noticed(); err == nil || !f.Damaged() {
		t.Fatalf("nobody has what is damaged at both: %v, %v", f.Damaged(), err)
	}
}

// damage flips a bit in the middle of a replica's file, when nobody has it in memory.
func damage(t *testing.T, h *host, id record.SegmentID) {
	t.Helper()
	await.True(t, "nothing is kept in memory", func() bool { return h.Shelved() == 0 })
	path := replicaPath(h, id)
	b := must(os.ReadFile(path))(t)
	b[len(b)/2] ^= 4
	check(t, os.WriteFile(path, b, 0o600))
}

func replicaPath(h *host, id record.SegmentID) string {
	return filepath.Join(h.dir, "replicas", replica.NameOf(logID, id))
}

func TestASourceThatDiesIsReplacedByAnother(t *testing.T) {
	s, texts := dead(t)
	f := s.find(s.nodes()...)
	var once sync.Once
	var keys []string
	var mu sync.Mutex
	err := f.Fetch(s.ctx(), replica.FetchOptions{Ranges: whole, Cut: 29, Workers: 1, Sink: func(_ int, entries []byte) error {
		once.Do(s.hosts["b2"].stop)
		mu.Lock()
		defer mu.Unlock()
		for _, p := range record.Entries(entries) {
			keys = append(keys, string(p.Key()))
		}
		return nil
	}})
	slices.Sort(keys)
	if want := written(whole, 29, texts...); err != nil || !slices.Equal(slices.Compact(keys), want) {
		t.Fatalf("%d keys, want %d; %v", len(keys), len(want), err)
	}
}

func TestWhoLooksForAWriteFindsWhichCopiesWereRead(t *testing.T) {
	s, _ := dead(t)
	f := s.find(s.nodes()...)
	for _, all := range []bool{false, true} {
		var said strings.Builder
		o := &slog.HandlerOptions{}
		if all {
			o.Level = slog.LevelDebug
		}
		f.Report = slog.New(slog.NewTextHandler(&said, o))
		_, err := gather(t, s, f, replica.FetchOptions{Ranges: whole, Cut: 30, Workers: 1})
		check(t, err)
		for segment, want := range map[int]string{
			1: "copies=\"b1: closed, version 1, ", 2: "copies=\"b1: closed, version 1, ", 3: "version=1 ",
			4: "from=b2 version=1 end=", // b1 has less of it.
		} {
			found := slices.ContainsFunc(strings.Split(said.String(), "\n"), func(line string) bool {
				return strings.Contains(line, fmt.Sprintf(" segment=%d ", segment)) && strings.Contains(line, want)
			})
			if open := segment > 2; found != (open || all) {
				t.Errorf("segment %d, debug %v: told %v:\n%s", segment, all, found, said.String())
			}
		}
	}
}

func TestTheErrorOfASinkEndsAFetch(t *testing.T) {
	s, _ := dead(t)
	mine := errors.New("no memory")
	err := s.find(s.nodes()...).Fetch(s.ctx(), replica.FetchOptions{Ranges: whole, Cut: 30, Sink: func(int, []byte) error { return mine }})
	if !errors.Is(err, mine) {
		t.Fatalf("got %v", err)
	}
}

func TestProgressEndsWithEverything(t *testing.T) {
	s, texts := dead(t)
	f := s.find(s.nodes()...)
	var last replica.Progress
	_, err := gather(t, s, f, replica.FetchOptions{Ranges: whole, Cut: 30, Progress: func(p replica.Progress) { last = p }})
	want := 0
	for _, x := range texts {
		want += x.end
	}
	if err != nil || last.SegmentsDone != 4 || last.Segments != 4 || last.BytesDone != int64(want) || last.Bytes != f.Bytes() || last.Entries != uint64(len(written(whole, 30, texts...))) {
		t.Fatalf("%+v, want %d bytes; %v", last, want, err)
	}
}

func TestASurveyGoesOnWithoutThoseWhoDoNotAnswer(t *testing.T) {
	s, _ := dead(t)
	s.hosts["b1"].stop()
	f := s.find("b1", "b2", "b3")
	if f.Answered("b1", 0) || !f.Answered("b2", 0) || f.Failed["b1"] == nil {
		t.Fatalf("failed: %v", f.Failed)
	}
	if cut := must(f.Cut())(t); cut != 30 {
		t.Fatalf("cut %d", cut)
	}
	s.hosts["b2"].stop()
	s.hosts["b3"].stop()
	if _, err := replica.Survey(s.ctx(), s.pool, s.nodes(), logID, true); err == nil {
		t.Fatal("nobody answered, and nobody noticed")
	}
}

func TestTheBytesOfAWholeSegmentCanBeRead(t *testing.T) {
	s, texts := dead(t)
	f := s.find(s.nodes()...)
	for _, x := range texts {
		b, a, err := f.Whole(s.ctx(), x.id)
		if err != nil || string(b) != string(x.bytes[:x.end]) || a.Closed != x.closed || a.Batch != x.batches[len(x.batches)-1] {
			t.Fatalf("segment %d: %d bytes, %+v, %v", x.id, len(b), a, err)
		}
	}
	if _, _, err := f.Whole(s.ctx(), 77); err == nil {
		t.Fatal("a segment that is nowhere was read")
	}
}

func TestTheCutIsWhatPrefixSaysForAnyCutOfTheCopies(t *testing.T) {
	r := seeded(t)
	for range 15 {
		s := newScene(t, 2)
		heads := []*text{newText(logID, 1), newText(logID, 2), newText(logID, 3)}
		last := record.BatchID(100)
		for range 40 {
			last++
			heads[r.IntN(3)].batch(last, r.IntN(4), false)
		}
		safe := record.BatchID(100 + r.IntN(20))
		lines := map[view.NodeID]*line{"b1": s.connect("b1", logID), "b2": s.connect("b2", logID)}
		var seen []record.BatchID
		for _, x := range heads {
			best := 0
			for _, l := range lines {
				n := r.IntN(x.end)
				for i, b := range x.batches {
					if b <= safe {
						n = max(n, x.ends[i]) // It was in every copy.
					}
				}
				a := must(s.open(l.to, openRequest(x.id, roster(1, safe, 1, 2, 3))))(t)
				if st := l.write(a.Region.At(0), x.bytes[:n]); st != fabric.OK {
					t.Fatal(st)
				}
				best = max(best, n)
			}
			for i, b := range x.batches {
				if x.ends[i] <= best && b > safe {
					seen = append(seen, b)
				}
			}
		}
		f := s.find("b1", "b2")
		cut := must(f.Cut())(t)
		if want := record.Prefix(safe, seen); cut != want {
			t.Fatalf("cut %d, want %d", cut, want)
		}
		got, err := gather(t, s, f, replica.FetchOptions{Ranges: whole, Cut: cut})
		if want := written(whole, cut, heads...); err != nil || !slices.Equal(got, want) {
			t.Fatalf("cut %d: %d keys, want %d; %v", cut, len(got), len(want), err)
		}
		for _, h := range s.hosts {
			h.stop()
		}
	}
}

package replica

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ostrodb/ostro/cluster/peer"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
)

// surveyTimeout is what nodes get to answer when the caller sets no end.
const surveyTimeout = 10 * time.Second

// Findings is what nodes have of a log.
type Findings struct {
	Log record.LogID
	// Version is the log's replica version, if the caller knows it: open copies of a lower one
	// do not count. It is at least that of the roster.
	Version uint64
	// Roster is the one of the highest number.
	Roster Roster
	// Safe is the highest batch that is known to be in every copy, with all before it.
	Safe record.BatchID
	// Answers and Failed say who answered, and why others did not.
	Answers map[view.NodeID]SurveyAnswer
	Failed  map[view.NodeID]error
	// Report hears from which copy each segment is read; nil: nobody does.
	Report *slog.Logger

	pool   *peer.Pool
	copies map[record.SegmentID][]found
}

// found is a copy.
type found struct {
	node view.NodeID
	info ReplicaInfo
	runs Runs
}

// lastUpTo is the last batch of a copy that is not beyond n; n is at least what its backup knows to be safe.
func (c *found) lastUpTo(n record.BatchID) record.BatchID {
	if c.info.Batch <= n {
		return c.info.Batch
	}
	return record.BatchID(c.runs.lastUpTo(uint64(n)))
}

// Survey asks nodes what they have of a log. With fence, whoever answers has closed the log to
// its primary first, for good. It waits for all of them as long as ctx lasts, but fails only
// if nobody answers.
func Survey(ctx context.Context, pool *peer.Pool, nodes []view.NodeID, log record.LogID, fence bool) (*Findings, error) {
	if _, ends := ctx.Deadline(); !ends {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, surveyTimeout)
		defer cancel()
	}
	f := &Findings{
		Log: log, Answers: map[view.NodeID]SurveyAnswer{}, Failed: map[view.NodeID]error{},
		pool: pool, copies: map[record.SegmentID][]found{},
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, n := range nodes {
		all.Go(func() {
			var a SurveyAnswer
			bulk, err := pool.Call(ctx, n, MethodSurvey, SurveyRequest{Log: log, Fence: fence, Batches: true}, nil, &a)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				err = f.add(n, a, bulk)
			}
			if err != nil {
				f.Failed[n] = err
			}
		})
	}
	all.Wait()
	if len(f.Answers) == 0 {
		return f, fmt.Errorf("replica: nobody can be asked about log %x: %w", uint64(log), errors.Join(f.reasons()...))
	}
	return f, nil
}

func (f *Findings) reasons() []error {
	errs := []error{errors.New("no node answered")}
	for _, err := range f.Failed {
		errs = append(errs, err)
	}
	return errs
}

// add takes a node's answer.
func (f *Findings) add(n view.NodeID, a SurveyAnswer, bulk []byte) error {
	if err := errors.Join(a.Roster.Segments.Check(maxSegments), a.Roster.Opening.Check(maxSegments)); err != nil {
		return fmt.Errorf("node %s: %w", n, err)
	}
	list := make([]found, 0, len(a.Replicas))
	for _, info := range a.Replicas {
		if uint64(info.RunBytes) > uint64(len(bulk)) {
			return fmt.Errorf("node %s: %w: an answer that ends early", n, ErrInvalid)
		}
		runs, err := DecodeRuns(bulk[:info.RunBytes])
		if err != nil {
			return fmt.Errorf("node %s: %w", n, err)
		}
		bulk = bulk[info.RunBytes:]
		list = append(list, found{n, info, runs})
	}
	for _, c := range list {
		f.copies[c.info.Segment] = append(f.copies[c.info.Segment], c)
	}
	f.Answers[n] = a
	f.Safe = max(f.Safe, a.Roster.Safe)
	if a.Roster.Number > f.Roster.Number {
		f.Roster = a.Roster
	}
	return nil
}

// Answered tells whether a node has that keeps its replicas in this directory, as etcd has it (0: in any). Another one is of a process that
// has lost them and not joined yet: what it says is true, and leaves out what it had. So does one that has replicas and no roster: its notes
// of the log were damaged, and which segments there are it does not know.
func (f *Findings) Answered(n view.NodeID, directory uint64) bool {
	a, ok := f.Answers[n]
	return ok && (a.Roster.Number != 0 || len(a.Replicas) == 0) && (directory == 0 || a.Directory == nil || *a.Directory == directory)
}

// Damaged tells whether somebody has a copy that cannot be read, or not now, of a segment of which nobody has all.
func (f *Findings) Damaged() bool {
	for _, copies := range f.copies {
		if slices.ContainsFunc(copies, func(c found) bool { return c.info.Corrupt }) &&
			!slices.ContainsFunc(copies, func(c found) bool { return c.info.Sealed && !c.info.Corrupt }) {
			return true
		}
	}
	return false
}

// counts tells whether a copy has all of its segment that was ever acknowledged: it has the
// closing seal, or it was open and of the log's version.
func (f *Findings) counts(c *found) bool {
	i := &c.info
	return !i.Corrupt && (i.Sealed || i.State == StateOpen && i.Version >= max(f.Version, f.Roster.Version))
}

// usable are the copies of a segment that count, those that reach farthest first.
//
// A backup that was slow to open a replica has one that looks as if it counted, until it is told to drop it or the version
// rises: but nothing was ever written to it, or not all of it yet. What is safe is in every copy, so one that lacks
// some of that, which another has, is none.
func (f *Findings) usable(id record.SegmentID) []found {
	var list []found
	var least record.BatchID
	for _, c := range f.copies[id] {
		if f.counts(&c) {
			list = append(list, c)
			least = max(least, c.lastUpTo(f.Safe))
		}
	}
	list = slices.DeleteFunc(list, func(c found) bool { return !c.info.Sealed && c.info.Batch < least })
	slices.SortStableFunc(list, func(a, b found) int { return int(b.info.End) - int(a.info.End) })
	return list
}

// Missing are the segments of the log of which nobody who answered has a copy
// that counts. Segments that were being opened when the roster was made never held anything, if
// they are nowhere.
func (f *Findings) Missing() []record.SegmentID {
	var missing []record.SegmentID
	for n := range f.Roster.Segments.All() {
		id := record.SegmentID(n)
		if len(f.usable(id)) == 0 && !f.Roster.Opening.Contains(n) {
			missing = append(missing, id)
		}
	}
	return missing
}

// missing is Missing without those that were given up.
func (f *Findings) missing(without []record.SegmentID) []record.SegmentID {
	return slices.DeleteFunc(f.Missing(), func(id record.SegmentID) bool { return slices.Contains(without, id) })
}

// Covers tells whether all that a plan counts on is found here, though it was made of what others
// answered: its roster or a later one, a copy of each segment, and all batches up to its cut.
//
// The cut must be looked at, too. A segment that was opened last is *opening* in the newest roster,
// and nobody who answered may have it, though it was written to since. And copies that
// count differ in what was not acknowledged: one alone may lack batches in the middle of what
// others have and other heirs replay.
func (f *Findings) Covers(roster uint64, cut record.BatchID, without []record.SegmentID) bool {
	return f.Roster.Number >= roster && len(f.missing(without)) == 0 && f.CutWithout() >= cut
}

// Cut is the last batch that a recovery keeps: the highest up to which none is missing.
// The error says of which segments there is no copy.
func (f *Findings) Cut() (record.BatchID, error) {
	if missing := f.Missing(); len(missing) > 0 {
		return 0, &LostError{Log: f.Log, Segments: missing}
	}
	return f.CutWithout(), nil
}

// CutWithout is Cut for who goes on without the segments of which no copy is left.
func (f *Findings) CutWithout() record.BatchID {
	var all Runs
	for n := range f.Roster.Segments.All() {
		for _, c := range f.usable(record.SegmentID(n)) {
			all = append(all, c.runs...)
		}
	}
	slices.SortFunc(all, func(a, b [2]uint64) int {
		if a[0] < b[0] {
			return -1
		}
		return 1
	})
	cut := uint64(f.Safe)
	for _, run := range all {
		if run[0] > cut+1 {
			break
		}
		cut = max(cut, run[1])
	}
	return record.BatchID(cut)
}

// Bytes is how much there is to read.
func (f *Findings) Bytes() (bytes int64) {
	for n := range f.Roster.Segments.All() {
		if list := f.usable(record.SegmentID(n)); len(list) > 0 {
			bytes += int64(list[0].info.End)
		}
	}
	return bytes
}

// Segments are those of the log that have anything, with what the copy that reaches
// farthest says of each.
func (f *Findings) Segments() []ReplicaInfo {
	var infos []ReplicaInfo
	for n := range f.Roster.Segments.All() {
		if list := f.usable(record.SegmentID(n)); len(list) > 0 && list[0].info.End > 0 {
			infos = append(infos, list[0].info)
		}
	}
	return infos
}

// LostError says which segments of a log cannot be read from anybody.
type LostError struct {
	Log      record.LogID
	Segments []record.SegmentID
	Reasons  []error // why copies could not be read
}

// Error names the first few.
func (e *LostError) Error() string {
	var names []string
	for _, id := range e.Segments[:min(len(e.Segments), 5)] {
		names = append(names, fmt.Sprint(uint64(id)))
	}
	if more := len(e.Segments) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	s := fmt.Sprintf("no whole copy is left of %d segments of log %x: %s", len(e.Segments), uint64(e.Log), strings.Join(names, ", "))
	if len(e.Reasons) > 0 {
		s += ": " + errors.Join(e.Reasons...).Error()
	}
	return s
}

// Unwrap returns why copies could not be read.
func (e *LostError) Unwrap() []error { return e.Reasons }

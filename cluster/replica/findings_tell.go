package replica

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/ostrodb/ostro/engine/record"
)

// told notes which copy a segment was read from, and what others had of it, for who looks for a write afterwards. A segment
// that was open is told of in any case, for only its copies say where it ends; of a closed one all copies that count have
// the same.
func (f *Findings) told(ctx context.Context, c *found, a FetchAnswer) {
	level := slog.LevelDebug
	if !c.info.Sealed {
		level = slog.LevelInfo
	}
	if f.Report == nil || !f.Report.Enabled(ctx, level) {
		return
	}
	f.Report.Log(ctx, level, "read a segment of a log from one of its copies", "log", fmt.Sprintf("%016x", uint64(f.Log)),
		"segment", uint64(c.info.Segment), "from", c.node, "version", c.info.Version, "end", a.End, "batch", uint64(a.Batch),
		"countsFrom", max(f.Version, f.Roster.Version), "safe", uint64(f.Safe), "copies", f.copiesOf(c.info.Segment))
}

// refused notes why a copy was not read to its end.
func (f *Findings) refused(ctx context.Context, c *found, err error) {
	if f.Report != nil && ctx.Err() == nil {
		f.Report.WarnContext(ctx, "a copy of a segment could not be read", "log", fmt.Sprintf("%016x", uint64(f.Log)),
			"segment", uint64(c.info.Segment), "from", c.node, "version", c.info.Version, "why", err)
	}
}

// copiesOf says what is known of the copies of a segment.
func (f *Findings) copiesOf(id record.SegmentID) string {
	var all []string
	for _, c := range f.copies[id] {
		s := fmt.Sprintf("%s: %s, version %d, batch %d, end %d", c.node, c.info.State, c.info.Version, c.info.Batch, c.info.End)
		switch {
		case c.info.Corrupt:
			s += ", corrupt"
		case !f.counts(&c):
			s += ", does not count"
		}
		all = append(all, s)
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}

package hlog

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/ostrodb/ostro/engine/record"
)

// copier is a replicator that says what it is told, and copies what the script
// says.
type copier struct {
	notes *strings.Builder
	src   Source
	mark  record.BatchID
	over  bool // all is copied at once: nobody waits for it
}

// ends lets a log close that the script has done with.
func (c *copier) ends() {
	if c != nil {
		c.over = true
	}
}

func (c *copier) say(format string, args ...any) { fmt.Fprintf(c.notes, format+"\n", args...) }

func (c *copier) Begin(_ context.Context, s Source) error {
	c.src = s
	c.mark, c.over = s.Last, false
	for _, seg := range s.Segments {
		c.say("segment %d is of a former life: %d bytes up to batch %d", seg.ID, seg.End, seg.Batch)
	}
	return nil
}

func (c *copier) Open(_ context.Context, id record.SegmentID, memory []byte) error {
	c.say("segment %d has room elsewhere for %d bytes", id, len(memory))
	return nil
}

func (c *copier) Sealed(id record.SegmentID, from, to uint32, n record.BatchID, closed bool) {
	if c.over {
		c.mark = n
		c.src.Advanced()
		return
	}
	last := ""
	if closed {
		last = ", its last"
	}
	c.say("batch %d to copy: segment %d from %d to %d%s", n, id, from, to, last)
}

func (c *copier) Watermark() record.BatchID { return c.mark }

func (c *copier) Drop(_ context.Context, ids ...record.SegmentID) error {
	c.say("segments %d are dropped elsewhere", ids)
	return nil
}

func (c *copier) Close() error { return nil }

// prepare does what the background would.
func (s *script) prepare(t *testing.T, d *datadriven.TestData) error {
	spares, reserve := 0, 0
	d.MaybeScanArgs(t, "spares", &spares)
	d.MaybeScanArgs(t, "reserve", &reserve)
	for n := range spares + reserve {
		seg, err := s.log.makeSegment()
		if err != nil {
			return err
		}
		if !s.log.openElsewhere(seg) {
			return ErrClosed
		}
		if n < spares {
			s.log.spares <- seg
		} else {
			s.log.reserve <- seg
		}
	}
	return nil
}

func (s *script) copied(t *testing.T, d *datadriven.TestData) (string, error) {
	var to uint64
	d.ScanArgs(t, "to", &to)
	if s.copier == nil {
		return "", errors.New("the log is not copied")
	}
	s.copier.mark = record.BatchID(to)
	s.copier.src.Advanced()
	return fmt.Sprintf("copied to %d\n", s.log.Copied()), nil
}

func (s *script) drop(t *testing.T, d *datadriven.TestData) error {
	var id uint64
	d.ScanArgs(t, "seg", &id)
	seg := s.log.ByID(record.SegmentID(id))
	if seg == nil {
		return errors.New("no such segment")
	}
	return s.log.Drop(t.Context(), seg)
}

func (c *copier) Adopt(_ context.Context, segs ...SourceSegment) error {
	for _, g := range segs {
		c.say("side segment %d is adopted elsewhere: %d bytes, batch %d", g.ID, g.End, g.Batch)
	}
	return nil
}

// adoptSides adopts all side segments that wait for it.
func (s *script) adoptSides() (string, error) {
	some := s.log.sides.first(len(s.log.sides.queue))
	if len(some) == 0 {
		return "none waits\n", nil
	}
	err := s.log.adoptSides(some)
	s.log.sides.tried(some, err)
	out := ""
	for _, seg := range some {
		out += fmt.Sprintf("segment %d at rest: %v, copies count: %v\n", seg.ID, s.log.AtRest(seg), seg.Held())
	}
	return out, err
}

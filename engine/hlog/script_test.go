package hlog

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/epoch"
	"github.com/ostrodb/ostro/engine/record"
)

// The scripts in testdata drive a log without its background work, step by
// step, and show where its segments are:
//
//	open kind=logged heads=2 [sync-each]   a new log of 4 KiB segments
//	append head=0 key=a value=hello        one entry
//	fill head=0                            entries until the segment is full
//	seal head=0                            ends a batch
//	rotate head=0                          closes the segment
//	settle                                 what the settling goroutine has to do
//	freeze|flush|evict|remove seg=1
//	enter|leave guard=g
//	pass                                   what may run as guards have passed, runs
//	sync                                   makes sealed batches durable
//	read at=1:64                           an entry, from memory or the device
//	crash [lose=(2:64,3:0)]                kills the process, and adopts what is left; power
//	                                       takes segments from some byte on that was not synced
//	meta                                   what is known of segments that are gone
//	open ... copied                        a log whose copies are made by hand
//	prepare [spares=1] [reserve=1]         opens segments elsewhere
//	copied to=3                            all batches up to 3 are in every copy
//	drop seg=1                             its copies do not count any more
//	side                                   opens a side; append, fill, seal and rotate take side
//	adopt                                  what the adopting goroutine has to do
//	dump
type script struct {
	log    *Log
	dev    *device.Memory
	table  *epoch.Table
	opts   Options
	guards map[string]*epoch.Guard
	notes  strings.Builder
	copier *copier
	side   *Side
}

func TestSegmentsGoWhereTheScriptsSay(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := &script{}
		defer func() { s.close(t) }()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			out, err := s.run(t, d)
			if err != nil {
				out += "error: " + err.Error() + "\n"
			}
			if notes := s.notes.String(); notes != "" {
				out += notes
				s.notes.Reset()
			}
			if out == "" {
				return "ok\n"
			}
			return out
		})
	})
}

func (s *script) close(t *testing.T) {
	for _, g := range s.guards {
		g.Unregister()
	}
	s.copier.ends()
	if err := s.log.Close(); err != nil {
		t.Error(err)
	}
	s.dev.Close()
}

func (s *script) run(t *testing.T, d *datadriven.TestData) (string, error) {
	switch d.Cmd {
	case "open":
		return "", s.open(t, d)
	case "append":
		return s.append(t, d)
	case "fill":
		return s.fill(t, d)
	case "seal":
		return s.seal(t, d), nil
	case "rotate":
		s.head(t, d).Rotate()
	case "settle":
		return s.settle()
	case "prepare":
		return "", s.prepare(t, d)
	case "copied":
		return s.copied(t, d)
	case "drop":
		return "", s.drop(t, d)
	case "side":
		side, err := s.log.NewSide()
		s.side = side
		return "", err
	case "adopt":
		return s.adoptSides()
	case "freeze", "flush", "evict", "remove":
		return s.change(t, d)
	case "enter", "leave":
		return "", s.guard(t, d)
	case "pass":
		s.pass()
	case "sync":
		return "", s.log.SyncAll()
	case "read":
		return s.read(t, d)
	case "crash":
		return s.crash(t, d)
	case "meta":
		b, err := s.dev.ReadMeta(SyncedMeta)
		return string(b) + "\n", err
	case "dump":
		return s.dump(), nil
	default:
		return "", fmt.Errorf("unknown command %q", d.Cmd)
	}
	return "", nil
}

func (s *script) open(t *testing.T, d *datadriven.TestData) (err error) {
	var kind string
	heads := 1
	d.ScanArgs(t, "kind", &kind)
	d.MaybeScanArgs(t, "heads", &heads)
	s.dev, s.guards = device.NewMemory(), map[string]*epoch.Guard{}
	s.opts = Options{
		Device: s.dev, SegmentBytes: 4096, Heads: heads, Logged: kind == "logged", SyncEach: d.HasArg("sync-each"),
		Now: func() int64 { return 1000 }, Logger: slog.New(slog.NewTextHandler(&s.notes, &slog.HandlerOptions{ReplaceAttr: withoutTime})),
	}
	if s.copier = nil; d.HasArg("copied") {
		s.copier = &copier{notes: &s.notes}
		s.opts.Replicator = s.copier
	}
	if err := s.start(1); err != nil {
		return err
	}
	return s.log.Begin(t.Context())
}

func withoutTime(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

func (s *script) start(first record.SegmentID) (err error) {
	s.table = epoch.New(8)
	s.opts.Epoch = s.table
	s.log, err = Open(s.opts, first)
	return err
}

func (s *script) head(t *testing.T, d *datadriven.TestData) *Head {
	if d.HasArg("side") {
		return s.side.Head()
	}
	n := 0
	d.MaybeScanArgs(t, "head", &n)
	if n == len(s.log.heads) {
		return s.log.Survivor()
	}
	return s.log.Head(n)
}

func (s *script) append(t *testing.T, d *datadriven.TestData) (string, error) {
	var key, value string
	d.ScanArgs(t, "key", &key)
	d.MaybeScanArgs(t, "value", &value)
	return s.entry(s.head(t, d), key, value)
}

func (s *script) entry(h *Head, key, value string) (string, error) {
	h.Lock()
	defer h.Unlock()
	n := record.Size(len(key), len(value), false)
	a, room, err := h.Reserve(n)
	if err != nil {
		return "", err
	}
	record.Encode(room, &record.Header{Type: record.TypePut, Version: 1}, []byte(key), []byte(value), s.opts.Logged)
	h.Keep(n)
	return fmt.Sprintf("%s at %v\n", key, a), nil
}

// fill appends entries of 256 bytes while they fit the open segment.
func (s *script) fill(t *testing.T, d *datadriven.TestData) (string, error) {
	h := s.head(t, d)
	n := 0
	for ; h.seg != nil && !h.full(256); n++ {
		if _, err := s.entry(h, fmt.Sprintf("fill%03d", n), strings.Repeat("x", 225)); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%d entries\n", n), nil
}

func (s *script) seal(t *testing.T, d *datadriven.TestData) string {
	h := s.head(t, d)
	h.Lock()
	defer h.Unlock()
	n := h.Seal()
	return fmt.Sprintf("batch %d at %d, durable: %v\n", n, h.Sealed(), s.log.Durable(n))
}

func (s *script) settle() (string, error) {
	out := ""
	for len(s.log.settle) > 0 {
		seg := <-s.log.settle
		if !s.log.Spillable(seg) {
			return out, fmt.Errorf("segment %d is still copied from", seg.ID) // settleLoop would wait.
		}
		if err := s.log.settleSegment(seg); err != nil {
			return out, err
		}
		out += fmt.Sprintf("segment %d\n", seg.ID)
	}
	return out, nil
}

func (s *script) change(t *testing.T, d *datadriven.TestData) (string, error) {
	var id uint64
	d.ScanArgs(t, "seg", &id)
	seg := s.log.ByID(record.SegmentID(id))
	if seg == nil {
		return "", errors.New("no such segment")
	}
	switch d.Cmd {
	case "freeze":
		s.log.Freeze(seg, func() { fmt.Fprintf(&s.notes, "segment %d is frozen\n", id) })
	case "flush":
		return "", s.log.Flush(seg)
	case "evict":
		if !s.log.Evict(seg) {
			return "it stays\n", nil
		}
	case "remove":
		return "", s.log.Remove(seg, d.HasArg("keep-file"))
	}
	return "", nil
}

func (s *script) guard(t *testing.T, d *datadriven.TestData) error {
	var name string
	d.ScanArgs(t, "guard", &name)
	if d.Cmd == "leave" {
		s.guards[name].Unregister()
		delete(s.guards, name)
		return nil
	}
	g, err := s.table.Register()
	if err != nil {
		return err
	}
	g.Enter()
	s.guards[name] = g
	return nil
}

func (s *script) pass() {
	for s.table.Drain()+s.log.chores.run() > 0 {
	}
}

func (s *script) read(t *testing.T, d *datadriven.TestData) (string, error) {
	var id, off uint32
	var at string
	d.ScanArgs(t, "at", &at)
	if _, err := fmt.Sscanf(at, "%d:%d", &id, &off); err != nil {
		return "", err
	}
	seg := s.log.ByID(record.SegmentID(id))
	if seg == nil {
		return "", errors.New("no such segment")
	}
	a := record.MakeAddress(seg.Slot, off)
	if p, ok := s.log.Entry(a); ok {
		return fmt.Sprintf("%s=%s, from memory\n", p.Key(), p.Value()), nil
	}
	b, err := s.log.Fetch(a, seg.ID)
	if err != nil {
		return "", err
	}
	p := record.PtrOf(b)
	return fmt.Sprintf("%s=%s, fetched\n", p.Key(), p.Value()), nil
}

// crash goes on with a new log on what the device of the old one held.
func (s *script) crash(t *testing.T, d *datadriven.TestData) (out string, err error) {
	clone := s.dev.Crash()
	if err := lose(t, d, clone); err != nil {
		return "", err
	}
	s.copier.ends()
	_ = s.log.Close()
	s.dev.Close()
	s.dev, s.opts.Device = clone, clone
	clear(s.guards)
	s.notes.Reset()
	if err := s.start(1); err != nil {
		return "", err
	}
	found, err := Find(clone, s.opts.SegmentBytes)
	if err != nil {
		return "", err
	}
	closed := slices.DeleteFunc(slices.Clone(found), func(f Found) bool { return !f.Closed })
	tails := slices.DeleteFunc(found, func(f Found) bool { return f.Closed })
	if out, err = s.adopt(closed); err != nil {
		return out, err
	}
	if tails, err = s.log.Resume(tails); err != nil {
		return out, err
	}
	more, err := s.adopt(tails)
	if err == nil {
		err = s.log.Begin(t.Context())
	}
	return fmt.Sprintf("%s%sgoes on after batch %d\n", out, more, s.log.Synced()), err
}

// lose zeroes the ends of segments.
func lose(t *testing.T, d *datadriven.TestData, dev *device.Memory) error {
	arg, ok := d.Arg("lose")
	if !ok {
		return nil
	}
	for i := range arg.Vals {
		var at string
		arg.Scan(t, i, &at)
		var id record.SegmentID
		var off int64
		if _, err := fmt.Sscanf(at, "%d:%d", &id, &off); err != nil {
			return err
		}
		f, err := dev.Open(id)
		if err != nil {
			return err
		}
		if _, err := f.WriteAt(make([]byte, f.Size()-off), off); err != nil {
			return err
		}
		f.Close()
	}
	return nil
}

func (s *script) adopt(found []Found) (out string, err error) {
	for n, f := range found {
		seg, err := s.log.Adopt(f, n%2 == 0)
		if err != nil {
			return out, err
		}
		out += fmt.Sprintf("segment %d: closed before=%v, %d bytes\n", f.ID, f.Closed, seg.End())
	}
	return out, nil
}

var stateNames = [...]string{"free", "mutable", "logged", "freezing", "still", "frozen"}

// dump shows a line for each segment.
func (s *script) dump() string {
	var b strings.Builder
	for _, seg := range s.log.Segments() {
		at := s.log.slots.at(seg.Slot)
		fmt.Fprintf(&b, "%d: slot %d %s", seg.ID, seg.Slot, stateNames[at.loadState()])
		if seg.Closed() {
			b.WriteString(" closed")
		}
		fmt.Fprintf(&b, ", %d bytes, %d live, %s, %s", seg.End(), s.log.Live(seg), s.memoryOf(seg), s.fileOf(seg))
		switch stable := at.loadStable(); stable {
		case wholeSegment:
			b.WriteString(", stable\n")
		default:
			fmt.Fprintf(&b, ", stable to %d\n", stable)
		}
	}
	fmt.Fprintf(&b, "resident %d, next %d\n", s.log.Resident(), s.log.NextID())
	return b.String()
}

func (s *script) memoryOf(seg *Segment) string {
	switch {
	case !s.log.InMemory(seg):
		return "cold"
	case seg.frame != nil:
		return "in a frame"
	default:
		return "mapped"
	}
}

func (s *script) fileOf(seg *Segment) string {
	switch {
	case seg.file == nil:
		return "no file"
	case seg.synced:
		return fmt.Sprintf("file of %d synced", seg.file.Size())
	default:
		return fmt.Sprintf("file of %d", seg.file.Size())
	}
}

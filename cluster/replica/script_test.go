package replica

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/internal/await"
)

// TestScriptsOfFailures runs the stories in testdata/primary. Nodes are called by what they are to
// the open segment: "holder" has a copy of it, "other" has none.
func TestScriptsOfFailures(t *testing.T) {
	datadriven.Walk(t, "testdata/primary", func(t *testing.T, path string) {
		s := &story{t: t}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.t = t
			s.said = nil
			s.run(d)
			return strings.Join(s.said, "\n") + "\n"
		})
	})
}

// story is a script under way.
type story struct {
	t     *testing.T
	c     *cluster
	w     *writer
	h     *head
	named map[string]view.NodeID
	said  []string

	living []Member // before all leases ended
}

func (s *story) say(format string, args ...any) {
	s.said = append(s.said, fmt.Sprintf(format, args...))
}

func (s *story) run(d *datadriven.TestData) {
	switch d.Cmd {
	case "cluster":
		s.begin(d)
	case "write":
		s.write(d)
	case "kill":
		s.c.kill(s.node(d))
		s.say("ok")
	case "lease-ends":
		node := s.node(d)
		s.c.members.leave(node)
		await.True(s.t, "the primary knows", func() bool { return s.lapsed(node) })
		s.say("ok")
	case "all-leases-end":
		s.living = s.c.members.none()
		for _, m := range s.living {
			await.True(s.t, "the primary knows", func() bool { return s.lapsed(m.ID) })
		}
		s.say("ok")
	case "all-leases-begin":
		s.c.members.change(func([]Member) []Member { return s.living })
		s.say("ok")
	case "silent":
		s.c.caller.hush(s.node(d), true)
		s.say("ok")
	case "answers":
		s.c.caller.hush(s.node(d), false)
		s.say("ok")
	case "start":
		s.c.start(s.node(d))
		s.say("ok")
	case "add":
		s.c.add(view.NodeID(d.CmdArgs[0].Key))
		s.say("ok")
	case "settle":
		s.settle(d)
	case "restart-primary":
		s.restart()
	default:
		s.t.Fatalf("%s: no such command: %s", d.Pos, d.Cmd)
	}
}

// lapsed tells whether the primary relies on a node no longer.
func (s *story) lapsed(node view.NodeID) bool {
	s.w.p.mu.Lock()
	defer s.w.p.mu.Unlock()
	l := s.w.p.books.links[node]
	return l == nil || !l.good()
}

func (s *story) begin(d *datadriven.TestData) {
	var nodes, copies int
	mode := string(OneSided)
	d.ScanArgs(s.t, "backups", &nodes)
	d.ScanArgs(s.t, "copies", &copies)
	d.MaybeScanArgs(s.t, "mode", &mode)
	s.c, s.w, s.named = newCluster(s.t, nodes, copies, testSegment), newWriter(s.t, testSegment), map[string]view.NodeID{}
	o := s.c.options(copies)
	o.Mode = Mode(mode)
	s.c.primary(s.w, o)
	s.h = s.w.head()
	s.say("%d backups", nodes)
}

// node finds who is meant; the name stays with the node.
func (s *story) node(d *datadriven.TestData) view.NodeID {
	name := d.CmdArgs[0].Key
	if id, ok := s.named[name]; ok {
		return id
	}
	holders := (*s.w.p.open.Load())[s.h.id].holders()
	for i := range len(s.c.nodes) {
		id := view.NodeID(fmt.Sprintf("n%d", i+1))
		taken := false
		for _, n := range s.named {
			taken = taken || n == id
		}
		if !taken && slices.Contains(holders, id) == strings.HasPrefix(name, "holder") {
			s.named[name] = id
			return id
		}
	}
	s.t.Fatalf("%s: nobody is a %s", d.Pos, name)
	return ""
}

// write appends batches; whether they are acknowledged is asserted unless the
// script says that they wait.
func (s *story) write(d *datadriven.TestData) {
	batches, segments := 1, 0
	d.MaybeScanArgs(s.t, "batches", &batches)
	d.MaybeScanArgs(s.t, "segments", &segments)
	if d.HasArg("waits") {
		n := s.h.write(1, 100)
		if s.w.p.Watermark() >= n {
			s.t.Errorf("%s: batch %d was acknowledged", d.Pos, n)
		}
		s.say("waits")
		return
	}
	for range batches {
		s.w.await(s.h.write(1, 100))
	}
	for want := len(s.w.closed) + segments; len(s.w.closed) < want; {
		s.w.await(s.h.write(10, 1000))
	}
	s.say("acknowledged")
}

func (s *story) settle(d *datadriven.TestData) {
	var copies int
	d.ScanArgs(s.t, "copies", &copies)
	s.c.settled(s.w, copies)
	s.w.await(s.w.last)
	s.c.checkCopies(s.w, copies)
	_, said, backups := s.c.book.state()
	var dead []string
	for name, id := range s.named {
		if !slices.Contains(backups, id) {
			dead = append(dead, name)
		}
	}
	slices.Sort(dead)
	s.say("%d copies of each segment", said)
	if dead != nil {
		s.say("no backups any more: %s", strings.Join(dead, " "))
	}
}

// restart has the primary die and come back with its log.
func (s *story) restart() {
	if err := s.w.p.Close(); err != nil {
		s.t.Fatal(err)
	}
	s.w.p = nil
	s.h.close()
	o := s.c.options(s.c.copies)
	s.c.primary(s.w, o)
	s.h = s.w.head()
	s.say("watermark at the last batch: %v", s.w.p.Watermark() >= s.w.last)
}

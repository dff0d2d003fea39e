package replica

import "testing"

// These tests run backups, and a NIC, as processes of their own.

func TestAStoppedBackupProcessDelaysNoWrite(t *testing.T) {
	c, _ := processCluster(t, "shm", 3, 2, testSegment)
	w := newWriter(t, testSegment)
	c.primary(w, c.options(2))
	h := w.head()
	w.await(h.write(1, 10))
	stopped := holderOf(w.p, h.id)
	c.nodes[stopped].process.Stop()
	for range 50 {
		w.await(h.write(1, 10))
	}
	if s := c.nodes[stopped].process.State(); s != "T" {
		t.Fatalf("the backup is in state %s: it was not stopped all the time", s)
	}
	// Segments go to the others meanwhile, and when its lease ends so does what it has.
	for len(w.closed) < 3 {
		w.await(h.write(10, 1000))
	}
	c.members.leave(stopped)
	c.settled(w, 2)
	w.await(h.write(1, 10))

	c.nodes[stopped].process.Continue()
	c.members.join(Member{ID: stopped})
	for len(w.closed) < 6 {
		w.await(h.write(10, 1000))
	}
	c.settled(w, 2)
}

func TestABackupProcessThatIsKilledIsReplaced(t *testing.T) {
	for _, f := range fabrics[1:] {
		t.Run(f.name, func(t *testing.T) {
			c, _ := processCluster(t, f.url, 3, 2, testSegment)
			w := newWriter(t, testSegment)
			o := c.options(2)
			o.Mode = f.mode
			c.primary(w, o)
			h := w.head()
			for len(w.closed) < 2 {
				w.await(h.write(10, 1000))
			}
			dead := holderOf(w.p, h.id)
			c.nodes[dead].process.Kill()
			w.await(h.write(1, 10))
			c.members.leave(dead)
			for range 20 {
				w.await(h.write(10, 1000))
			}
			c.settled(w, 2)
			for _, n := range c.nodes {
				n.up = n.member.ID != dead
			}
			c.checkCopies(w, 2)
		})
	}
}

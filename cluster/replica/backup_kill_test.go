package replica_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ostrodb/ostro/cluster/peer"
	"github.com/ostrodb/ostro/cluster/replica"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/fabrictest"
	"github.com/ostrodb/ostro/fabric/nic"
	"github.com/ostrodb/ostro/fabric/shm"
)

// This binary is a NIC or a backup when a test starts it as one.
func init() {
	fabrictest.Play(map[string]func([]string) error{"nic": beNIC, "backup": beBackup})
}

func beNIC(args []string) error {
	e, err := nic.New(nic.Config{})
	if err != nil {
		return err
	}
	if _, err := shm.Serve(args[0], e, nil); err != nil {
		return err
	}
	return fabrictest.Serving()
}

// beBackup serves a directory and says where.
func beBackup(args []string) error {
	dev, err := shm.Open(args[0], "backup")
	if err != nil {
		return err
	}
	b, err := replica.OpenBackup(replica.BackupOptions{
		Dir: args[1], Device: dev, Node: "b1", SegmentBytes: segmentBytes, Buffers: 8, Ready: 2, FlushRate: 1 << 30,
	})
	if err != nil {
		return err
	}
	s, err := peer.NewServer(peer.ServerOptions{Node: "b1", Secret: secret})
	if err != nil {
		return err
	}
	b.Handle(s)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go s.ServeConn(c)
		}
	}()
	where, _ := json.Marshal(l.Addr().String())
	fmt.Println(string(where))
	return fabrictest.Serving()
}

// mortal is a backup that is killed again and again, and what it has promised.
type mortal struct {
	*scene
	r       *rand.Rand
	socket  string
	dir     string
	nic     *fabrictest.Process
	child   *fabrictest.Process
	addr    atomic.Pointer[string]
	line    *line
	number  uint64
	last    record.BatchID
	next    record.SegmentID
	texts   map[record.SegmentID]*text // of the log
	answers map[record.SegmentID]replica.OpenAnswer
	acked   map[record.SegmentID]int  // bytes of open ones
	shut    map[record.SegmentID]bool // whose closing seal was
	closing map[record.SegmentID]bool // whose close was not
	dropped map[record.SegmentID]bool
	kills   int
}

func TestNothingThatABackupAnsweredForIsLostWheneverItIsKilled(t *testing.T) {
	dir := t.TempDir()
	m := &mortal{
		r: seeded(t), socket: filepath.Join(dir, "nic.sock"), dir: filepath.Join(dir, "backup"), next: 1,
		texts: map[record.SegmentID]*text{}, answers: map[record.SegmentID]replica.OpenAnswer{},
		acked: map[record.SegmentID]int{}, shut: map[record.SegmentID]bool{}, closing: map[record.SegmentID]bool{}, dropped: map[record.SegmentID]bool{},
	}
	m.scene = &scene{t: t}
	m.pool = must(peer.NewPool(peer.PoolOptions{Node: "primary", Secret: secret, DialTimeout: time.Minute, Address: func(view.NodeID) (string, error) {
		return *m.addr.Load(), nil
	}}))(t)
	t.Cleanup(func() { check(t, m.pool.Close()) })
	rounds := 25
	if testing.Short() {
		rounds = 8
	}
	m.startNIC()
	m.startBackup()
	for round := range rounds {
		m.until(m.killLater())
		if round%5 == 4 { // Everything dies.
			m.nic.Kill()
			m.startNIC()
		}
		m.startBackup()
		m.verify()
	}
	t.Logf("%d kills, %d segments, %d batches", m.kills, m.next-1, m.last)
}

func (m *mortal) startNIC() {
	m.t.Helper()
	m.nic = fabrictest.SpawnServing(m.t, "nic", m.socket)
	if m.device != nil {
		_ = m.device.Close()
	}
	m.device = must(shm.Open(m.socket, "primary"))(m.t)
	device := m.device
	m.t.Cleanup(func() { _ = device.Close() })
	m.dom = must(m.device.NewDomain("primary"))(m.t)
	m.cq = must(m.dom.NewCQ(64))(m.t)
}

func (m *mortal) startBackup() {
	m.t.Helper()
	m.child = fabrictest.Spawn(m.t, "backup", m.socket, m.dir)
	var addr string
	m.child.Hear(&addr)
	m.child.Hear(nil)
	m.addr.Store(&addr)
	m.pool.Drop("b1") // A call on a connection to the dead one would be lost.
	m.line = m.connect("b1", logID)
	for id := range m.acked { // The primary goes on with its open segments.
		a := must(m.open("b1", openRequest(id, m.roster(0))))(m.t)
		m.answers[id] = a
	}
	for id := range m.closing { // And repeats what was not answered.
		if !m.dropped[id] {
			check(m.t, m.close(id))
		}
		delete(m.closing, id)
	}
}

// killLater kills the backup at some moment.
func (m *mortal) killLater() (dead chan struct{}) {
	dead = make(chan struct{})
	child := m.child
	time.AfterFunc(time.Duration(m.r.IntN(60_000))*time.Microsecond, func() {
		child.Kill()
		close(dead)
	})
	m.kills++
	return dead
}

// until acts as a primary does until the backup is dead.
func (m *mortal) until(dead chan struct{}) {
	for {
		select {
		case <-dead:
			return
		default:
			m.act()
		}
	}
}

func (m *mortal) roster(more record.SegmentID) replica.Roster {
	var ids []record.SegmentID
	for id := range m.texts {
		if !m.dropped[id] {
			ids = append(ids, id)
		}
	}
	if more != 0 {
		ids = append(ids, more)
	}
	m.number++
	return roster(m.number, 0, ids...)
}

// act does one thing, and notes it if it was answered.
func (m *mortal) act() {
	var open []record.SegmentID
	for id := range m.acked {
		open = append(open, id)
	}
	switch {
	case len(open) < 3:
		m.begin()
	case m.r.IntN(12) == 0:
		m.end(open[m.r.IntN(len(open))])
	case m.r.IntN(30) == 0:
		m.store()
	case m.r.IntN(40) == 0:
		m.drop()
	default:
		m.write(open[m.r.IntN(len(open))])
	}
}

func (m *mortal) begin() {
	id := m.next
	m.next++
	a, err := m.open("b1", openRequest(id, m.roster(id)))
	m.texts[id] = newText(logID, id)
	if err != nil {
		m.dropped[id] = true // Nobody relies on it.
		return
	}
	m.answers[id], m.acked[id] = a, 0
}

func (m *mortal) write(id record.SegmentID) {
	x := m.texts[id]
	if x.closed || x.end > segmentBytes/2 {
		m.end(id)
		return
	}
	m.last++
	x.batch(m.last, 1+m.r.IntN(4), false)
	m.send(id)
}

// send writes what the backup may lack, from where it surely has it.
func (m *mortal) send(id record.SegmentID) bool {
	x, from := m.texts[id], m.acked[id]
	if m.line.write(m.answers[id].Region.At(uint64(from)), x.bytes[from:x.end]) != fabric.OK {
		return false
	}
	m.acked[id] = x.end
	return true
}

func (m *mortal) end(id record.SegmentID) {
	x := m.texts[id]
	if !x.closed {
		m.last++
		x.batch(m.last, 0, true)
	}
	if !m.send(id) {
		return
	}
	delete(m.acked, id)
	m.shut[id] = true // All its bytes were acknowledged.
	if m.close(id) != nil {
		m.closing[id] = true
	}
}

func (m *mortal) close(id record.SegmentID) error {
	return m.call("b1", replica.MethodClose, replica.CloseRequest{Log: logID, Segment: id, Closing: m.texts[id].closing()}, nil, nil)
}

func (m *mortal) store() {
	m.last += 10
	x := closedText(logID, m.next, m.last-9)
	m.next++
	r := m.roster(x.id)
	m.texts[x.id] = x
	if m.put("b1", x, r) == nil {
		m.shut[x.id] = true
	} else {
		m.dropped[x.id] = true
	}
}

// drop takes a closed segment out of the log.
func (m *mortal) drop() {
	for id := range m.shut {
		if m.dropped[id] {
			continue
		}
		m.dropped[id] = true // From now on it may or may not be there.
		_ = m.call("b1", replica.MethodRoster, replica.RosterRequest{Log: logID, Roster: m.roster(0)}, nil, nil)
		return
	}
}

// verify compares what the backup has with what it answered for.
func (m *mortal) verify() {
	m.t.Helper()
	got := map[record.SegmentID]replica.ReplicaInfo{}
	for _, i := range m.survey("b1", false).Replicas {
		got[i.Segment] = i
		if i.Corrupt {
			m.t.Fatalf("segment %d is corrupt: %+v", i.Segment, i)
		}
		b := must(m.whole("b1", i.Segment))(m.t)
		if x := m.texts[i.Segment]; string(b) != string(x.bytes[:len(b)]) {
			m.t.Fatalf("segment %d has other bytes than were written", i.Segment)
		}
	}
	for id, end := range m.acked {
		if i, ok := got[id]; !ok || int(i.End) < end {
			m.t.Fatalf("segment %d: %d bytes were acknowledged; there is %+v", id, end, i)
		}
	}
	for id := range m.shut {
		if m.dropped[id] {
			continue
		}
		if i, ok := got[id]; !ok || !i.Sealed || int(i.End) != m.texts[id].end {
			m.t.Fatalf("segment %d was closed at %d; there is %+v", id, m.texts[id].end, i)
		}
	}
}

package group_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ostrodb/ostro/cluster/group"
	"github.com/ostrodb/ostro/fabric"
)

// intruder is a client, or the neighbour of a replica, that says what it likes.
type intruder struct {
	*scene
	spec            group.Spec
	offer           group.Offer
	dom             fabric.Domain
	cq              fabric.CQ
	mem             *fabric.Memory
	reg             fabric.Region
	up, down, watch fabric.QP
}

// intrude makes a group of one replica, by hand.
func (s *scene) intrude(r *group.Replica, mode group.Mode) *intruder {
	s.t.Helper()
	h := &intruder{scene: s, spec: spec(1)}
	h.spec.Mode = mode
	h.dom = must(s.client.NewDomain("intruder"))(s.t)
	h.cq = must(h.dom.NewCQ(256))(s.t)
	h.mem = must(fabric.NewMemory(memoryBytes))(s.t)
	h.reg = must(h.dom.Register(h.mem, fabric.Everything))(s.t)
	h.offer = must(r.Offer(s.ctx(), h.spec))(s.t)
	h.up, h.watch = h.connect(h.offer.Up), h.connect(h.offer.Watch)
	qps := []fabric.QP{h.up, h.watch}
	j := group.Join{Offer: h.offer.ID, Up: h.up.Endpoint(), Watch: h.watch.Endpoint(), Ack: h.reg.Info()}
	if mode != group.FanOut {
		h.down = h.connect(h.offer.Down)
		check(s.t, h.down.PostRecv(fabric.Recv(0), fabric.Recv(0), fabric.Recv(0)))
		qps, j.Down = append(qps, h.down), h.down.Endpoint()
	}
	check(s.t, r.Join(s.ctx(), j))
	for _, q := range qps {
		check(s.t, q.Ready(s.ctx()))
	}
	return h
}

func (h *intruder) connect(to fabric.Endpoint) fabric.QP {
	h.t.Helper()
	q := must(h.dom.NewQP(fabric.QPConfig{SendCQ: h.cq, RecvCQ: h.cq, RNRWait: time.Second}))(h.t)
	check(h.t, q.Connect(to))
	return q
}

// say sends bytes and returns when the replica's NIC has taken or refused them.
func (h *intruder) say(q fabric.QP, message []byte) {
	h.t.Helper()
	copy(h.mem.Bytes(), message)
	h.do(q, fabric.Send(h.reg.Piece(0, uint32(len(message)))))
}

const said = 4711

// do executes a request, whatever its end.
func (h *intruder) do(q fabric.QP, w fabric.WR) {
	h.t.Helper()
	check(h.t, q.Post(w.Signal(said)))
	for ctx := h.ctx(); ; {
		var done [1]fabric.Completion
		if h.cq.Poll(done[:]) == 0 {
			check(h.t, h.cq.Wait(ctx))
		} else if done[0].ID == said {
			return
		}
	}
}

// leave closes the intruder's end.
func (h *intruder) leave() {
	h.t.Helper()
	check(h.t, errors.Join(h.dom.Close(), h.mem.Close()))
}

// besides is a scene with an intruder's victim as its last replica, and an honest
// group of the others.
func besides(t *testing.T, provider string) (s *scene, victim *group.Replica, honest func(i int)) {
	s = prepare(t, provider, 3)
	victim = s.replicas[2]
	s.g = must(group.Open(s.ctx(), s.client, group.Spec{Window: 8, MaxWrite: 64}, s.replicas[0], s.replicas[1]))(t)
	t.Cleanup(func() { check(t, s.g.Close()) })
	return s, victim, func(i int) {
		t.Helper()
		want := binary.LittleEndian.AppendUint64(nil, uint64(i)+1)
		s.ok(s.g.Write(s.ctx(), 8, want))
		for r := range 2 {
			got := make([]byte, 8)
			if check(t, s.g.Read(s.ctx(), r, 8, got)); string(got) != string(want) {
				t.Fatalf("replica %d of the honest group has %x, want %x", r, got, want)
			}
		}
	}
}

func TestHostileClientsAreRefusedAndCounted(t *testing.T) {
	attacks := map[string]struct {
		mode  group.Mode
		do    func(h *intruder)
		count func(h group.Health) uint64
	}{
		"a write outside of the memory, down the chain": {group.Chain, func(h *intruder) {
			h.say(h.up, group.Message(h.spec, h.offer, h.reg, memoryBytes-4, make([]byte, 8)))
		}, func(h group.Health) uint64 { return h.Fabric.RefusedBounds }},
		"an operation that there is not": {group.Chain, func(h *intruder) {
			m := group.Message(h.spec, h.offer, h.reg, 0, make([]byte, 8))
			m[46] = 200
			h.say(h.up, m)
		}, func(h group.Health) uint64 { return h.Fabric.RefusedRequest }},
		"a forged key": {group.Chain, func(h *intruder) {
			h.do(h.watch, fabric.Write(fabric.Target{Key: h.offer.Data.Key ^ 1<<20}, h.reg.Piece(0, 8)))
		}, func(h group.Health) uint64 { return h.Fabric.RefusedKey }},
		"a one-sided write past the end": {group.FanOut, func(h *intruder) {
			h.do(h.up, fabric.Write(h.offer.Data.At(memoryBytes-4), h.reg.Piece(0, 8)))
		}, func(h group.Health) uint64 { return h.Fabric.RefusedBounds }},
		"a read of the heartbeat": {group.Chain, func(h *intruder) {
			h.do(h.watch, fabric.Read(h.offer.Pulse.At(0), h.reg.Piece(0, 8)))
		}, func(h group.Health) uint64 { return h.Fabric.RefusedRight }},
		"a message where none is due": {group.Chain, func(h *intruder) {
			h.say(h.watch, nil)
		}, func(h group.Health) uint64 { return h.Refused }},
		"a naive message that is too short": {group.NaiveEvents, func(h *intruder) {
			h.say(h.up, make([]byte, 10))
		}, func(h group.Health) uint64 { return h.Refused }},
		"a naive write outside of the memory": {group.NaivePolling, func(h *intruder) {
			h.say(h.up, group.Message(h.spec, h.offer, h.reg, memoryBytes-4, make([]byte, 8)))
		}, func(h group.Health) uint64 { return h.Refused }},
		"a naive operation that there is not": {group.NaiveEvents, func(h *intruder) {
			m := group.Message(h.spec, h.offer, h.reg, 0, make([]byte, 8))
			m[0] = 99
			h.say(h.up, m)
		}, func(h group.Health) uint64 { return h.Refused }},
	}
	for _, provider := range []string{"inproc", "shm", "tcp"} {
		for what, a := range attacks {
			t.Run(provider+"/"+what, func(t *testing.T) {
				s, victim, honest := besides(t, provider)
				honest(0)
				h := s.intrude(victim, a.mode)
				before := a.count(victim.Health())
				a.do(h)
				wait(t, s.ctx(), victim.Left())
				if got := a.count(victim.Health()); got != before+1 {
					t.Errorf("%d refusals were counted, want %d", got, before+1)
				}
				honest(1)
				h.leave()
				next := must(group.Open(s.ctx(), s.client, group.Spec{}, victim))(t)
				s.ok(next.Write(s.ctx(), 0, []byte("the memory is lent again")))
				check(t, next.Close())
			})
		}
	}
}

// A replica may lie to its client, too.
func TestAHostileReplicaBreaksItsOwnGroupOnly(t *testing.T) {
	for _, provider := range []string{"inproc", "shm", "tcp"} {
		for what, do := range map[string]func(h *liar){
			"it answers what nobody asked": func(h *liar) {
				h.do(h.ack, fabric.WriteImm(h.join.Ack.At(0), 77, h.reg.Piece(0, 8)))
			},
			"it answers outside of the client's memory": func(h *liar) {
				h.do(h.ack, fabric.WriteImm(h.join.Ack.At(1<<30), 0, h.reg.Piece(0, 8)))
			},
			"it writes with a forged key": func(h *liar) {
				h.do(h.ack, fabric.Write(fabric.Target{Key: h.join.Ack.Key + 1}, h.reg.Piece(0, 8)))
			},
			"it sends a message where none is due": func(h *liar) { h.say(h.watch, []byte("psst")) },
		} {
			t.Run(provider+"/"+what, func(t *testing.T) {
				s, _, honest := besides(t, provider)
				h := &liar{intruder: &intruder{scene: s}}
				g := must(group.Open(s.ctx(), s.client, group.Spec{Window: 4, Slots: 8, MaxWrite: 64}, h))(t)
				do(h)
				wait(t, s.ctx(), g.Broken())
				if err := g.Err(); !errors.Is(err, group.ErrBroken) {
					t.Fatalf("its group ended with %v", err)
				}
				check(t, g.Close())
				honest(0)
				h.leave()
			})
		}
	}
}

// liar is a replica that joins and then does as it likes.
type liar struct {
	*intruder
	join group.Join
	ack  fabric.QP
}

func (l *liar) Offer(_ context.Context, s group.Spec) (group.Offer, error) {
	l.spec = s
	dev := l.devs[2]
	l.dom = must(dev.NewDomain("liar"))(l.t)
	l.cq = must(l.dom.NewCQ(256))(l.t)
	l.mem = must(fabric.NewMemory(memoryBytes))(l.t)
	l.reg = must(l.dom.Register(l.mem, fabric.Everything))(l.t)
	qp := func() fabric.QP {
		return must(l.dom.NewQP(fabric.QPConfig{SendCQ: l.cq, RecvCQ: l.cq, RNRWait: time.Second}))(l.t)
	}
	l.up, l.ack, l.watch = qp(), qp(), qp()
	return group.Offer{
		Name: "liar", Data: l.reg.Info(), Pulse: l.reg.Info(), Up: l.up.Endpoint(), Down: l.ack.Endpoint(), Watch: l.watch.Endpoint(),
	}, nil
}

func (l *liar) Join(_ context.Context, j group.Join) error {
	l.join = j
	return errors.Join(l.up.Connect(j.Up), l.ack.Connect(j.Down), l.watch.Connect(j.Watch))
}

// Messages that are nearly right, by a client or by the replica before.
func TestMangledMessagesDisturbNobodyElse(t *testing.T) {
	rounds := 60
	if testing.Short() {
		rounds = 15
	}
	seed := rand.Uint64()
	for _, provider := range []string{"inproc", "shm", "tcp"} {
		for _, mode := range []group.Mode{group.Chain, group.NaiveEvents} {
			t.Run(fmt.Sprintf("%s/%s", provider, mode), func(t *testing.T) {
				random := rand.New(rand.NewPCG(seed, 1))
				s, victim, honest := besides(t, provider)
				for i := range rounds {
					h := s.intrude(victim, mode)
					for range 1 + random.IntN(3) {
						h.say(h.up, mangle(random, group.Message(h.spec, h.offer, h.reg, 0, make([]byte, 32))))
						if h.up.State() != fabric.Ready {
							break
						}
					}
					if honest(i); t.Failed() {
						t.Fatalf("round %d of seed %d", i, seed)
					}
					left := victim.Left()
					h.leave()
					wait(t, s.ctx(), left)
				}
				next := must(group.Open(s.ctx(), s.client, group.Spec{}, victim))(t)
				s.ok(next.Write(s.ctx(), 0, []byte("whole")))
				check(t, next.Close())
			})
		}
	}
}

// mangle changes a message a little, or cuts it.
func mangle(random *rand.Rand, m []byte) []byte {
	for range 1 + random.IntN(4) {
		switch at := random.IntN(len(m)); random.IntN(4) {
		case 0:
			m[at] = byte(random.Uint32())
		case 1:
			m[at] ^= 1 << random.IntN(8)
		case 2:
			binary.LittleEndian.PutUint64(m[min(at&^7, len(m)-8):], random.Uint64()>>random.IntN(64))
		case 3:
			m = m[:max(16, at)]
		}
	}
	return m
}

func FuzzAnyMessageDisturbsNobodyElse(f *testing.F) {
	f.Add([]byte{}, false)
	f.Add(make([]byte, 200), true)
	f.Fuzz(func(t *testing.T, message []byte, naive bool) {
		mode := group.Chain
		if naive {
			mode = group.NaiveEvents
		}
		s, victim, honest := besides(t, "inproc")
		h := s.intrude(victim, mode)
		h.say(h.up, message[:min(len(message), memoryBytes)])
		honest(0)
		left := victim.Left()
		h.leave()
		wait(t, s.ctx(), left)
	})
}

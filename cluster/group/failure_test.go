package group_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ostrodb/ostro/cluster/group"
	"github.com/ostrodb/ostro/fabric"
)

func TestADeadReplicaBreaksTheGroupAndNothingHangs(t *testing.T) {
	everywhere(t, func(t *testing.T, provider string, mode group.Mode) {
		for dead := range 3 {
			t.Run(fmt.Sprintf("replica %d dies", dead), func(t *testing.T) {
				s := newScene(t, provider, group.Spec{Mode: mode, Window: 8, MaxWrite: 64}, 3)
				ctx := s.ctx()
				s.ok(s.g.Write(ctx, 0, []byte("before")))
				died := make(chan error, 1)
				go func() { died <- s.devs[dead].Close() }()
				var err error
				for err == nil {
					var p *group.Pending
					if p, err = s.g.Write(ctx, 0, []byte("after")); err == nil {
						_, err = p.Wait(ctx)
					}
				}
				if !errors.Is(err, group.ErrBroken) {
					t.Fatalf("operations end with %v", err)
				}
				check(t, <-died)
				for _, r := range s.replicas {
					wait(t, ctx, r.Left())
				}
			})
		}
	})
}

// deaf joins with a neighbour that never answers, so that messages stay with the replica before.
type deaf struct {
	*group.Replica
	up fabric.Endpoint
}

func (d deaf) Join(ctx context.Context, j group.Join) error {
	j.Up = d.up
	return d.Replica.Join(ctx, j)
}

func TestEveryPendingOperationFailsWithTheGroup(t *testing.T) {
	for _, provider := range []string{"inproc", "shm"} {
		for what, end := range map[string]func(s *scene) error{
			"the replica that has them dies": func(s *scene) error { return s.devs[1].Close() },
			"the client closes the group":    func(s *scene) error { return s.g.Close() },
		} {
			t.Run(provider+"/"+what, func(t *testing.T) {
				s := stuck(t, provider)
				ctx := s.ctx()
				var pending []*group.Pending
				for range 8 {
					pending = append(pending, must(s.g.Write(ctx, 0, []byte("stuck")))(t))
				}
				full, cancel := context.WithCancel(ctx)
				cancel()
				if _, err := s.g.Write(full, 0, []byte("no room")); !errors.Is(err, context.Canceled) {
					t.Fatalf("beyond the window: %v", err)
				}
				check(t, end(s))
				for _, p := range pending {
					if _, err := p.Wait(ctx); !errors.Is(err, group.ErrBroken) && !errors.Is(err, group.ErrClosed) {
						t.Fatalf("a pending operation ended with %v", err)
					}
				}
				_, err := s.g.Write(ctx, 0, []byte("late"))
				if errors.Is(err, group.ErrBroken) && !strings.Contains(err.Error(), "replica 1 of 3 (replica-1)") || err == nil {
					t.Fatalf("the error is %v", err)
				}
			})
		}
	}
}

// stuck makes a chain of 3 whose second link carries nothing.
func stuck(t *testing.T, provider string) *scene {
	s := prepare(t, provider, 3)
	s.g = s.openStuck(group.Spec{Window: 8, MaxWrite: 64})
	return s
}

func (s *scene) openStuck(spec group.Spec) *group.Group {
	s.t.Helper()
	dom := must(s.client.NewDomain("nowhere"))(s.t)
	cq := must(dom.NewCQ(8))(s.t)
	q := must(dom.NewQP(fabric.QPConfig{SendCQ: cq, RecvCQ: cq}))(s.t)
	members := s.members()
	members[2] = deaf{s.replicas[2], q.Endpoint()}
	g := must(group.Open(s.ctx(), s.client, spec, members...))(s.t)
	s.t.Cleanup(func() { check(s.t, g.Close()) })
	return g
}

// boaster offers more memory than it has.
type boaster struct{ *group.Replica }

func (b boaster) Offer(ctx context.Context, s group.Spec) (group.Offer, error) {
	o, err := b.Replica.Offer(ctx, s)
	o.Data.Bytes *= 2
	return o, err
}

func TestReplicasRefuseWhatLiesOutsideOfTheirMemory(t *testing.T) {
	everywhere(t, func(t *testing.T, provider string, mode group.Mode) {
		for what, do := range map[string]func(g *group.Group, ctx context.Context) (*group.Pending, error){
			"gWRITE": func(g *group.Group, ctx context.Context) (*group.Pending, error) {
				return g.Write(ctx, memoryBytes-1, []byte("ab"))
			},
			"gCAS": func(g *group.Group, ctx context.Context) (*group.Pending, error) {
				return g.CAS(ctx, memoryBytes, 0, 1, 1)
			},
			"gMEMCPY": func(g *group.Group, ctx context.Context) (*group.Pending, error) {
				return g.Copy(ctx, 0, memoryBytes-1, 2)
			},
			"gFLUSH": func(g *group.Group, ctx context.Context) (*group.Pending, error) {
				return g.Flush(ctx, memoryBytes-1, 2)
			},
		} {
			t.Run(what, func(t *testing.T) {
				s := prepare(t, provider, 2)
				ctx := s.ctx()
				g := must(group.Open(ctx, s.client, group.Spec{Mode: mode}, boaster{s.replicas[0]}, boaster{s.replicas[1]}))(t)
				defer g.Close()
				p := must(do(g, ctx))(t)
				if _, err := p.Wait(ctx); !errors.Is(err, group.ErrBroken) {
					t.Fatalf("it ended with %v", err)
				}
			})
		}
	})
}

func TestTheClientRefusesWhatMakesNoSense(t *testing.T) {
	s := newScene(t, "inproc", group.Spec{MaxWrite: 100}, 2)
	g, ctx, big := s.g, s.ctx(), ^uint64(0)
	for what, err := range map[string]error{
		"no bytes":           second(g.Write(ctx, 0, nil)),
		"past the end":       second(g.Write(ctx, memoryBytes-1, []byte("ab"))),
		"far outside":        second(g.Write(ctx, big, []byte("ab"))),
		"too long":           second(g.Write(ctx, 0, make([]byte, 101))),
		"unaligned":          second(g.CAS(ctx, 4, 0, 1, 1)),
		"a third of two":     second(g.CAS(ctx, 8, 0, 1, 0b100)),
		"a word past it":     second(g.CAS(ctx, memoryBytes, 0, 1, 1)),
		"source outside":     second(g.Copy(ctx, 0, memoryBytes-1, 2)),
		"target outside":     second(g.Copy(ctx, memoryBytes-1, 0, 2)),
		"onto itself":        second(g.Copy(ctx, 10, 5, 6)),
		"wraps around":       second(g.Copy(ctx, 0, 16, big-8)),
		"flush of nothing":   second(g.Flush(ctx, 0, 0)),
		"flush past the end": second(g.Flush(ctx, 1, memoryBytes)),
	} {
		if !errors.Is(err, group.ErrRefused) {
			t.Errorf("%s: %v", what, err)
		}
	}
	s.ok(g.Write(ctx, 0, []byte("still whole")))
	s.want(0, []byte("still whole"))
}

func second(_ *group.Pending, err error) error { return err }

func TestAReplicaIsInOneGroupAtATime(t *testing.T) {
	for _, mode := range modes {
		t.Run(string(mode), func(t *testing.T) {
			s := newScene(t, "inproc", group.Spec{Mode: mode}, 2)
			ctx, spec := s.ctx(), group.Spec{Mode: mode}
			if _, err := group.Open(ctx, s.client, spec, s.members()...); err == nil || !strings.Contains(err.Error(), "in another group") {
				t.Fatalf("a second group: %v", err)
			}
			s.ok(s.g.Write(ctx, 0, []byte("first")))
			check(t, s.g.Close())
			for _, r := range s.replicas {
				wait(t, ctx, r.Left())
			}
			s.g = must(group.Open(ctx, s.client, spec, s.members()...))(t)
			defer s.g.Close()
			s.ok(s.g.Copy(ctx, 100, 0, 5))
			s.want(100, []byte("first"))
		})
	}
}

func TestGroupsThatCannotBeAreRefused(t *testing.T) {
	s := prepare(t, "inproc", 2)
	odd := must(fabric.NewMemory(2 * memoryBytes))(t)
	defer odd.Close()
	other := group.NewReplica(s.devs[1], odd)
	defer other.Leave()
	two := s.members()
	for want, open := range map[string]func() (*group.Group, error){
		"1 to 7 replicas, not 0": func() (*group.Group, error) { return group.Open(s.ctx(), s.client, group.Spec{}) },
		"no mode is called": func() (*group.Group, error) {
			return group.Open(s.ctx(), s.client, group.Spec{Mode: "tree"}, two...)
		},
		"window <= slots": func() (*group.Group, error) {
			return group.Open(s.ctx(), s.client, group.Spec{Window: 9, Slots: 8}, two...)
		},
		"MaxWrite of": func() (*group.Group, error) {
			return group.Open(s.ctx(), s.client, group.Spec{MaxWrite: 1 << 30}, two...)
		},
		"give them the same": func() (*group.Group, error) {
			return group.Open(s.ctx(), s.client, group.Spec{}, two[0], other)
		},
	} {
		if _, err := open(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func wait(t *testing.T, ctx context.Context, what <-chan struct{}) {
	t.Helper()
	select {
	case <-what:
	case <-ctx.Done():
		t.Fatal("it never ended")
	}
}

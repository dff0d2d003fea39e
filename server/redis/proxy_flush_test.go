package redis_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/internal/await"
	"github.com/ostrodb/ostro/server/redis"
)

// askedNode is a node of a town that is asked for the map, too. before runs before each answer, with how many there were.
type askedNode struct {
	*townNode

	plan   sync.Mutex // guards what the test sets
	town   *town
	asked  int
	before func(asked int) error
}

func (n *askedNode) Latest(done func(view.Map, error)) {
	n.plan.Lock()
	tw, asked, before := n.town, n.asked, n.before
	n.asked++
	n.plan.Unlock()
	go func() {
		var err error
		if before != nil {
			err = before(asked)
		}
		tw.mu.Lock()
		m := tw.m
		tw.mu.Unlock()
		done(m, err)
	}()
}

// set says what happens before the next answers.
func (n *askedNode) set(before func(asked int) error) {
	n.plan.Lock()
	defer n.plan.Unlock()
	n.asked, n.before = 0, before
}

// askedTown is a town of proxies whose nodes can be asked for the map.
func askedTown(t *testing.T, count int) (*town, []*askedNode) {
	var nodes []*askedNode
	tw := newTownWith(t, count, redis.Config{Proxy: true, Loops: 2, ClusterWait: patience}, func(n *townNode) redis.Cluster {
		nodes = append(nodes, &askedNode{townNode: n})
		return nodes[len(nodes)-1]
	})
	for _, n := range nodes {
		n.plan.Lock()
		n.town = tw
		n.plan.Unlock()
	}
	return tw, nodes
}

func TestAFlushThroughAProxyTakesWhatMovesToANodeThatHasFlushed(t *testing.T) {
	for _, flush := range []string{"flushall", "flushdb"} {
		t.Run(flush, func(t *testing.T) {
			tw, nodes := askedTown(t, 3)
			c := tw.dial(0)
			moving, other := tw.keyOf(1, 0), tw.keyOf(2, 0)
			ask(t, c, "set", moving, "1")
			ask(t, c, "set", other, "1")
			empty := func(n *askedNode) func() bool {
				return func() bool { keys, _ := n.st.Count(0); return keys == 0 }
			}
			nodes[1].set(func(asked int) error {
				if asked == 0 { // It is about to flush, and the other has.
					await.True(t, "the third node is empty", empty(nodes[2]))
					tw.move(slotRanges(moving), 1, 2)
				}
				return nil
			})
			// What the client sends behind it stays, however often nodes flush.
			got := converseAll(t, c, [][]string{{flush}, {"set", other, "2"}, {"get", moving}, {"get", other}})
			if want := []string{"+OK\r\n", "+OK\r\n", "$-1\r\n", "$1\r\n2\r\n"}; !slices.Equal(got, want) {
				t.Errorf("answers are %q, want %q", got, want)
			}
			if got := ask(t, c, "dbsize"); got != "1" {
				t.Errorf("%s keys are left", got)
			}
		})
	}
}

func TestAFlushThroughAProxyEndsThoughKeysMoveAllTheTime(t *testing.T) {
	tw, nodes := askedTown(t, 2)
	c := tw.dial(0)
	key := tw.keyOf(1, 0)
	nodes[1].set(func(asked int) error {
		tw.move(slotRanges(key), 1-asked%2, asked%2)
		return nil
	})
	if got := ask(t, c, "flushall"); !strings.HasPrefix(got, "TRYAGAIN") {
		t.Errorf("FLUSHALL is answered %q", got)
	}
	nodes[1].set(nil)
	if got := ask(t, c, "flushall"); got != "OK" {
		t.Errorf("FLUSHALL is answered %q", got)
	}
}

func TestAFlushIsRefusedWhereNobodyKnowsWhoOwnsWhat(t *testing.T) {
	tw, nodes := askedTown(t, 2)
	for _, broken := range nodes {
		broken.set(func(int) error { return errors.New("etcd is away") })
		for i := range nodes {
			if got := ask(t, tw.dial(i), "flushall"); !strings.Contains(got, "etcd is away") {
				t.Errorf("FLUSHALL is answered %q", got)
			}
		}
		broken.set(nil)
	}
}

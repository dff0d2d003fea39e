package call

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ostrodb/ostro/tenant/library"
)

// queue is some lines of a host in which time stands still.
type queue struct {
	t    *testing.T
	host Host
}

// stand has a call of a tenant stand in line at a key.
func (q *queue) stand(shelf *library.Shelf, key string) (p *place, starts bool) {
	task := &Task{host: &q.host, req: Request{Shelf: shelf, Keys: [][]byte{[]byte(key)}}}
	p = &place{task: task, crowd: task.crowd(), until: time.Now().Add(inLine)}
	return p, q.host.lines.join(p, &q.host)
}

func (q *queue) leaves(p *place, want ...*place) {
	q.t.Helper()
	if got := q.host.lines.leave(p, &q.host); !slices.Equal(got, want) {
		q.t.Errorf("%d calls are started, not %d", len(got), len(want))
	}
}

func TestWhoHasStoodInLineForLongRunsBesideTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{t: t}
		var ps []*place
		for i := range 5 {
			p, starts := q.stand(nil, "k")
			if starts != (i == 0) {
				t.Errorf("%d is started: %v", i, starts)
			}
			ps = append(ps, p)
		}
		ps[1].until, ps[2].until = time.Now(), time.Now()
		q.leaves(ps[3]) // It waits, and stays.
		q.leaves(ps[0], ps[1], ps[2], ps[3])
		q.leaves(ps[0])
		q.leaves(ps[1])
		q.leaves(ps[3], ps[4])
		q.leaves(ps[4])
		if l := &q.host.lines; len(l.of)+len(l.stand)+l.all != 0 {
			t.Errorf("somebody is left: %+v", l)
		}
	})
}

func TestATenantHasItsOwnRoomInLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{t: t}
		one, other := new(library.Shelf), new(library.Shelf)
		for i := range mostInLine {
			q.stand(one, fmt.Sprint(i%3))
		}
		if p, starts := q.stand(one, "0"); !starts || p.task.place != nil {
			t.Error("it stands in line, where there is no room")
		}
		first, starts := q.stand(other, "0")
		second, waits := q.stand(other, "0")
		if !starts || waits {
			t.Error("another tenant's calls do not stand in line")
		}
		q.leaves(first, second)
		if n := len(q.host.lines.close()); n != mostInLine-3 {
			t.Errorf("%d had not been started", n)
		}
	})
}

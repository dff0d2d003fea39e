package migrate

import (
	"context"
	"sync"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/peer"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/store"
)

// What the protocol promises of pulls, beside that all comes.

// questions are what a source was asked for of each piece.
type questions struct {
	t *testing.T

	mu    sync.Mutex
	next  map[view.Range]store.PullCursor // what the last answer said
	open  int                             // pieces that were begun and are not over
	most  int                             // of those
	whole int                             // pieces that are over
}

// begun checks that a question goes on where the answer to the one before it ended: it was sent after that.
func (q *questions) begun(ask *pull) {
	q.mu.Lock()
	defer q.mu.Unlock()
	last, before := q.next[ask.Range]
	if !before {
		q.open++
		q.most = max(q.most, q.open)
	}
	if ask.Cursor != last {
		q.t.Errorf("%v is asked for from %v on; the last answer ended at %v", ask.Range, ask.Cursor, last)
	}
}

// answered notes the end of an answer.
func (q *questions) answered(ask *pull, last *pulled) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.next[ask.Range] = last.Cursor
	if last.all() {
		q.open--
		q.whole++
	}
}

func TestOfEachPartitionOneQuestionIsUnderWay(t *testing.T) {
	for name, shared := range map[string]bool{"through memory": true, "over the wire": false} {
		t.Run(name, func(t *testing.T) {
			const n, partitions = 20_000, 6
			q := questions{t: t, next: map[view.Range]store.PullCursor{}}
			p := pullsOf(t, filled(t, n), 1000, partitions, meta.MigrationOptions{}, func(s *Source, to *peer.Server) {
				s.Handle(to)
				to.HandleQuietly(methodPull, func(ctx context.Context, c *peer.Call) (any, []byte, error) {
					var ask pull
					check(t, ask.decode(c.Head))
					q.begun(&ask)
					head, bulk, err := s.pull(ctx, c)
					var got pulled
					if err == nil && got.decode(head.(peer.Raw)) == nil {
						q.answered(&ask, &got)
					}
					return head, bulk, err
				})
				to.HandleQuietly(methodPullInto, func(ctx context.Context, c *peer.Call) (any, []byte, error) {
					var ask pullInto
					check(t, ask.decode(c.Head))
					q.begun(&ask.pull)
					head, bulk, err := s.pullInto(ctx, c)
					if err == nil {
						got, err := landedOf(head.(peer.Raw), int(ask.Pulls), nil)
						check(t, err)
						q.answered(&ask.pull, &got[len(got)-1].pulled)
					}
					return head, bulk, err
				})
			})
			p.m.o.SharedMemory = shared
			check(t, p.all(t.Context()))
			q.mu.Lock()
			defer q.mu.Unlock()
			if q.whole != partitions || q.open != 0 || q.most > partitions {
				t.Errorf("%d of %d partitions came as a whole, %d are open, %d were at a time", q.whole, partitions, q.open, q.most)
			}
		})
	}
}

func TestWhatClientsWaitForOvertakesPulls(t *testing.T) {
	const n, keys = 5000, 300
	held := make(chan struct{})
	holding := func(pull peer.Handler) peer.Handler {
		return func(ctx context.Context, c *peer.Call) (any, []byte, error) {
			select {
			case <-held:
			case <-ctx.Done():
			}
			return pull(ctx, c)
		}
	}
	p := pullsOf(t, filled(t, n), 1000, 4, meta.MigrationOptions{}, func(s *Source, to *peer.Server) {
		s.Handle(to)
		to.HandleQuietly(methodPull, holding(s.pull))
		to.HandleQuietly(methodPullInto, holding(s.pullInto))
	})
	over := make(chan error, 1)
	go func() { over <- p.all(context.WithoutCancel(t.Context())) }()
	ss := session(t, p.m.o.Store)
	for i := range keys {
		if st := readKey(t, ss, i); st != store.OK {
			t.Fatalf("key %d is %s", i, st)
		}
	}
	if got := p.m.records.Load(); got != keys || p.m.advances.Load() != 0 {
		t.Errorf("%d records came while pulls were held up, and %d answers to those", got, p.m.advances.Load())
	}
	close(held)
	check(t, <-over)
	if asked := p.m.asked.Load(); asked != keys {
		t.Errorf("%d keys were asked for, want %d: each once", asked, keys)
	}
}

// Two answers that are on their way at a time have nothing in common but the log.
func TestEntriesGoToTheWireFromWhereTheyLie(t *testing.T) {
	const n = 200
	shelf := NewShelf(filled(t, n))
	t.Cleanup(shelf.Close)
	m := meta.Migration{ID: 1, Source: "source", Target: "target", Ranges: view.RangesOf(view.Whole), Stage: meta.Moving}
	s := NewSource(given{m: m, shelf: shelf})
	var all [2][][]byte
	for i := range all {
		ask := pull{ID: 1, Range: view.Whole, Bytes: 1 << 20}
		c := peer.NewCall("target", ask.encode(nil), nil, nil)
		_, _, err := s.pull(t.Context(), c)
		check(t, err)
		pieces, sent := c.Gathered()
		defer sent()
		all[i] = pieces
	}
	if len(all[0]) != n || len(all[1]) != n {
		t.Fatalf("%d and %d entries of %d", len(all[0]), len(all[1]), n)
	}
	for i, piece := range all[0] {
		if unsafe.SliceData(piece) != unsafe.SliceData(all[1][i]) {
			t.Fatalf("entry %d was copied on its way", i)
		}
	}
}

func TestPullsGiveWayToClientsAndWhatTheyWaitForDoesNot(t *testing.T) {
	const n = 5000
	usual := niceness()
	var pulls, keys sync.Map // niceness of who answered
	noting := func(h peer.Handler, by *sync.Map) peer.Handler {
		return func(ctx context.Context, c *peer.Call) (any, []byte, error) {
			by.Store(niceness(), true)
			return h(ctx, c)
		}
	}
	p := pullsOf(t, filled(t, n), 1000, 4, meta.MigrationOptions{}, func(s *Source, to *peer.Server) {
		s.Handle(to)
		to.HandleQuietly(methodPullInto, noting(s.pullInto, &pulls))
		to.HandlePromptly(methodKeys, noting(s.keys, &keys))
	})
	ss := session(t, p.m.o.Store)
	for i := range 100 {
		readKey(t, ss, i)
	}
	check(t, p.all(t.Context()))
	pulls.Range(func(nice, _ any) bool {
		if nice.(int) <= usual {
			t.Errorf("a pull was answered at niceness %d; clients have %d", nice, usual)
		}
		return true
	})
	keys.Range(func(nice, _ any) bool {
		if nice.(int) > usual {
			t.Errorf("keys that clients wait for were answered at niceness %d; they have %d", nice, usual)
		}
		return true
	})
}

// niceness is that of this goroutine's thread.
func niceness() int {
	n, _ := unix.Getpriority(unix.PRIO_PROCESS, unix.Gettid())
	return 20 - n // The system call reports 20 less the niceness.
}

package redis_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/server/redis"
)

// While other keys come by the ten thousands, so that the index grows, and go
// again, KEYS and SCAN still show every key that stays, and KEYS shows none twice.
func TestKeysThatStayAreSeenWhileOthersComeAndGo(t *testing.T) {
	ctx := t.Context()
	c := goredis.NewClient(&goredis.Options{Addr: startOstro(t, redis.Config{Loops: 2}), ReadTimeout: patience})
	defer c.Close()
	var want []string
	for i := range 500 {
		want = append(want, fmt.Sprintf("stays:%03d", i))
		must(t, c.Set(ctx, want[i], i, 0).Err())
	}
	stop := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() { comeAndGo(t, ctx, c, stop) })
	for range 30 {
		keys := c.Keys(ctx, "stays:*").Val()
		slices.Sort(keys)
		if !slices.Equal(keys, want) {
			t.Fatalf("KEYS shows %d keys, %d of them different, want %d", len(keys), len(slices.Compact(keys)), len(want))
		}
		var scanned []string
		for it := c.Scan(ctx, 0, "stays:*", 1000).Iterator(); it.Next(ctx); {
			scanned = append(scanned, it.Val())
		}
		slices.Sort(scanned)
		if scanned = slices.Compact(scanned); !slices.Equal(scanned, want) {
			t.Fatalf("SCAN shows %d of %d keys", len(scanned), len(want))
		}
	}
	close(stop)
	writer.Wait()
}

// comeAndGo writes and deletes keys until it is told to stop.
func comeAndGo(t *testing.T, ctx context.Context, c *goredis.Client, stop <-chan struct{}) {
	for n := 0; ; n += 500 {
		select {
		case <-stop:
			return
		default:
		}
		if _, err := c.Pipelined(ctx, func(p goredis.Pipeliner) error {
			for i := range 500 {
				p.Set(ctx, "comes:"+strconv.Itoa(n+i), "and goes", 0)
				p.Del(ctx, "comes:"+strconv.Itoa(n+i-20_000))
			}
			return nil
		}); err != nil {
			t.Error(err)
			return
		}
	}
}

// nothingArrives is the source of a migration that is silent.
type nothingArrives struct{}

func (nothingArrives) Want([]store.ArrivingKey, func(error)) {}

func TestAScanDoesNotEndBeforeWhatIsOnItsWayIsThere(t *testing.T) {
	tw := newTown(t, 1, redis.Config{})
	for _, args := range [][]string{{"scan", "0", "count", "1000"}, {"keys", "*"}} {
		c := tw.dial(0)
		a, err := tw.nodes[0].st.Arrive(store.ArriveOptions{
			Ranges: []store.Range{{First: 0, Last: ^record.Place(0)}}, Ceiling: 7, Puller: nothingArrives{},
		})
		must(t, err)
		if got := ask(t, c, "dbsize"); got != "0" {
			t.Errorf("DBSIZE: %s", got)
		}
		must(t, c.send(args...))
		tw.nodes[0].waits(t, 1)
		if got := ask(t, tw.dial(0), "set", "late", "v"); got != "OK" {
			t.Fatal(got)
		}
		a.End()
		r, err := c.receive()
		must(t, err)
		if !strings.Contains(flat(r), "late") {
			t.Errorf("%q shows %s", args, flat(r))
		}
		ask(t, c, "flushall")
	}
}

// Its client tries again, and finds who has the keys by then.
func TestWhoWaitsForAKeyAtANodeThatStopsIsNotToldOfAFault(t *testing.T) {
	tw := newTown(t, 1, redis.Config{})
	a, err := tw.nodes[0].st.Arrive(store.ArriveOptions{
		Ranges: []store.Range{{First: 0, Last: ^record.Place(0)}}, Ceiling: 7, Puller: nothingArrives{},
	})
	must(t, err)
	defer a.End()
	c := tw.dial(0)
	must(t, c.send("get", "key"))
	tw.nodes[0].waits(t, 1)
	a.Release(store.ErrStopping)
	r, err := c.receive()
	must(t, err)
	if got := flat(r); !strings.HasPrefix(got, "CLUSTERDOWN Hash slot not served") {
		t.Errorf("the client is told %q", got)
	}
}

// A target that returns ranges does not know whose they are until its source has replayed, which may never be.
func TestAScanOfWhatIsReturnedWaitsAsLongAsOtherCommandsAndIsToldTheSame(t *testing.T) {
	tw := newTown(t, 1, redis.Config{ClusterWait: 50 * time.Millisecond})
	a, err := tw.nodes[0].st.Arrive(store.ArriveOptions{
		Ranges: []store.Range{{First: 0, Last: ^record.Place(0)}}, Ceiling: 7, Puller: nothingArrives{},
	})
	must(t, err)
	defer a.End()
	a.Release(nil)
	c := tw.dial(0)
	for _, args := range [][]string{{"scan", "0"}, {"keys", "*"}, {"randomkey"}} {
		if got := ask(t, c, args...); !strings.HasPrefix(got, "CLUSTERDOWN Hash slot not served") {
			t.Errorf("%q: %q", args, got)
		}
	}
	a.End()
	if got := ask(t, c, "set", "key", "v"); got != "OK" {
		t.Fatal(got)
	}
	if got := ask(t, c, "randomkey"); got != "key" {
		t.Errorf("after the end: %q", got)
	}
}

func TestAFlushOfWhatIsReturnedWaitsAsLongAsOtherCommandsAndIsToldTheSame(t *testing.T) {
	tw := newTownOn(t, 1, redis.Config{ClusterWait: 50 * time.Millisecond}, func() store.Options { return store.Options{Cluster: true} })
	c := tw.dial(0)
	if got := ask(t, c, "set", "key", "v"); got != "OK" {
		t.Fatal(got)
	}
	a, err := tw.nodes[0].st.Arrive(store.ArriveOptions{
		Ranges: []store.Range{{First: 0, Last: ^record.Place(0)}}, Ceiling: 7, Puller: nothingArrives{},
	})
	must(t, err)
	defer a.End()
	a.Release(nil)
	for _, args := range [][]string{{"flushall"}, {"flushdb"}} {
		if got := ask(t, c, args...); !strings.HasPrefix(got, "CLUSTERDOWN Hash slot not served") {
			t.Errorf("%q: %q", args, got)
		}
	}
	a.End()
	if got := ask(t, c, "flushall"); got != "OK" {
		t.Errorf("after the end: %q", got)
	}
	if got := ask(t, c, "exists", "key"); got != "0" {
		t.Errorf("after it was flushed: %q", got)
	}
}

// Ranges move, at any places, between the calls of a SCAN, and nodes lose all that they have and get other things. A slot
// with thousands of keys is cut again and again.
func TestAScanThroughAProxySeesAllKeysWhateverMoves(t *testing.T) {
	tw := newTown(t, 4, redis.Config{Proxy: true})
	tw.give(view.RangesOf(view.Whole), "n1")
	want := map[string]bool{}
	ss, err := tw.nodes[0].st.NewSession()
	must(t, err)
	ss.Begin()
	for i := range 6_000 {
		key := "key:" + strconv.Itoa(i)
		if i%2 == 0 {
			key = "{tag}" + key
		}
		want[key] = true
		k := ss.Key(0, []byte(key))
		if st := ss.Put(&k, store.Write{Value: []byte("v")}, nil); st != store.OK {
			t.Fatal(st)
		}
	}
	ss.Seal()
	ss.End()
	ss.Close()
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 16 { // Cuts right before and behind keys.
		at := record.PlaceOf(0, []byte("{tag}key:"+strconv.Itoa(100*i+2)))
		if i%2 == 0 {
			at++
		}
		tw.moveFrom(random, at, 1<<33)
	}
	c := tw.dial(3)
	for cursor, calls := "0", 0; calls == 0 || cursor != "0"; calls++ {
		if calls > 10_000 {
			t.Fatal("the scan has no end")
		}
		r, err := c.do("scan", cursor, "count", "200")
		must(t, err)
		if len(r.items) != 2 {
			t.Fatalf("SCAN %s: %s", cursor, flat(r))
		}
		cursor = r.items[0].text
		for _, k := range r.items[1].items {
			delete(want, k.text)
		}
		if cursor != "0" && (calls < 8 || calls%32 == 0) {
			tw.moveAny(random, cursor)
		}
	}
	if len(want) > 0 {
		t.Errorf("%d keys were not seen", len(want))
	}
}

// moveAny moves some places of a node to another: around where a SCAN is, or anywhere.
func (tw *town) moveAny(random *rand.Rand, cursor string) {
	at := record.Place(random.Uint64())
	if n, err := strconv.ParseUint(cursor, 10, 64); err == nil && random.IntN(2) == 0 {
		at = record.Place(n>>16)<<32 | record.Place(random.Uint32())
	}
	tw.moveFrom(random, at, math.MaxUint64)
}

// moveFrom moves some places from one on to another node, at most so many, or the rest of the span.
func (tw *town) moveFrom(random *rand.Rand, at record.Place, most uint64) {
	tw.mu.Lock()
	s := tw.m.Over(view.Range{First: at, Last: at})[0]
	tw.mu.Unlock()
	s.Range.First = at
	if size := min(uint64(s.Range.Last-at), most); size > 0 && (size == most || random.IntN(4) > 0) {
		s.Range.Last = at + record.Place(random.Uint64N(size))
	}
	from := slices.IndexFunc(tw.nodes, func(n *townNode) bool { return n.id == s.Owner })
	tw.move(view.RangesOf(s.Range), from, (from+1+random.IntN(len(tw.nodes)-1))%len(tw.nodes))
}

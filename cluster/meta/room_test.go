package meta

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
)

// rich is a payer whom nothing stops.
var rich = Payer{Name: "rich", Pace: Pace{Burst: 1 << 40, Rate: 1 << 40}}

func TestAPayerBringsABurstAndThenAsMuchAsItsPaceAllows(t *testing.T) {
	p := Payer{Name: "p", Pace: Pace{Burst: 100 << 20, Rate: 1 << 20}, Shares: true}
	var own, all bucket
	now := int64(1_000_000)
	for i := range 10 {
		if err := pay(&own, &all, p, 10<<20, now); err != nil {
			t.Fatalf("after %d of its burst: %v", i, err)
		}
	}
	var late *TooFastError
	if err := pay(&own, &all, p, 4<<20, now); !errors.As(err, &late) || late.All || late.After != 4*time.Second {
		t.Fatalf("beyond its burst: %v", err)
	}
	if err := pay(&own, &all, p, 4<<20, now-60_000); !errors.As(err, &late) {
		t.Errorf("a clock that is behind gives more: %v", err)
	}
	if err := pay(&own, &all, p, 4<<20, now+4000); err != nil {
		t.Errorf("when it was told to try again: %v", err)
	}
	if err := pay(&own, &all, p, 200<<20, now+3_600_000); err != nil || own.Left != -100<<20 {
		t.Errorf("more than a burst is never taken: %v, %d left", err, own.Left)
	}
	if all.Written != 304<<20 {
		t.Errorf("%d bytes were written", all.Written)
	}
}

func TestManyWhoBringMuchKeepNobodyOutWhoBringsLittle(t *testing.T) {
	pace := Pace{Burst: 64 << 20, Rate: 256 << 10}
	var all bucket
	now := int64(1_000_000)
	for range 4 {
		var own bucket
		if err := pay(&own, &all, Payer{Pace: pace, Shares: true}, 64<<20, now); err != nil {
			t.Fatal(err)
		}
	}
	var late *TooFastError
	var fifth, modest, operator bucket
	if err := pay(&fifth, &all, Payer{Pace: pace, Shares: true}, 64<<20, now); !errors.As(err, &late) || !late.All {
		t.Errorf("of all together too much is taken: %v", err)
	}
	if err := pay(&modest, &all, Payer{Pace: pace, Shares: true}, 4<<20, now); err != nil {
		t.Errorf("who has brought nothing is kept out: %v", err)
	}
	if err := pay(&operator, &all, Payer{Pace: pace}, 64<<20, now); err != nil {
		t.Errorf("the operator is kept out by tenants: %v", err)
	}
	err := pay(&operator, &all, Payer{Pace: pace}, 4<<20, now)
	wantError(t, err, "the operator may bring 64 MiB to the cluster at once, and 256 KiB a second from then on; try again in 16 s")
}

// bring brings blobs for a page that has no others.
func bring(ctx context.Context, a *Archive, p Payer, uses map[string]int, blobs map[string][]byte) error {
	d := Draft{Text: make([]byte, 10), Uses: uses}
	for _, b := range blobs {
		d.Holds += int64(len(b))
	}
	return a.Bring(ctx, p, Leaf{Name: "p"}, d, blobs)
}

func TestNothingIsBroughtThatALimitRefuses(t *testing.T) {
	s := open(t)
	a := s.Archive("things")
	ctx := patience(t)
	poor := Payer{Name: "poor", Pace: Pace{Burst: 1 << 20, Rate: 1}}
	blobs, uses := map[string][]byte{"x": make([]byte, 600<<10)}, map[string]int{"x": 1}
	ok(t, bring(ctx, a, poor, uses, blobs))
	var late *TooFastError
	err := bring(ctx, a, poor, map[string]int{"y": 1}, map[string][]byte{"y": make([]byte, 600<<10)})
	if !errors.As(err, &late) || has(t, a, "y") {
		t.Errorf("beyond the pace: %v, is there: %v", err, has(t, a, "y"))
	}
	ok(t, bring(ctx, a, rich, map[string]int{"y": 1}, map[string][]byte{"y": make([]byte, 600<<10)}))

	_, err = s.client.Put(ctx, a.prefix+archiveTotal, fmt.Sprint(archiveBytes))
	ok(t, err)
	err = bring(ctx, a, rich, map[string]int{"z": 1}, map[string][]byte{"z": {1}})
	if !errors.Is(err, ErrArchiveFull) || has(t, a, "z") {
		t.Errorf("beyond what all may have: %v, is there: %v", err, has(t, a, "z"))
	}
}

func TestAReplacementFitsAnArchiveThatIsFull(t *testing.T) {
	s := open(t)
	a := s.Archive("things")
	edited(t, a, "p", "one", map[string][]byte{"x": []byte("xx")}, map[string]int{"x": 1})
	_, err := s.client.Put(t.Context(), a.prefix+archiveTotal, fmt.Sprint(archiveBytes))
	ok(t, err)
	ok(t, bring(t.Context(), a, rich, map[string]int{"x": -1, "y": 1}, map[string][]byte{"y": []byte("yy")}))
	edited(t, a, "p", "two", nil, map[string]int{"x": -1, "y": 1})
}

func TestAFewWhoBringAllTheyMayLeaveRoomForManyOthers(t *testing.T) {
	const tenantBytes = 64 << 20
	var total int64
	var had []int64
	for range 100 {
		had = append(had, min(mostBeside(total), tenantBytes))
		total += had[len(had)-1]
	}
	for i, n := range had[:7] {
		if full := n == tenantBytes; full != (i < 6) {
			t.Errorf("tenant %d may have %d bytes", i, n)
		}
	}
	if had[6] != 8<<20 || had[22] < 2<<20 {
		t.Errorf("the seventh may have %d bytes, the 23rd %d", had[6], had[22])
	}
	if small := int64(10 << 10); mostBeside(total) < small || total+small > archiveBytes {
		t.Errorf("after 100 who took all they may, %d bytes in all, the next one may have %d", total, mostBeside(total))
	}
}

func TestTheLastQuarterIsForThoseWhoHaveLittle(t *testing.T) {
	s := open(t)
	a, ctx := s.Archive("things"), patience(t)
	_, err := s.client.Put(ctx, a.prefix+archiveTotal, fmt.Sprint(archiveBytes-spareBytes/2))
	ok(t, err)

	uses, much := map[string]int{"x": 1}, map[string][]byte{"x": make([]byte, 5<<20)}
	err = a.Bring(ctx, rich, Leaf{Name: "new"}, Draft{Text: []byte("one"), Uses: uses, Holds: 5 << 20}, much)
	wantError(t, err, "(512 MiB in all, the last 128 for those who have little): your modules would have 5242880 bytes together, and can have 4194304: install less, or ask the operator to make room")
	if !errors.Is(err, ErrArchiveFull) || has(t, a, "x") {
		t.Errorf("more than a share: %v, is there: %v", err, has(t, a, "x"))
	}

	little := map[string][]byte{"x": make([]byte, 1<<20)}
	old := edited(t, a, "old", "one", nil, nil)
	large, small := Draft{Text: []byte("two"), Uses: uses, Holds: 61 << 20}, Draft{Text: []byte("two"), Uses: uses, Holds: 1 << 20}
	err = a.Bring(ctx, rich, old, large, little)
	wantError(t, err, "would have 63963136 bytes together, and can have 8126464: delete some of yours, or install less")

	ok(t, a.Bring(ctx, rich, Leaf{Name: "new"}, small, little))
	if _, done, err := a.Write(ctx, old, large); done || !errors.Is(err, ErrArchiveFull) {
		t.Errorf("what others have brought is used by who has much: %v, %v", done, err)
	}
	if _, done, err := a.Write(ctx, Leaf{Name: "new"}, small); !done || err != nil {
		t.Errorf("who has little is refused: %v, %v", done, err)
	}
}

func TestBucketsThatAreFullAgainAreSwept(t *testing.T) {
	a := open(t).Archive("things")
	ok(t, a.charge(t.Context(), rich, 1))
	ok(t, a.sweepPaces(t.Context(), time.Now().UnixMilli()))
	left := func() int64 {
		resp, err := a.s.client.Get(t.Context(), a.prefix+archivePace+rich.Name, clientv3.WithCountOnly())
		ok(t, err)
		return resp.Count
	}
	if left() != 1 {
		t.Fatal("what was paid a moment ago is forgotten")
	}
	ok(t, a.sweepPaces(t.Context(), time.Now().Add(2*fullAfter).UnixMilli()))
	if left() != 0 {
		t.Error("what is full again stays")
	}
}

func TestAMemberIsCrampedWhenCodeWouldTakeItsUpperHalf(t *testing.T) {
	for _, c := range []struct {
		name               string
		file, inUse, quota int64
		cramped            bool
	}{
		{"little", 1 << 20, 1 << 20, 2 << 30, false},
		{"half in use", 1<<30 + 1, 1<<30 + 1, 2 << 30, true},
		{"a large file, most of it free", 3 << 29, 1 << 28, 2 << 30, false},
		{"a file that is nearly as large as it may be", 2<<30 - 1<<20, 1 << 28, 2 << 30, true},
		{"a quota that is not told", 1<<30 + 1, 0, 0, true},
		{"a large quota", 1<<30 + 1, 1<<30 + 1, 8 << 30, false},
		{"no quota", 1 << 40, 1 << 40, -1, false},
	} {
		if err := cramped("m", c.file, c.inUse, c.quota); (err != nil) != c.cramped {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func startSmall(t *testing.T, quota int64) *Embedded {
	t.Helper()
	e, err := StartEmbedded(patience(t), EmbeddedConfig{Dir: t.TempDir(), Log: quiet, adjust: func(ec *embed.Config) { ec.QuotaBackendBytes = quota }})
	ok(t, err)
	t.Cleanup(e.Close)
	return e
}

// replaceBlob has a page use another blob.
func replaceBlob(ctx context.Context, a *Archive, was, next string, b []byte) error {
	uses := map[string]int{next: 1}
	if was != "" {
		uses[was] = -1
	}
	if err := bring(ctx, a, rich, uses, map[string][]byte{next: b}); err != nil {
		return err
	}
	_, err := rewrite(ctx, a, "p", next, nil, uses)
	return err
}

func TestWhoeverBringsMuchLeavesRoomForLeasesInEtcd(t *testing.T) {
	const quota = 32 << 20
	s := openAt(t, startSmall(t, quota).Addr())
	configure(t, s, time.Minute)
	a, ctx := s.Archive("things"), patience(t)
	var full *CrampedError
	last := ""
	for i := 0; full == nil; i++ {
		next := fmt.Sprint("b", i)
		switch err := replaceBlob(ctx, a, last, next, bytes.Repeat([]byte{byte(i)}, 1<<20)); {
		case err == nil:
			last = next
		case !errors.As(err, &full):
			t.Fatalf("after %d replacements: %v", i, err)
		case i > quota>>20:
			t.Fatalf("%d replacements are taken", i)
		}
	}
	_, err := s.client.Grant(ctx, 60)
	ok(t, err)
	join(t, s, "n1")
	// Once etcd has forgotten the past there is room again.
	now := time.Now().UnixMilli()
	for err = s.room(ctx); errors.As(err, &full); err = s.room(ctx) {
		ok(t, s.forget(ctx, now))
		now += forgetEvery.Milliseconds()
	}
	ok(t, err)
	ok(t, replaceBlob(ctx, a, last, "last", make([]byte, 1<<20)))
}

func TestMuchThatIsBroughtMakesEtcdForgetThePast(t *testing.T) {
	s := openAt(t, startSmall(t, 0).Addr())
	a, ctx := s.Archive("things"), patience(t)
	old := edited(t, a, "p", "one", nil, nil)
	edited(t, a, "p", "two", nil, nil)
	isThere := func() bool {
		_, err := s.client.Get(ctx, a.prefix+archivePage+"p", clientv3.WithRev(old.Revision))
		if err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
			t.Fatal(err)
		}
		return err == nil
	}
	ok(t, a.charge(ctx, rich, compactBytes-1))
	if !isThere() {
		t.Fatal("it forgets for little")
	}
	ok(t, a.charge(ctx, rich, 1))
	if isThere() {
		t.Error("it remembers everything")
	}
}

func TestOneNodeHasEtcdForgetWhatWasReplacedAWhileAgo(t *testing.T) {
	s := openAt(t, startSmall(t, 0).Addr())
	a, ctx := s.Archive("things"), patience(t)
	kept := func(revision int64) bool {
		_, err := s.client.Get(ctx, a.prefix+archivePage+"p", clientv3.WithRev(revision))
		return err == nil
	}
	first := edited(t, a, "p", "one", nil, nil)
	now, step := time.Now().UnixMilli(), forgetEvery.Milliseconds()
	ok(t, s.forget(ctx, now))
	second := edited(t, a, "p", "two", nil, nil)
	ok(t, s.forget(ctx, now+1))
	if !kept(first.Revision) {
		t.Error("it forgets although it has a moment ago")
	}
	ok(t, s.forget(ctx, now+step))
	edited(t, a, "p", "three", nil, nil)
	ok(t, s.forget(ctx, now+2*step))
	if kept(first.Revision) || !kept(second.Revision+1) {
		t.Errorf("the first is kept: %v, the second: %v", kept(first.Revision), kept(second.Revision+1))
	}
}

func TestWhoFollowsAnArchiveAndFallsBehindReadsItAnew(t *testing.T) {
	direct := open(t).Archive("things")
	edited(t, direct, "p", "one", nil, nil)
	p := proxyTo(t, shared.Addr())
	ctx, cancel := context.WithCancel(t.Context())
	heard := make(chan Leaf, 100)
	var following sync.WaitGroup
	a := openAt(t, p.addr()).Archive("things")
	following.Go(func() {
		a.Follow(ctx, func(leaves []Leaf, _ int64) {
			for _, l := range leaves {
				heard <- l
			}
		})
	})
	<-heard
	p.cut()
	edited(t, direct, "p", "two", nil, nil)
	now := edited(t, direct, "p", "three", nil, nil)
	direct.s.compact(t.Context(), now.Revision)
	p.mend()
	for l := range heard {
		if l.Revision == now.Revision {
			break
		}
	}
	cancel()
	following.Wait()
}

package meta

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"testing"
)

// rewrite writes a page, again while others are faster, with blobs that it brings.
func rewrite(ctx context.Context, a *Archive, name, text string, blobs map[string][]byte, uses map[string]int) (Leaf, error) {
	for {
		for blob, b := range blobs {
			if err := a.PutBlob(ctx, blob, b); err != nil {
				return Leaf{}, err
			}
		}
		was, err := a.Page(ctx, name)
		if err != nil {
			return was, err
		}
		var b []byte
		if text != "" {
			b = []byte(text)
		}
		if now, done, err := a.Write(ctx, was, Draft{Text: b, Uses: uses}); done || err != nil {
			return now, err
		}
	}
}

func edited(t *testing.T, a *Archive, name, text string, blobs map[string][]byte, uses map[string]int) Leaf {
	t.Helper()
	now, err := rewrite(t.Context(), a, name, text, blobs, uses)
	check(t, err)
	return now
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func has(t *testing.T, a *Archive, blob string) bool {
	t.Helper()
	_, err := a.Blob(t.Context(), blob)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return err == nil
}

func TestABlobIsThereAsLongAsAPageUsesIt(t *testing.T) {
	a := open(t).Archive("things")
	large := bytes.Repeat([]byte("0123456789"), 150_000)
	edited(t, a, "p", "one", map[string][]byte{"x": large}, map[string]int{"x": 1})
	edited(t, a, "q", "two", map[string][]byte{"x": large}, map[string]int{"x": 2})
	if got, err := a.Blob(t.Context(), "x"); err != nil || !bytes.Equal(got, large) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	edited(t, a, "p", "", nil, map[string]int{"x": -1})
	edited(t, a, "q", "two", nil, map[string]int{"x": -1})
	if !has(t, a, "x") {
		t.Fatal("it is gone while it is used")
	}
	edited(t, a, "q", "", nil, map[string]int{"x": -1})
	if has(t, a, "x") {
		t.Error("it is there while nobody uses it")
	}
	if leaves, _, err := a.Read(t.Context()); err != nil || len(leaves) != 0 {
		t.Errorf("%+v, %v", leaves, err)
	}
	if total, err := a.s.client.Get(t.Context(), a.prefix+archiveTotal); err != nil || string(total.Kvs[0].Value) != "0" {
		t.Errorf("of nothing there are %v, %v", total.Kvs, err)
	}
}

func TestPagesThatManyChangeAtOnceCountTheirBlobsRight(t *testing.T) {
	a := open(t).Archive("things")
	var all sync.WaitGroup
	const many, times = 4, 5
	for n := range many {
		all.Go(func() {
			for i := range times {
				if _, err := rewrite(t.Context(), a, fmt.Sprint(n%2), fmt.Sprint(i), map[string][]byte{"x": []byte("x")}, map[string]int{"x": 1}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	u, _, err := a.use(t.Context(), "x")
	if err != nil || u.Users != many*times || u.Bytes != 1 {
		t.Errorf("%+v, %v", u, err)
	}
}

func TestPiecesThatNobodyCameToUseAreSwept(t *testing.T) {
	a := open(t).Archive("things")
	ctx := t.Context()
	check(t, a.PutBlob(ctx, "stray", []byte("s")))
	edited(t, a, "p", "one", map[string][]byte{"used": []byte("u")}, map[string]int{"used": 1})
	check(t, a.Sweep(ctx))
	if !has(t, a, "stray") {
		t.Fatal("it goes before whoever brought it had time to use it")
	}
	check(t, a.PutBlob(ctx, "late", []byte("l")))
	check(t, a.Sweep(ctx))
	if has(t, a, "stray") || !has(t, a, "late") || !has(t, a, "used") {
		t.Error("not what was stray all the time was swept, or more than that")
	}
	check(t, a.Sweep(ctx))
	was, err := a.Page(ctx, "q")
	check(t, err)
	if _, done, err := a.Write(ctx, was, Draft{Text: []byte("two"), Uses: map[string]int{"late": 1}}); err == nil && done {
		t.Error("a page uses what is not there")
	}
	edited(t, a, "q", "two", map[string][]byte{"late": []byte("l")}, map[string]int{"late": 1})
}

func TestWhoFollowsAnArchiveHearsOfEveryChange(t *testing.T) {
	a := open(t).Archive("things")
	edited(t, a, "before", "x", nil, nil)
	ctx, cancel := context.WithCancel(t.Context())
	heard := make(chan Leaf, 100)
	var following sync.WaitGroup
	following.Go(func() {
		a.Follow(ctx, func(leaves []Leaf, _ int64) {
			for _, l := range leaves {
				heard <- l
			}
		})
	})
	if l := <-heard; l.Name != "before" {
		t.Errorf("%+v", l)
	}
	now := edited(t, a, "p", "one", nil, nil)
	if l := <-heard; l.Name != "p" || string(l.Text) != "one" || l.Revision != now.Revision {
		t.Errorf("%+v", l)
	}
	now = edited(t, a, "p", "", nil, nil)
	if l := <-heard; l.Text != nil || l.Revision != now.Revision {
		t.Errorf("%+v", l)
	}
	cancel()
	following.Wait()
}

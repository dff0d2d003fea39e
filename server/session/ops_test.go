package session_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ostrodb/ostro/client"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/server/session"
)

// each runs a test on stores of all durabilities, with writes that have an identity and without.
func each(t *testing.T, f func(t *testing.T, c *client.Client)) {
	for _, d := range []store.Durability{store.None, store.EverySec, store.Always} {
		for _, unrecorded := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s,unrecorded=%v", d, unrecorded), func(t *testing.T) {
				so := store.Options{Durability: d, SegmentBytes: 1 << 20}
				if d != store.None {
					so.Dir = t.TempDir()
				}
				f(t, alone(t, so, client.Options{Unrecorded: unrecorded}))
			})
		}
	}
}

func TestWhatIsPutIsRead(t *testing.T) {
	each(t, func(t *testing.T, c *client.Client) {
		ctx := t.Context()
		var puts, gets []*client.Future
		for i := range 300 {
			key := fmt.Append(nil, "key", i)
			puts = append(puts, c.Put(ctx, 3, key, key))
		}
		for _, f := range puts {
			if _, err := f.Wait(); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 400 {
			gets = append(gets, c.Get(ctx, 3, fmt.Append(nil, "key", i)))
		}
		for i, f := range gets {
			r, err := f.Wait()
			if want := fmt.Sprint("key", i); i < 300 && (err != nil || string(r.Value) != want || r.Version == 0) || i >= 300 && !errors.Is(err, client.ErrNotFound) {
				t.Fatalf("%d: %q, %v", i, r.Value, err)
			}
		}
	})
}

func number(n int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(n)) }

// step is one operation and what it must say.
type step struct {
	op    client.Op
	value string
	err   error
	text  string // part of another error
}

func run(t *testing.T, c *client.Client, steps []step) {
	t.Helper()
	for i, s := range steps {
		r, err := c.Do(t.Context(), s.op)
		switch {
		case s.text != "" && (err == nil || !strings.Contains(err.Error(), s.text)):
			t.Fatalf("step %d: %v, want %q", i, err, s.text)
		case s.text == "" && !errors.Is(err, s.err):
			t.Fatalf("step %d: %v, want %v", i, err, s.err)
		case s.text == "" && string(r.Value) != s.value:
			t.Fatalf("step %d: %q, want %q", i, r.Value, s.value)
		}
	}
}

func TestEveryOperationDoesWhatItSays(t *testing.T) {
	k, long := []byte("k"), bytes.Repeat([]byte("x"), 5000)
	none, conflict := client.ErrNotFound, client.ErrConflict
	each(t, func(t *testing.T, c *client.Client) {
		run(t, c, []step{
			{op: client.Get(0, k), err: none},
			{op: client.Delete(0, k), err: none},
			{op: client.Put(0, k, []byte("v"))},
			{op: client.Get(0, k), value: "v"},
			{op: client.Get(1, k), err: none},
			{op: client.Append(0, k, []byte("w")), value: string(number(2))},
			{op: client.Get(0, k), value: "vw"},
			{op: client.Add(0, k, 1), text: "no counter"},
			{op: client.Swap(0, k, []byte("no"), []byte("z")), err: conflict, value: "vw"},
			{op: client.Swap(0, k, []byte("vw"), []byte("z"))},
			{op: client.Insert(0, k, []byte("y")), err: conflict, value: "z"},
			{op: client.Delete(0, k)},
			{op: client.Insert(0, k, []byte("y"))},
			{op: client.Get(0, k), value: "y"},
			{op: client.Swap(0, []byte("absent"), []byte("a"), []byte("b")), err: conflict},
			{op: client.Append(0, []byte("new"), []byte("ab")), value: string(number(2))},
			{op: client.Get(0, []byte("new")), value: "ab"},

			{op: client.Add(0, []byte("n"), 5), value: string(number(5))},
			{op: client.Add(0, []byte("n"), -7), value: string(number(-2))},
			{op: client.Merge(0, []byte("n"), "max", number(9)), value: string(number(9))},
			{op: client.Merge(0, []byte("n"), "max", number(-9)), value: string(number(9))},
			{op: client.Merge(0, []byte("n"), "min", number(-9)), value: string(number(-9))},
			{op: client.Merge(0, []byte("n"), "min", []byte("short")), text: "must have 8 bytes"},
			{op: client.Merge(0, []byte("bits"), "or", []byte{1, 2}), value: "\x01\x02"},
			{op: client.Merge(0, []byte("bits"), "or", []byte{4, 8, 16}), value: "\x05\x0a\x10"},
			{op: client.Merge(0, []byte("set"), "union", set("b", "d")), value: string(set("b", "d"))},
			{op: client.Merge(0, []byte("set"), "union", set("a", "b", "e")), value: string(set("a", "b", "d", "e"))},
			{op: client.Merge(0, []byte("set"), "union", set("b", "a")), text: "distinct members in order"},
			{op: client.Merge(0, []byte("set"), "nosuch", nil), text: "there is no merge function nosuch"},

			{op: client.Put(0, []byte("long"), long)},
			{op: client.Swap(0, []byte("long"), nil, nil), err: conflict}, // Too long to be shown.
			{op: client.Get(0, []byte("long")), value: string(long)},
			{op: client.Merge(0, []byte("long"), "or", []byte{0}), value: ""},

			{op: client.Get(99, k), text: "there is no such table"},
			{op: client.Invoke(0, k, "f", nil), text: "this server has no functions"},
		})
	})
}

func set(members ...string) (b []byte) {
	for _, m := range members {
		b = binary.LittleEndian.AppendUint16(b, uint16(len(m)))
		b = append(b, m...)
	}
	return b
}

func TestConditionsByVersionHoldOrTellWhatIsThere(t *testing.T) {
	each(t, func(t *testing.T, c *client.Client) {
		k, ctx := []byte("k"), t.Context()
		read := func() uint64 {
			r, err := c.Do(ctx, client.Get(0, k))
			if err != nil {
				t.Fatal(err)
			}
			return r.Version
		}
		run(t, c, []step{
			{op: client.Put(0, k, []byte("a")).IfVersion(1 << 60), err: client.ErrConflict},
			{op: client.Put(0, k, []byte("a")).IfVersion(0)},
			{op: client.Put(0, k, []byte("b")).IfVersion(0), err: client.ErrConflict},
		})
		first := read()
		if r, err := c.Do(ctx, client.Put(0, k, []byte("b")).IfVersion(first+1)); !errors.Is(err, client.ErrConflict) || r.Version != first {
			t.Fatalf("%+v, %v", r, err)
		}
		run(t, c, []step{{op: client.Append(0, k, []byte("b")).IfVersion(first), value: string(number(2))}})
		second := read()
		run(t, c, []step{
			{op: client.Delete(0, k).IfVersion(first), err: client.ErrConflict},
			{op: client.Get(0, k), value: "ab"},
			{op: client.Delete(0, k).IfVersion(second)},
			{op: client.Get(0, k), err: client.ErrNotFound},
			{op: client.Delete(0, k).IfVersion(second), err: client.ErrConflict},
			{op: client.Delete(0, k).IfVersion(0), err: client.ErrNotFound},
		})
		if second <= first {
			t.Fatalf("version %d came after %d", second, first)
		}
	})
}

func TestAWriteWithAnIdentityTellsItsVersion(t *testing.T) {
	c := alone(t, store.Options{}, client.Options{})
	for range 3 {
		put, err := c.Do(t.Context(), client.Put(0, []byte("k"), []byte("v")))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := c.Do(t.Context(), client.Get(0, []byte("k"))); err != nil || got.Version != put.Version {
			t.Fatalf("written %d, read %d, %v", put.Version, got.Version, err)
		}
	}
}

func TestRecordsExpireWhenTheyWereToldTo(t *testing.T) {
	each(t, func(t *testing.T, c *client.Client) {
		soon := time.Now().Add(time.Hour)
		run(t, c, []step{
			{op: client.Put(0, []byte("gone"), []byte("v")).ExpireAt(time.Now().Add(-time.Second))},
			{op: client.Get(0, []byte("gone")), err: client.ErrNotFound},
			{op: client.Put(0, []byte("k"), []byte("v")).ExpireAt(soon)},
			{op: client.Append(0, []byte("k"), []byte("w")), value: string(number(2))},
		})
		if r, err := c.Do(t.Context(), client.Get(0, []byte("k"))); err != nil || r.Expires != soon.UnixMilli() {
			t.Fatalf("%+v, %v", r, err)
		}
		run(t, c, []step{{op: client.Put(0, []byte("k"), []byte("v"))}})
		if r, err := c.Do(t.Context(), client.Get(0, []byte("k"))); err != nil || r.Expires != 0 {
			t.Fatalf("%+v, %v", r, err)
		}
	})
}

func TestManyKeysAreReadAndWrittenTogether(t *testing.T) {
	each(t, func(t *testing.T, c *client.Client) {
		ctx := t.Context()
		var entries []client.Entry
		var keys [][]byte
		for i := range 200 {
			keys = append(keys, fmt.Append(nil, "k", i))
			if i%3 != 0 {
				entries = append(entries, client.Entry{Key: keys[i], Value: fmt.Append(nil, "v", i)})
			}
		}
		if err := c.MultiPut(ctx, 0, entries...); err != nil {
			t.Fatal(err)
		}
		values, err := c.MultiGet(ctx, 0, keys)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range values {
			if i%3 == 0 && !errors.Is(v.Err, client.ErrNotFound) || i%3 != 0 && (v.Err != nil || string(v.Value) != fmt.Sprint("v", i)) {
				t.Fatalf("%d: %q, %v", i, v.Value, v.Err)
			}
		}
		if values, err := c.MultiGet(ctx, 0, nil); err != nil || len(values) != 0 {
			t.Fatalf("%v, %v", values, err)
		}
	})
}

func TestManyGroupsAreUnderWayAtOnce(t *testing.T) {
	each(t, func(t *testing.T, c *client.Client) {
		const groups, size = 20, 50
		var puts, gets [groups]*client.Pending[[]client.Value]
		var keys [groups][][]byte
		for i := range groups {
			var entries []client.Entry
			for j := range size {
				keys[i] = append(keys[i], fmt.Append(nil, i, "-", j))
				entries = append(entries, client.Entry{Key: keys[i][j], Value: fmt.Append(nil, i*j)})
			}
			puts[i] = c.GoMultiPut(t.Context(), 0, entries...)
		}
		for i := range groups {
			if _, err := puts[i].Wait(); err != nil {
				t.Fatal(err)
			}
		}
		called := make(chan int, groups)
		for i := range groups {
			gets[i] = c.GoMultiGet(t.Context(), 0, keys[i])
			gets[i].Then(func(v []client.Value, err error) { called <- len(v) })
		}
		for range groups {
			if n := <-called; n != size {
				t.Fatalf("%d values", n)
			}
		}
		for i := range groups {
			values, err := gets[i].Wait()
			if err != nil {
				t.Fatal(err)
			}
			for j, v := range values {
				if v.Err != nil || string(v.Value) != fmt.Sprint(i*j) {
					t.Fatalf("%d-%d: %q, %v", i, j, v.Value, v.Err)
				}
			}
		}
	})
}

func TestAScanShowsEveryRecordOnce(t *testing.T) {
	each(t, func(t *testing.T, c *client.Client) {
		want := map[string]string{}
		var puts []*client.Future
		for i := range 600 {
			k, v := fmt.Sprint("key", i), fmt.Sprint("value", i)
			want[k] = v
			puts = append(puts, c.Put(t.Context(), 2, []byte(k), []byte(v)), c.Put(t.Context(), 1, []byte(k), nil))
		}
		for _, f := range puts {
			if _, err := f.Wait(); err != nil {
				t.Fatal(err)
			}
		}
		for _, keys := range []bool{false, true} {
			got := map[string]string{}
			for rec, err := range c.Scan(t.Context(), 2, client.ScanOptions{Keys: keys, Page: 70}) {
				if err != nil {
					t.Fatal(err)
				}
				if _, twice := got[string(rec.Key)]; twice || rec.Version == 0 {
					t.Fatalf("%s twice, or without a version: %+v", rec.Key, rec)
				}
				got[string(rec.Key)] = string(rec.Value)
			}
			for k, v := range want {
				if keys {
					v = ""
				}
				if shown, ok := got[k]; !ok || shown != v {
					t.Fatalf("%s is %q, want %q", k, shown, v)
				}
			}
			if len(got) != len(want) {
				t.Fatalf("%d of %d", len(got), len(want))
			}
		}
	})
}

func TestValuesMayBeLargerThanASegment(t *testing.T) {
	each(t, func(t *testing.T, c *client.Client) {
		large := bytes.Repeat([]byte("0123456789abcdef"), 3<<19/16)
		run(t, c, []step{
			{op: client.Put(0, []byte("large"), large)},
			{op: client.Get(0, []byte("large")), value: string(large)},
		})
	})
}

func TestAServersOwnMergeFunctionsAreFoundByName(t *testing.T) {
	_, addr := serve(t, openStore(t, store.Options{}), session.Options{Merges: map[string]session.Merge{
		"first": func(dst, old []byte, exists bool, operand []byte) ([]byte, error) {
			if exists {
				return append(dst, old...), nil
			}
			return append(dst, operand...), nil
		},
	}})
	c := dial(t, "ostro://"+addr, client.Options{Unrecorded: true})
	run(t, c, []step{
		{op: client.Merge(0, []byte("k"), "first", []byte("a")), value: "a"},
		{op: client.Merge(0, []byte("k"), "first", []byte("b")), value: "a"},
		{op: client.Merge(0, []byte("n"), "max", number(1)), value: string(number(1))},
	})
}

func TestKeysAndValuesBeyondTheirLimitsAreRefusedWithASentence(t *testing.T) {
	c := alone(t, store.Options{}, client.Options{Unrecorded: true})
	if _, err := c.Do(t.Context(), client.Get(0, make([]byte, 1<<20))); !errors.Is(err, client.ErrTooLarge) {
		t.Fatal(err)
	}
	if err := c.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestACallbackMayBeginTheNextOperation(t *testing.T) {
	c := alone(t, store.Options{}, client.Options{Unrecorded: true, MaxInFlight: 1})
	done := make(chan error, 1)
	var next func(n int) func(client.Result, error)
	next = func(n int) func(client.Result, error) {
		return func(r client.Result, err error) {
			if err != nil || n == 1000 {
				done <- err
				return
			}
			c.Call(context.Background(), client.Add(0, []byte("n"), 1), next(n+1))
		}
	}
	c.Call(t.Context(), client.Add(0, []byte("n"), 1), next(1))
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	run(t, c, []step{{op: client.Get(0, []byte("n")), value: string(number(1000))}})
}

func TestPingsAreAnswered(t *testing.T) {
	c := alone(t, store.Options{}, client.Options{})
	if err := c.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
}

package store_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/store"
)

const private = store.FirstPrivate

func openPrivate(t *testing.T, st *store.Store, dbs ...int) {
	t.Helper()
	if err := st.OpenPrivate(dbs...); err != nil {
		t.Fatal(err)
	}
}

func TestPrivateDatabasesKeepApartWhatTheyHold(t *testing.T) {
	forAll(t, func(t *testing.T, o store.Options) {
		st := open(t, o)
		ss := session(t, st)
		openPrivate(t, st, private, private+300)
		for db, value := range map[int]string{0: "public", private: "first", private + 300: "second"} {
			put(t, ss, db, "k", value, 0)
		}
		for db, value := range map[int]string{0: "public", private: "first", private + 300: "second"} {
			if got := get(t, ss, db, "k"); got != value {
				t.Errorf("database %d has %q, want %q", db, got, value)
			}
			if keys, _ := st.Count(db); keys != 1 {
				t.Errorf("database %d has %d keys, want 1", db, keys)
			}
		}
		if err := st.TruncateAll(); err != nil {
			t.Fatal(err)
		}
		if get(t, ss, 0, "k") != "(absent)" || get(t, ss, private, "k") != "first" {
			t.Error("emptying all databases spares private ones, and no others")
		}
		if err := st.DropPrivate(t.Context(), private); err != nil {
			t.Fatal(err)
		}
		openPrivate(t, st, private)
		if got := get(t, ss, private, "k"); got != "(absent)" {
			t.Errorf("a dropped database has %q", got)
		}
	})
}

func TestPrivateDatabasesAreThereAfterARestart(t *testing.T) {
	for _, snapshot := range []bool{false, true} {
		t.Run(fmt.Sprint("snapshot=", snapshot), func(t *testing.T) {
			dev := device.NewMemory()
			t.Cleanup(dev.Close)
			o := store.Options{Device: dev, Durability: store.EverySec}
			st := open(t, o)
			ss := session(t, st)
			const many = 600 // More than a snapshot can number.
			for n := range many {
				openPrivate(t, st, private+n)
				put(t, ss, private+n, "k", strings.Repeat("x", 10+n), 0)
			}
			if err := st.DropPrivate(t.Context(), private+7); err != nil {
				t.Fatal(err)
			}
			if snapshot {
				if err := st.Checkpoint(context.Background()); err != nil {
					t.Fatal(err)
				}
			}
			bytes := st.Bytes(private + 500)
			again := o
			again.Device = dev.Crash()
			st = open(t, again)
			ss = session(t, st)
			if open := st.Private(); len(open) != many-1 || slices.Contains(open, private+7) {
				t.Fatalf("%d databases are open after a restart, want %d without number 7", len(open), many-1)
			}
			for n := range many {
				if n == 7 {
					continue
				}
				keys, _ := st.Count(private + n)
				if got := get(t, ss, private+n, "k"); len(got) != 10+n || keys != 1 {
					t.Fatalf("database %d has %d keys and %q", n, keys, got)
				}
			}
			if got := st.Bytes(private + 500); got != bytes {
				t.Errorf("its records take %d bytes, want %d as before", got, bytes)
			}
		})
	}
}

func TestANodeOfAClusterTakesRecordsOfPrivateDatabasesThatItHasNotHeardOf(t *testing.T) {
	dev := device.NewMemory()
	t.Cleanup(dev.Close)
	o := store.Options{Device: dev, Durability: store.EverySec, Cluster: true}
	st := open(t, o)
	ss := session(t, st)
	openPrivate(t, st, private+5)
	put(t, ss, private+5, "k", "v", 0)
	if key := ss.Key(private+5, nil); key.Table != private+5 {
		t.Errorf("its table is %d: heirs would not know it", key.Table)
	}
	o.Device = dev.Crash()
	st = open(t, o)
	ss = session(t, st)
	openPrivate(t, st, private+5) // Only now: the replay did not know of it.
	if got := get(t, ss, private+5, "k"); got != "v" {
		t.Errorf("after a restart the record is %q", got)
	}
	if err := st.DropPrivate(t.Context(), private+5); err != nil {
		t.Fatal(err)
	}
	if got := get(t, ss, private+5, "k"); got != "(absent)" {
		t.Errorf("a dropped database has %q", got)
	}
}

func TestTheBytesOfADatabaseAreThoseOfItsRecords(t *testing.T) {
	forAll(t, func(t *testing.T, o store.Options) {
		st := open(t, o)
		ss := session(t, st)
		if n := st.Bytes(1); n != 0 {
			t.Fatalf("an empty database takes %d bytes", n)
		}
		put(t, ss, 1, "k", strings.Repeat("x", 100), 0)
		one := st.Bytes(1)
		if one < 100 || one > 200 {
			t.Errorf("a record of 100 bytes takes %d", one)
		}
		put(t, ss, 1, "k", strings.Repeat("x", 1000), 0)
		put(t, ss, 1, "large", strings.Repeat("x", 200_000), 0)
		if n := st.Bytes(1); n < 201_000 || n > 202_000 {
			t.Errorf("records of 201,000 bytes take %d", n)
		}
		remove(t, ss, 1, "large")
		put(t, ss, 1, "k", strings.Repeat("x", 100), 0)
		if n := st.Bytes(1); n != one {
			t.Errorf("%d bytes are left, want %d", n, one)
		}
		remove(t, ss, 1, "k")
		if n := st.Bytes(1); n != 0 {
			t.Errorf("%d bytes are left of nothing", n)
		}
	})
}

package store_test

import (
	"testing"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/store"
)

// absences are ways to learn that a key is not there.
func absences() map[string]func(*store.Session, *store.Key) store.Status {
	return map[string]func(*store.Session, *store.Key) store.Status{
		"get": func(ss *store.Session, k *store.Key) store.Status {
			_, st := ss.Get(k)
			return st
		},
		"batch": func(ss *store.Session, k *store.Key) store.Status {
			var views [1]store.View
			var st [1]store.Status
			ss.GetBatch([]store.Key{*k}, views[:], st[:])
			return st[0]
		},
		"delete": func(ss *store.Session, k *store.Key) store.Status { return ss.Delete(k, nil) },
		"transaction": func(ss *store.Session, k *store.Key) store.Status {
			if st := ss.Lock([]store.Key{*k}); st != store.OK {
				return st
			}
			defer ss.Abort()
			_, st := ss.Get(k)
			return st
		},
	}
}

// deletions are ways to make it so, without a seal.
func deletions() map[string]func(*store.Session, *store.Key) store.Status {
	return map[string]func(*store.Session, *store.Key) store.Status{
		"delete": func(ss *store.Session, k *store.Key) store.Status { return ss.Delete(k, nil) },
		"transaction": func(ss *store.Session, k *store.Key) store.Status {
			if st := ss.Lock([]store.Key{*k}); st != store.OK {
				return st
			}
			ss.Delete(k, nil)
			return ss.Commit()
		},
	}
}

func TestAnAbsenceThatWasToldLasts(t *testing.T) {
	for how, remove := range deletions() {
		for name, look := range absences() {
			t.Run(how+" seen by "+name, func(t *testing.T) {
				dev := device.NewMemory()
				o := store.Options{Device: dev, Durability: store.Always, Heads: 4}
				st := open(t, o)
				one, other := session(t, st), session(t, st)
				k := one.Key(0, []byte("k"))
				one.Begin()
				one.Put(&k, store.Write{Value: []byte("v")}, nil)
				written := one.Seal()
				one.End()
				if err := one.WaitDurable(written); err != nil {
					t.Fatal(err)
				}

				one.Begin()
				if s := remove(one, &k); s != store.OK {
					t.Fatal(s, one.Err())
				}
				other.Begin()
				if s := look(other, &k); s != store.NotFound {
					t.Fatal(s, other.Err())
				}
				told := other.Seal()
				other.End()
				if err := other.WaitDurable(told); err != nil {
					t.Fatal(err)
				}
				o.Device = dev.PowerLoss(losingAll())
				one.Seal()
				one.End()
				if got := readKey(t, session(t, open(t, o)), 0, []byte("k")); got != nil {
					t.Fatalf("%q came back after somebody was told that it is gone", got)
				}
			})
		}
	}
}

func TestACrashKeepsNothingThatWasBuiltOnALostAbsence(t *testing.T) {
	for how, remove := range deletions() {
		for name, look := range absences() {
			t.Run(how+" seen by "+name, func(t *testing.T) {
				dev := device.NewMemory()
				o := store.Options{Device: dev, Durability: store.EverySec, Heads: 4}
				st := open(t, o)
				one, other := session(t, st), session(t, st)
				k, gone := one.Key(0, []byte("k")), one.Key(0, []byte("gone"))
				one.Begin()
				one.Put(&k, store.Write{Value: []byte("v")}, nil)
				one.Seal()
				one.End()

				one.Begin()
				remove(one, &k)
				other.Begin()
				if s := look(other, &k); s != store.NotFound {
					t.Fatal(s, other.Err())
				}
				other.Put(&gone, store.Write{Value: []byte("yes")}, nil)
				other.Seal()
				other.End()
				o.Device = dev.Crash() // The first round is still under way.
				one.Seal()
				one.End()
				ss := session(t, open(t, o))
				if readKey(t, ss, 0, []byte("gone")) != nil && readKey(t, ss, 0, []byte("k")) != nil {
					t.Fatal("the key is there, and the note that it is gone")
				}
			})
		}
	}
}

func TestADeletionTellsOfWhatItDeleted(t *testing.T) {
	dev := device.NewMemory()
	o := store.Options{Device: dev, Durability: store.Always, Heads: 4}
	st := open(t, o)
	one, other := session(t, st), session(t, st)
	k, beside := one.Key(0, []byte("k")), one.Key(0, []byte("beside"))
	one.Begin()
	one.Put(&beside, store.Write{Value: []byte("v")}, nil)
	one.Put(&k, store.Write{Value: []byte("v")}, nil)
	other.Begin()
	if s := other.Delete(&k, nil); s != store.OK {
		t.Fatal(s)
	}
	told := other.Seal()
	other.End()
	if err := other.WaitDurable(told); err != nil {
		t.Fatal(err)
	}
	o.Device = dev.PowerLoss(losingAll())
	one.Seal()
	one.End()
	if readKey(t, session(t, open(t, o)), 0, []byte("beside")) == nil {
		t.Fatal("somebody was told that a key was there, and what was written with it is lost")
	}
}

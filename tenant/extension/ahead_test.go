package extension

import (
	"bytes"
	"encoding/binary"
	"os"
	"testing"
)

// foretold is a store that was told what will be read, and holds everybody to it.
type foretold struct {
	nothing
	t     *testing.T
	told  [][]byte // the bytes at that time
	times int      // that it was told something
}

func (s *foretold) Ahead(_ uint32, keys [][]byte) {
	s.told = nil
	for _, k := range keys {
		s.told = append(s.told, bytes.Clone(k))
	}
	if len(keys) > 0 {
		s.times++
	}
}

// Get finds that every key's value is eight letters.
func (s *foretold) Get(_ uint32, key, buf []byte, v *Value) Status {
	if len(s.told) > 0 {
		if !bytes.Equal(key, s.told[0]) {
			s.t.Errorf("%q is read, and %q was told", key, s.told[0])
		}
		s.told = s.told[1:]
	}
	v.Len, v.Version = copy(buf, "xxxxxxxx"), 1
	return OK
}

func TestAMultigetTellsOnlyKeysThatItsResultsCannotChange(t *testing.T) {
	const list, keys, results, room = 0, 64, 256, 512
	for _, c := range []struct {
		name          string
		results, room uint64
		roomBytes     uint64
		times         int
	}{
		{"apart", results, room, 64, 1},
		{"values over keys", results, keys, 64, 0},
		{"results over keys", keys, room, 64, 0},
		{"the last key within the room", results, keys + 8*3, 64, 0},
		{"a room that ends before the keys", results, list + 32, 32, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &foretold{t: t}
			in := &instance{}
			in.mem.buf = make([]byte, 1024)
			for i := range 4 {
				binary.LittleEndian.PutUint32(in.mem.buf[list+8*i:], uint32(keys+8*i))
				binary.LittleEndian.PutUint32(in.mem.buf[list+8*i+4:], 8)
				copy(in.mem.buf[keys+8*i:], "key0000")
				in.mem.buf[keys+8*i+7] = byte('0' + i)
			}
			limits := DefaultLimits().Call
			task := &Task{}
			task.begin(in, &Invocation{Store: s, Ahead: s}, &limits)
			task.hostMultiget([]uint64{0, list, 4, c.results, c.room, c.roomBytes})
			if s.times != c.times {
				t.Errorf("the store was told %d times, want %d", s.times, c.times)
			}
			if len(s.told) > 0 {
				t.Errorf("%d keys are still expected", len(s.told))
			}
		})
	}
}

// Who follows links from record to record may read each value over the key that named it. What the commit compares is what
// was read, not what lies there now.
func TestAReadIsRememberedByItsKeyWhereverItsValueGoes(t *testing.T) {
	const list, keys, results = 0, 64, 256
	for _, c := range []struct {
		name string
		room uint64
	}{
		{"apart", 512}, {"over the key", keys}, {"over its end", keys + 7}, {"over its beginning", keys - 7},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := &instance{}
			in.mem.buf = make([]byte, 1024)
			binary.LittleEndian.PutUint32(in.mem.buf[list:], keys)
			binary.LittleEndian.PutUint32(in.mem.buf[list+4:], 8)
			limits := DefaultLimits().Call
			for _, call := range []func(*Task){
				func(task *Task) { task.hostGet([]uint64{0, keys, 8, c.room, 8}) },
				func(task *Task) { task.hostMultiget([]uint64{0, list, 1, results, c.room, 8}) },
			} {
				copy(in.mem.buf[keys:], "key00000")
				task := &Task{}
				task.begin(in, &Invocation{Store: &foretold{t: t}}, &limits)
				call(task)
				if got := string(in.mem.buf[c.room : c.room+8]); got != "xxxxxxxx" {
					t.Errorf("the value is %q", got)
				}
				if reads := task.changes.Reads; len(reads) != 1 || string(reads[0].Key) != "key00000" {
					t.Errorf("it remembers %+v", reads)
				}
			}
		})
	}
}

func TestWhereACallLooksIsFoundInTheRuntime(t *testing.T) {
	m := compileWork(t)
	p, err := m.NewPool(DefaultLimits(), PoolOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	var l Lease
	defer l.End()
	var res Result
	if err := l.Call(p, &Invocation{Function: "empty", Store: nothing{}}, &res); err != nil {
		t.Fatal(err)
	}
	// The engine before and behind its registers, its stack, its module's engine, what code refers to, and whether it is closed.
	if got := l.in.findEngine(); len(got) != 6 {
		t.Errorf("%d of 6 pieces are found: a new version of the runtime may have other names", len(got))
	}
}

func compileWork(t *testing.T) *Module {
	t.Helper()
	r, err := NewRuntime(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close(t.Context()) })
	code, err := os.ReadFile("testdata/work.wasm")
	if err != nil {
		t.Fatal(err)
	}
	m, err := r.Compile(t.Context(), code, DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

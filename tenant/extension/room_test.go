package extension

import (
	"bytes"
	"errors"
	"testing"
)

// copier is a store that has to copy values, and counts how many it did.
type copier struct {
	nothing
	bytes, copies int
}

func (s *copier) Get(_ uint32, _, buf []byte, v *Value) Status {
	v.Len, v.Version, v.Whole = s.bytes, 1, nil
	if s.bytes > len(buf) && v.Room(s.bytes) {
		s.copies++
		v.Whole = make([]byte, s.bytes)
	}
	return OK
}

// strict is an allowance that lets calls keep so many bytes.
type strict struct {
	till
	held, most int64
}

var errStrict = errors.New("no more")

func (a *strict) Hold(n int64) error {
	if a.held+n > a.most {
		return errStrict
	}
	a.held += n
	return nil
}

func (a *strict) Release(n int64) { a.held -= n }

// stopped is why a host call ended its guest; nil: it did not.
func stopped(f func()) (e *CallError) {
	defer func() {
		if r := recover(); r != nil {
			e = r.(*CallError)
		}
	}()
	f()
	return nil
}

func TestAValueThatACallMayNotKeepIsNotCopied(t *testing.T) {
	money := &strict{most: 2 << 20}
	in := &instance{pool: &Pool{opts: PoolOptions{Memory: money}}}
	in.mem.buf = make([]byte, 1024)
	limits := DefaultLimits().Call
	for name, get := range map[string]func(*Task){
		"get":      func(task *Task) { task.hostGet([]uint64{0, 0, 3, 512, 8}) },
		"multiget": func(task *Task) { task.hostMultiget([]uint64{0, 0, 1, 256, 512, 8}) },
	} {
		task, s := &Task{}, &copier{bytes: 1 << 20}
		task.begin(in, &Invocation{Store: s}, &limits)
		for range 2 {
			if e := stopped(func() { get(task) }); e != nil {
				t.Fatalf("%s: %v", name, e)
			}
		}
		if e := stopped(func() { get(task) }); e == nil || e.Kind != OverLimit || s.copies != 2 {
			t.Errorf("%s: the third of three values that two have room for: %v, and %d copies", name, e, s.copies)
		}
		if task.end(); money.held != 0 {
			t.Errorf("%s: %d bytes are still held", name, money.held)
		}
		s.bytes = limits.ViewBytes + 1
		task.begin(in, &Invocation{Store: s}, &limits)
		if e := stopped(func() { get(task) }); e == nil || s.copies != 2 {
			t.Errorf("%s: a value that is too large for any call: %v, and %d copies", name, e, s.copies)
		}
		task.end()
	}
}

func TestTheBeginningOfArgumentsIsThatOfAllOfThem(t *testing.T) {
	inv := &Invocation{Keys: [][]byte{[]byte("key"), nil}, Args: [][]byte{[]byte("one"), []byte("three")}}
	all := make([]byte, argsLen(inv))
	putArgs(all, inv)
	for n := range len(all) + 1 {
		part := bytes.Repeat([]byte{'.'}, n)
		if putSomeArgs(part, inv); !bytes.Equal(part, all[:n]) {
			t.Errorf("%d bytes are %q, want %q", n, part, all[:n])
		}
	}
}

func TestTheBeginningOfManyArgumentsMakesNoGarbage(t *testing.T) {
	inv := &Invocation{Args: [][]byte{make([]byte, 15<<20)}}
	in := &instance{}
	in.mem.buf = make([]byte, 16)
	limits := DefaultLimits().Call
	limits.Fuel = 1 << 60
	task := &Task{}
	task.begin(in, inv, &limits)
	task.argsLen = argsLen(inv)
	stack := make([]uint64, 2)
	if n := testing.AllocsPerRun(10, func() { stack[0], stack[1] = 0, 1; task.hostArgs(stack) }); n > 0 {
		t.Errorf("%v allocations a call", n)
	}
}

// A value that does not fit is not copied at all, the call's own no less than others.
func TestAnOwnValueThatDoesNotFitLeavesTheBufferAlone(t *testing.T) {
	const key, list, results, room = 0, 16, 32, 64
	for name, get := range map[string]func(*Task){
		"get":      func(task *Task) { task.hostGet([]uint64{0, key, 3, room, 8}) },
		"multiget": func(task *Task) { task.hostMultiget([]uint64{0, list, 1, results, room, 8}) },
	} {
		in := &instance{pool: &Pool{}}
		in.mem.buf = make([]byte, 1024)
		in.mem.buf[list+4] = 3
		limits := DefaultLimits().Call
		task := &Task{}
		task.begin(in, &Invocation{Store: nothing{}}, &limits)
		task.write(Write{Key: make([]byte, 3), Value: []byte("nine more")})
		get(task)
		if got := in.mem.buf[room : room+9]; !bytes.Equal(got, make([]byte, 9)) {
			t.Errorf("%s has left %q", name, got)
		}
		if len(task.views) != 1 || string(task.views[0]) != "nine more" {
			t.Errorf("%s keeps %q", name, task.views)
		}
	}
}

package extension

import "fmt"

// Lease is an instance that one worker calls several times in a row: it is taken from its pool once, and given back
// once. The zero value has none. It belongs to one goroutine, and is to be ended before that waits for anything.
type Lease struct {
	pool *Pool
	slot *slot
	in   *instance
	task Task // of its calls, one after the other
}

// Call is Pool.Call on the instance of the lease, which takes one if it has none of that pool.
func (l *Lease) Call(p *Pool, inv *Invocation, res *Result) error {
	if err := l.Prepare(p, inv); err != nil {
		*res = Result{}
		return err
	}
	return l.Finish(l.Enter(), res)
}

// A call in three steps is for who calls often. Compiled code leaves by another way than it came, and from then on the
// processor does not know where calls return to: each return that follows costs as much as some twenty instructions. So
// Enter is best called by who stays, and all that is around it done before and after.

// Prepare makes a call ready on an instance of the pool. Enter comes next, and then Finish, unless there is an error.
func (l *Lease) Prepare(p *Pool, inv *Invocation) error {
	size := argsLen(inv)
	if size > p.limits.ArgumentBytes {
		return fmt.Errorf("arguments of %d bytes, and the limit is %d", size, p.limits.ArgumentBytes)
	}
	if l.pool != p || l.in == nil {
		if err := l.take(p, inv); err != nil {
			return err
		}
	}
	in := l.in
	if in.name != inv.Function && !in.choose(inv.Function) {
		return p.module.lacks(inv.Function)
	}
	in.prepare(inv, size)
	return nil
}

// Enter runs the guest.
func (l *Lease) Enter() error { return l.in.enter() }

// Finish ends the call that Enter has run, with what that returned.
func (l *Lease) Finish(err error, res *Result) error {
	in, p, turns := l.in, l.pool, l.task.inv.Turns
	usable, err := in.finish(err, res)
	if usable && p.opts.Fresh {
		usable = in.reset()
	}
	if !usable {
		l.in, in.task, l.task.in = nil, nil, nil
		aloud(turns, func() { p.drop(in) }) // It takes locks of those who make instances.
	}
	return err
}

func (l *Lease) take(p *Pool, inv *Invocation) error {
	l.End()
	s := p.slotOf(inv.Worker)
	in, err := p.take(s, inv.Turns, inv.Trial)
	if err != nil {
		return err
	}
	l.pool, l.slot, l.in, in.task, l.task.used = p, s, in, &l.task, [4]span{}
	return nil
}

// End gives the instance back.
func (l *Lease) End() {
	if in := l.in; in != nil {
		l.in, in.task, l.task.in = nil, nil, nil
		l.pool.put(l.slot, in)
	}
	l.pool, l.slot = nil, nil
}

// aloud runs f at usual priority, whoever's turn it is.
func aloud(t Turns, f func()) {
	if t == nil {
		f()
	} else {
		t.Aloud(f)
	}
}

package redis

// errand is work in the background that a client waits for, without holding up others.
type errand struct {
	done  bool
	value any
	err   error
}

// resumeNext has the handler run again in one of the next rounds, after others had their turn: for work in slices.
func (c *call) resumeNext() verdict {
	cn, loop := c.conn, c.conn.loop.Load()
	loop.post(message{run: func() {
		if !cn.net.closed {
			loop.unpark(cn)
		}
	}})
	return later
}

// await has begin start an errand when the handler first runs, and tells how it went when it
// runs again. begin's argument is called once, from any goroutine. over is false while the
// errand is under way: the handler returns later.
func (c *call) await(begin func(finished func(error))) (over bool, err error) {
	_, over, err = c.awaitValue(func(finished func(any, error)) {
		begin(func(err error) { finished(nil, err) })
	})
	return over, err
}

// awaitValue is await for an errand that brings something back.
func (c *call) awaitValue(begin func(finished func(any, error))) (value any, over bool, err error) {
	cn, loop := c.conn, c.conn.loop.Load()
	if e := cn.resume.errand; e != nil {
		if e.done {
			cn.resume.errand = nil
		}
		return e.value, e.done, e.err
	}
	e := &errand{}
	cn.resume.errand = e
	begin(func(value any, err error) {
		loop.post(message{run: func() {
			e.done, e.value, e.err = true, value, err
			if cn.resume.errand == e && !cn.net.closed {
				loop.unpark(cn)
			}
		}})
	})
	return nil, false, nil
}

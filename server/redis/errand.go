package redis

// errand is work in the background that a client waits for, without holding up others.
type errand struct {
	done bool
	err  error
}

// await has begin start an errand when the handler first runs, and tells how it went when it
// runs again. begin's argument is called once, from any goroutine. over is false while the
// errand is under way: the handler returns later.
func (c *call) await(begin func(finished func(error))) (over bool, err error) {
	cn, loop := c.conn, c.conn.loop.Load()
	if e := cn.resume.errand; e != nil {
		if e.done {
			cn.resume.errand = nil
		}
		return e.done, e.err
	}
	e := &errand{}
	cn.resume.errand = e
	begin(func(err error) {
		loop.post(message{run: func() {
			e.done, e.err = true, err
			if cn.resume.errand == e && !cn.net.closed {
				loop.unpark(cn)
			}
		}})
	})
	return false, nil
}

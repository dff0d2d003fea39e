package redis

// flushdb and flushall take ASYNC and SYNC for compatibility: emptying a database
// is instant either way, and its memory comes back in the background.
func flushdb(c *call) verdict {
	return c.flush(c.db, func() error { return c.srv.store.Truncate(c.db) })
}

func flushall(c *call) verdict {
	return c.flush(-1, c.srv.store.TruncateAll)
}

func (c *call) flush(db int, empty func() error) verdict {
	if len(c.args) > 2 || len(c.args) == 2 && !c.is(1, "async") && !c.is(1, "sync") {
		return c.fail(errSyntax)
	}
	if c.routing != nil {
		return c.flushLater(db)
	}
	return c.okUnless(empty())
}

// flushing is a database that is being emptied in the background.
type flushing struct {
	done bool
	err  error
}

// flushLater empties a database key by key, as heirs must hear of each; -1 is all
// databases. Meanwhile the client waits.
func (c *call) flushLater(db int) verdict {
	cn, loop := c.conn, c.conn.loop.Load()
	if f := cn.resume.flush; f != nil {
		if !f.done {
			return later
		}
		cn.resume.flush = nil
		return c.okUnless(f.err)
	}
	f := &flushing{}
	cn.resume.flush = f
	c.srv.store.StartTruncate(db, func(err error) {
		loop.post(message{run: func() {
			f.done, f.err = true, err
			if cn.resume.flush == f && !cn.net.closed {
				loop.unpark(cn)
			}
		}})
	})
	return later
}

func swapdb(c *call) verdict {
	first, ok := parseInt(c.args[1])
	if !ok || first != int64(int32(first)) {
		return c.fail("ERR invalid first DB index")
	}
	second, ok := parseInt(c.args[2])
	if !ok || second != int64(int32(second)) {
		return c.fail("ERR invalid second DB index")
	}
	n := int64(c.srv.cfg.Databases)
	if first < 0 || first >= n || second < 0 || second >= n {
		return c.fail(errDBRange)
	}
	if c.routing != nil {
		return c.fail("ERR SWAPDB is not allowed in cluster mode")
	}
	if first == second {
		return c.ok()
	}
	return c.okUnless(c.srv.store.Swap(int(first), int(second)))
}

// okUnless answers +OK, or what went wrong.
func (c *call) okUnless(err error) verdict {
	if err != nil {
		return c.fail("ERR " + err.Error())
	}
	return c.ok()
}

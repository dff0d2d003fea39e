package redis

// flushdb and flushall take ASYNC and SYNC for compatibility: emptying a database
// is instant either way, and its memory comes back in the background.
func flushdb(c *call) verdict {
	return c.flush(func() error { return c.srv.store.Truncate(c.db) })
}

func flushall(c *call) verdict {
	return c.flush(c.srv.store.TruncateAll)
}

func (c *call) flush(empty func() error) verdict {
	if len(c.args) > 2 || len(c.args) == 2 && !c.is(1, "async") && !c.is(1, "sync") {
		return c.fail(errSyntax)
	}
	return c.okUnless(empty())
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

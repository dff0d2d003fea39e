package redis

const slowlogShown = 10 // entries that SLOWLOG GET returns unless asked for more

func slowlogGet(c *call) verdict {
	count := int64(slowlogShown)
	if len(c.args) > 3 {
		return c.badArguments()
	}
	if len(c.args) == 3 {
		var ok bool
		if count, ok = parseInt(c.args[2]); !ok || count < -1 {
			return c.fail("ERR count should be greater than or equal to -1")
		}
	}
	entries := c.srv.slowlog.newest(int(count))
	c.out.Array(len(entries))
	for i := range entries {
		c.answerSlow(&entries[i])
	}
	return done
}

func (c *call) answerSlow(e *slowEntry) {
	c.out.Array(6)
	c.out.Int(e.id)
	c.out.Int(e.at)
	c.out.Int(e.micros)
	c.out.Array(len(e.args))
	for _, a := range e.args {
		c.out.BulkString(a)
	}
	c.out.BulkString(e.addr)
	c.out.BulkString(e.name)
}

func slowlogLen(c *call) verdict { return c.int(int64(c.srv.slowlog.len())) }

func slowlogReset(c *call) verdict {
	c.srv.slowlog.reset()
	return c.ok()
}

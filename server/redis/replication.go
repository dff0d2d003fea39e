package redis

func role(c *call) verdict {
	c.out.Array(3)
	c.out.BulkString("master")
	c.out.Int(0)
	c.out.Array(0)
	return done
}

// replicaof accepts only NO ONE, which changes nothing.
func replicaof(c *call) verdict {
	if c.is(1, "no") && c.is(2, "one") {
		return c.ok()
	}
	return c.fail("ERR REPLICAOF is not supported: this server does not replicate by the Redis protocol")
}

package redis

// The latency monitor of Redis has no counterpart here: its commands answer that
// there is nothing, which monitoring tools understand.

func latencyLatest(c *call) verdict {
	c.out.Array(0)
	return done
}

func latencyReset(c *call) verdict { return c.int(0) }

func latencyDoctor(c *call) verdict {
	c.out.Verbatim("txt", "No latency spikes are recorded here. Look at SLOWLOG GET, at INFO commandstats and at the server's /metrics instead.\n")
	return done
}

package redis

import (
	"fmt"
	"strconv"

	"github.com/ostrodb/ostro/engine/store"
)

func memoryUsage(c *call) verdict {
	for i := 3; i < len(c.args); i += 2 {
		if !c.is(i, "samples") || i+1 == len(c.args) {
			return c.fail(errSyntax)
		}
		n, ok := c.intArg(i + 1)
		if !ok {
			return done
		}
		if n < 0 {
			return c.fail(errSyntax)
		}
	}
	k := c.key(2)
	bytes, st := c.ss.Usage(&k)
	switch st {
	case store.OK:
		return c.int(int64(bytes))
	case store.NotFound:
		c.out.Null()
		return done
	}
	return c.stopped(st)
}

func memoryStats(c *call) verdict {
	m := c.srv.store.Metrics()
	used := m.MemoryBytes
	stats := []struct {
		name  string
		value int64
	}{
		{"total.allocated", used},
		{"overhead.total", m.IndexBytes},
		{"keys.count", m.Keys},
		{"keys.bytes-per-key", used / max(m.Keys, 1)},
		{"dataset.bytes", used - m.IndexBytes},
		{"ostro.index.bytes", m.IndexBytes},
		{"ostro.log.bytes", m.LogBytes},
		{"ostro.disk.bytes", m.DiskBytes},
		{"ostro.memory.limit", m.MemoryLimit},
	}
	c.out.Map(len(stats) + 1)
	for _, s := range stats {
		c.out.BulkString(s.name)
		c.out.Int(s.value)
	}
	c.out.BulkString("dataset.percentage")
	c.out.Double(percentage(used-m.IndexBytes, used))
	return done
}

func percentage(part, whole int64) float64 {
	return float64(part) * 100 / float64(max(whole, 1))
}

func memoryDoctor(c *call) verdict {
	c.out.Verbatim("txt", memoryAdvice(c.srv.store.Metrics()))
	return done
}

// memoryAdvice is one sentence about how full memory is.
func memoryAdvice(m store.Metrics) string {
	used := m.MemoryBytes
	switch {
	case m.Keys == 0:
		return "The store is empty: there is nothing to say about its memory yet.\n"
	case m.MemoryLimit > 0 && used >= m.MemoryLimit/10*9:
		return fmt.Sprintf("Memory is %s%% full. Raise maxmemory, or expect records to leave for disk or to be evicted, as maxmemory-policy says.\n",
			strconv.FormatFloat(percentage(used, m.MemoryLimit), 'f', 1, 64))
	default:
		return "There is no memory problem to report.\n"
	}
}

func memoryPurge(c *call) verdict { return c.ok() }

func memoryMallocStats(c *call) verdict {
	c.out.BulkString("Stats not supported for the current allocator")
	return done
}

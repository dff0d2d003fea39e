package redis

import "github.com/ostrodb/ostro/engine/store"

// execProgress is what EXEC has committed so far.
//
// EXEC locks every key that its queued commands name, and every key watched;
// looks whether the watched ones are as they were; runs the commands on the open
// transaction; and commits it as one batch.
//
// Commands on a whole database (FLUSHDB, KEYS, DBSIZE, ...) cannot run on locked
// keys. They divide the queue into parts, each of them atomic; between two parts
// other clients may step in, and what is committed must not run again when a
// later part has to wait for cold keys.
type execProgress struct {
	next    int    // the first queued command that has not run
	db      int    // the database selected there, once next is above 0
	replies []byte // of those that have run
}

func exec(c *call) verdict {
	m := &c.conn.multi
	if !m.active {
		return c.fail("ERR EXEC without MULTI")
	}
	if m.dirty {
		c.conn.endMulti()
		return c.fail("EXECABORT Transaction discarded because of previous errors.")
	}
	cmd, args, mark := c.cmd, c.args, c.out.Len()
	outcome := c.execQueue(m.queue, &c.conn.resume.exec)
	c.cmd, c.args, c.db = cmd, args, c.conn.db
	switch outcome {
	case execCold:
		return cold
	case execLater:
		return later
	}
	if outcome == execStale {
		c.out.Truncate(mark)
		c.out.NullArray()
	}
	c.conn.endMulti()
	return done
}

// execOutcome is how a part of a transaction ended.
type execOutcome uint8

const (
	execDone  execOutcome = iota
	execCold              // a key is cold; nothing of this part has happened
	execLater             // something runs in the background; nothing of this part has happened
	execStale             // a watched key has changed; nothing has happened at all
)

// execQueue runs the parts that have not run yet.
func (c *call) execQueue(queue []queued, p *execProgress) execOutcome {
	if p.next == 0 {
		p.db = c.conn.db
	}
	c.out.Array(len(queue))
	c.out.Raw(p.replies)
	for first := p.next == 0; first || p.next < len(queue); first = false {
		end, mark := partEnd(queue, p.next), c.out.Len()
		c.conn.db = p.db
		var watch []watched
		if first {
			watch = c.conn.multi.watch
		}
		if outcome := c.execPart(queue[p.next:end], watch); outcome != execDone {
			c.conn.db = p.db
			return outcome
		}
		p.next, p.db = end, c.conn.db
		if end < len(queue) {
			p.replies = append(p.replies, c.out.Bytes()[mark:]...)
		}
	}
	return execDone
}

// partEnd tells where the part that begins at next ends.
func partEnd(queue []queued, next int) int {
	for i := next; i < len(queue); i++ {
		if queue[i].cmd.onDatabase() {
			return max(i, next+1)
		}
	}
	return len(queue)
}

// onDatabase tells whether the command reads or writes a database but no
// particular keys.
func (cmd *command) onDatabase() bool {
	return cmd.first == 0 && cmd.keys == nil && cmd.flags&(flagWrite|flagReadonly) != 0
}

func (c *call) execPart(part []queued, watch []watched) execOutcome {
	if len(part) == 0 || !part[0].cmd.onDatabase() {
		return c.execLocked(part, watch)
	}
	if outcome := c.execLocked(nil, watch); outcome != execDone {
		return outcome
	}
	switch c.runQueued(part[0]) {
	case cold:
		return execCold
	case later:
		return execLater
	}
	return execDone
}

// execLocked runs commands as one transaction if what was watched is unchanged.
func (c *call) execLocked(part []queued, watch []watched) execOutcome {
	keys := c.execKeys(part, watch)
	if len(keys) > 0 {
		if st := c.lock(keys); st != store.OK {
			return c.execFailed(part, st)
		}
		if outcome := c.verify(watch); outcome != execDone {
			c.ss.Abort()
			return outcome
		}
	}
	mark := c.out.Len()
	for i := range part {
		if c.runQueued(part[i]) == cold {
			c.ss.Abort()
			return execCold
		}
	}
	if len(keys) > 0 {
		if st := c.ss.Commit(); st != store.OK {
			c.out.Truncate(mark)
			return c.execFailed(part, st)
		}
	}
	return execDone
}

// execFailed answers every command of a part that the store did not take.
func (c *call) execFailed(part []queued, st store.Status) execOutcome {
	if st == store.Cold {
		return execCold
	}
	for range part {
		c.stopped(st)
	}
	return execDone
}

// runQueued runs a queued command and counts it.
func (c *call) runQueued(q queued) verdict {
	c.cmd, c.args, c.db = q.cmd, q.args, c.conn.db
	mark := c.out.Len()
	v := q.cmd.run(c)
	if v == done && c.overReply(c.out.Len()) {
		c.out.Truncate(mark)
		c.out.Error(errReplyValues)
	}
	if l := c.conn.loop.Load(); v == done && l != nil {
		l.tally.ran(q.cmd)
		if reply := c.out.Bytes()[mark:]; len(reply) > 0 && reply[0] == '-' {
			l.tally.failed(q.cmd, reply[1:])
		}
	}
	return v
}

// verify looks whether all that was watched is still as it was.
func (c *call) verify(watch []watched) execOutcome {
	for i := range watch {
		w := &watch[i]
		switch same, st := c.unchanged(w); {
		case st == store.Cold:
			return execCold
		case !same:
			return execStale
		}
	}
	return execDone
}

// unchanged compares a watched key with what its database holds now. The key is
// made anew, for the database may have been flushed or swapped meanwhile: then it
// counts as changed, even if it was absent and still is, for nobody knows any more
// whether it was there in between.
func (c *call) unchanged(w *watched) (bool, store.Status) {
	k := c.ss.Key(w.db, w.key.Bytes)
	if k.Table != w.key.Table {
		return false, store.OK
	}
	return c.ss.Unchanged(&k, &w.view)
}

// execKeys collects the keys that the commands name and those watched. A SELECT
// among the commands counts for those behind it.
func (c *call) execKeys(part []queued, watch []watched) []store.Key {
	var keys []store.Key
	for i := range watch {
		keys = append(keys, c.ss.Key(watch[i].db, watch[i].key.Bytes))
	}
	db := c.conn.db
	for _, q := range part {
		for _, k := range q.cmd.keysOf(q.args) {
			keys = append(keys, c.ss.Key(db, k))
		}
		if other, ok := c.otherDatabase(q); ok {
			if q.cmd.name == "select" {
				db = other
				continue
			}
			target := q.args[1]
			if q.cmd.name == "copy" {
				target = q.args[2]
			}
			keys = append(keys, c.ss.Key(other, target))
		}
	}
	return keys
}

// otherDatabase is the database that a SELECT, MOVE or COPY names.
func (c *call) otherDatabase(q queued) (int, bool) {
	var arg []byte
	switch q.cmd.name {
	case "select":
		arg = q.args[1]
	case "move":
		arg = q.args[2]
	case "copy":
		for i := 3; i+1 < len(q.args); i++ {
			if equalFold(q.args[i], "db") {
				arg = q.args[i+1]
			}
		}
	}
	n, ok := parseInt(arg)
	if !ok || n != int64(int32(n)) {
		return 0, false
	}
	return c.conn.database(int(n))
}

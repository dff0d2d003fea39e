package redis

import (
	"math"
	"strconv"

	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/wire/resp"
)

// scanFilter is which keys SCAN and KEYS show.
type scanFilter struct {
	pattern []byte // nil: all
	kind    []byte // name of the type; nil: all
	call    *call  // knows which keys are this node's
}

func (f *scanFilter) matches(key []byte, v *store.View) bool {
	return (f.pattern == nil || globMatch(f.pattern, key, false)) &&
		(f.kind == nil || equalFold(f.kind, kindName(v.Kind))) &&
		f.call.owns(key)
}

// match sets the pattern; a lone star also matches the empty key.
func (f *scanFilter) match(pattern []byte) {
	if string(pattern) != "*" {
		f.pattern = pattern
	}
}

// keyList collects keys as bulk strings.
type keyList struct {
	encoded resp.Writer
	n       int
}

func (l *keyList) reset() {
	l.encoded.Truncate(0)
	l.n = 0
}

func (l *keyList) add(key []byte) {
	l.encoded.Bulk(key)
	l.n++
}

// answer writes the keys as an array.
func (l *keyList) answer(w *resp.Writer) {
	w.Array(l.n)
	w.Raw(l.encoded.Bytes())
}

func scan(c *call) verdict {
	cursor, ok := parseCursor(c.args[1])
	part, isPart := parseScanPart(c.args[1])
	if isPart = isPart && c.conn.inner; !ok && !isPart {
		return c.fail("ERR invalid cursor")
	}
	filter, count, ok := c.scanOptions()
	if !ok {
		return done
	}
	var next uint64
	var st store.Status
	c.scratch.list.reset()
	switch {
	case isPart:
		next, st = c.scanPart(&part, count, &filter)
	case !c.srv.store.Empty(c.db):
		next, st = c.scanSome(cursor, count, &filter, nil)
	}
	if st != store.OK {
		return c.stopped(st)
	}
	c.out.Array(2)
	var digits [20]byte
	c.out.Bulk(strconv.AppendUint(digits[:0], next, 10))
	c.scratch.list.answer(c.out)
	return done
}

// scanSome collects what matches among the next count keys, of a part only if there is one. A database may hold
// few keys among many of others, so it goes on through what is empty, but not for
// ever: others wait.
func (c *call) scanSome(cursor uint64, count int, filter *scanFilter, part *scanPart) (next uint64, _ store.Status) {
	list, seen := &c.scratch.list, 0
	show := func(key []byte, v *store.View) {
		seen++
		if filter.matches(key, v) {
			list.add(key)
		}
	}
	patience := emptyScanned + scanPatience*count
	if c.conn.account() != nil {
		patience = min(patience, tenantScanned)
	}
	for looked := 0; ; patience -= scanBuckets + count {
		var st store.Status
		if part == nil {
			cursor, st = c.ss.Scan(c.db, cursor, count, show)
		} else {
			cursor, st = c.ss.ScanOn(c.db, part.First, part.Last, cursor, count, show)
		}
		looked += scanBuckets + count
		if st == store.Cold {
			c.owe(c.ss.Wanted()) // Each record that is read for it is an operation, as it is for GET.
		}
		if st != store.OK || part.over(cursor) || !part.whole() && (seen >= count || patience <= 0) {
			c.owe(looked / keysStep)
			return cursor, st
		}
	}
}

// scanOptions reads SCAN's options, or answers with an error.
func (c *call) scanOptions() (f scanFilter, count int, ok bool) {
	f.call, count = c, 10
	for i := 2; i < len(c.args); i += 2 {
		hasValue := i+1 < len(c.args)
		switch {
		case hasValue && c.is(i, "count"):
			n, ok := c.intArg(i + 1)
			if !ok {
				return f, 0, false
			}
			if n < 1 {
				c.out.Error(errSyntax)
				return f, 0, false
			}
			count = int(min(n, mostScanned))
			if c.conn.account() != nil {
				count = min(count, keysStep)
			}
		case hasValue && c.is(i, "match"):
			f.match(c.args[i+1])
		case hasValue && c.is(i, "type"):
			f.kind = c.args[i+1]
		default:
			c.out.Error(errSyntax)
			return f, 0, false
		}
	}
	return f, count, true
}

const (
	scanBuckets  = 16      // buckets that the store looks at, at most, and one more for every key asked for
	emptyScanned = 1 << 13 // buckets that one SCAN looks at while it finds nothing
	scanPatience = 64      // and so many more for every key asked for

	tenantScanned = 1 << 14 // buckets that one SCAN of a tenant looks at

	mostScanned = 1 << 16 // keys that one SCAN looks at; they must fit into memory at once
)

// parseCursor reads a cursor as C's strtoul does: a sign may stand before it, and
// the empty string is 0.
func parseCursor(b []byte) (uint64, bool) {
	b = []byte(cString(b))
	if len(b) == 0 {
		return 0, true
	}
	negative := b[0] == '-'
	if negative || b[0] == '+' {
		b = b[1:]
	}
	n, ok := parseDigits(b)
	if negative {
		n = -n
	}
	return n, ok
}

// keysProgress is how far a command came that goes through a database. It may look at
// far more keys than fit into memory, so it must not begin again whenever some are
// cold; and it takes long, so it makes way for others again and again.
type keysProgress struct {
	under  bool // the command has begun
	cursor uint64
	found  keyList
}

const (
	keysStep  = 1 << 10 // keys that are looked at between two chances to wait for cold ones
	keysSteps = 2       // and so many steps before others have their turn
)

// walk shows the keys of a range of places to add, in as many runs of its handler as it
// takes, until add has most of them. found is nil until then: the handler returns v.
func (c *call) walk(from, to record.Place, most int, add func(l *keyList, key []byte, v *store.View)) (found *keyList, v verdict) {
	p := &c.conn.resume.keys
	if !p.under {
		*p = keysProgress{under: true}
	}
	for range keysSteps {
		kept, keptBytes := p.found.n, p.found.encoded.Len()
		next, st := c.ss.ScanRange(c.db, from, to, p.cursor, keysStep, func(key []byte, v *store.View) {
			if p.found.n < most {
				add(&p.found, key, v)
			}
		})
		switch {
		case st == store.Cold:
			p.found.n = kept
			p.found.encoded.Truncate(keptBytes)
			c.owe(c.ss.Wanted())
			return nil, cold
		case st != store.OK:
			*p = keysProgress{}
			return nil, c.stopped(st)
		case c.overReply(p.found.encoded.Len()):
			*p = keysProgress{}
			return nil, c.fail(errReplyKeys)
		}
		c.owe(1)
		if p.cursor = next; next == 0 || p.found.n >= most {
			found := p.found
			*p = keysProgress{}
			return &found, done
		}
	}
	return nil, c.resumeNext()
}

func keys(c *call) verdict {
	filter := scanFilter{call: c}
	filter.match(c.args[1])
	found, v := c.walk(0, ^record.Place(0), math.MaxInt, func(l *keyList, key []byte, v *store.View) {
		if filter.matches(key, v) {
			l.add(key)
		}
	})
	if found != nil {
		found.answer(c.out)
	}
	return v
}

// randomTries is how many random keys are looked at for one that is this node's.
const randomTries = 64

func randomkey(c *call) verdict {
	p := &c.conn.resume.keys
	if !p.under {
		p.cursor = 0
	}
	for range randomTries {
		key, next, st := c.ss.RandomKeyFrom(c.db, p.cursor, c.scratch.value[:0])
		p.under, p.cursor = next != 0, next
		switch {
		case p.under && st == store.NotFound:
			c.owe(1)
			return c.resumeNext()
		case st == store.OK && c.owns(key):
			c.out.Bulk(key)
			return done
		case st == store.NotFound:
			c.out.Null()
			return done
		case st == store.Cold:
			c.owe(c.ss.Wanted())
			return cold
		case st != store.OK:
			return c.stopped(st)
		}
	}
	c.out.Null()
	return done
}

// dbsize does not wait for what is still arriving, as SCAN does: who watches how many keys there are must not hold up anything.
func dbsize(c *call) verdict {
	n, _ := c.srv.store.Count(c.db)
	return c.int(n)
}

package store

import (
	"slices"

	"github.com/ostrodb/ostro/engine/index"
	"github.com/ostrodb/ostro/engine/record"
)

// The source of a migration gives the records of a range away, bucket by bucket. It
// remembers nothing of a pull: where to go on is the cursor's. Entries go as they lie in
// the log. They are the log's own bytes, valid until the session's End, and what they rest
// on is durable when the round's ticket is: see Seal and Durable.

// PullCursor is where a pull goes on; the zero value is where it begins.
type PullCursor struct {
	At    uint64       // the bucket, or the number of the key
	Log   record.LogID // of the large value that it stopped in, if it did
	Value uint64       // likewise; 0 if it did not
	Piece uint64       // likewise: the next one
}

func (c PullCursor) value() valueName { return valueName{c.Log, c.Value} }

const (
	pullBuckets = 64 // listed in one go at the most
	pullDepth   = 8  // listed ahead of the one that is given, so that its cache misses are over by then
	pullAhead   = 4  // buckets more to read cold records of
)

// pulling is the memory of pulls.
type pulling struct {
	found []index.Found
	items []pullItem
	upTo  [pullBuckets]int    // items, for each bucket
	next  [pullBuckets]uint64 // the cursor behind it
	n     int                 // buckets
	at    uint64              // the cursor of the next one
	far   bool                // some items are not in memory
	large []pullItem
}

type pullItem struct {
	at    record.Address
	p     record.Ptr
	known record.Place // index.Known of its place
}

// Pull gives entries of the records in r from a cursor on: about maxBytes of them, one bucket
// or one piece of a large value at least. A large value's pieces come before its record. It
// returns where to go on; with OK and the zero cursor that was all. With Cold, Fetch and
// go on at the cursor that it returned: what was given counts.
//
// Every record that is there all the time is given, at least once. Expired ones are not.
func (ss *Session) Pull(r Range, from PullCursor, maxBytes int, emit func(entry []byte)) (PullCursor, Status) {
	return ss.PullWith(r, from, PullOptions{MaxBytes: maxBytes, Emit: emit})
}

// PullOptions say what a pull gives.
type PullOptions struct {
	MaxBytes int
	Emit     func(entry []byte)
	// Known is told of each entry before it is emitted what the index knows of its place; 0 if nothing: see ImportKnown. It may be nil.
	Known func(record.Place)
	// Refer is told of what is not in memory, and of large values that are not as a whole, in their place:
	// then such a pull is never Cold. It is nil if they are to be read.
	Refer func(Indirection)
	// Since leaves out what lies in segments before it.
	Since record.SegmentID
}

// PullWith is Pull with options.
func (ss *Session) PullWith(r Range, from PullCursor, o PullOptions) (PullCursor, Status) {
	if ss.pulling == nil {
		ss.pulling = new(pulling)
	}
	g := pullGiver{
		ss: ss, r: r, exact: r.exact(), left: o.MaxBytes, emit: o.Emit, tell: o.Known, refer: o.Refer, since: o.Since, ahead: pullAhead,
	}
	pl := ss.pulling
	for at := from; ; {
		pl.begin(at.At)
		for b := 0; pl.lookAhead(ss, r, b, g.left); b++ {
			next, st := g.bucket(b, at)
			if st != OK || next == (PullCursor{}) || g.left <= 0 {
				return next, st
			}
			at = next
		}
	}
}

// begin forgets what was listed, to go on at a cursor.
func (pl *pulling) begin(cursor uint64) {
	pl.clear()
	pl.at = cursor
}

// lookAhead lists bucket b and some behind it, as many as may be given if so many bytes are left: what is asked for and not given is
// asked for again by the next pull. While a bucket is given the records of the next ones come. False: bucket b has no room any more.
func (pl *pulling) lookAhead(ss *Session, r Range, b, left int) bool {
	given := 0
	if b > 0 {
		given = pl.upTo[b-1]
	}
	for pl.n < pullBuckets && (pl.n == 0 || pl.at != 0) {
		ahead := pl.n - b
		enough := ahead >= pullDepth || (len(pl.items)-given)*ss.usual >= left && !(pl.far && ahead < pullAhead)
		if ahead > 0 && enough {
			break
		}
		pl.list(ss, r)
	}
	return b < pl.n
}

// list lists the entries of the next bucket, and asks for their records.
func (pl *pulling) list(ss *Session, r Range) {
	pl.found, pl.at = ss.ix.Collect(r.First, r.Last, pl.at, pl.found[:0])
	for i := range pl.found {
		f := &pl.found[i]
		p := ss.log.See(f.At).Entry()
		if !p.IsNil() {
			ss.fetchLines(p)
		}
		pl.add(pullItem{at: f.At, p: p, known: f.Known})
	}
	pl.upTo[pl.n], pl.next[pl.n] = len(pl.items), pl.at
	pl.n++
}

// gather lists the entries of some buckets.
func (pl *pulling) gather(ss *Session, r Range, cursor uint64, most int) {
	for pl.begin(cursor); pl.n < most && (pl.n == 0 || pl.at != 0); {
		pl.list(ss, r)
	}
}

func (pl *pulling) clear() { pl.items, pl.n, pl.far = pl.items[:0], 0, false }

func (pl *pulling) add(it pullItem) {
	pl.items = append(pl.items, it)
	pl.far = pl.far || it.p.IsNil()
}

// bucket gives the items of bucket b of those gathered.
func (pl *pulling) bucket(b int) []pullItem {
	first := 0
	if b > 0 {
		first = pl.upTo[b-1]
	}
	return pl.items[first:pl.upTo[b]]
}

// pullGiver gives what one call of Pull or PullKeys gives.
type pullGiver struct {
	ss    *Session
	r     Range
	exact bool // the index knows all bits that tell whether a place lies in r
	left  int  // bytes
	emit  func([]byte)
	tell  func(record.Place) // nil: nobody asks
	table record.TableID     // which is alive
	known bool               // that
	refer func(Indirection)
	since record.SegmentID
	ahead int  // buckets whose cold records are read at once
	small bool // large values are left out
}

// bucket gives bucket b of those gathered, from a cursor that stands at it.
func (g *pullGiver) bucket(b int, at PullCursor) (PullCursor, Status) {
	pl := g.ss.pulling
	if !g.resolve(b) {
		return at, Cold
	}
	pl.large = pl.large[:0]
	items := pl.bucket(b)
	for i := range items {
		it := &items[i]
		switch {
		case it.p.IsNil(): // The other end knows of it.
		case g.known && g.exact && at.Value == 0 && it.p.PlainOf(g.table): // Nearly all are.
			g.give(it)
		case !g.counts(it.p):
		case it.p.Chunked():
			pl.large = append(pl.large, *it)
		case at.Value == 0:
			g.give(it)
		}
	}
	if len(pl.large) > 0 {
		if stop, st := g.largeOf(pl.large, at); st != OK || stop != (PullCursor{}) {
			return stop, st
		}
	}
	return PullCursor{At: pl.next[b]}, OK
}

// resolve sees that all records of bucket b are at hand; if not, they are wanted, and those
// of some buckets behind it.
func (g *pullGiver) resolve(b int) bool {
	if g.since != 0 {
		g.leaveOut(b)
	}
	if !g.ss.pulling.far {
		return true
	}
	if g.refer != nil {
		g.referAll(b)
		return true
	}
	all := true
	for n := b; n < min(b+g.ahead, g.ss.pulling.n) && (n == b || !all); n++ {
		items := g.ss.pulling.bucket(n)
		for i := range items {
			if it := &items[i]; it.p.IsNil() && it.at != 0 {
				p, ok := g.ss.entry(it.at)
				if !ok {
					g.ss.want(it.at)
					all = false
				}
				it.p = p
			}
		}
	}
	return all
}

// counts tells whether an entry is a record to be given.
func (g *pullGiver) counts(p record.Ptr) bool {
	if p.Type() != record.TypePut || p.Table() == chunkTable || g.ss.expired(p) {
		return false
	}
	if !g.known || g.table != p.Table() {
		if g.ss.tables.byID(p.Table()) == nil {
			return false
		}
		g.table, g.known = p.Table(), true
	}
	return g.exact || g.r.has(record.PlaceOf(p.Table(), p.Key()))
}

// give gives an entry.
func (g *pullGiver) give(it *pullItem) {
	if !g.ss.log.Stable(it.at) {
		g.ss.note(it.at)
	}
	b := it.p.Bytes()
	g.left -= len(b)
	g.ss.usual = len(b)
	if g.tell != nil {
		g.tell(it.known)
	}
	g.emit(b)
}

// largeOf gives the large values of a bucket, in the order of their names. It returns the
// zero cursor when all were given.
func (g *pullGiver) largeOf(items []pullItem, at PullCursor) (PullCursor, Status) {
	slices.SortFunc(items, func(a, b pullItem) int { return nameOf(a.p).compare(nameOf(b.p)) })
	for i := range items {
		of := nameOf(items[i].p)
		piece := uint64(0)
		switch c := of.compare(at.value()); {
		case at.Value != 0 && c < 0:
			continue
		case at.Value != 0 && c == 0:
			piece = at.Piece
		}
		next, st := g.large(&items[i], piece)
		if st == Cold && g.refer != nil {
			g.say(Indirection{Known: items[i].known})
			continue
		}
		if st != OK || next != 0 {
			return PullCursor{at.At, of.log, of.id, next}, st
		}
	}
	return PullCursor{}, OK
}

// nameOf is the name of the value that a record has.
func nameOf(p record.Ptr) valueName {
	m, _ := decodeManifest(p.Value())
	return m.of
}

// large gives a large value from some piece on, and then its record. It returns the piece to
// go on with; 0 when all was given. One that has lost pieces is as good as none.
func (g *pullGiver) large(front *pullItem, piece uint64) (next uint64, st Status) {
	m, ok := decodeManifest(front.p.Value())
	if !ok {
		return 0, OK
	}
	place := record.PlaceOf(front.p.Table(), front.p.Key())
	for n := int(piece); n < m.chunks(); n++ {
		if g.left <= 0 && n > int(piece) { // One is given in any case.
			return uint64(n), OK
		}
		var buf [chunkKeyBytes]byte
		k := chunkKey(place, m.of, n, &buf)
		var pr index.Probe
		p, st := g.ss.find(&k, &pr)
		switch st {
		case Cold:
			return uint64(n), Cold
		case NotFound:
			return 0, OK
		}
		g.give(&pullItem{at: pr.Address(), p: p})
	}
	g.give(front)
	return 0, OK
}

// PullSmallKeys is Pull of single keys, one after the other, without large values, those of several pieces. It makes an entry of
// each key at most.
func (ss *Session) PullSmallKeys(keys []ArrivingKey, from PullCursor, maxBytes int, emit func(entry []byte)) (PullCursor, Status) {
	g := pullGiver{ss: ss, left: maxBytes, emit: emit, small: true}
	return g.each(keys, from, g.key)
}

// each gives keys one after the other from a cursor on, as many as there is room for. one gives a key from some piece
// on, and returns the piece to go on with, or 0.
func (g *pullGiver) each(keys []ArrivingKey, from PullCursor, one func(k *ArrivingKey, piece uint64) (uint64, Status)) (PullCursor, Status) {
	for i := int(from.At); i < len(keys); i++ {
		piece := uint64(0)
		if from.Value != 0 && uint64(i) == from.At {
			piece = from.Piece
		}
		next, st := one(&keys[i], piece)
		if st != OK || next != 0 {
			return PullCursor{At: uint64(i), Value: 1, Piece: next}, st
		}
		if g.left <= 0 && i+1 < len(keys) {
			return PullCursor{At: uint64(i + 1)}, OK
		}
	}
	return PullCursor{}, OK
}

// key gives a key from some piece on; it returns the piece to go on with, or 0.
func (g *pullGiver) key(k *ArrivingKey, piece uint64) (next uint64, st Status) {
	var pr index.Probe
	p, st := g.ss.find(&Key{Place: k.Place, Table: k.Table, Bytes: k.Bytes}, &pr)
	switch {
	case st == NotFound:
		return 0, OK
	case st != OK:
		return piece, st
	case g.ss.expired(p):
		return 0, OK
	case p.Chunked() && g.small:
		return 0, OK
	case p.Chunked():
		return g.large(&pullItem{at: pr.Address(), p: p}, piece)
	}
	g.give(&pullItem{at: pr.Address(), p: p})
	return 0, OK
}

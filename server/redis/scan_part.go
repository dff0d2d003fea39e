package redis

import (
	"bytes"
	"strconv"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/index"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/wire/resp"
)

// A SCAN through a proxy goes through all places in their order, wherever their keys are by then: its cursor tells what was
// shown, and not by whom. So ranges may move meanwhile, and nodes come and go. Whoever owns the places behind the cursor
// is asked for some of them. A cursor can stand between blocks of 2^32 places: where one has several owners, all are asked
// for all of it. Where a larger stretch has got several while the scan was in its midst, it begins that once more.

// scanPart is what one node is asked to show of a SCAN: what the cursor has not passed of some places.
type scanPart struct {
	cursor uint64
	view.Range
}

// argument stands in the place of the cursor between proxy and node.
func (p *scanPart) argument() []byte {
	b := append(strconv.AppendUint(nil, p.cursor, 10), '/')
	b = append(strconv.AppendUint(b, uint64(p.First), 10), '/')
	return strconv.AppendUint(b, uint64(p.Last), 10)
}

func parseScanPart(b []byte) (p scanPart, ok bool) {
	var numbers [3]uint64
	fields := bytes.Split(b, []byte{'/'})
	if len(fields) != len(numbers) {
		return p, false
	}
	for i, digits := range fields {
		if numbers[i], ok = parseDigits(digits); !ok {
			return p, false
		}
	}
	return scanPart{numbers[0], view.Range{First: record.Place(numbers[1]), Last: record.Place(numbers[2])}}, true
}

// stretch is the places that a scan with a cursor has to leave together.
func stretch(cursor uint64) view.Range {
	first, last := index.Stretch(cursor)
	return view.Range{First: first, Last: last}
}

// scanParts divides a SCAN among those who own what comes next.
func (r *Routing) scanParts(cursor uint64) (parts []scanPart) {
	if cursor == 0 {
		cursor = index.At(0)
	}
	next := stretch(cursor)
	spans := r.places.Over(next)
	if len(spans) > 1 {
		cursor = index.At(next.First)
		next = stretch(cursor)
		spans = r.places.Over(next)
	}
	for _, s := range spans {
		if s.Range.First <= next.First && s.Range.Last >= next.Last {
			return []scanPart{{cursor, view.Range{First: next.First, Last: (s.Range.Last+1)>>32<<32 - 1}}}
		}
		parts = append(parts, scanPart{cursor, view.Range{First: max(s.Range.First, next.First), Last: min(s.Range.Last, next.Last)}})
	}
	return parts
}

// whole tells whether a part is to be shown to its end at once, for others show the rest of its block. No part is the
// whole database, of which some may be shown.
func (p *scanPart) whole() bool {
	if p == nil {
		return false
	}
	all := stretch(p.cursor)
	return all.First < p.First || all.Last > p.Last
}

// over tells whether a cursor has passed the part.
func (p *scanPart) over(cursor uint64) bool {
	return cursor == 0 || p != nil && index.Passed(cursor) > p.Last
}

// scanPart shows some of a part. A node that does not have all of it says that the scan is where it was: the proxy will know
// better soon.
func (c *call) scanPart(p *scanPart, count int, filter *scanFilter) (next uint64, _ store.Status) {
	switch {
	case p.cursor == 0 || p.First > p.Last || c.routing == nil || !c.routing.holdsAll(p.Range):
		return p.cursor, store.OK
	case c.srv.store.Empty(c.db):
		return scanBehind(max(p.Last, stretch(p.cursor).Last)), store.OK
	}
	return c.scanSome(p.cursor, count, filter, p)
}

// scanBehind is the cursor of a scan that has shown everything up to a place.
func scanBehind(last record.Place) uint64 {
	if last == view.Whole.Last {
		return 0
	}
	return index.At(last + 1)
}

// joinScans makes one answer of those of a block's owners. If they do not agree on where the scan has come to, one of them did not
// have what it was thought to have: then it is where it was.
func joinScans(cursor uint64) func(replies [][]byte) []byte {
	return func(replies [][]byte) []byte {
		var keys [][]byte
		next := cursor
		for i, r := range replies {
			elems, ok := resp.Elements(r)
			if !ok || len(elems) != 2 {
				return r
			}
			switch reached := bulkNumber(elems[0]); {
			case i == 0:
				next = reached
			case reached != next:
				next = cursor
			}
			keys = append(keys, elems[1])
		}
		var w resp.Writer
		w.Array(2)
		w.Bulk(strconv.AppendUint(nil, next, 10))
		w.Raw(joinElements(keys))
		return w.Bytes()
	}
}

package ostrobbolt

import "math/bits"

// tracker knows which pages hold the committed database, and finds what a commit
// has written.
//
// bbolt never writes in place: a commit takes pages that are free, or new ones
// at the end, and leaves those of the version before alone; only then it writes
// a meta page. So the pages a commit has written are those that were not in use
// before it and are now. Both follow from the lists of free pages, which every
// commit writes. Transactions that read old versions only make the list's
// pending part longer, and it is in the list, too.
type tracker struct {
	now  meta
	used bitmap
}

// span is pages that lie side by side.
type span struct{ first, pages uint64 }

// newTracker starts with the database as it is in data.
func newTracker(data []byte, pageBytes uint64) (*tracker, error) {
	t := &tracker{now: meta{pageBytes: pageBytes}}
	_, err := t.advance(data)
	return t, err
}

// advance takes the database's current version as the one to compare with next,
// and returns the pages that it has and the version before had not, the meta
// page not among them.
func (t *tracker) advance(data []byte) ([]span, error) {
	m, err := readMeta(data, t.now.pageBytes)
	if err != nil {
		return nil, err
	}
	free, err := readFree(data, m)
	if err != nil {
		return nil, err
	}
	used := allBut(firstDataPage, m.pages, free)
	written := used.minus(t.used)
	t.now, t.used = m, used
	return written, nil
}

// bitmap is a set of pages.
type bitmap []uint64

func newBitmap(n uint64) bitmap { return make(bitmap, (n+63)/64) }

// allBut is the set of the pages from first to n, without some.
func allBut(first, n uint64, some []uint64) bitmap {
	b := newBitmap(n)
	for i := range b {
		b[i] = ^uint64(0)
	}
	for i := range first {
		b.clear(i)
	}
	for i := n; i < uint64(len(b))*64; i++ {
		b.clear(i)
	}
	for _, id := range some {
		b.clear(id)
	}
	return b
}

func (b bitmap) clear(i uint64) {
	if i/64 < uint64(len(b)) {
		b[i/64] &^= 1 << (i % 64)
	}
}

// minus lists what is in b and not in other.
func (b bitmap) minus(other bitmap) []span {
	var spans []span
	for w, word := range b {
		if w < len(other) {
			word &^= other[w]
		}
		for ; word != 0; word &= word - 1 {
			id := uint64(w*64 + bits.TrailingZeros64(word))
			if n := len(spans); n > 0 && spans[n-1].first+spans[n-1].pages == id {
				spans[n-1].pages++
			} else {
				spans = append(spans, span{id, 1})
			}
		}
	}
	return spans
}

package replica

import (
	"hash/crc32"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
)

// openSegment is one that is, or may be, written to. Its head writes memory and
// sealed; streams read memory up to sealed.
//
// counted is how much of it is in every copy and has been told to the watermark, up to
// the end of a seal. It belongs to the holder of mu, which is taken like a stream's.
type openSegment struct {
	id     record.SegmentID
	memory []byte

	sealed atomic.Uint32 // the end of its last seal
	end    atomic.Uint32 // that of its closing seal, 0 until it has one; set before sealed

	copies atomic.Pointer[[]*stream] // replaced as a whole, under the primary's mu

	mu       sync.Mutex
	counted  atomic.Uint32
	looked   atomic.Uint32 // as counted, or beyond it in a batch that is not there whole
	passed   uint32        // the end of the last whole entry up to looked, where the next look begins
	sum      uint32        // CRC-32C up to counted
	last     record.BatchID
	finished bool
}

func newOpenSegment(id record.SegmentID, memory []byte) *openSegment {
	g := &openSegment{id: id, memory: memory}
	g.copies.Store(new([]*stream))
	return g
}

// reached is how much of the segment is in every copy.
func (g *openSegment) reached() uint32 {
	to := g.sealed.Load()
	for _, s := range *g.copies.Load() {
		to = min(to, s.done.Load())
	}
	return to
}

// count tells the watermark what has become complete, and says whether that moved it
// and whether the segment is at its end.
func (g *openSegment) count(w *watermark) (moved, finished bool) {
	for {
		to := g.reached()
		if to <= g.looked.Load() || !g.mu.TryLock() {
			return moved, finished
		}
		m, f := g.look(w, g.reached())
		moved, finished = moved || m, finished || f
		g.mu.Unlock()
	}
}

// look counts the batches that end at to or before. What it has passed of a batch it does not look at again: one of the cleaner's
// may be long, and comes in many pieces. The caller holds mu.
func (g *openSegment) look(w *watermark, to uint32) (moved, finished bool) {
	if to <= g.looked.Load() {
		return false, false
	}
	from, sealed := g.counted.Load(), g.sealed.Load()
	// What follows is the last look at the memory when the closing seal is in it. The head may be about to say so: what
	// was sealed before that is not the end.
	finished = to == g.end.Load() && !g.finished
	g.finished = g.finished || finished
	found := sealsIn(g.memory[:sealed], g.passed, to)
	g.passed = found.whole
	g.looked.Store(to)
	if found.end == 0 {
		return false, finished
	}
	whole := g.memory[from:found.end]
	g.sum, g.last = crc32.Update(g.sum, castagnoli, whole), found.last
	g.counted.Store(found.end)
	return w.complete(whole), finished
}

// closing is what is known of the segment once it is finished.
func (g *openSegment) closing() Closing {
	return Closing{End: g.counted.Load(), Batch: g.last, Sum: g.sum}
}

// holders are the nodes that its copies are on.
func (g *openSegment) holders() []view.NodeID {
	var nodes []view.NodeID
	for _, s := range *g.copies.Load() {
		nodes = append(nodes, s.node)
	}
	return nodes
}

// add makes another stream one that counts. The caller holds the primary's mu.
func (g *openSegment) add(s *stream) {
	all := append(slices.Clone(*g.copies.Load()), s)
	g.copies.Store(&all)
}

// drop leaves out streams. The caller holds the primary's mu.
func (g *openSegment) drop(which func(*stream) bool) (dropped []*stream) {
	var kept []*stream
	for _, s := range *g.copies.Load() {
		if which(s) {
			dropped = append(dropped, s)
		} else {
			kept = append(kept, s)
		}
	}
	if dropped != nil {
		g.copies.Store(&kept)
	}
	return dropped
}

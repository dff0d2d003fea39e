package replica

import "github.com/ostrodb/ostro/engine/record"

// counts is what has happened, under the primary's mu.
type counts struct {
	refusals    uint64
	replaced    uint64
	copied      uint64
	copiedBytes uint64
	toCopy      int
	adopted     uint64
}

// PrimaryMetrics tells how a log's copies are.
type PrimaryMetrics struct {
	Watermark record.BatchID
	Version   uint64
	Copies    int // that each segment has at least
	Wanted    int // that each shall have
	Backups   int // nodes that may hold some
	Open      int // segments that are written to, or will be
	Closed    int
	Thin      int // segments with fewer copies than wanted

	InFlight    uint64 // bytes sealed that are not in all copies yet
	Refusals    uint64 // replicas that a backup did not open
	Replaced    uint64 // copies of open segments that were made elsewhere
	Copied      uint64 // copies of closed segments that were made anew
	CopiedBytes uint64
	ToCopy      int    // closed segments that wait for that
	Adopted     uint64 // side segments that are part of the log
}

// Metrics tells how the copies are.
func (p *Primary) Metrics() PrimaryMetrics {
	p.mu.Lock()
	defer p.mu.Unlock()
	open := *p.open.Load()
	b := &p.books
	m := PrimaryMetrics{
		Watermark: p.water.batch(), Version: b.version, Copies: b.copies, Wanted: p.o.Copies,
		Backups: len(b.backups), Open: len(open), Closed: len(b.closed),
		Refusals: b.counts.refusals, Replaced: b.counts.replaced,
		Copied: b.counts.copied, CopiedBytes: b.counts.copiedBytes, ToCopy: b.counts.toCopy, Adopted: b.counts.adopted,
	}
	for _, g := range open {
		m.InFlight += uint64(g.sealed.Load() - g.counted.Load())
		if g.goodCopies() < p.o.Copies {
			m.Thin++
		}
	}
	for _, c := range b.closed {
		if len(c.holders) < p.o.Copies {
			m.Thin++
		}
	}
	return m
}

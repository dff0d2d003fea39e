package store

import "sync/atomic"

// Metrics is what a store knows of itself.
type Metrics struct {
	Keys, Expires                                    int64
	IndexBytes, LogBytes, LiveBytes                  int64
	MemoryBytes, MemoryLimit, DiskBytes              int64
	SegmentsInMemory, SegmentsOnDisk, SegmentsOnBlob int64
	Reads, Hits, Misses, Writes, Deletes             int64
	ColdReads, Expired, Evicted, Syncs               int64
	CleanedSegments, CleanedBytes, RelocatedBytes    int64
	Checkpoints, UploadedSegments                    int64
	RecoveryMillis                                   int64
	Batches, BatchesCopied                           int64 // the last one sealed, and the one up to which all are in every copy elsewhere
	Results                                          int64 // of operations, kept for another attempt
	Sent                                             int64 // records that went to their owners, another node's
	Short                                            int64 // 1 while no segment can be made, for the machine gives no disk or no memory
	Expected                                         int64 // sets of places of which other logs are needed still, and nobody pulls
}

// counters of one session: plain numbers that its worker adds to, and what
// others may see of them, which End brings up to date.
type counters struct {
	reads, hits, writes, deletes, cold int64
	seen                               [5]atomic.Int64
}

func (c *counters) publish() {
	for i, n := range [...]int64{c.reads, c.hits, c.writes, c.deletes, c.cold} {
		if c.seen[i].Load() != n {
			c.seen[i].Store(n)
		}
	}
}

// add adds another session's counts to c. The caller holds the store's mutex.
func (c *counters) add(o *counters) {
	for i := range c.seen {
		c.seen[i].Add(o.seen[i].Load())
	}
}

// Metrics takes stock.
func (st *Store) Metrics() Metrics {
	var sum counters
	st.mu.Lock()
	sum.add(&st.past)
	for ss := range st.open {
		sum.add(&ss.stat)
	}
	st.mu.Unlock()
	m := Metrics{
		IndexBytes: st.ix.Bytes(), MemoryLimit: st.limit.Load(), Syncs: st.log.Syncs(),
		Reads: sum.seen[0].Load(), Hits: sum.seen[1].Load(), Writes: sum.seen[2].Load(),
		Deletes: sum.seen[3].Load(), ColdReads: sum.seen[4].Load(),
		Expired: st.work.expired.Load(), Evicted: st.work.evicted.Load(),
		CleanedSegments: st.work.cleaned.Load(), CleanedBytes: st.work.cleanedBytes.Load(),
		RelocatedBytes: st.work.relocated.Load(), Checkpoints: st.work.checkpoints.Load(),
		UploadedSegments: st.work.uploaded.Load(), RecoveryMillis: st.recoveryMillis, Sent: st.work.sent.Load(), Expected: st.arriving.expected(),
	}
	if st.log.Shortage() != nil {
		m.Short = 1
	}
	m.Batches = int64(st.log.Last())
	if m.BatchesCopied = m.Batches; st.opts.Replicator != nil {
		m.BatchesCopied = min(int64(st.log.Copied()), m.Batches)
	}
	m.Misses = max(m.Reads-m.Hits, 0)
	m.MemoryBytes = m.IndexBytes + st.log.Resident()*int64(st.opts.SegmentBytes)
	for t := range st.tables.all() {
		keys, expires := t.sum()
		m.Keys += keys
		m.Expires += expires
	}
	m.Results, _ = st.tables.completions.sum()
	st.countSegments(&m)
	return m
}

// countSegments counts nothing of a store that is closed: who asks may not know of it yet.
func (st *Store) countSegments(m *Metrics) {
	if !st.admit() {
		return
	}
	defer st.workers.Done()
	for _, s := range st.log.Segments() {
		m.LogBytes += int64(s.End())
		m.LiveBytes += max(st.log.Live(s), 0)
		if st.log.InMemory(s) {
			m.SegmentsInMemory++
		}
		if st.log.OnDisk(s) {
			m.SegmentsOnDisk++
			m.DiskBytes += int64(s.End())
		}
		if s.Remote() {
			m.SegmentsOnBlob++
		}
	}
}

// workCounts counts what the background has done.
type workCounts struct {
	expired, evicted, cleaned, cleanedBytes, relocated, checkpoints, uploaded, sent atomic.Int64
}

package replica

import "sync/atomic"

type counters struct {
	connects, opens, closes, puts, refusals, dropped, surveys, fetches, fetchedBytes atomic.Uint64
	flushed, flushedBytes, flushNanos, flushErrors, corrupt, scrubbedBytes           atomic.Uint64
}

// BackupMetrics tells what a backup has and what it did.
type BackupMetrics struct {
	Logs         int
	Replicas     int
	OpenReplicas int
	Bytes        uint64 // of closed replicas
	BuffersBusy  int    // in use or being zeroed
	BuffersFree  int    // that may be opened now

	Connects, Opens, Closes, Puts uint64
	Refusals                      uint64 // for want of room
	Dropped                       uint64 // stale replicas
	Surveys, Fetches              uint64
	FetchedBytes                  uint64
	Flushed, FlushedBytes         uint64
	FlushNanos                    uint64 // that writing them took
	FlushErrors                   uint64
	Corrupt                       uint64 // replicas that were found to be
	ScrubbedBytes                 uint64
}

// Metrics tells how the backup is.
func (b *Backup) Metrics() BackupMetrics {
	c := &b.count
	m := BackupMetrics{
		Connects: c.connects.Load(), Opens: c.opens.Load(), Closes: c.closes.Load(), Puts: c.puts.Load(),
		Refusals: c.refusals.Load(), Dropped: c.dropped.Load(), Surveys: c.surveys.Load(), Fetches: c.fetches.Load(),
		FetchedBytes: c.fetchedBytes.Load(), Flushed: c.flushed.Load(), FlushedBytes: c.flushedBytes.Load(),
		FlushNanos: c.flushNanos.Load(), FlushErrors: c.flushErrors.Load(), Corrupt: c.corrupt.Load(),
		ScrubbedBytes: c.scrubbedBytes.Load(),
	}
	m.BuffersFree, m.BuffersBusy = b.pool.counts()
	for _, l := range b.all() {
		l.mu.Lock()
		m.Logs++
		for _, r := range l.replicas {
			m.Replicas++
			if r.state == StateClosed {
				m.Bytes += uint64(r.closing.End)
			} else {
				m.OpenReplicas++
			}
		}
		l.mu.Unlock()
	}
	return m
}

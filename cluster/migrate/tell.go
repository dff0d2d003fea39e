package migrate

import (
	"context"
	"time"

	"github.com/ostrodb/ostro/cluster/meta"
)

// tellEvery is how often progress is shown, logEvery how often it is logged.
const (
	tellEvery = 500 * time.Millisecond
	logEvery  = 5 * time.Second
)

// tell shows how far the migration has come.
func (m *move) tell(ctx context.Context) {
	tick := time.NewTicker(tellEvery)
	defer tick.Stop()
	var bytes int64
	at, logged := time.Now(), time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		p := m.progress()
		p.Rate = float64(p.Bytes-bytes) / p.At.Sub(at).Seconds()
		bytes, at = p.Bytes, p.At
		if member, err := m.o.Member(); err == nil {
			_ = member.TellMigration(ctx, p) // Nothing is decided by it.
		}
		if time.Since(logged) >= logEvery {
			logged = time.Now()
			m.log.Info("the migration goes on", "stage", p.Stage, "waiting", p.Waiting, "records", p.Records, "cold", p.Remaining, "bytes", p.Bytes,
				"MBps", int(p.Rate/1e6), "left", p.Left().Round(time.Second).String())
		}
	}
}

func (m *move) progress() meta.MigrationProgress {
	p := meta.MigrationProgress{
		ID: m.id, Stage: string(*m.now.Load()), Records: m.records.Load(), Bytes: m.bytes.Load(),
		PriorityPulls: m.asked.Load(), Began: m.began.UTC(), At: time.Now().UTC(),
	}
	if why := m.waitsFor.Load(); why != nil {
		p.Waiting = *why
	}
	p.Remaining, p.Followed = m.remaining(), m.cold.followed()
	p.Total = max(m.total.Load(), p.Bytes)
	return p
}

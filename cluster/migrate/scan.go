package migrate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ostrodb/ostro/cluster/peer"
	"github.com/ostrodb/ostro/engine/record"
)

// scanned is how far the source's log was read. Segments that were closed when it began are read one by one; what
// the source's cleaner moves meanwhile, and what lies in others, comes by places afterwards: from the same life of the source, for in the next
// one what was moved may be back in a segment that was read without it.
type scanned struct {
	listed bool
	life   uint64 // of the source that listed them
	left   []record.SegmentID
	since  record.SegmentID
}

// scan brings what the source's log has of the ranges by reading all of it: what indirections are compared with.
func (p *pulls) scan(ctx context.Context) error {
	if err := p.open(); err != nil {
		return err
	}
	var all segments
	if _, err := p.m.o.Peers.Call(ctx, p.m.want.Source, methodSegments, transfer{ID: p.m.id}, nil, &all); err != nil {
		return err
	}
	if !p.log.listed || p.log.life != all.Life {
		p.log = scanned{true, all.Life, all.Old, all.Since}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var workers sync.WaitGroup
	errs := make([]error, min(p.m.o.Partitions, len(p.log.left)))
	for i := range errs {
		workers.Go(func() {
			if errs[i] = p.scanSome(ctx); errs[i] != nil {
				cancel()
			}
		})
	}
	workers.Wait()
	return errors.Join(errs...)
}

// scanSome reads segment after segment.
func (p *pulls) scanSome(ctx context.Context) error {
	one, err := p.puller()
	if err != nil {
		return err
	}
	defer one.close()
	for {
		p.mu.Lock()
		if len(p.log.left) == 0 {
			p.mu.Unlock()
			return nil
		}
		id := p.log.left[0]
		p.log.left = p.log.left[1:]
		p.mu.Unlock()
		if err := p.segment(ctx, one, id, false, func(_ time.Duration, bytes int) error { return p.pace.wait(ctx, bytes) }); err != nil {
			p.mu.Lock()
			p.log.left = append(p.log.left, id)
			p.mu.Unlock()
			return err
		}
		p.m.advances.Add(1)
	}
}

// segmentPulls is how many times as much as another pull one of a segment asks for: most that it looks at is not
// asked for.
const segmentPulls = 4

// segment brings all that a segment of the source has of the ranges. Settling, it was known of. rest is called after
// every pull.
func (p *pulls) segment(ctx context.Context, one *puller, id record.SegmentID, settling bool, rest func(took time.Duration, bytes int) error) error {
	ask := segmentPull{ID: p.m.id, Segment: id, Bytes: uint32(segmentPulls * p.m.o.PullBytes), Answered: settling}
	for {
		began := time.Now()
		one.head = ask.encode(one.head)
		var got pulled
		bulk, err := one.call(ctx, methodSegment, peer.Raw(one.head), nil, got.decode)
		if err != nil {
			return err
		}
		entries, answered, err := got.split(bulk)
		if err != nil {
			return err
		}
		if err := p.replay(ctx, one, entries); err != nil {
			return fmt.Errorf("import what was read of segment %d: %w", id, err)
		}
		if settling {
			n, err := one.worker.ResolvedAt(answered)
			if err != nil {
				return err
			}
			p.m.cold.asked.Add(n)
		}
		p.m.bytes.Add(int64(len(entries)))
		p.m.records.Add(int64(got.Records))
		if err := rest(time.Since(began), len(entries)); err != nil || got.all() {
			return err
		}
		ask.Cursor = got.Cursor
	}
}

package client

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/wire"
)

// Record is one that a scan shows.
type Record struct {
	Key, Value []byte
	Version    uint64
	Expires    int64 // Unix milliseconds; 0: never
}

// ScanOptions say what a scan shows.
type ScanOptions struct {
	// Keys leaves the values out.
	Keys bool
	// Page is about how many records are asked for at a time; 0: 1,000.
	Page int
}

// Scan goes through all records of a table, over all servers, in no order that means anything.
// What is there all the time is shown at least once, and more than once only if its owner
// changes or it is deleted and written again meanwhile. Records are the caller's.
func (c *Client) Scan(ctx context.Context, table int, o ScanOptions) iter.Seq2[Record, error] {
	orElse(&o.Page, 1000)
	return func(yield func(Record, error) bool) {
		if err := checkTable(tableOf(table)); err != nil {
			yield(Record{}, err)
			return
		}
		s := scan{c: c, ctx: ctx, table: table, o: o}
		for !s.done {
			page, err := s.next()
			if err != nil {
				yield(Record{}, err)
				return
			}
			for len(page) > 0 {
				rec, rest, err := wire.NextRecord(page)
				if err != nil {
					yield(Record{}, fmt.Errorf("read a page of a scan: %w", err))
					return
				}
				page = rest
				if !yield(Record{rec.Key, rec.Value, rec.Version, rec.ExpireAt}, nil) {
					return
				}
			}
		}
	}
}

// scan is where a scan stands: it has shown all places before at, and is in the
// middle of a server's span if cursor is not 0.
type scan struct {
	c      *Client
	ctx    context.Context
	table  int
	o      ScanOptions
	at     record.Place
	span   view.Range
	cursor uint64
	done   bool
}

// next asks for a page. When the owner changes under way, it goes on with the new one
// from what was surely shown.
func (s *scan) next() ([]byte, error) {
	for attempt, began := 0, time.Now(); ; attempt++ {
		if s.cursor == 0 {
			s.span = view.Range{First: s.at, Last: s.c.routes.Load().spanOf(s.at).Last}
		}
		r, err := s.page()
		if err == nil {
			return s.advance(r.Value)
		}
		if !errors.Is(err, errMoved) {
			return nil, err
		}
		if time.Since(began) > s.c.opts.Retry {
			return nil, fmt.Errorf("%w: the scan's next page", ErrUnavailable)
		}
		s.cursor = 0
		s.c.wantMap()
		select {
		case <-time.After(backoff(attempt + 1)):
		case <-s.ctx.Done():
			return nil, s.ctx.Err()
		}
	}
}

// page asks the owner of the span, and nobody else.
func (s *scan) page() (Result, error) {
	arg := wire.AppendScan(nil, &wire.Scan{
		First: uint64(s.span.First), Last: uint64(s.span.Last), Cursor: s.cursor, Count: uint32(s.o.Page), Values: !s.o.Keys,
	})
	sc := syncs.Get().(*syncCall)
	cl := &call{
		op: wire.Op{Code: wire.OpScan, Table: uint32(s.table), Arg: arg}, place: s.span.First,
		finish: sc.finish, pinned: true, began: time.Now(), w: s.c.workerOf(s.span.First),
	}
	if err := s.c.submit(s.ctx, cl, true); err != nil {
		cl.end(nil, err)
	}
	return sc.wait(s.ctx)
}

func (s *scan) advance(value []byte) ([]byte, error) {
	p, records, err := wire.DecodePage(value)
	if err != nil {
		return nil, fmt.Errorf("read a page of a scan: %w", err)
	}
	s.cursor = p.Cursor
	switch {
	case p.Cursor != 0:
		s.at = max(s.at, record.Place(p.Resume))
	case s.span.Last == view.Whole.Last:
		s.done = true
	default:
		s.at = s.span.Last + 1
	}
	return records, nil
}

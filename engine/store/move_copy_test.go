package store_test

import (
	"context"

	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
)

// copyOf reads a closed segment of the source as a shared tier has it; nil if it is gone.
func (m *move) copyOf(id record.SegmentID) []byte {
	f, err := m.e.dev.Open(id)
	if err != nil {
		return nil
	}
	defer f.Close()
	b := make([]byte, f.Size())
	if _, err := f.ReadAt(b, 0); err != nil {
		return nil
	}
	ext, err := record.Scan(b, id)
	if err != nil || !ext.Closed {
		return nil
	}
	return b[:ext.End]
}

// readCopies brings what is known of at some places from copies of the source's segments. It returns the places for which the source
// must be asked.
func (m *move) readCopies(w *store.ImportWorker, places []record.Place) (left []record.Place, err error) {
	if !m.tiered {
		return places, nil
	}
	for _, p := range places {
		if !m.a.HasPulled(p) { // What is known of may be others' with the same known bits.
			left = append(left, p)
			continue
		}
		list, err := w.Where(p)
		if err != nil {
			return nil, err
		}
		whole := len(list) > 0
		for _, i := range list {
			b := m.copyOf(i.Segment)
			if b == nil || int(i.Offset) >= len(b) {
				whole = false
				continue
			}
			n := record.PtrOf(b[i.Offset:]).Length()
			done, err := w.ResolveEntry(context.Background(), i, b[i.Offset:][:n])
			if err != nil {
				return nil, err
			}
			whole = whole && done
		}
		if !whole {
			left = append(left, p)
		}
	}
	return left, nil
}

// send has the source's cleaner send what is the target's.
func (m *move) send() {
	err := m.e.st.SendAll(context.Background(), []store.Owner{{ID: 1, Ranges: m.ranges, Send: m.receive}})
	if err != nil {
		m.t.Error(err)
	}
}

// receive takes what was sent, and makes it safe.
func (m *move) receive(ctx context.Context, p store.Parcel, drop func()) error {
	w, err := m.a.NewWorker()
	if err != nil {
		return err
	}
	defer w.Close()
	if err := w.Import(ctx, p.Entries); err != nil {
		return err
	}
	if _, err := w.ResolvedAt(p.At); err != nil {
		return err
	}
	if err := m.a.Flush(ctx); err != nil {
		return err
	}
	drop()
	return nil
}

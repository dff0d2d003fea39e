package store

import (
	"context"

	"github.com/ostrodb/ostro/engine/index"
	"github.com/ostrodb/ostro/engine/record"
)

// An indirection says where a record lies in the source's log. Whoever has a copy of that segment, which never changes,
// need not ask the source: what its index pointed at when it was asked is what it has, for it changes nothing there any
// more. Large values are left to the source: their pieces may lie anywhere.

// Where lists what is known of cold records with the known bits of a place.
func (w *ImportWorker) Where(p record.Place) (all []Indirection, err error) {
	err = w.indirect(func(in *indirections) { all = in.where(p) })
	return all, err
}

// ResolveEntry imports a record that was read in a copy of the source's log where an indirection says. It is false if
// this is not what it was taken for, or if more belongs to it: then the source is asked.
func (w *ImportWorker) ResolveEntry(ctx context.Context, i Indirection, entry []byte) (bool, error) {
	entry = aligned(entry)
	p := record.PtrOf(entry)
	if !record.Fits(entry) || !isRecord(p) || index.Known(placeOf(p)) != i.Known || p.Chunked() {
		return false, nil
	}
	if fromCopy(p) {
		if err := w.Import(ctx, entry); err != nil {
			return false, err
		}
	}
	_, err := w.ResolvedAt([]Indirection{i})
	return err == nil, err
}

// fromCopy tells whether a record is imported as it lies there: not pieces, which come with their record, nor
// results of operations, which have come.
func fromCopy(p record.Ptr) bool { return p.Type() == record.TypePut && p.Table() != chunkTable }

// ResolveSegment imports all that was only known of in a segment of the source, of which segment is a copy. It tells how
// many, and how many bytes that were.
func (w *ImportWorker) ResolveSegment(ctx context.Context, id record.SegmentID, segment []byte) (n, bytes int64, err error) {
	segment = aligned(segment)
	for off := 0; off < len(segment); {
		var entries []byte
		var list []Indirection
		next := off
		err := w.indirect(func(in *indirections) { entries, list, next = in.found(id, segment, off) })
		if err != nil {
			return n, bytes, err
		}
		if len(entries) > 0 {
			if err := w.Import(ctx, entries); err != nil {
				return n, bytes, err
			}
		}
		some, err := w.ResolvedAt(list)
		if n, bytes = n+some, bytes+int64(len(entries)); err != nil {
			return n, bytes, err
		}
		off = next
	}
	return n, bytes, nil
}

// foundStep is how many entries of a copy are looked at inside one guard.
const foundStep = 256

// found lists what is known of among the next entries of a copy of a segment from off on. The caller is inside a guard.
func (in *indirections) found(id record.SegmentID, segment []byte, off int) (entries []byte, list []Indirection, next int) {
	for range foundStep {
		if off >= len(segment) || !record.Fits(segment[off:]) { // What is left is asked for by places.
			return entries, list, len(segment)
		}
		p := record.PtrOf(segment[off:])
		if isRecord(p) && !p.Chunked() {
			i := Indirection{Known: index.Known(placeOf(p)), Segment: id, Offset: uint32(off)}
			var pr index.Probe
			if in.stripes[stripeOf(i.Known)].Load() != 0 && in.seek(i.Known, in.at(&i), &pr) {
				list = append(list, i)
				if fromCopy(p) {
					entries = append(entries, p.Bytes()...)
				}
			}
		}
		off += p.Length()
	}
	return entries, list, off
}

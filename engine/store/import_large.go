package store

import (
	"context"
	"encoding/binary"
	"errors"

	"github.com/ostrodb/ostro/engine/index"
	"github.com/ostrodb/ostro/engine/record"
)

var errForeignSegments = errors.New("an entry of another log does not fit: all nodes must have the same segment size")

// largeValue is a large value of which pieces were imported.
type largeValue struct {
	table   record.TableID
	key     []byte
	numbers map[uint32]struct{}
}

// largeValues are those of a worker, or of all.
type largeValues map[valueName]*largeValue

func chunkNumber(key []byte) uint32 { return binary.LittleEndian.Uint32(key[8:]) }

// note notes a piece.
func (vs *largeValues) note(of valueName, t record.TableID, key []byte, number uint32) {
	if *vs == nil {
		*vs = largeValues{}
	}
	v := (*vs)[of]
	if v == nil {
		v = &largeValue{t, append([]byte(nil), key...), map[uint32]struct{}{}}
		(*vs)[of] = v
	}
	v.numbers[number] = struct{}{}
}

// merge adds what another worker noted.
func (vs *largeValues) merge(o largeValues) {
	for of, v := range o {
		for n := range v.numbers {
			vs.note(of, v.table, v.key, n)
		}
	}
}

// whole tells whether all pieces of a manifest were noted.
func (vs largeValues) whole(m manifest) bool {
	v := vs[m.of]
	if v == nil {
		return m.chunks() == 0
	}
	for n := range m.chunks() {
		if _, ok := v.numbers[uint32(n)]; !ok {
			return false
		}
	}
	return true
}

// showLarge takes the records of large values, as far as all their pieces are
// there. One that lacks some is of no use; it was replaced before its log's end,
// or it is damaged as it was in its log.
func (w *ImportWorker) showLarge(ctx context.Context, all largeValues) error {
	for _, b := range w.fronts {
		p := record.PtrOf(b)
		m, ok := decodeManifest(p.Value())
		t := w.ss.tables.byID(p.Table())
		if !ok || t == nil {
			continue
		}
		it := importItem{Key{Place: record.PlaceOf(p.Table(), p.Key()), Table: p.Table(), Bytes: p.Key(), in: t}, p}
		if !all.whole(m) {
			there, err := w.hasChunks(ctx, m, it.key.Place)
			if err != nil {
				return err
			}
			if !there {
				continue
			}
		}
		w.ahead.slow = append(w.ahead.slow, it)
		if err := w.slowly(ctx); err != nil {
			return err
		}
	}
	return nil
}

// hasChunks tells whether the store has all pieces, from whatever import.
func (w *ImportWorker) hasChunks(ctx context.Context, m manifest, place record.Place) (bool, error) {
	for {
		w.ss.Begin()
		st := w.ss.haveChunks(m, place)
		w.ss.End()
		if st != Cold {
			return st == OK, nil
		}
		if err := w.ss.Fetch(ctx); err != nil {
			return false, err
		}
	}
}

// dropUnnamed drops the pieces of values that no record names: those of older
// records, and of what was deleted.
func (w *ImportWorker) dropUnnamed(ctx context.Context, all largeValues) error {
	for of, v := range all {
		k := Key{Place: record.PlaceOf(v.table, v.key), Table: v.table, Bytes: v.key}
		named, err := w.names(ctx, &k, of)
		if err != nil {
			return err
		}
		if named {
			continue
		}
		for n := range v.numbers {
			var buf [chunkKeyBytes]byte
			ck := chunkKey(k.Place, of, int(n), &buf)
			if err := w.ss.dropCold(ctx, &ck); err != nil {
				return err
			}
		}
	}
	return nil
}

// names tells whether the record of k names a value.
func (w *ImportWorker) names(ctx context.Context, k *Key, of valueName) (bool, error) {
	for {
		w.ss.Begin()
		var pr index.Probe
		p, st := w.ss.find(k, &pr)
		named := false
		if st == OK && p.Chunked() {
			m, ok := decodeManifest(p.Value())
			named = ok && m.of == of
		}
		w.ss.End()
		if st != Cold {
			return named, nil
		}
		if err := w.ss.Fetch(ctx); err != nil {
			return false, err
		}
	}
}

package store

import (
	"encoding/binary"

	"github.com/ostrodb/ostro/engine/record"
)

// graveyard remembers which versions of keys are dead, one after the other in
// memory that the collector need not look into.
type graveyard struct {
	slabs [][]byte
}

const (
	graveSlabBytes = 1 << 20
	graveHeader    = 8 + 4 + 2 // version, table, length of the key
)

// add remembers that all of a key below a version is dead.
func (g *graveyard) add(t record.TableID, ver uint64, key []byte) {
	n := len(g.slabs)
	if n == 0 || cap(g.slabs[n-1])-len(g.slabs[n-1]) < graveHeader+len(key) {
		g.slabs = append(g.slabs, make([]byte, 0, max(graveSlabBytes, graveHeader+len(key))))
		n++
	}
	b := binary.LittleEndian.AppendUint64(g.slabs[n-1], ver)
	b = binary.LittleEndian.AppendUint32(b, uint32(t))
	b = binary.LittleEndian.AppendUint16(b, uint16(len(key)))
	g.slabs[n-1] = append(b, key...)
}

// grave is one of them.
type grave struct {
	table record.TableID
	ver   uint64
	key   []byte
}

// all goes through them; f returns false to end.
func (g *graveyard) all(f func(grave) bool) {
	for _, b := range g.slabs {
		for len(b) > 0 {
			n := int(binary.LittleEndian.Uint16(b[12:]))
			one := grave{record.TableID(binary.LittleEndian.Uint32(b[8:])), binary.LittleEndian.Uint64(b), b[graveHeader : graveHeader+n]}
			if !f(one) {
				return
			}
			b = b[graveHeader+n:]
		}
	}
}

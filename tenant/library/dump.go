package library

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
)

// A dump is modules one after the other, with a sum of it all:
//
//	"OSTROFN1"   (uvarint length, name, uvarint length, code)*   SHA-256
const dumpMagic = "OSTROFN1"

// dumpSlack is what a dump has at most beside code.
const dumpSlack = 1 << 20

// Dump writes modules down for Undump.
func Dump(packages []Package) []byte {
	size := len(dumpMagic) + sha256.Size
	for _, p := range packages {
		size += 2*binary.MaxVarintLen64 + len(p.Name) + len(p.Code)
	}
	out := append(make([]byte, 0, size), dumpMagic...)
	for _, p := range packages {
		for _, part := range [][]byte{[]byte(p.Name), p.Code} {
			out = binary.AppendUvarint(out, uint64(len(part)))
			out = append(out, part...)
		}
	}
	sum := sha256.Sum256(out)
	return append(out, sum[:]...)
}

// ErrNoDump is what Undump says of what Dump did not write.
var ErrNoDump = errors.New("payload version or checksum are wrong: it is not what FUNCTION DUMP of this server returned")

// Dumped tells by its first bytes that something may be a dump.
func Dumped(b []byte) bool { return bytes.HasPrefix(b, []byte(dumpMagic)) }

// Undump reads modules, no more than a tenant can have. They lie in b. It looks at all bytes, and takes its time for many.
func (s *Shelf) Undump(b []byte) ([]Package, error) {
	end := len(b) - sha256.Size
	if end < len(dumpMagic) || !Dumped(b) || sha256.Sum256(b[:end]) != [sha256.Size]byte(b[end:]) {
		return nil, ErrNoDump
	}
	left := b[len(dumpMagic):end]
	next := func() []byte {
		n, size := binary.Uvarint(left)
		if size <= 0 || n > uint64(len(left)-size) {
			left = nil
			return nil
		}
		part := left[size:][:n:n]
		left = left[size:][n:]
		return part
	}
	var all []Package
	for len(left) > 0 {
		p := Package{Name: string(next()), Code: next()}
		if p.Code == nil {
			return nil, ErrNoDump
		}
		// An empty one has two bytes in b, and takes a hundred times that from here on.
		if len(all) == s.lib.opts.Limits.Modules {
			return nil, fmt.Errorf("the payload has more than the %d modules that a tenant can have", len(all))
		}
		all = append(all, p)
	}
	return all, nil
}

// Packages are modules as they were installed. What is not there any more is left out.
func (s *Shelf) Packages(ctx context.Context, entries []Entry) ([]Package, error) {
	all := make([]Package, 0, len(entries))
	for _, e := range entries {
		code, err := s.lib.opts.Book.Code(ctx, e.Sum)
		if err == nil {
			all = append(all, Package{e.Name, code})
			continue
		}
		if now := s.content.Load().editions[e.Name]; now == nil || now.entry.Sum != e.Sum {
			continue
		}
		return nil, fmt.Errorf("read the code of module %s: %w", e.Name, err)
	}
	return all, nil
}

package ostrobbolt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
)

// What is read here of bbolt's file, version 2: two meta pages, of which the
// valid one with the higher transaction counts, and the list of free pages that
// it names.
//
//	page      id 8 · flags 2 · count 2 · overflow 4 · content
//	meta      magic 4 · version 4 · page size 4 · flags 4 · root 16 · freelist 8 · pages 8 · transaction 8 · sum 8
//	freelist  ids, 8 bytes each; if count is 0xffff, their number first
const (
	pageHeader    = 16
	metaBytes     = 64
	metaMagic     = 0xED0CDAED
	metaVersion   = 2
	freelistFlag  = 0x10
	manyFree      = 0xffff
	neverWritten  = ^uint64(0) // a freelist that was not written
	firstDataPage = 2
)

// errNoDatabase says that memory holds no valid meta page.
var errNoDatabase = errors.New("no valid bbolt meta page")

// meta is what a meta page says.
type meta struct {
	pageBytes uint64
	freelist  uint64
	pages     uint64 // all pages of the database lie below
	tx        uint64
}

// slot is the page that a transaction's meta page is written to.
func (m meta) slot() uint64 { return m.tx % 2 }

// bytes is the length of the database.
func (m meta) bytes() uint64 { return m.pages * m.pageBytes }

// readMeta finds the database's current meta page. Both begin where a page
// does, so the size of pages must be known.
func readMeta(data []byte, pageBytes uint64) (meta, error) {
	var best meta
	err := errNoDatabase
	for i := range uint64(2) {
		if uint64(len(data)) < (i+1)*pageBytes {
			break
		}
		m, ok := parseMeta(data[i*pageBytes:])
		if ok && m.pageBytes == pageBytes && (err != nil || m.tx > best.tx) {
			best, err = m, nil
		}
	}
	return best, err
}

func parseMeta(page []byte) (meta, bool) {
	if len(page) < pageHeader+metaBytes {
		return meta{}, false
	}
	b := page[pageHeader : pageHeader+metaBytes]
	word := func(at int) uint64 { return binary.NativeEndian.Uint64(b[at:]) }
	half := func(at int) uint32 { return binary.NativeEndian.Uint32(b[at:]) }
	sum := fnv.New64a()
	_, _ = sum.Write(b[:metaBytes-8])
	m := meta{pageBytes: uint64(half(8)), freelist: word(32), pages: word(40), tx: word(48)}
	return m, half(0) == metaMagic && half(4) == metaVersion && word(56) == sum.Sum64()
}

// readFree lists the pages that no reader from m on needs: free ones, and those
// that older transactions may still read.
func readFree(data []byte, m meta) ([]uint64, error) {
	if m.freelist == neverWritten {
		return nil, errors.New("the database was written without its list of free pages (NoFreelistSync)")
	}
	at := m.freelist * m.pageBytes
	if m.freelist < firstDataPage || m.freelist >= m.pages || m.bytes() > uint64(len(data)) {
		return nil, fmt.Errorf("the list of free pages is page %d of %d, and the file has %d bytes", m.freelist, m.pages, len(data))
	}
	flags, n := binary.NativeEndian.Uint16(data[at+8:]), uint64(binary.NativeEndian.Uint16(data[at+10:]))
	if flags != freelistFlag {
		return nil, fmt.Errorf("page %d should list free pages and has flags %#x", m.freelist, flags)
	}
	at += pageHeader
	if n == manyFree {
		n = binary.NativeEndian.Uint64(data[at:])
		at += 8
	}
	if n > (m.bytes()-at)/8 {
		return nil, fmt.Errorf("page %d lists %d free pages, of %d", m.freelist, n, m.pages)
	}
	free := make([]uint64, n)
	for i := range free {
		free[i] = binary.NativeEndian.Uint64(data[at+8*uint64(i):])
	}
	return free, nil
}

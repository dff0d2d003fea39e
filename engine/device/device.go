// Package device is where a log's bytes rest: memory (crash-clonable, for
// tests), the local disk, and the shared blob tier.
//
//	Device   segment files and small metadata of one node: Disk, Memory
//	Blob     segments of one log as objects that other nodes can read
//
// Invariants:
//   - A segment that List names has its full size, or the size it was cut to: it
//     appears whole or not at all.
//   - The space of a segment is allocated by Create, so a store into its mapping
//     can never meet a full disk.
//   - A store into a mapping survives the death of the process at once, and the
//     loss of power after Sync.
//   - Metadata is replaced whole: a reader sees the old bytes or the new ones.
//   - After a failed Sync nobody knows what is on the medium; so a File whose Sync
//     failed once never reports success again.
package device

import (
	"errors"
	"io"

	"github.com/ostrodb/ostro/engine/record"
)

// Errors that callers decide on. A missing segment or metadata is fs.ErrNotExist,
// a segment that is there already is fs.ErrExist.
var (
	// ErrFull says that there is no room for what was asked.
	ErrFull = errors.New("no space left")
	// ErrLocked says that another process, or another part of this one, uses the device.
	ErrLocked = errors.New("in use")
)

// Device is where segment files and small metadata rest. All methods may be
// called by many goroutines at once; none belongs on a hot path.
type Device interface {
	// Create makes a zeroed segment with all its space allocated.
	Create(id record.SegmentID, bytes int) (File, error)
	// Open opens an existing segment for reading and writing.
	Open(id record.SegmentID) (File, error)
	// List names the segments in increasing order.
	List() ([]record.SegmentID, error)
	// Remove deletes a segment for good: no crash brings it back. An open File of
	// it, and its mapping, stay usable until they are closed.
	Remove(id record.SegmentID) error

	// WriteMeta replaces the named metadata, durably.
	WriteMeta(name string, data []byte) error
	ReadMeta(name string) ([]byte, error)
	// RemoveMeta deletes the named metadata, durably.
	RemoveMeta(name string) error
	// CreateStream writes metadata too large for one slice, such as an index
	// checkpoint. It shares its names with WriteMeta.
	CreateStream(name string) (Stream, error)
	OpenStream(name string) (io.ReadCloser, error)

	// Lock takes the device for this process and clears away what unfinished
	// writes of a dead one left behind.
	Lock() (release func(), err error)
	// Usage tells the bytes that are allocated here and those still free.
	Usage() (bytes, free int64, err error)
}

// File is an open segment. ReadAt, WriteAt and Sync may be called concurrently,
// also beside stores into the mapping.
type File interface {
	io.ReaderAt
	io.WriterAt
	// Map gives a shared writable mapping of the whole file, every page of it
	// present and writable, so that stores seldom fault. It takes milliseconds:
	// call it from the background. A second call gives the same mapping. All pages
	// count as dirty afterwards: who syncs per batch calls Sync once in the
	// background, or else the first batch pays for the whole segment.
	Map() ([]byte, error)
	// MapRead gives a read-only mapping with every page present: a bad sector is an
	// error here and not a SIGBUS later.
	MapRead() ([]byte, error)
	// Unmap gives the mapping back. The caller knows that nobody uses it any more.
	Unmap() error
	// Sync makes all writes, and stores through Map, that happened before it safe
	// from loss of power. Once failed, it fails for ever.
	Sync() error
	// DropCache tells the system that cached pages of the file are not needed.
	// Unsynced pages stay.
	DropCache() error
	// Cut shortens the file to its first bytes, durably enough: a crash shows the
	// file cut or whole. The caller has synced, and reads the mapping no further.
	Cut(bytes int64) error
	Size() int64
	// Path names the segment for messages.
	Path() string
	// Close unmaps, too. It does not sync.
	Close() error
}

// Filler is a File that can be filled with its zeroes before it is mapped: the system then keeps it in larger
// pieces, and Map takes a fraction of the time. A sync of a few stores writes these pieces whole, so it is not for who
// syncs per batch. On a File that was not just created it does nothing. Between two pieces it calls between, which may rest
// to let others go first.
type Filler interface{ Fill(between func()) error }

// Direct is a File whose first bytes can be written past the system's cache, before anybody else uses it. It tells how
// many were: fewer than all, or none, where the system does not do it. WriteAt is for the others.
type Direct interface {
	WriteDirect(p []byte) (int, error)
}

// Stream is metadata being written. Nothing is visible before Commit; Close
// without Commit aborts, and is harmless after either.
type Stream interface {
	io.WriteCloser
	// Commit makes the whole durable and visible in one step.
	Commit() error
	// Abort forgets what was written.
	Abort() error
}

package store

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"fmt"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/record"
)

// IdentityMeta is the metadata that says what a data directory is for ever.
const IdentityMeta = "identity.json"

// Identity is its content.
type Identity struct {
	LogID        record.LogID `json:"log"`
	SegmentBytes int          `json:"segmentBytes"`
	Format       int          `json:"format"`
}

// ReadIdentity reads what a directory is; false if no store was ever there.
func ReadIdentity(r device.MetaReader) (id Identity, found bool, err error) {
	found, err = device.ReadJSON(r, IdentityMeta, &id)
	return id, found, err
}

// identify reads the directory's identity, or gives it one.
func (st *Store) identify() error {
	if st.dev == nil {
		return nil
	}
	id, found, err := ReadIdentity(st.dev)
	switch {
	case err != nil:
		return err
	case !found:
		return st.baptize()
	}
	return st.agree(id)
}

func (st *Store) baptize() error {
	if st.opts.LogID == 0 {
		var b [8]byte
		rand.Read(b[:])
		st.opts.LogID = record.LogID(binary.LittleEndian.Uint64(b[:])>>1 | 1)
	}
	b, err := json.Marshal(Identity{st.opts.LogID, st.opts.SegmentBytes, record.FormatVersion})
	if err != nil {
		return err
	}
	return st.dev.WriteMeta(IdentityMeta, b)
}

// agree takes the directory's identity, unless the options contradict it.
func (st *Store) agree(id Identity) error {
	switch {
	case id.Format != record.FormatVersion:
		return fmt.Errorf("the data directory has format %d, this program reads %d: use the version that wrote it", id.Format, record.FormatVersion)
	case st.opts.LogID != 0 && st.opts.LogID != id.LogID:
		return fmt.Errorf("the data directory is of log %d, not %d: choose another directory", id.LogID, st.opts.LogID)
	case st.opts.SegmentBytes != id.SegmentBytes:
		return fmt.Errorf("the data directory has segments of %d bytes, not %d: set the segment size to that", id.SegmentBytes, st.opts.SegmentBytes)
	}
	st.opts.LogID = id.LogID
	return nil
}

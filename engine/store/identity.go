package store

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/ostrodb/ostro/engine/record"
)

const identityMeta = "identity.json"

// identity is what a data directory is for ever.
type identity struct {
	LogID        record.LogID `json:"log"`
	SegmentBytes int          `json:"segmentBytes"`
	Format       int          `json:"format"`
}

// identify reads the directory's identity, or gives it one.
func (st *Store) identify() error {
	if st.dev == nil {
		return nil
	}
	b, err := st.dev.ReadMeta(identityMeta)
	if errors.Is(err, fs.ErrNotExist) {
		return st.baptize()
	}
	if err != nil {
		return err
	}
	var id identity
	if err := json.Unmarshal(b, &id); err != nil {
		return fmt.Errorf("%s is damaged (%w): restore it from a copy of the data directory", identityMeta, err)
	}
	return st.agree(id)
}

func (st *Store) baptize() error {
	if st.opts.LogID == 0 {
		var b [8]byte
		rand.Read(b[:])
		st.opts.LogID = record.LogID(binary.LittleEndian.Uint64(b[:])>>1 | 1)
	}
	b, err := json.Marshal(identity{st.opts.LogID, st.opts.SegmentBytes, record.FormatVersion})
	if err != nil {
		return err
	}
	return st.dev.WriteMeta(identityMeta, b)
}

// agree takes the directory's identity, unless the options contradict it.
func (st *Store) agree(id identity) error {
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

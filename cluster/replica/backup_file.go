package replica

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/internal/background"
)

// A closed replica on disk is a file: the segment's bytes up to its closing seal, then a
// footer, little-endian:
//
//	 0  8  magic        24  8  version     36  4  sum
//	 8  8  log          32  4  end         40  8  batch
//	16  8  segment                         48  4  CRC-32C of what is before
const (
	footerMagic = "OSTRORP1"
	footerBytes = 52
	// copyStep is how many bytes are written at a time.
	copyStep = background.Piece
)

// replicaName is the file of a replica in the backup's directory.
func replicaName(log record.LogID, id record.SegmentID) string {
	return fmt.Sprintf("%016x-%016x", uint64(log), uint64(id))
}

// parseReplicaName is the inverse of replicaName.
func parseReplicaName(name string) (log record.LogID, id record.SegmentID, ok bool) {
	a, b, found := strings.Cut(name, "-")
	if !found || len(a) != 16 || len(b) != 16 {
		return 0, 0, false
	}
	l, err1 := strconv.ParseUint(a, 16, 64)
	s, err2 := strconv.ParseUint(b, 16, 64)
	return record.LogID(l), record.SegmentID(s), err1 == nil && err2 == nil
}

func encodeFooter(log record.LogID, id record.SegmentID, version uint64, c Closing) []byte {
	le := binary.LittleEndian
	b := append(make([]byte, 0, footerBytes), footerMagic...)
	b = le.AppendUint64(b, uint64(log))
	b = le.AppendUint64(b, uint64(id))
	b = le.AppendUint64(b, version)
	b = le.AppendUint32(b, c.End)
	b = le.AppendUint32(b, c.Sum)
	b = le.AppendUint64(b, uint64(c.Batch))
	return le.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// readFooter reads what a replica's file says of itself.
func readFooter(f *os.File, log record.LogID, id record.SegmentID) (version uint64, c Closing, err error) {
	st, err := f.Stat()
	if err != nil {
		return 0, c, err
	}
	b := make([]byte, footerBytes)
	if _, err := f.ReadAt(b, st.Size()-footerBytes); err != nil {
		return 0, c, fmt.Errorf("%w: %s has no footer", ErrCorrupt, f.Name())
	}
	le := binary.LittleEndian
	c = Closing{End: le.Uint32(b[32:]), Sum: le.Uint32(b[36:]), Batch: record.BatchID(le.Uint64(b[40:]))}
	if string(encodeFooter(log, id, le.Uint64(b[24:]), c)) != string(b) || int64(c.End)+footerBytes != st.Size() {
		return 0, Closing{}, fmt.Errorf("%w: the footer of %s is not of this replica", ErrCorrupt, f.Name())
	}
	return le.Uint64(b[24:]), c, nil
}

// writeReplica writes a replica's file under a temporary name and syncs it. The
// sum is checked on the way: what is stored is what was meant.
func writeReplica(dir string, log record.LogID, id record.SegmentID, version uint64, c Closing, bytes []byte, between func()) (tmp string, err error) {
	f, err := fillReplica(dir, log, id, version, c, bytes, between)
	if f == nil {
		return "", err
	}
	return syncReplica(f, err)
}

// fillReplica is writeReplica but for the sync, which waits for the disk: syncReplica has to follow.
func fillReplica(dir string, log record.LogID, id record.SegmentID, version uint64, c Closing, bytes []byte, between func()) (*os.File, error) {
	f, err := os.CreateTemp(dir, replicaName(log, id)+"-*"+tmpSuffix)
	if err != nil {
		return nil, err
	}
	sum := uint32(0)
	for at := 0; at < len(bytes) && err == nil; at += copyStep {
		piece := bytes[at:min(at+copyStep, len(bytes))]
		sum = crc32.Update(sum, castagnoli, piece)
		_, err = f.Write(piece)
		between()
	}
	if err == nil && sum != c.Sum {
		err = fmt.Errorf("%w: its bytes changed in memory", ErrCorrupt)
	}
	if err == nil {
		_, err = f.Write(encodeFooter(log, id, version, c))
	}
	return f, err
}

// syncReplica ends what fillReplica began, and failed with err if that is not nil.
func syncReplica(f *os.File, err error) (tmp string, _ error) {
	if err == nil {
		err = syncFile(f)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(fmt.Errorf("write a replica: %w", err), os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// adoptReplica gives a file that writeReplica wrote its name.
func adoptReplica(dir, tmp string, log record.LogID, id record.SegmentID) (path string, err error) {
	path = filepath.Join(dir, replicaName(log, id))
	if err := os.Rename(tmp, path); err != nil {
		return "", errors.Join(err, os.Remove(tmp))
	}
	return path, syncDir(dir)
}

// readReplica reads the bytes of a replica's file and checks that they are those
// that were written.
func readReplica(path string, log record.LogID, id record.SegmentID, c Closing, into []byte) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return into, err
	}
	defer f.Close()
	if _, said, err := readFooter(f, log, id); err != nil || said != c {
		return into, errors.Join(fmt.Errorf("%w: %s", ErrCorrupt, path), err)
	}
	if cap(into) < int(c.End) {
		into = make([]byte, c.End)
	}
	into = into[:c.End]
	if _, err := io.ReadFull(f, into); err != nil {
		return into, fmt.Errorf("%w: read %s: %w", ErrCorrupt, path, err)
	}
	if Sum(into) != c.Sum {
		return into, fmt.Errorf("%w: %s does not match its sum", ErrCorrupt, path)
	}
	return into, nil
}

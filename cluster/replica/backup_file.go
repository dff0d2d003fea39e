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
	"github.com/ostrodb/ostro/internal/direct"
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
	return makeReplica(dir, log, id, version, c, func(f *os.File) error {
		sum := uint32(0)
		for at := 0; at < len(bytes); at += copyStep {
			piece := bytes[at:min(at+copyStep, len(bytes))]
			sum = crc32.Update(sum, castagnoli, piece)
			if _, err := f.Write(piece); err != nil {
				return err
			}
			between()
		}
		return matches(sum, c.Sum)
	})
}

// storeReplica is writeReplica past the system's cache, if that can be, for what was checked before.
func storeReplica(dir string, log record.LogID, id record.SegmentID, version uint64, c Closing, bytes []byte) (tmp string, err error) {
	return makeReplica(dir, log, id, version, c, func(f *os.File) error {
		at, err := direct.Write(f, bytes, 0)
		for ; at < len(bytes) && err == nil; at += copyStep {
			_, err = f.WriteAt(bytes[at:min(at+copyStep, len(bytes))], int64(at))
		}
		return err
	})
}

// checkSum tells whether bytes are those that were meant.
func checkSum(bytes []byte, want uint32, between func()) error {
	sum := uint32(0)
	for at := 0; at < len(bytes); at += copyStep {
		sum = crc32.Update(sum, castagnoli, bytes[at:min(at+copyStep, len(bytes))])
		between()
	}
	return matches(sum, want)
}

func matches(sum, want uint32) error {
	if sum != want {
		return fmt.Errorf("%w: its bytes changed in memory", ErrCorrupt)
	}
	return nil
}

// makeReplica makes a replica's file, whose first bytes write writes, under a temporary name, and syncs it.
func makeReplica(dir string, log record.LogID, id record.SegmentID, version uint64, c Closing, write func(*os.File) error) (tmp string, err error) {
	f, err := os.CreateTemp(dir, replicaName(log, id)+"-*"+tmpSuffix)
	if err != nil {
		return "", err
	}
	if err = write(f); err == nil {
		_, err = f.WriteAt(encodeFooter(log, id, version, c), int64(c.End))
	}
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

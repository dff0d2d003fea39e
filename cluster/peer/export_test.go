package peer

import (
	"bytes"
	"encoding/binary"
	"io"
)

// EncodeRequest is the bytes of a request.
func EncodeRequest(call uint64, method string, head, bulk []byte) []byte {
	f := frame{kind: kindRequest, call: call, method: method, head: head, bulk: bulk}
	return append(f.appendFront(nil), bulk...)
}

// EncodeAnswer is the bytes of an answer.
func EncodeAnswer(call uint64) []byte {
	f := frame{kind: kindAnswer, call: call}
	return f.appendFront(nil)
}

// EncodeSizes is a header that promises much.
func EncodeSizes(head, bulk uint32) []byte {
	b := EncodeRequest(1, "m", nil, nil)
	binary.LittleEndian.PutUint32(b[4:], head)
	binary.LittleEndian.PutUint32(b[8:], bulk)
	return b
}

// Recode reads a frame and encodes it again.
func Recode(in []byte) ([]byte, bool) {
	var f frame
	if _, err := f.read(bytes.NewReader(in), nil); err != nil {
		return nil, false
	}
	return append(f.appendFront(nil), f.bulk...), true
}

// ReadBulk reads a frame and returns its bulk.
func ReadBulk(r io.Reader) ([]byte, error) {
	var f frame
	_, err := f.read(r, nil)
	return f.bulk, err
}

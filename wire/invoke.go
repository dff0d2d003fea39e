package wire

import (
	"encoding/binary"
	"fmt"
)

// AppendInvoke appends the argument of OpInvoke. A name has at most 255 bytes. The operation's own key is the function's
// first; keys are those after it.
func AppendInvoke(b []byte, name string, keys, args [][]byte) []byte {
	name = name[:min(len(name), 255)]
	b = append(b, byte(len(name)))
	b = append(b, name...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(keys)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(args)))
	for _, list := range [2][][]byte{keys, args} {
		for _, v := range list {
			b = binary.LittleEndian.AppendUint32(b, uint32(len(v)))
		}
	}
	for _, list := range [2][][]byte{keys, args} {
		for _, v := range list {
			b = append(b, v...)
		}
	}
	return b
}

// Invoke is the argument of OpInvoke.
type Invoke struct {
	Name []byte
	Keys [][]byte // the operation's own key is the first
	Args [][]byte

	all [][]byte
}

// Decode reads the argument of an operation on key. Its bytes are the argument's; what v held is used again.
func (v *Invoke) Decode(key, arg []byte) error {
	r := reader{b: arg}
	if b := r.take(1); b != nil {
		v.Name = r.take(int(b[0]))
	}
	keys, args := uint64(r.u32()), uint64(r.u32())
	if r.err != nil {
		return r.err
	}
	if (keys+args)*4 > uint64(len(r.b)) {
		return ErrShort
	}
	lengths, rest := r.b[:4*(keys+args)], r.b[4*(keys+args):]
	v.all = append(v.all[:0], key)
	for ; len(lengths) > 0; lengths = lengths[4:] {
		n := binary.LittleEndian.Uint32(lengths)
		if uint64(n) > uint64(len(rest)) {
			return ErrShort
		}
		v.all = append(v.all, rest[:n:n])
		rest = rest[n:]
	}
	if len(rest) > 0 {
		return fmt.Errorf("%w: bytes behind the last argument", ErrMalformed)
	}
	v.Keys, v.Args = v.all[:1+keys:1+keys], v.all[1+keys:]
	return nil
}

// Forget drops what v refers to.
func (v *Invoke) Forget() {
	clear(v.all)
	v.Name, v.Keys, v.Args, v.all = nil, nil, nil, v.all[:0]
}

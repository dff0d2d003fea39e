package meter

import (
	"encoding/binary"

	"github.com/ostrodb/ostro/tenant/extension/wasm"
)

// moveNames keeps the names of functions, which traces of errors show, and drops all other custom sections. Names that
// cannot be read are dropped, too: they mean nothing for execution.
func (w *rewriter) moveNames(all []wasm.Custom) []wasm.Custom {
	for _, c := range all {
		if c.Name != "name" {
			continue
		}
		if names, ok := w.movedNames(c.Bytes); ok {
			return []wasm.Custom{{Name: "name", Bytes: names}}
		}
	}
	return nil
}

// movedNames finds the part of the section that names functions and writes it anew.
func (w *rewriter) movedNames(b []byte) ([]byte, bool) {
	for len(b) > 0 {
		id := b[0]
		size, n := binary.Uvarint(b[1:])
		if n <= 0 || size > uint64(len(b)-1-n) {
			return nil, false
		}
		part := b[1+n:][:size]
		b = b[1+n+int(size):]
		if id == 1 {
			return w.movedMap(part)
		}
	}
	return nil, false
}

func (w *rewriter) movedMap(b []byte) ([]byte, bool) {
	count, n := binary.Uvarint(b)
	if n <= 0 || count > uint64(len(b)) {
		return nil, false
	}
	b = b[n:]
	out := wasm.AppendUint(nil, count)
	last := int64(-1)
	for range count {
		fn, n := binary.Uvarint(b)
		if n <= 0 || int64(fn) <= last || fn >= uint64(w.oldBase+len(w.f.infos)) {
			return nil, false
		}
		last = int64(fn)
		b = b[n:]
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) {
			return nil, false
		}
		out = wasm.AppendUint(wasm.AppendUint(out, w.moved(fn)), size)
		out = append(out, b[n:][:size]...)
		b = b[n+int(size):]
	}
	return append(wasm.AppendUint([]byte{1}, uint64(len(out))), out...), true
}

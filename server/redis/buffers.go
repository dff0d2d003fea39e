package redis

const (
	firstBufferBytes = 4 << 10
	keepBufferBytes  = 256 << 10 // larger buffers go back to the collector
	keepBuffers      = 256
)

// buffers is a loop's pool of byte buffers, for input that is not complete
// and for replies. A connection that waits for nothing holds none.
type buffers struct{ free [][]byte }

// get returns an empty buffer.
func (b *buffers) get() []byte {
	if n := len(b.free); n > 0 {
		buf := b.free[n-1]
		b.free = b.free[:n-1]
		return buf
	}
	return make([]byte, 0, firstBufferBytes)
}

// put takes a buffer back.
func (b *buffers) put(buf []byte) {
	if c := cap(buf); c == 0 || c > keepBufferBytes || len(b.free) >= keepBuffers {
		return
	}
	b.free = append(b.free, buf[:0])
}

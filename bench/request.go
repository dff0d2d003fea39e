package bench

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/ostrodb/ostro/bench/workload"
)

// requests is a ring of RESP commands, built once; before it is sent, only the
// digits of its keys, and those in its values that say whose they are, are
// overwritten. Each connection patches a copy of its own.
type requests struct {
	bytes []byte
	slots []slot
	keys  workload.Encoding
	// wait is how many replicas each write is followed by a WAIT for; 0: no WAIT.
	wait int
	// frames are where native batches begin; none of RESP commands.
	frames []int
}

// slot is one operation in the ring: a command, or two for a
// read-modify-write, which over RESP is a GET and then a SET, or for a write
// that waits for replicas.
type slot struct {
	from, to int
	key      [2]int // where the keys start in bytes
	keys     int
	stamp    int // where the value starts, 0 where there is none
	replies  int
	writes   bool
}

// slotsAtLeast keeps the mix of a ring exact even when one request is sent at a
// time.
const slotsAtLeast = 512

// newRequests builds a ring whose length is a multiple of pipeline; every SET
// writes value, which is stamped with the record's number if it has room, and
// waits for so many replicas.
func newRequests(mix workload.Mix, keys workload.Encoding, value []byte, pipeline int, seed uint64, wait int) (*requests, error) {
	if mix.Insert > 0 {
		return nil, fmt.Errorf("%s inserts records, which this load cannot number over several connections; choose another workload", mix.Name)
	}
	n := slotsFor(pipeline)
	r := &requests{keys: keys, wait: wait}
	for _, op := range mix.Deck(n, seed) {
		s := slot{from: len(r.bytes)}
		switch op {
		case workload.Read:
			r.command(&s, "GET", nil)
		case workload.Update:
			r.command(&s, "SET", value)
		case workload.Modify:
			r.command(&s, "GET", nil)
			r.command(&s, "SET", value)
		case workload.Add:
			r.command(&s, "INCR", nil)
		}
		if s.writes = op != workload.Read; s.writes {
			r.waitFor(&s)
		}
		s.to = len(r.bytes)
		r.slots = append(r.slots, s)
	}
	return r, nil
}

// slotsFor is how long a ring is.
func slotsFor(pipeline int) int { return (slotsAtLeast + pipeline - 1) / pipeline * pipeline }

// command appends a command with a key and perhaps a value.
func (r *requests) command(s *slot, name string, value []byte) {
	words := 2
	if value != nil {
		words = 3
	}
	r.bytes = append(r.bytes, '*', byte('0'+words), '\r', '\n')
	r.bulk([]byte(name))
	key := make([]byte, r.keys.Len())
	r.keys.Put(key, 0)
	r.bulk(key)
	s.key[s.keys] = len(r.bytes) - len(key) - 2
	s.keys++
	if value != nil {
		r.bulk(value)
		if len(value) >= workload.StampLen {
			s.stamp = len(r.bytes) - len(value) - 2
		}
	}
	s.replies++
}

// waitFor appends a WAIT without a limit of time.
func (r *requests) waitFor(s *slot) {
	if r.wait == 0 {
		return
	}
	r.bytes = append(r.bytes, "*3\r\n"...)
	r.bulk([]byte("WAIT"))
	r.bulk(strconv.AppendInt(nil, int64(r.wait), 10))
	r.bulk([]byte("0"))
	s.replies++
}

func (r *requests) bulk(b []byte) {
	r.bytes = append(r.bytes, '$')
	r.bytes = strconv.AppendInt(r.bytes, int64(len(b)), 10)
	r.bytes = append(r.bytes, '\r', '\n')
	r.bytes = append(r.bytes, b...)
	r.bytes = append(r.bytes, '\r', '\n')
}

// copy returns a ring to be patched without touching r.
func (r *requests) copy() *requests {
	c := *r
	c.bytes = append([]byte(nil), r.bytes...)
	return &c
}

// copyWithTag returns such a ring whose keys have another hash tag of the same
// length; none leaves them as they are.
func (r *requests) copyWithTag(tag string) *requests {
	c := r.copy()
	if tag != "" {
		c.bytes = bytes.ReplaceAll(c.bytes, []byte("{"+workload.Tag+"}"), []byte("{"+tag+"}"))
	}
	return c
}

// patch writes the keys of the slots [from, from+len(ids)).
func (r *requests) patch(from int, ids []uint32) {
	for i, id := range ids {
		s := &r.slots[from+i]
		for _, at := range s.key[:s.keys] {
			r.keys.Patch(r.bytes[at:], uint64(id))
		}
		if s.stamp > 0 {
			workload.PutDigits(r.bytes[s.stamp:], uint64(id))
		}
	}
}

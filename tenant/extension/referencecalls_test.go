package extension

import (
	"bytes"
	"encoding/binary"
	"slices"
	"time"
)

func (m *machine) doNothing([]uint64) uint64 {
	m.enter()
	return 0
}

func (m *machine) doArgs(a []uint64) uint64 {
	m.enter()
	if copy(m.bytes(a[0], a[1]), m.args) < len(m.args) {
		m.note = "a part"
	}
	return uint64(len(m.args))
}

func (m *machine) ownWrite(table uint32, key []byte) *Write {
	for i, w := range m.writes {
		if w.Table == table && bytes.Equal(w.Key, key) {
			return &m.writes[i]
		}
	}
	return nil
}

// find is a value as the function sees it, which stays as it is, and goes to buf if it fits.
func (m *machine) find(table uint32, key, buf []byte) ([]byte, Status) {
	key = slices.Clone(key)
	if len(key) > keyMost {
		return nil, TooLarge
	}
	if w := m.ownWrite(table, key); w != nil && w.Delete {
		return nil, Absent
	} else if w != nil {
		copyWhole(buf, w.Value)
		return w.Value, OK
	}
	var v Value
	st := m.store.Get(table, key, nil, &v)
	value := slices.Clone(v.Whole)
	switch st {
	case Later:
		m.later()
	case OK:
		copyWhole(buf, value)
		m.remember(Read{table, key, v.Version})
	case Absent:
		m.remember(Read{table, key, 0})
	}
	return value, st
}

func copyWhole(to, from []byte) {
	if len(from) <= len(to) {
		copy(to, from)
	}
}

func (m *machine) remember(r Read) {
	n := len(m.reads)
	if m.readBytes += len(r.Key); n >= m.limits.Reads || m.readBytes > m.limits.WriteBytes {
		m.stop(OverLimit, "too many reads")
	}
	if len(m.writes) > 0 && len(m.writes)+n >= m.limits.Writes {
		m.stop(OverLimit, "too many keys")
	}
	m.reads = append(m.reads, r)
}

// view keeps a value that does not fit.
func (m *machine) view(v []byte) uint64 {
	if len(m.views) >= m.limits.Views || m.viewBytes+len(v) > m.limits.ViewBytes {
		m.stop(OverLimit, "too many views")
	}
	m.keeps(len(v))
	m.viewBytes += len(v)
	m.views = append(m.views, v)
	m.note = "view"
	return uint64(len(m.views))
}

func (m *machine) doGet(a []uint64) uint64 {
	m.enter()
	key, buf := m.bytes(a[1], a[2]), m.bytes(a[3], a[4])
	v, st := m.find(uint32(a[0]), key, buf)
	switch {
	case st != OK:
		m.says(st)
		return uint64(int64(st))
	case len(v) > len(buf):
		return m.view(v)<<32 | uint64(len(v))
	}
	return uint64(len(v))
}

func (m *machine) doRead(a []uint64) uint64 {
	m.enter()
	n := int(uint32(a[0]))
	if n == 0 || n > len(m.views) {
		m.stop(Misused, "no such view")
	}
	v := m.views[n-1]
	copied := copy(m.bytes(a[2], a[3]), v[min(len(v), int(uint32(a[1]))):])
	if copied == 0 {
		m.note = "nothing"
	}
	return uint64(copied)
}

func (m *machine) doMultiget(a []uint64) uint64 {
	m.enter()
	n := uint64(uint32(a[2]))
	if n > multigetMost {
		m.stop(Misused, "too many at once")
	}
	list, results, room := m.bytes(a[1], 8*n), m.bytes(a[3], 16*n), m.bytes(a[4], a[5])
	found, at, note := uint64(0), uint32(a[4]), "ok"
	for i := range n {
		pair, out := list[8*i:], results[16*i:]
		key := m.bytes(uint64(binary.LittleEndian.Uint32(pair)), uint64(binary.LittleEndian.Uint32(pair[4:])))
		v, st := m.find(uint32(a[0]), key, room)
		result := [4]uint32{0, uint32(st)}
		switch {
		case st != OK:
			m.says(st)
			note = "some are not there"
		case len(v) > len(room):
			found++
			result = [4]uint32{0, uint32(len(v)), uint32(m.view(v))}
			note = "view"
		default:
			found++
			result = [4]uint32{at, uint32(len(v))}
			at, room = at+uint32(len(v)), room[len(v):]
		}
		for k, w := range result {
			binary.LittleEndian.PutUint32(out[4*k:], w)
		}
	}
	m.note = note
	return found
}

// mayWrite is what all writes have to satisfy.
func (m *machine) mayWrite(table uint32, key []byte, n uint64) Status {
	if m.readOnly {
		return ReadOnly
	}
	if len(key) > keyMost || n > uint64(m.limits.ValueBytes) {
		return TooLarge
	}
	if st := m.store.Place(table, key); st == Later {
		m.later()
	} else if st != OK {
		return st
	}
	if m.written += len(key) + int(n); m.written > m.limits.WriteBytes {
		m.stop(OverLimit, "too much")
	}
	m.keeps(0)
	return OK
}

func (m *machine) write(w Write) {
	if have := m.ownWrite(w.Table, w.Key); have != nil {
		*have = w
		return
	}
	if len(m.writes)+len(m.reads) >= m.limits.Writes {
		m.stop(OverLimit, "too many keys")
	}
	m.writes = append(m.writes, w)
}

func (m *machine) doAlloc(a []uint64) uint64 {
	m.enter()
	key, n := m.bytes(a[1], a[2]), uint64(uint32(a[3]))
	if st := m.mayWrite(uint32(a[0]), key, n); st != OK {
		return m.says(st)
	}
	if len(m.buffers) >= m.limits.Views {
		m.stop(OverLimit, "too many buffers")
	}
	m.buffers = append(m.buffers, buffer{Write{Table: uint32(a[0]), Key: slices.Clone(key), Value: make([]byte, n)}, true})
	return uint64(len(m.buffers) - 1)
}

func (m *machine) buffer(n uint64) *buffer {
	if i := int(uint32(n)); i < len(m.buffers) && m.buffers[i].open {
		return &m.buffers[i]
	}
	m.stop(Misused, "no such buffer")
	return nil
}

func (m *machine) doFill(a []uint64) uint64 {
	m.enter()
	b := m.buffer(a[0])
	from := m.bytes(a[2], a[3])
	at := uint64(uint32(a[1]))
	if at+uint64(len(from)) > uint64(len(b.write.Value)) {
		m.stop(Misused, "beyond its end")
	}
	copy(b.write.Value[at:], from)
	return 0
}

func (m *machine) ttl(millis uint64) time.Duration {
	if int64(millis) < 0 || time.Duration(millis) > 1<<62/time.Millisecond {
		m.stop(Misused, "no such time")
	}
	return time.Duration(millis) * time.Millisecond
}

func (m *machine) doPut(a []uint64) uint64 {
	m.enter()
	b := m.buffer(a[0])
	b.write.TTL = m.ttl(a[1])
	m.write(b.write)
	b.open = false
	return 0
}

func (m *machine) doSet(a []uint64) uint64 {
	m.enter()
	key, value := m.bytes(a[1], a[2]), m.bytes(a[3], a[4])
	if st := m.mayWrite(uint32(a[0]), key, uint64(len(value))); st != OK {
		return m.says(st)
	}
	m.write(Write{Table: uint32(a[0]), Key: slices.Clone(key), Value: slices.Clone(value), TTL: m.ttl(a[5])})
	return 0
}

func (m *machine) doDel(a []uint64) uint64 {
	m.enter()
	key := m.bytes(a[1], a[2])
	if st := m.mayWrite(uint32(a[0]), key, 0); st != OK {
		return m.says(st)
	}
	m.write(Write{Table: uint32(a[0]), Key: slices.Clone(key), Delete: true})
	return 0
}

func (m *machine) doScan(a []uint64) uint64 {
	m.enter()
	cursor, prefix, buf := m.bytes(a[1], 8), m.bytes(a[2], a[3]), m.bytes(a[4], a[5])
	if len(prefix) > keyMost {
		return m.says(TooLarge)
	}
	entries, at, tooLarge := uint64(0), 0, false
	visit := func(key, value []byte) bool {
		entry := binary.LittleEndian.AppendUint32(nil, uint32(len(key)))
		entry = append(binary.LittleEndian.AppendUint32(entry, uint32(len(value))), key...)
		if a[6]&1 != 0 {
			entry = append(entry, value...)
		}
		if entries == 0 && !tooLarge && len(entry) > len(buf) {
			tooLarge = true // The next call goes on behind it.
			return true
		}
		if tooLarge || len(entry) > len(buf)-at {
			return false
		}
		at += copy(buf[at:], entry)
		entries++
		return true
	}
	next, _, st := m.store.Scan(uint32(a[0]), binary.LittleEndian.Uint64(cursor), slices.Clone(prefix), visit)
	switch {
	case st == Later:
		m.later()
	case st != OK:
		return m.says(st)
	case next != 0:
		m.note = "more"
	}
	binary.LittleEndian.PutUint64(cursor, next)
	if tooLarge {
		return m.says(TooLarge)
	}
	return entries
}

func (m *machine) tooLong(more int) bool {
	return len(m.response)-len(modelHead)+more > m.limits.ResponseBytes
}

// cannotKeep tells of a response that gets too long for a tenant without memory.
func (m *machine) cannotKeep(more int) bool {
	return m.poor && more > 0 && len(m.response)+more > keptBytes
}

func (m *machine) doResp(a []uint64) uint64 {
	m.enter()
	b := m.bytes(a[0], a[1])
	if m.tooLong(len(b)) {
		m.stop(OverLimit, "too long")
	}
	if m.cannotKeep(len(b)) {
		m.stop(OverLimit, "no room")
	}
	m.response = append(m.response, b...)
	return 0
}

func (m *machine) doLog(a []uint64) uint64 {
	m.enter()
	m.logLine(min(uint32(a[0]), 3), m.bytes(a[1], a[2]))
	return 0
}

func (m *machine) logLine(level uint32, line []byte) {
	line = line[:min(len(line), 1024)]
	if m.logged += len(line) + 1; m.logged > m.limits.LogBytes {
		m.note = "dropped"
		m.lost++
		return
	}
	m.lines = appendLine(m.lines, int(level), line)
}

// appendLine is how lines of logs are compared.
func appendLine(b []byte, level int, line []byte) []byte {
	return append(binary.LittleEndian.AppendUint16(append(b, byte(level)), uint16(len(line))), line...)
}

func (m *machine) doNow([]uint64) uint64 {
	m.enter()
	return uint64(modelTime.UnixNano())
}

func (m *machine) doRandom(a []uint64) uint64 {
	m.enter()
	_, _ = m.chance.Read(m.bytes(a[0], a[1]))
	return 0
}

func (m *machine) doFail(a []uint64) uint64 {
	m.enter()
	m.bytes(a[1], a[2])
	m.note = "failed"
	panic(ending{kind: Failed, code: int32(uint32(a[0]))})
}

func (m *machine) doNoSizes(a []uint64) uint64 {
	m.enter()
	clear(m.bytes(a[0], 4))
	clear(m.bytes(a[1], 4))
	return 0
}

func (m *machine) doClockRes(a []uint64) uint64 {
	m.enter()
	binary.LittleEndian.PutUint64(m.bytes(a[1], 8), uint64(time.Millisecond))
	return 0
}

func (m *machine) doClockTime(a []uint64) uint64 {
	m.enter()
	binary.LittleEndian.PutUint64(m.bytes(a[2], 8), uint64(modelTime.UnixNano()))
	return 0
}

func (m *machine) doWrite(a []uint64) uint64 {
	m.enter()
	fd, n := uint32(a[0]), uint64(uint32(a[2]))
	if fd != 1 && fd != 2 {
		m.note = "bad descriptor"
		return wasiBadFD
	}
	if n > piecesMost {
		m.note = "too many pieces"
		return wasiFault
	}
	sum := uint32(0)
	list := m.bytes(a[1], 8*n)
	for i := range n {
		size := binary.LittleEndian.Uint32(list[8*i+4:])
		b := m.bytes(uint64(binary.LittleEndian.Uint32(list[8*i:])), uint64(size))
		m.logLine(fd, bytes.TrimSuffix(b, []byte("\n")))
		sum += size
	}
	binary.LittleEndian.PutUint32(m.bytes(a[3], 4), sum)
	return 0
}

func (m *machine) doStat(a []uint64) uint64 {
	m.enter()
	b := m.bytes(a[1], 24)
	if uint32(a[0]) > 2 {
		m.note = "bad descriptor"
		return wasiBadFD
	}
	clear(b)
	b[0] = 2
	return 0
}

func (m *machine) doPoll(a []uint64) uint64 {
	m.enter()
	n := uint64(uint32(a[2]))
	if n == 0 || n > piecesMost {
		m.note = "bad number"
		return wasiFault
	}
	from, to := m.bytes(a[0], 48*n), m.bytes(a[1], 32*n)
	for i := range n {
		event := make([]byte, 32)
		copy(event, from[48*i:][:8])
		event[10] = from[48*i+8]
		if event[10] != 0 {
			event[8] = wasiBadFD
		}
		copy(to[32*i:], event)
	}
	binary.LittleEndian.PutUint32(m.bytes(a[3], 4), uint32(n))
	return 0
}

func (m *machine) doExit(a []uint64) uint64 {
	m.note = "failed"
	panic(ending{kind: Failed, code: int32(uint32(a[0]))})
}

// pagesMost is how large memory may get.
const pagesMost = 3

func (m *machine) doGrow(a []uint64) uint64 {
	had, more := len(m.mem)/pageBytes, uint64(uint32(a[0]))
	if uint64(had)+more > pagesMost {
		m.note = "too large"
		return 1<<32 - 1
	}
	if more > 0 && m.poor {
		m.note = "no room"
		m.short = true
		return 1<<32 - 1
	}
	m.mem = append(m.mem, make([]byte, more*pageBytes)...)
	return uint64(had)
}

func (m *machine) doStore(a []uint64) uint64 { return a[0] }

func (m *machine) doReturn(a []uint64) uint64 {
	e := ending{code: int32(uint32(a[0]))}
	if e.code != 0 {
		e.kind = Returned
	}
	panic(e)
}

func (m *machine) doTrap([]uint64) uint64 {
	m.trap()
	return 0
}

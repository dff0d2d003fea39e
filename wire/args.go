package wire

import "encoding/binary"

// The arguments of operations that take more than one thing:
//
//	swap  := u8 absent, u32 n, old[n], new      absent 1: there must be no record
//	merge := u8 n, name[n], operand
//	invoke := u8 n, name[n], u32 keys, u32 args, u32 length of each key, of each arg, the keys, the args
//	keys  := (u32 n, key[n])*
//	puts  := (u32 keyBytes, u32 valueBytes, i64 expireAt, key, value)*
//	scan  := u64 first, u64 last, u64 cursor, u32 count, u8 values
//
// and their results:
//
//	values := (u8 status, u32 n, u64 version, i64 expireAt, value[n])*      as many as keys
//	page   := u64 cursor, u64 resume, (u32 keyBytes, u32 valueBytes, u64 version, i64 expireAt, key, value)*

// Swap is a compare-and-set by value.
type Swap struct {
	Absent   bool // there must be no record; Old means nothing
	Old, New []byte
}

// AppendSwap appends the argument of OpSwap.
func AppendSwap(b []byte, s *Swap) []byte {
	absent, old := byte(0), s.Old
	if s.Absent {
		absent, old = 1, nil
	}
	b = append(b, absent)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(old)))
	b = append(b, old...)
	return append(b, s.New...)
}

// DecodeSwap reads the argument of OpSwap.
func DecodeSwap(arg []byte) (s Swap, err error) {
	r := reader{b: arg}
	if b := r.take(1); b != nil {
		s.Absent = b[0] != 0
	}
	s.Old = r.take(int(r.u32()))
	s.New = r.b
	return s, r.err
}

// AppendMerge appends the argument of OpMerge. A name has at most 255 bytes.
func AppendMerge(b []byte, name string, operand []byte) []byte {
	name = name[:min(len(name), 255)]
	b = append(b, byte(len(name)))
	b = append(b, name...)
	return append(b, operand...)
}

// DecodeMerge reads the argument of OpMerge.
func DecodeMerge(arg []byte) (name, operand []byte, err error) {
	r := reader{b: arg}
	if b := r.take(1); b != nil {
		name = r.take(int(b[0]))
	}
	return name, r.b, r.err
}

// AppendKey appends one of the keys of OpMultiGet.
func AppendKey(b, key []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(key)))
	return append(b, key...)
}

// NextKey takes the first key off arg.
func NextKey(arg []byte) (key, rest []byte, err error) {
	r := reader{b: arg}
	key = r.take(int(r.u32()))
	return key, r.b, r.err
}

// Put is one of the records of OpMultiPut.
type Put struct {
	Key, Value []byte
	ExpireAt   int64 // 0: never
}

// AppendPut appends one of the records of OpMultiPut.
func AppendPut(b []byte, p *Put) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(p.Key)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(p.Value)))
	b = binary.LittleEndian.AppendUint64(b, uint64(p.ExpireAt))
	b = append(b, p.Key...)
	return append(b, p.Value...)
}

// NextPut takes the first record off arg.
func NextPut(arg []byte) (p Put, rest []byte, err error) {
	r := reader{b: arg}
	key, value := int(r.u32()), int(r.u32())
	p.ExpireAt = int64(r.u64())
	p.Key, p.Value = r.take(key), r.take(value)
	return p, r.b, r.err
}

// Value is one of the results of OpMultiGet.
type Value struct {
	Status   Status
	Version  uint64
	ExpireAt int64
	Value    []byte
}

// AppendValue appends one of the results of OpMultiGet.
func AppendValue(b []byte, v *Value) []byte {
	b = append(b, byte(v.Status))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(v.Value)))
	b = binary.LittleEndian.AppendUint64(b, v.Version)
	b = binary.LittleEndian.AppendUint64(b, uint64(v.ExpireAt))
	return append(b, v.Value...)
}

// NextValue takes the first result off values.
func NextValue(values []byte) (v Value, rest []byte, err error) {
	r := reader{b: values}
	if b := r.take(1); b != nil {
		v.Status = Status(b[0])
	}
	n := int(r.u32())
	v.Version, v.ExpireAt = r.u64(), int64(r.u64())
	v.Value = r.take(n)
	return v, r.b, r.err
}

// Scan is the argument of OpScan.
type Scan struct {
	First, Last uint64 // places
	Cursor      uint64 // 0 at the start; else from the page before, of the same node and range
	Count       uint32 // about how many records a page shall have
	Values      bool   // with their values
}

// AppendScan appends the argument of OpScan.
func AppendScan(b []byte, s *Scan) []byte {
	b = binary.LittleEndian.AppendUint64(b, s.First)
	b = binary.LittleEndian.AppendUint64(b, s.Last)
	b = binary.LittleEndian.AppendUint64(b, s.Cursor)
	b = binary.LittleEndian.AppendUint32(b, s.Count)
	if s.Values {
		return append(b, 1)
	}
	return append(b, 0)
}

// DecodeScan reads the argument of OpScan.
func DecodeScan(arg []byte) (s Scan, err error) {
	r := reader{b: arg}
	s.First, s.Last, s.Cursor, s.Count = r.u64(), r.u64(), r.u64(), r.u32()
	if b := r.take(1); b != nil {
		s.Values = b[0] != 0
	}
	return s, r.done()
}

// Page is the head of a scan's result.
type Page struct {
	Cursor uint64 // for the next page; 0: this was the last
	// Resume: all records at lower places were shown. Another node goes on from there.
	Resume uint64
}

// AppendPage appends the head of a page; its records follow.
func AppendPage(b []byte, p Page) []byte {
	b = binary.LittleEndian.AppendUint64(b, p.Cursor)
	return binary.LittleEndian.AppendUint64(b, p.Resume)
}

// DecodePage reads the head of a page and returns its records.
func DecodePage(value []byte) (p Page, records []byte, err error) {
	r := reader{b: value}
	p.Cursor, p.Resume = r.u64(), r.u64()
	return p, r.b, r.err
}

// Record is one of a page.
type Record struct {
	Key, Value []byte
	Version    uint64
	ExpireAt   int64
}

// AppendRecord appends one record of a page.
func AppendRecord(b []byte, rec *Record) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(rec.Key)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(rec.Value)))
	b = binary.LittleEndian.AppendUint64(b, rec.Version)
	b = binary.LittleEndian.AppendUint64(b, uint64(rec.ExpireAt))
	b = append(b, rec.Key...)
	return append(b, rec.Value...)
}

// NextRecord takes the first record off a page.
func NextRecord(records []byte) (rec Record, rest []byte, err error) {
	r := reader{b: records}
	key, value := int(r.u32()), int(r.u32())
	rec.Version, rec.ExpireAt = r.u64(), int64(r.u64())
	rec.Key, rec.Value = r.take(key), r.take(value)
	return rec, r.b, r.err
}

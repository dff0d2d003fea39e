package session

import (
	"bytes"
	"encoding/binary"
	"errors"
	"maps"
)

// Merge makes a record's new value of its old one and an operand. It appends to dst and
// returns it, keeps no argument, and depends on nothing else: it may run more than once.
// An error leaves the record as it is; the client gets its sentence.
type Merge func(dst, old []byte, exists bool, operand []byte) ([]byte, error)

// builtIn are the merge functions that every server has:
//
//	max, min   of two counters (8 bytes, little-endian, signed)
//	or         bit by bit; the shorter one counts as filled with zeros
//	union      of two sets: distinct members in order, each u16 length, bytes
var builtIn = map[string]Merge{"max": mergeMax, "min": mergeMin, "or": mergeOr, "union": mergeUnion}

func allMerges(more map[string]Merge) map[string]Merge {
	all := maps.Clone(builtIn)
	maps.Copy(all, more)
	return all
}

var errNoCounter = errors.New("max and min merge counters: the value and the operand must have 8 bytes")

func mergeMax(dst, old []byte, exists bool, operand []byte) ([]byte, error) {
	return pick(dst, old, exists, operand, func(a, b int64) bool { return a >= b })
}

func mergeMin(dst, old []byte, exists bool, operand []byte) ([]byte, error) {
	return pick(dst, old, exists, operand, func(a, b int64) bool { return a <= b })
}

// pick keeps the old counter if stays says so.
func pick(dst, old []byte, exists bool, operand []byte, stays func(old, operand int64) bool) ([]byte, error) {
	if len(operand) != 8 || exists && len(old) != 8 {
		return nil, errNoCounter
	}
	if exists && stays(int64(binary.LittleEndian.Uint64(old)), int64(binary.LittleEndian.Uint64(operand))) {
		return append(dst, old...), nil
	}
	return append(dst, operand...), nil
}

func mergeOr(dst, old []byte, _ bool, operand []byte) ([]byte, error) {
	if len(old) < len(operand) {
		old, operand = operand, old
	}
	start := len(dst)
	dst = append(dst, old...)
	for i, b := range operand {
		dst[start+i] |= b
	}
	return dst, nil
}

var errNoSet = errors.New("union merges sets: distinct members in order, each with its length as u16 before it")

func mergeUnion(dst, old []byte, _ bool, operand []byte) ([]byte, error) {
	a, moreA, okA := member(old, nil)
	b, moreB, okB := member(operand, nil)
	for okA && okB && (moreA != nil || moreB != nil) {
		order := bytes.Compare(a, b)
		switch {
		case moreB == nil || moreA != nil && order < 0:
			dst = appendMember(dst, a)
			a, moreA, okA = member(moreA, a)
		case moreA == nil || order > 0:
			dst = appendMember(dst, b)
			b, moreB, okB = member(moreB, b)
		default:
			dst = appendMember(dst, a)
			a, moreA, okA = member(moreA, a)
			b, moreB, okB = member(moreB, b)
		}
	}
	if !okA || !okB {
		return nil, errNoSet
	}
	return dst, nil
}

func appendMember(dst, m []byte) []byte {
	dst = binary.LittleEndian.AppendUint16(dst, uint16(len(m)))
	return append(dst, m...)
}

// member takes the first member off a set; rest is nil if there is none. It must be
// greater than the one before it.
func member(set, before []byte) (m, rest []byte, ok bool) {
	if len(set) == 0 {
		return nil, nil, true
	}
	if len(set) < 2 {
		return nil, nil, false
	}
	n := 2 + int(binary.LittleEndian.Uint16(set))
	if n > len(set) {
		return nil, nil, false
	}
	m = set[2:n]
	if before != nil && bytes.Compare(before, m) >= 0 {
		return nil, nil, false
	}
	return m, set[n:], true
}

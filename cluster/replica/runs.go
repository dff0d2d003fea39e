package replica

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"slices"
)

// Runs is a set of numbers as pairs of first and last, growing, with gaps
// between them. It is compact where numbers are dense, as segments and batches are.
type Runs [][2]uint64

// RunsOf returns the set of numbers.
func RunsOf[T ~uint64](numbers ...T) Runs {
	slices.Sort(numbers)
	var r Runs
	for _, n := range numbers {
		r = r.with(uint64(n))
	}
	return r
}

// with adds a number that is not lower than any before.
func (r Runs) with(n uint64) Runs {
	if last := len(r) - 1; last >= 0 && n <= r[last][1]+1 {
		r[last][1] = max(n, r[last][1])
		return r
	}
	return append(r, [2]uint64{n, n})
}

// Contains tells whether n is in the set.
func (r Runs) Contains(n uint64) bool {
	i, found := slices.BinarySearchFunc(r, n, func(run [2]uint64, n uint64) int {
		switch {
		case run[1] < n:
			return -1
		case run[0] > n:
			return 1
		}
		return 0
	})
	return found && i < len(r)
}

// lastUpTo is the highest number that is not beyond n; 0 if there is none.
func (r Runs) lastUpTo(n uint64) (last uint64) {
	for _, run := range r {
		if run[0] > n {
			break
		}
		last = min(run[1], n)
	}
	return last
}

// Len is how many numbers there are; at most MaxInt.
func (r Runs) Len() int {
	n := uint64(0)
	for _, run := range r {
		n += run[1] - run[0] + 1
		if n > math.MaxInt {
			return math.MaxInt
		}
	}
	return int(n)
}

// All walks the numbers.
func (r Runs) All() iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for _, run := range r {
			for n := run[0]; ; n++ {
				if !yield(n) {
					return
				}
				if n == run[1] {
					break
				}
			}
		}
	}
}

// Check says why r is no set as it should be, or has more than limit numbers.
func (r Runs) Check(limit int) error {
	room := uint64(limit)
	for i, run := range r {
		if run[0] > run[1] || i > 0 && (run[0] == 0 || run[0]-1 <= r[i-1][1]) {
			return fmt.Errorf("%w: runs %d are not in order", ErrInvalid, run)
		}
		if n := run[1] - run[0]; n >= room {
			return fmt.Errorf("%w: a set of more than %d numbers", ErrInvalid, limit)
		}
		room -= run[1] - run[0] + 1
	}
	return nil
}

// AppendTo encodes r: for each run the gap since the last and what it has beyond one number, as varints.
func (r Runs) AppendTo(b []byte) []byte {
	at := uint64(0)
	for _, run := range r {
		b = binary.AppendUvarint(b, run[0]-at)
		b = binary.AppendUvarint(b, run[1]-run[0])
		at = run[1]
	}
	return b
}

// DecodeRuns reads what AppendTo wrote.
func DecodeRuns(b []byte) (Runs, error) {
	var r Runs
	at := uint64(0)
	for len(b) > 0 {
		var pair [2]uint64
		for i := range pair {
			v, n := binary.Uvarint(b)
			if n <= 0 || v > math.MaxUint64-at {
				return nil, fmt.Errorf("%w: runs that do not end well", ErrInvalid)
			}
			at += v
			pair[i], b = at, b[n:]
		}
		r = append(r, pair)
	}
	return r, r.Check(math.MaxInt)
}

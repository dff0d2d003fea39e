package workload

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Distribution says which records are asked for how often.
type Distribution uint8

const (
	// Uniform asks for every record equally often.
	Uniform Distribution = iota
	// Zipfian is YCSB's scrambled zipfian, theta 0.99.
	Zipfian
	// Hot asks uniformly for one record in a hundred: a working set that
	// fits where the whole does not.
	Hot
	// Latest asks by zipf for what was inserted last.
	Latest
)

var distributionNames = [...]string{Uniform: "uniform", Zipfian: "zipf", Hot: "hot", Latest: "latest"}

func (d Distribution) String() string { return distributionNames[d] }

// ParseDistribution finds a distribution by its name.
func ParseDistribution(name string) (Distribution, error) {
	for d, n := range distributionNames {
		if n == name {
			return Distribution(d), nil
		}
	}
	return 0, fmt.Errorf("unknown distribution %q: choose from %s", name, strings.Join(distributionNames[:], ", "))
}

// HotShare is one over the part of the records that Hot asks for.
const HotShare = 100

// MaxRecords is the most records a run can have: ids are kept in 32 bits, so
// that walking a trace costs little memory bandwidth.
const MaxRecords = 1 << 32

// traceLen is how many zipf draws are made before the clock starts. A trace
// repeats after that; it must touch far more memory than any cache holds.
const traceLen = 1 << 24

// Trace is a sequence of ids drawn ahead of time; it is read-only once made.
type Trace []uint32

// NewZipfTrace draws n ids among records by YCSB's scrambled zipfian.
func NewZipfTrace(records uint64, n int, seed uint64) Trace {
	zipf := NewZipf(ycsbItems, Theta)
	r := rand.New(rand.NewPCG(seed, records))
	t := make(Trace, n)
	for i := range t {
		t[i] = uint32(scramble(zipf.Rank(r.Float64())) % records)
	}
	return t
}

// Traces draws each trace once and keeps it, because a matrix of runs asks for
// the same few again and again. Not for concurrent use.
type Traces struct{ made map[[2]uint64]Trace }

// Zipf returns the trace of this seed over records.
func (ts *Traces) Zipf(records, seed uint64) Trace {
	if ts.made == nil {
		ts.made = make(map[[2]uint64]Trace)
	}
	at := [2]uint64{records, seed}
	if ts.made[at] == nil {
		n := min(traceLen, max(1<<16, 4*int(records)))
		ts.made[at] = NewZipfTrace(records, n, seed)
	}
	return ts.made[at]
}

// Chooser hands out the ids of one worker's records, many at a time.
type Chooser struct {
	dist    Distribution
	records uint64 // ids are below it
	state   uint64 // of the generator behind Uniform, Hot and Latest
	trace   Trace
	at      int
	zipf    Zipf // of Latest
}

// NewChooser returns a chooser among ids below records; seed tells workers
// apart.
func (ts *Traces) NewChooser(d Distribution, records, seed uint64) *Chooser {
	if records == 0 || records > MaxRecords {
		panic(fmt.Sprintf("workload: %d records", records))
	}
	c := &Chooser{dist: d, records: records, state: mix64(seed + 1)}
	switch d {
	case Zipfian:
		c.trace = ts.Zipf(records, seed)
	case Latest:
		c.zipf = NewZipf(records, Theta)
	}
	return c
}

// Fill sets every element of dst to an id; newest is one above the last
// inserted id, which only Latest looks at.
func (c *Chooser) Fill(dst []uint32, newest uint64) {
	switch c.dist {
	case Uniform:
		c.fillBelow(dst, c.records)
	case Hot:
		c.fillBelow(dst, max(1, c.records/HotShare))
	case Zipfian:
		c.fillFromTrace(dst)
	case Latest:
		for i := range dst {
			u := float64(c.next()>>11) / (1 << 53)
			dst[i] = uint32(newest - 1 - min(c.zipf.Rank(u), newest-1))
		}
	}
}

func (c *Chooser) fillBelow(dst []uint32, n uint64) {
	for i := range dst {
		dst[i] = uint32((c.next() >> 32) * n >> 32)
	}
}

func (c *Chooser) fillFromTrace(dst []uint32) {
	for len(dst) > 0 {
		n := copy(dst, c.trace[c.at:])
		dst = dst[n:]
		if c.at += n; c.at == len(c.trace) {
			c.at = 0
		}
	}
}

// next is splitmix64: one multiplication chain, no memory.
func (c *Chooser) next() uint64 {
	c.state += 0x9e3779b97f4a7c15
	return mix64(c.state)
}

func mix64(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

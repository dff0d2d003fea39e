package store

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/ostrodb/ostro/engine/record"
)

// Sample notes keys that are used, for a moment: those that a migration brings first.
type Sample struct {
	ranges []Range
	most   int

	mu   sync.Mutex
	keys map[sampleName]*sampled
}

// sampled is a key, and how often it was noted.
type sampled struct {
	key  ArrivingKey
	uses int
}

type sampleName struct {
	table record.TableID
	key   string
}

// Samples are those that are taken at the same time.
type Samples []*Sample

// Note notes that a key is used, in each.
func (all Samples) Note(k *Key) {
	for _, s := range all {
		s.Note(k)
	}
}

// NewSample makes a sample of up to so many keys of some ranges.
func NewSample(ranges []Range, most int) *Sample {
	return &Sample{ranges: ranges, most: most, keys: map[sampleName]*sampled{}}
}

// Note notes that a key is used. It never waits: when others note something, this one is passed over.
func (s *Sample) Note(k *Key) {
	if !anyHas(s.ranges, k.Place) || !s.mu.TryLock() {
		return
	}
	defer s.mu.Unlock()
	if known := s.keys[sampleName{k.Table, string(k.Bytes)}]; known != nil {
		known.uses++
		return
	}
	if len(s.keys) >= s.most {
		return
	}
	own := bytes.Clone(k.Bytes)
	s.keys[sampleName{k.Table, string(own)}] = &sampled{key: ArrivingKey{k.Place, k.Table, own}, uses: 1}
}

// Keys are those that were noted, the most used ones first.
func (s *Sample) Keys() (all []ArrivingKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	byUse := slices.SortedFunc(maps.Values(s.keys), func(a, b *sampled) int { return cmp.Compare(b.uses, a.uses) })
	for _, k := range byUse {
		all = append(all, k.key)
	}
	return all
}

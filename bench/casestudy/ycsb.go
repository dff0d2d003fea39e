package casestudy

import (
	"fmt"
	"slices"
	"time"

	"github.com/ostrodb/ostro/bench/workload"
)

// ycsb is YCSB's workload A as the paper has it: half reads, half updates, zipfian, keys
// of 32 bytes, values of 1024.
type ycsb struct {
	records int
	value   []byte
	ids     []uint32
	deck    []workload.Op
	at      int
}

const (
	keyBytes  = 32
	loadBatch = 32 // records of a transaction that fills the database
)

func newYCSB(records, valueBytes int) *ycsb {
	const ahead = 1 << 16
	return &ycsb{
		records: records, value: make([]byte, valueBytes),
		ids: workload.NewZipfTrace(uint64(records), ahead, 1), deck: workload.YCSBA.Deck(1000, 1),
	}
}

func (y *ycsb) key(id uint32) []byte { return fmt.Appendf(nil, "user%0*d", keyBytes-4, id) }

// fill puts all records there.
func (y *ycsb) fill(db Database) error {
	for from := 0; from < y.records; from += loadBatch {
		var pairs []Pair
		for id := from; id < min(from+loadBatch, y.records); id++ {
			value := make([]byte, len(y.value))
			workload.FillValue(value, uint64(id), 0)
			pairs = append(pairs, Pair{y.key(uint32(id)), value})
		}
		if err := db.Commit(pairs...); err != nil {
			return fmt.Errorf("fill the database: %w", err)
		}
	}
	return nil
}

// run runs operations one after the other, and returns how long each update took.
func (y *ycsb) run(db Database, ops int, limit time.Duration) (updates []time.Duration, err error) {
	end := time.Now().Add(limit)
	for range ops {
		id, op := y.ids[y.at%len(y.ids)], y.deck[y.at%len(y.deck)]
		y.at++
		if op == workload.Read {
			got, err := db.Get(y.key(id))
			if err != nil || len(got) != len(y.value) {
				return nil, fmt.Errorf("read record %d: %d bytes (%w)", id, len(got), err)
			}
			continue
		}
		workload.FillValue(y.value, uint64(id), uint64(y.at))
		began := time.Now()
		if err := db.Commit(Pair{y.key(id), y.value}); err != nil {
			return nil, fmt.Errorf("update record %d: %w", id, err)
		}
		now := time.Now()
		if updates = append(updates, now.Sub(began)); now.After(end) {
			break
		}
	}
	return updates, nil
}

// Latency sums up how long updates took.
type Latency struct {
	Updates int           `json:"updates"`
	Average time.Duration `json:"average_ns"`
	P50     time.Duration `json:"p50_ns"`
	P95     time.Duration `json:"p95_ns"`
	P99     time.Duration `json:"p99_ns"`
	Max     time.Duration `json:"max_ns"`
}

func summarize(all []time.Duration) Latency {
	if len(all) == 0 {
		return Latency{}
	}
	all = slices.Sorted(slices.Values(all))
	at := func(share float64) time.Duration { return all[min(len(all)-1, int(share*float64(len(all))))] }
	var sum time.Duration
	for _, d := range all {
		sum += d
	}
	return Latency{
		Updates: len(all), Average: sum / time.Duration(len(all)),
		P50: at(0.5), P95: at(0.95), P99: at(0.99), Max: all[len(all)-1],
	}
}

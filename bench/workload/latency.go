package workload

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Latency is a histogram of durations, three significant digits, one
// nanosecond to one minute.
type Latency struct{ h *hdrhistogram.Histogram }

// longest is where longer durations are counted.
const longest = int64(time.Minute)

// NewLatency returns an empty histogram.
func NewLatency() *Latency {
	return &Latency{hdrhistogram.New(1, longest, 3)}
}

// Record counts n durations of d nanoseconds.
func (l *Latency) Record(d, n int64) {
	_ = l.h.RecordValues(min(max(d, 1), longest), n) // in range, hence never an error
}

// Merge adds what other counted.
func (l *Latency) Merge(other *Latency) { l.h.Merge(other.h) }

// Count is how many durations were recorded.
func (l *Latency) Count() uint64 { return uint64(l.h.TotalCount()) }

// Reset forgets everything.
func (l *Latency) Reset() { l.h.Reset() }

// Summary is what a report shows of a histogram.
type Summary struct {
	Mean time.Duration `json:"mean_ns"`
	P50  time.Duration `json:"p50_ns"`
	P95  time.Duration `json:"p95_ns"`
	P99  time.Duration `json:"p99_ns"`
	P999 time.Duration `json:"p999_ns"`
	Max  time.Duration `json:"max_ns"`
}

// Summary returns the quantiles.
func (l *Latency) Summary() Summary {
	at := func(p float64) time.Duration { return time.Duration(l.h.ValueAtPercentile(p)) }
	return Summary{
		Mean: time.Duration(l.h.Mean()), P50: at(50), P95: at(95), P99: at(99), P999: at(99.9), Max: time.Duration(l.h.Max()),
	}
}

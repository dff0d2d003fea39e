package bench

import (
	"os"
	"testing"
	"time"
)

func TestTheOutputOfRedisBenchmarkIsUnderstood(t *testing.T) {
	out, err := os.ReadFile("testdata/redis-benchmark.out")
	if err != nil {
		t.Fatal(err)
	}
	got, err := parseRedisBenchmark(out)
	if err != nil {
		t.Fatal(err)
	}
	if got.OpsPerSecond != 606060.56 {
		t.Errorf("throughput %v", got.OpsPerSecond)
	}
	l := got.Latency
	us := func(n time.Duration) time.Duration { return n * time.Microsecond }
	if l.P50 != us(1079) || l.P99 != us(2943) || l.P999 != us(3999) || l.Max != us(4279) {
		t.Errorf("latency %+v", l)
	}
	if _, err := parseRedisBenchmark([]byte("Could not connect\n")); err == nil {
		t.Error("output without a figure was accepted")
	}
}

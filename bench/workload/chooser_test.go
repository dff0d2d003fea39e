package workload

import (
	"math"
	"slices"
	"testing"
)

func draw(c *Chooser, n int) []uint32 {
	ids := make([]uint32, n)
	for at := 0; at < n; at += 1000 {
		c.Fill(ids[at:min(at+1000, n)], c.records)
	}
	return ids
}

func counts(ids []uint32, records int) []int {
	count := make([]int, records)
	for _, id := range ids {
		count[id]++
	}
	return count
}

func TestUniformAsksForEveryRecordEquallyOften(t *testing.T) {
	const records, draws = 1000, 1_000_000
	var ts Traces
	chi := 0.0
	for _, n := range counts(draw(ts.NewChooser(Uniform, records, 7), draws), records) {
		d := float64(n) - draws/records
		chi += d * d / (draws / records)
	}
	// Chi squared with 999 degrees of freedom: mean 999, deviation 45.
	if math.Abs(chi-999) > 5*45 {
		t.Fatalf("chi squared %.0f, want about 999", chi)
	}
}

func TestHotAsksOnlyForItsShare(t *testing.T) {
	var ts Traces
	ids := draw(ts.NewChooser(Hot, 100_000, 3), 100_000)
	if top := slices.Max(ids); top >= 100_000/HotShare {
		t.Fatalf("asked for record %d of the first %d", top, 100_000/HotShare)
	}
}

func TestZipfianSpreadsThePopularRecordsAsYCSBDoes(t *testing.T) {
	const records, draws = 1_000_000, 2_000_000
	var ts Traces
	count := counts(draw(ts.NewChooser(Zipfian, records, 1), draws), records)
	zetaN := zeta(ycsbItems, Theta)
	for rank, weight := range []float64{1, math.Pow(0.5, Theta)} {
		id := scramble(uint64(rank)) % records
		// The rest of the ten billion ranks fall evenly on all records.
		want := weight/zetaN + 0.6/records
		got := float64(count[id]) / draws
		if math.Abs(got-want) > 0.03*want {
			t.Errorf("record %d of rank %d has %.5f of the draws, want %.5f", id, rank, got, want)
		}
	}
	slices.Sort(count)
	if top := scramble(0) % records; count[records-1] < draws/30 {
		t.Errorf("the hottest record %d was drawn only %d times", top, count[records-1])
	}
}

func TestLatestFollowsTheInserts(t *testing.T) {
	var ts Traces
	c := ts.NewChooser(Latest, 1000, 1)
	ids := make([]uint32, 100_000)
	c.Fill(ids, 5000)
	newest := 0
	for _, id := range ids {
		if id >= 5000 {
			t.Fatalf("asked for record %d of 5000", id)
		}
		if id == 4999 {
			newest++
		}
	}
	want := 100_000 / zeta(1000, Theta)
	if math.Abs(float64(newest)-want) > 0.05*want {
		t.Fatalf("the newest record was drawn %d times, want about %.0f", newest, want)
	}
}

func TestWorkersDrawDifferently(t *testing.T) {
	var ts Traces
	for _, d := range []Distribution{Uniform, Zipfian, Hot, Latest} {
		one := draw(ts.NewChooser(d, 100_000, 0), 1000)
		two := draw(ts.NewChooser(d, 100_000, 1), 1000)
		again := draw(ts.NewChooser(d, 100_000, 0), 1000)
		if slices.Equal(one, two) {
			t.Errorf("%v: two workers draw the same ids", d)
		}
		if !slices.Equal(one, again) {
			t.Errorf("%v: one seed gives two runs", d)
		}
	}
}

func TestATraceWrapsAround(t *testing.T) {
	c := &Chooser{dist: Zipfian, trace: Trace{1, 2, 3}}
	got := make([]uint32, 8)
	c.Fill(got, 0)
	if want := []uint32{1, 2, 3, 1, 2, 3, 1, 2}; !slices.Equal(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
}

func TestDrawingAllocatesNothing(t *testing.T) {
	var ts Traces
	dst := make([]uint32, 256)
	for _, d := range []Distribution{Uniform, Zipfian, Hot, Latest} {
		c := ts.NewChooser(d, 10_000, 0)
		if n := testing.AllocsPerRun(100, func() { c.Fill(dst, 10_000) }); n != 0 {
			t.Errorf("%v: %v allocations", d, n)
		}
	}
}

func TestEveryDistributionParsesFromItsName(t *testing.T) {
	for _, d := range []Distribution{Uniform, Zipfian, Hot, Latest} {
		if got, err := ParseDistribution(d.String()); got != d || err != nil {
			t.Errorf("%v: got %v, %v", d, got, err)
		}
	}
	if _, err := ParseDistribution("gauss"); err == nil {
		t.Error("gauss was accepted")
	}
}

func BenchmarkFill(b *testing.B) {
	var ts Traces
	dst := make([]uint32, 256)
	for _, d := range []Distribution{Uniform, Zipfian, Latest} {
		b.Run(d.String(), func(b *testing.B) {
			c := ts.NewChooser(d, 1_000_000, 0)
			for b.Loop() {
				c.Fill(dst, 1_000_000)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/256, "ns/id")
		})
	}
}

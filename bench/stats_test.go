package bench

import (
	"math"
	"testing"
)

func TestMedianIsTheMiddle(t *testing.T) {
	for _, c := range []struct {
		vs   []float64
		want float64
	}{
		{[]float64{3}, 3},
		{[]float64{9, 1, 4}, 4},
		{[]float64{4, 1, 9, 2}, 3},
	} {
		if got := median(c.vs); got != c.want {
			t.Errorf("median of %v is %v, want %v", c.vs, got, c.want)
		}
	}
	if !math.IsNaN(median(nil)) {
		t.Error("nothing has a median")
	}
}

func TestMedianLeavesTheRoundsInOrder(t *testing.T) {
	vs := []float64{3, 1, 2}
	median(vs)
	if vs[0] != 3 || vs[1] != 1 || vs[2] != 2 {
		t.Errorf("rounds became %v", vs)
	}
}

func TestSpreadIsAShareOfTheMedian(t *testing.T) {
	if got := spread([]float64{90, 100, 120}); got != 0.3 {
		t.Errorf("spread is %v, want 0.3", got)
	}
	if got := spread([]float64{7}); got != 0 {
		t.Errorf("spread of one round is %v", got)
	}
}

func TestCountsReadAsPeopleWriteThem(t *testing.T) {
	for text, want := range map[string]count{"10M": 10e6, "500k": 500e3, "1.5m": 1.5e6, "42": 42} {
		var c count
		if err := c.Set(text); err != nil || c != want {
			t.Errorf("%s: got %d, %v", text, c, err)
		}
	}
	for _, text := range []string{"", "-1", "0", "ten", "9G", "NaN"} {
		var c count
		if c.Set(text) == nil {
			t.Errorf("%q was accepted as %d", text, c)
		}
	}
	for c, want := range map[count]string{10e6: "10M", 1500: "1500", 2000: "2k"} {
		if c.String() != want {
			t.Errorf("%d is written as %s, want %s", uint64(c), c, want)
		}
	}
}

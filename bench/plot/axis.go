package plot

import (
	"math"
	"strconv"
)

// ticks returns about five round values from zero to at least top.
func ticks(top float64) []float64 {
	if !(top > 0) || math.IsInf(top, 0) {
		return []float64{0, 1}
	}
	step := math.Pow(10, math.Floor(math.Log10(top/5)))
	for _, m := range []float64{1, 2, 5, 10} {
		if top/(step*m) <= 5 {
			step *= m
			break
		}
	}
	var at []float64
	for i := 0; ; i++ {
		v := float64(i) * step
		at = append(at, v)
		if v >= top*(1-1e-9) {
			return at
		}
	}
}

// powers returns the powers of ten from below least to at least top.
func powers(least, top float64) []float64 {
	if !(least > 0) || math.IsInf(least, 0) {
		return []float64{1, 10}
	}
	// A bar of the least value shall be seen, too.
	low := int(math.Ceil(math.Log10(least))) - 1
	high := max(low+1, int(math.Ceil(math.Log10(top))))
	var at []float64
	for e := low; e <= high; e++ {
		at = append(at, math.Pow(10, float64(e)))
	}
	return at
}

// number writes a value with three significant digits, and thousands as k,
// millions as M.
func number(v float64) string {
	switch a := math.Abs(v); {
	case a >= 1e6:
		return digits3(v/1e6) + "M"
	case a >= 1e4:
		return digits3(v/1e3) + "k"
	default:
		return digits3(v)
	}
}

func digits3(v float64) string {
	if math.Abs(v) >= 100 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

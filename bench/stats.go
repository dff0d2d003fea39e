package bench

import (
	"math"
	"slices"
)

// median returns the middle of vs, or the mean of the two middles; NaN of
// nothing. It leaves vs as it was.
func median(vs []float64) float64 {
	if len(vs) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(vs))
	mid := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[mid]
	}
	return (sorted[mid-1] + sorted[mid]) / 2
}

// spread returns how far the rounds lie apart, as a share of their median: a
// ratio smaller than this says little.
func spread(vs []float64) float64 {
	if len(vs) < 2 {
		return 0
	}
	return (slices.Max(vs) - slices.Min(vs)) / median(vs)
}

// medianOf takes the median of one figure over rounds.
func medianOf[T any](rounds []T, figure func(T) float64) float64 {
	return median(figures(rounds, figure))
}

func figures[T any](rounds []T, figure func(T) float64) []float64 {
	vs := make([]float64, 0, len(rounds))
	for _, r := range rounds {
		vs = append(vs, figure(r))
	}
	return vs
}

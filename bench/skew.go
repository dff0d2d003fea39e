package bench

import (
	"math"
	"math/rand/v2"
	"sort"
)

// skewedDraws is how many draws are made ahead; they repeat after that.
const skewedDraws = 1 << 20

// skewed draws among n records with probabilities proportional to 1/rank^theta, for any theta from 0 on; which record
// has which rank is random.
func skewed(n int, theta float64, seed uint64) func() uint32 {
	r := rand.New(rand.NewPCG(seed, uint64(n)))
	upTo := make([]float64, n)
	sum := 0.0
	for i := range upTo {
		sum += math.Pow(float64(i+1), -theta)
		upTo[i] = sum
	}
	record := r.Perm(n)
	draws := make([]uint32, skewedDraws)
	for i := range draws {
		at := r.Float64() * sum
		draws[i] = uint32(record[min(n-1, sort.SearchFloat64s(upTo, at))])
	}
	next := 0
	return func() uint32 {
		next = (next + 1) % len(draws)
		return draws[next]
	}
}

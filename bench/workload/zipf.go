package workload

import "math"

// Theta is YCSB's skew.
const Theta = 0.99

// ycsbItems is the population over which YCSB's scrambled zipfian draws ranks
// before it hashes them onto the records. Drawing over far more ranks than
// there are records makes the skew independent of the number of records.
const ycsbItems = 10_000_000_001

// Zipf draws ranks 0, 1, 2, ... with probability proportional to
// 1/(rank+1)^theta, by the method of Gray et al. (SIGMOD '94) that YCSB uses:
// exact for the first two ranks, a close continuous fit beyond.
type Zipf struct {
	items, zetaN, eta, alpha, second float64
}

// NewZipf prepares drawing among items ranks; 0 < theta < 1.
func NewZipf(items uint64, theta float64) Zipf {
	n, zetaN := float64(items), zeta(items, theta)
	return Zipf{
		items:  n,
		zetaN:  zetaN,
		alpha:  1 / (1 - theta),
		eta:    (1 - math.Pow(2/n, 1-theta)) / (1 - zeta(2, theta)/zetaN),
		second: 1 + math.Pow(0.5, theta),
	}
}

// Rank maps a uniform u in [0, 1) to a rank.
func (z *Zipf) Rank(u float64) uint64 {
	switch uz := u * z.zetaN; {
	case uz < 1:
		return 0
	case uz < z.second:
		return 1
	}
	x := z.eta*u - z.eta + 1
	rank := z.items * math.Exp(z.alpha*math.Log(x))
	return uint64(min(rank, z.items-1)) // rounding can reach the end
}

// zetaExact is up to where zeta adds term by term.
const zetaExact = 1 << 16

// zeta is the sum of 1/i^theta for i in 1..n; beyond zetaExact terms it goes on by
// the Euler-Maclaurin formula, whose error there is below 1e-9.
func zeta(n uint64, theta float64) float64 {
	var sum float64
	m := min(n, zetaExact)
	for i := uint64(1); i <= m; i++ {
		sum += math.Pow(float64(i), -theta)
	}
	if n == m {
		return sum
	}
	a, b := float64(m), float64(n)
	integral := (math.Pow(b, 1-theta) - math.Pow(a, 1-theta)) / (1 - theta)
	ends := (math.Pow(b, -theta) - math.Pow(a, -theta)) / 2
	slopes := theta * (math.Pow(a, -theta-1) - math.Pow(b, -theta-1)) / 12
	return sum + integral + ends + slopes
}

// scramble is YCSB's FNV-1a of the eight bytes of v, lowest first; it spreads
// the popular ranks over the whole key space.
func scramble(v uint64) uint64 {
	h := uint64(0xcbf29ce484222325)
	for range 8 {
		h = (h ^ v&0xff) * 0x100000001b3
		v >>= 8
	}
	if int64(h) < 0 {
		h = -h // Java's Math.abs
	}
	return h
}

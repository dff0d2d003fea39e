package bench

import (
	"bufio"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
)

// nodeMeter reads how many commands nodes have executed, by their own counters.
type nodeMeter struct {
	nodes []devNode
	last  []float64
	at    time.Time
}

func (m *nodeMeter) begin(ctx context.Context) (err error) {
	m.last, err = m.read(ctx)
	m.at = time.Now()
	return err
}

// take is commands a second since the last time.
func (m *nodeMeter) take(ctx context.Context) ([]float64, error) {
	now, err := m.read(ctx)
	if err != nil {
		return nil, err
	}
	seconds := time.Since(m.at).Seconds()
	ops := make([]float64, len(now))
	for i := range now {
		ops[i] = (now[i] - m.last[i]) / seconds
	}
	m.last, m.at = now, time.Now()
	return ops, nil
}

func (m *nodeMeter) read(ctx context.Context) ([]float64, error) {
	all := make([]float64, len(m.nodes))
	for i, n := range m.nodes {
		figures, err := metricsOf(ctx, n.Admin)
		if err != nil {
			return nil, fmt.Errorf("metrics of %s: %w", n.ID, err)
		}
		all[i] = figures["ostro_commands_total"]
	}
	return all, nil
}

// metricsOf reads a node's metrics that have no labels.
func metricsOf(ctx context.Context, admin string) (map[string]float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+admin+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	figures := map[string]float64{}
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		name, text, ok := strings.Cut(lines.Text(), " ")
		if v, err := strconv.ParseFloat(text, 64); ok && err == nil {
			figures[name] = v
		}
	}
	return figures, lines.Err()
}

// ratioOf is how many times the average the largest is.
func ratioOf(ops []float64) float64 {
	sum := 0.0
	for _, o := range ops {
		sum += o
	}
	if sum == 0 {
		return 1
	}
	return slices.Max(ops) / (sum / float64(len(ops)))
}

// ranked are all records: those of the first node first, and then those of the others, mixed.
func ranked(byNode [][]uint32) []uint32 {
	rng := rand.New(rand.NewPCG(1, 3))
	first, others := slices.Clone(byNode[0]), slices.Concat(byNode[1:]...)
	for _, some := range [][]uint32{first, others} {
		rng.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
	}
	return append(first, others...)
}

// popular draws among n ranks with probabilities proportional to 1/rank^theta.
func popular(n int, theta float64) func() uint32 {
	rng := rand.New(rand.NewPCG(1, 4))
	upTo := make([]float64, n)
	sum := 0.0
	for i := range upTo {
		sum += math.Pow(float64(i+1), -theta)
		upTo[i] = sum
	}
	return func() uint32 { return uint32(min(n-1, sort.SearchFloat64s(upTo, rng.Float64()*sum))) }
}

package bench

import (
	"fmt"
	"slices"
	"time"

	"github.com/ostrodb/ostro/bench/workload"
)

// shadowOutcome is what `ostro bench shadowfax` found, by part.
type shadowOutcome struct {
	Records    uint64          `json:"records"`
	ValueBytes int             `json:"value_bytes"`
	Sessions   []sessionCell   `json:"sessions,omitempty"`
	Ownership  []ownershipCell `json:"ownership,omitempty"` // per number of ranges all ways to check
	Memory     []memoryCell    `json:"memory,omitempty"`
	Scaleout   []scaleout      `json:"scaleout,omitempty"`
	Compaction []scaleout      `json:"compaction,omitempty"`
	Verdicts   []verdict       `json:"verdicts,omitempty"`
}

func roundRate(r respRound) float64 { return r.OpsPerSecond }
func roundCPU(r respRound) float64  { return r.ServerCPU }

// ratio is the median of what rounds have of those beside them.
func ratio(of, to []respRound, figure func(respRound) float64) float64 {
	var all []float64
	for i := range of {
		all = append(all, figure(of[i])/figure(to[i]))
	}
	return median(all)
}

func (o *shadowOutcome) tables() (all []table) {
	if len(o.Sessions) > 0 {
		all = append(all, o.sessionsTable())
	}
	if len(o.Ownership) > 0 {
		all = append(all, o.ownershipTable())
	}
	if len(o.Memory) > 0 {
		all = append(all, o.memoryTable())
	}
	if moves := append(o.Scaleout[:len(o.Scaleout):len(o.Scaleout)], o.Compaction...); len(moves) > 0 {
		all = append(all, scaleoutTable(moves))
	}
	for _, s := range o.Compaction {
		if s.Settling != nil {
			all = append(all, compactionTable(s))
		}
	}
	if len(o.Verdicts) > 0 {
		all = append(all, verdictsTable(o.Verdicts))
	}
	return all
}

func (o *shadowOutcome) data() string {
	return fmt.Sprintf("%s records of %d B", grouped(int64(o.Records)), workload.Text30.Len()+o.ValueBytes)
}

func micro(nanos float64) string { return decimals(nanos/1e3, 2) + " µs" }

func (o *shadowOutcome) sessionsTable() table {
	t := table{
		title: "Sessions and batches: YCSB-F, zipf, " + o.data(),
		names: 2,
		head:  []string{"threads", "batch", "ops/s", "to first", "p50", "p99", "server CPU/op"},
	}
	for _, c := range o.Sessions {
		r := respResult{Rounds: c.Rounds}
		t.add(fmt.Sprint(c.Threads), fmt.Sprint(c.Batch), rate(r.rate()), times(ratio(c.Rounds, o.Sessions[0].Rounds, roundRate)),
			r.latency(func(s workload.Summary) time.Duration { return s.P50 }), r.latency(func(s workload.Summary) time.Duration { return s.P99 }),
			micro(medianOf(c.Rounds, roundCPU)))
	}
	return t
}

// ownershipColumns is how many ways to check stand behind each other in Ownership: by views, by keys, Redis clients.
const ownershipColumns = 3

func (o *shadowOutcome) ownershipTable() table {
	t := table{
		title: fmt.Sprintf("Ownership by ranges: reads, zipf, %s, medians of %d rounds in turns", o.data(), len(o.Ownership[0].Rounds)),
		names: 1,
		head: []string{
			"ranges", "views ops/s", "to first", "CPU/op", "least", "keys ops/s", "to views", "CPU/op", "least", "paper",
			"redis ops/s", "to first", "CPU/op", "least",
		},
	}
	first := o.Ownership[:ownershipColumns]
	for i := 0; i < len(o.Ownership); i += ownershipColumns {
		views, keys, resp := o.Ownership[i].Rounds, o.Ownership[i+1].Rounds, o.Ownership[i+2].Rounds
		cells := []string{grouped(int64(o.Ownership[i].Ranges))}
		cells = append(cells, ownershipCells(views, first[0].Rounds)...)
		cells = append(cells, ownershipCells(keys, views)...)
		cells = append(cells, paperKeys(o.Ownership[i].Ranges))
		t.add(append(cells, ownershipCells(resp, first[2].Rounds)...)...)
	}
	return t
}

// ownershipCells are throughput, what that is of another one's in the same rounds, and processor time, also the least.
func ownershipCells(rounds, to []respRound) []string {
	return []string{
		rate(medianOf(rounds, roundRate)), times(ratio(rounds, to, roundRate)),
		micro(medianOf(rounds, roundCPU)), micro(slices.Min(figures(rounds, roundCPU))),
	}
}

// paperKeys is what the paper tells of checking by keys with so many ranges: what views gain, turned around.
func paperKeys(ranges int) string {
	gains := map[int]float64{16: 1.05, 512: 1.10, 2048: 1.17}
	if g := gains[ranges]; g > 0 {
		return times(1 / g)
	}
	return "-"
}

func (o *shadowOutcome) memoryTable() table {
	t := table{
		title: "Memory budget: YCSB-F, batches of 64, " + o.data(),
		names: 2,
		head:  []string{"in memory", "load", "ops/s", "to all", "hits", "p50", "p99", "server CPU/op"},
	}
	all := map[string][]respRound{}
	for _, c := range o.Memory {
		if all[c.Distribution] == nil {
			all[c.Distribution] = c.Rounds
		}
		r := respResult{Rounds: c.Rounds}
		t.add(fmt.Sprintf("%.0f%%", 100*c.Share), c.Distribution, rate(r.rate()), times(ratio(c.Rounds, all[c.Distribution], roundRate)),
			decimals(100*c.Hits, 1)+"%", r.latency(func(s workload.Summary) time.Duration { return s.P50 }),
			r.latency(func(s workload.Summary) time.Duration { return s.P99 }), micro(medianOf(c.Rounds, roundCPU)))
	}
	return t
}

func scaleoutTable(moves []scaleout) table {
	t := table{
		title: "A part of the hash space moves to an idle node: YCSB-F, zipf (before → meanwhile → after)",
		names: 1,
		head: []string{
			"case", "budget", "records", "to follow", "MB", "took", "released", "share", "carried", "ops/s", "p50", "p99.9", "most waiting", "last waits", "paper took",
		},
	}
	for _, s := range moves {
		three := func(f func(stretch) string) string { return f(s.Calm) + " → " + f(s.During) + " → " + f(s.After) }
		budget := "-"
		if s.BudgetBytes > 0 {
			budget = bytesShort(s.BudgetBytes)
		}
		t.add(s.Case, budget, grouped(int64(s.Moved)), grouped(s.Cold), decimals(float64(s.Bytes)/1e6, 1), short(s.Took), short(s.Released),
			decimals(100*s.Share, 1)+"%", short(s.Carried), three(func(s stretch) string { return rate(s.Ops) }),
			three(func(s stretch) string { return short(s.P50) }), three(func(s stretch) string { return short(s.P999) }),
			grouped(int64(s.MostWaiting)), short(s.WaitedUntil), paperTook[s.Case])
	}
	return t
}

// compactionTable is what clients pay for cold records that follow, until no log depends on another.
func compactionTable(s scaleout) table {
	t := table{
		title: fmt.Sprintf("What it costs clients that %s cold records follow within %s", grouped(s.Cold), short(s.Released)),
		names: 1,
		head:  []string{"while", "seconds", "ops/s", "to before", "p50", "p99.9"},
	}
	for _, row := range []struct {
		while string
		stretch
	}{{"before", s.Calm}, {"it moves", s.During}, {"they follow", *s.Settling}, {"after", s.After}} {
		t.add(row.while, decimals(row.Seconds, 2), rate(row.Ops), times(row.Ops/s.Calm.Ops), short(row.P50), short(row.P999))
	}
	return t
}

// paperTook is how long the paper's scale-outs of a tenth took.
var paperTook = map[string]string{"in memory": "17 s", "budget, indirect": "32 s", "budget, scan": "180 s"}

func (o *shadowOutcome) notes() []string {
	notes := []string{"servers, etcd and clients share the cores"}
	if len(o.Sessions)+len(o.Ownership)+len(o.Memory) > 0 {
		notes = append(notes, "sessions, ownership and memory: writes have no identity, nodes keep no results of them")
	}
	if len(o.Sessions) > 0 {
		notes = append(notes, "sessions, the paper: 130 Mops/s on 64 threads, saturated by batches of 32 KB (median 1.3 ms), over RDMA of 1 KB (40 µs)")
	}
	if len(o.Ownership) > 0 {
		notes = append(notes,
			"ownership, the paper: views stay flat, a look-up of each key loses 5% with 16 ranges, 10% with 512, 17% at most",
			"ownership: ranges were made by migrations between two nodes; the same records are read however many there are; ratios are medians over pairs of rounds; what disturbs a round only adds to its processor time, so the least tells most")
	}
	if len(o.Memory) > 0 {
		notes = append(notes, "memory, the paper: zipf keeps its speed down to 50 of 80 GB and has 2.7% of it left at 20 GB, uniform 0.2%; hits are operations that did not wait")
	}
	if len(o.Scaleout)+len(o.Compaction) > 0 {
		notes = append(notes,
			"scale-out: took is until the target carries all load, released until nobody needs the source's log for it, carried until nine tenths of its share begin to be executed at the target, by looks a tenth of a second apart",
			"scale-out, the paper: throughput falls by a fifth at most meanwhile and is 10% higher afterwards, which needs a second machine; the last waiting operation ends after 100 s",
			"scale-out: every record was read back at the end", o.identityNote())
	}
	return notes
}

// identityNote tells how writes were sent in scaleout and compaction: in both alike.
func (o *shadowOutcome) identityNote() string {
	if slices.ContainsFunc(slices.Concat(o.Scaleout, o.Compaction), func(s scaleout) bool { return !s.Recorded }) {
		return "scale-out: writes have no identity (--unrecorded), nodes keep no results of them"
	}
	return "scale-out: clients are as by default; nodes keep the results of writes so that none runs twice, and these move, too"
}

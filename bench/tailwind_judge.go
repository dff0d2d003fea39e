package bench

import (
	"fmt"
	"slices"
)

// What the claim wants at 50% writes, where the one-sided mode that was named first stands against calls.
const (
	judgedWrites     = 50
	wantedOperations = 1.3
	wantedMedian     = 1.5
	wantedNinetyNine = 2.0
	wantedBackupCPU  = 1.0 / 3
)

// judge says of each line of the claim whether it held. The paper's servers all serve: the most primaries come first.
func (o *tailwindOutcome) judge() {
	var primaries []int
	for _, c := range o.Cells {
		if c.Writes == judgedWrites && !slices.Contains(primaries, c.Primaries) {
			primaries = append(primaries, c.Primaries)
		}
	}
	last := len(o.Modes) - 1
	if len(primaries) == 0 || last == 0 || o.Modes[last] != "rpc" {
		return
	}
	for _, n := range []int{slices.Max(primaries), slices.Min(primaries)}[:min(2, len(primaries))] {
		o.Verdicts = append(o.Verdicts, o.judgeAt(n)...)
	}
}

func (o *tailwindOutcome) judgeAt(primaries int) (all []verdict) {
	at := many(primaries, "primary", "primaries")
	add := func(line, wanted, paper string, holdsIt bool, ours string) {
		all = append(all, verdict{Line: line, Wanted: wanted, Paper: paper, Ours: ours, Holds: holds(holdsIt)})
	}
	ours, base, ok := o.pair(o.Cells, primaries)
	if !ok {
		return nil
	}
	more := ours.of(tailwindRate) / base.of(tailwindRate)
	add(fmt.Sprintf("%s, %s: operations", ours.Mode, at), ">= 1.3x", "1.7x", more >= wantedOperations,
		fmt.Sprintf("%s: %s against %s/s", times(more), rate(ours.of(tailwindRate)), rate(base.of(tailwindRate))))
	share := ours.cost(tailwindBackup) / base.cost(tailwindBackup)
	for paced := o.Paced; ; {
		ours, base, ok := o.pair(paced, primaries)
		if !ok {
			break
		}
		under := fmt.Sprintf("%s, %s, %s/s: ", ours.Mode, at, rate(ours.Offered))
		p50, p99 := base.of(tailwindP50)/ours.of(tailwindP50), base.of(tailwindP99)/ours.of(tailwindP99)
		add(under+"median of a write, times lower", ">= 1.5x", "2x", p50 >= wantedMedian, times(p50))
		add(under+"99th percentile, times lower", ">= 2x", "3x", p99 >= wantedNinetyNine, times(p99))
		share = max(share, ours.cost(tailwindBackup)/base.cost(tailwindBackup))
		paced = paced[slices.IndexFunc(paced, func(c tailwindCell) bool { return c.tailwindCase == ours.tailwindCase })+len(o.Modes):]
	}
	if primaries < o.Nodes {
		add(fmt.Sprintf("%s, %s: backups' CPU for a write, the most of all loads", ours.Mode, at), "<= 0.33x", "0.25x", share <= wantedBackupCPU, times(share))
	}
	return all
}

// pair is the first case of so many primaries in the mode that is judged and by calls, of those with the most clients.
func (o *tailwindOutcome) pair(cells []tailwindCell, primaries int) (ours, base tailwindCell, ok bool) {
	clients := 0
	for _, c := range o.Cells {
		clients = max(clients, c.Clients)
	}
	for i := 0; i < len(cells); i += len(o.Modes) {
		if c := cells[i]; c.Writes == judgedWrites && c.Primaries == primaries && c.Clients == clients {
			return c, cells[i+len(o.Modes)-1], true
		}
	}
	return ours, base, false
}

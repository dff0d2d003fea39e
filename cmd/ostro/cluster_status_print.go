package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/server"
)

// print writes the report for people.
func (r clusterReport) print(out io.Writer) {
	alive := 0
	for _, n := range r.Nodes {
		if n.Alive {
			alive++
		}
	}
	fmt.Fprintf(out, "%s: %s; %d of %d nodes alive, %d copies wanted, coordinator %s\n\n",
		r.Cluster, r.Health, alive, len(r.Nodes), r.Settings.Replicas, cmp.Or(string(r.Coordinator), "-"))
	r.printNodes(out)
	for _, rec := range r.Recoveries {
		printRecovery(out, rec)
	}
	r.printMoves(out)
	for _, w := range r.Wishes {
		fmt.Fprintf(out, "\n%s of %s: %s\n", w.Act, w.Node, cmp.Or(w.Refused, w.Waiting, "it is being done"))
	}
	if len(r.Problems) > 0 {
		fmt.Fprintln(out)
	}
	for _, p := range r.Problems {
		fmt.Fprintf(out, "! %s\n", p)
	}
}

func (r clusterReport) printNodes(out io.Writer) {
	copies := map[view.NodeID]server.LogStatus{}
	for _, l := range r.Logs {
		copies[l.Node] = l
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NODE\tSTATE\tCLIENTS\tSHARE\tSLOTS\tKEYS\tMEMORY\tCOPIES ON\tHOLDS\tUP\tPROCESS")
	for _, n := range r.Nodes {
		f := factsOf(n)
		fmt.Fprintf(w, "%s\t%s\t%s\t%.1f%%\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", n.ID, stateOf(n), cmp.Or(n.RedisAddress, n.Address),
			n.Share*100, few(slotsOf(n.Ranges), 2), f.keys, f.memory, copiesOf(copies[n.ID]), f.holds, upOf(n), processOf(r.Processes[n.ID]))
	}
	_ = w.Flush()
}

// recently is how long a migration is shown after its end.
const recently = time.Minute

// printMoves writes migrations under way, and those that ended a moment ago.
func (r clusterReport) printMoves(out io.Writer) {
	var shown []server.MigrationStatus
	for _, m := range r.Migrations {
		if !m.Stage.Ended() || r.At.Sub(m.Ended) < recently {
			shown = append(shown, m)
		}
	}
	if len(shown) > 0 {
		fmt.Fprintln(out)
		printMigrations(out, shown)
	}
}

func stateOf(n server.NodeStatus) string {
	switch {
	case n.Lost:
		return "lost"
	case !n.Alive:
		return "dead"
	case n.Draining:
		return "draining"
	case len(n.Arriving) > 0:
		return "recovering"
	case len(n.Pulling) > 0:
		return "pulling"
	case n.Secretive:
		return "not asked"
	case n.Silence != "":
		return "silent"
	case n.Share == 0:
		return "idle"
	}
	return "serving"
}

// nodeColumns is what a node says of itself; dashes if it says nothing.
type nodeColumns struct{ keys, memory, holds string }

func factsOf(n server.NodeStatus) nodeColumns {
	f := n.Facts
	if f == nil {
		return nodeColumns{"-", "-", "-"}
	}
	return nodeColumns{
		keys:   fmt.Sprint(f.Keys),
		memory: server.Size(f.MemoryBytes).Short(),
		holds:  fmt.Sprintf("%d replicas, %s", f.Replicas, server.Size(f.ReplicaBytes).Short()),
	}
}

func copiesOf(l server.LogStatus) string {
	if len(l.Backups) == 0 {
		return "-"
	}
	var names []string
	for _, b := range l.Backups {
		names = append(names, string(b))
	}
	return fmt.Sprintf("%d of %d: %s", l.Copies, l.Wanted, few(names, 4))
}

func upOf(n server.NodeStatus) string {
	if !n.Alive {
		return "-"
	}
	return brieflySince(n.Since)
}

func processOf(pid int) string {
	if pid == 0 {
		return "-"
	}
	return fmt.Sprint(pid)
}

func printRecovery(out io.Writer, r server.RecoveryStatus) {
	if !r.Begun {
		fmt.Fprintf(out, "\n%s %s\n", r.Node, r.Stage)
		return
	}
	fmt.Fprintf(out, "\nRecovery of %s: %s%s\n", r.Node, r.Stage, howFar(r.Done, r.Total, r.Left))
	for _, p := range r.Parts {
		fmt.Fprintf(out, "  %s takes %.1f%%: %s%s\n", p.Heir, p.Share*100, cmp.Or(p.Stage, "not begun"), howFar(p.Done, p.Total, p.Left))
	}
}

// howFar is progress in bytes, with an estimate if there is one.
func howFar(done, total int64, left time.Duration) string {
	text := ""
	if total > 0 {
		text = fmt.Sprintf(", %s of %s", server.Size(done).Short(), server.Size(total).Short())
	}
	if left > 0 {
		text += fmt.Sprintf(", about %s left", left.Round(100*time.Millisecond))
	}
	return text
}

// few is the first of a list and how many more there are.
func few(list []string, n int) string {
	switch {
	case len(list) == 0:
		return "-"
	case len(list) <= n:
		return strings.Join(list, " ")
	}
	return fmt.Sprintf("%s +%d", strings.Join(list[:n], " "), len(list)-n)
}

func brieflySince(t time.Time) string {
	d := time.Since(t)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

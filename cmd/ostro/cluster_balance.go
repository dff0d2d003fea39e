package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/ostrodb/ostro/cluster/balance"
	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/server"
)

type balanceFlags struct {
	which   whichCluster
	json    bool
	trigger float64
	moves   int
	minOps  float64
	budget  string
	hourly  int
	every   time.Duration
}

func newClusterBalance() *cobra.Command {
	f := &balanceFlags{}
	cmd := &cobra.Command{
		Use:   "balance [auto|dry-run|off]",
		Short: "See what moves from busy nodes to others by itself and why, or decide whether it may",
		Long: `Without an argument: show what the balancer does, what it last thought, what each node carries, what it has moved
within the last hour and what its budget is.

With one: decide what it does from now on. It watches what clients do on every node, by
slot. When one node carries much more than the average for several seconds, the ranges
that are used most move to others, live. auto, which is the default, moves them; dry-run says
what it would move; off does neither. Without load it balances space instead.

Settings that are not given are as by default.`,
		Example: `  ostro cluster balance                             what it thinks
  ostro cluster balance dry-run                     let it say what it would move
  ostro cluster balance auto --trigger 1.5          only if a node carries 1.5 times the average
  ostro cluster balance auto --budget 8GiB          no more than that within an hour
  ostro cluster balance off --cluster etcd://a,b,c`,
		Args: takes(0, 1, "auto, dry-run or off, or nothing to see what it thinks"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				for _, name := range []string{"trigger", "min-ops", "moves", "budget", "moves-per-hour", "every"} {
					if cmd.Flags().Changed(name) {
						return usagef("--%s changes nothing without a mode: `ostro cluster balance auto --%s %s`, or dry-run", name, name, cmd.Flag(name).Value)
					}
				}
				return f.run(cmd.Context(), nil)
			}
			b, err := f.balancer(args[0])
			if err != nil {
				return err
			}
			return f.run(cmd.Context(), &b)
		},
	}
	cmd.Flags().SortFlags = false
	f.which.add(cmd)
	cmd.Flags().BoolVar(&f.json, "json", false, "write it as JSON")
	cmd.Flags().Float64Var(&f.trigger, "trigger", 0, "how many times the average a node must carry before anything moves (default 1.25)")
	cmd.Flags().Float64Var(&f.minOps, "min-ops", 0, "how many operations a second the fullest node must carry, too (default 2000)")
	cmd.Flags().IntVar(&f.moves, "moves", 0, "how many ranges may move at once (default 4)")
	cmd.Flags().StringVar(&f.budget, "budget", "", "how much may move within an hour (default 64GiB)")
	cmd.Flags().IntVar(&f.hourly, "moves-per-hour", 0, "how many ranges may move within an hour (default 60)")
	cmd.Flags().DurationVar(&f.every, "every", 0, "how often nodes are asked what they carry; it takes three to five samples (default 2s)")
	return cmd
}

// run sets a balancer, unless it is nil, and shows what it does.
func (f *balanceFlags) run(ctx context.Context, b *meta.Balancer) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	s, _, err := f.which.open(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	if b != nil {
		if err := s.SetBalancer(ctx, *b); err != nil {
			return err
		}
	}
	return f.show(ctx, s)
}

// balancer is what the flags say.
func (f *balanceFlags) balancer(mode string) (meta.Balancer, error) {
	b := meta.Balancer{Mode: meta.BalancerMode(mode), Trigger: f.trigger, Moves: f.moves, MinOps: f.minOps, HourMoves: f.hourly, Every: f.every}
	if f.budget != "" {
		budget, err := server.ParseSize(f.budget)
		if err != nil {
			return b, usagef("--budget: %v", err)
		}
		b.HourBytes = int64(budget)
	}
	if err := b.Check(); err != nil {
		return b, usagef("%v", err)
	}
	return b, nil
}

// balanceReport is all that is known of the balancer.
type balanceReport struct {
	Balancer   meta.Balancer    `json:"balancer"`
	Policy     balance.Policy   `json:"policy"`
	Decision   meta.Decision    `json:"decision"`
	SpentBytes int64            `json:"spentBytes"` // within the last hour
	SpentMoves int              `json:"spentMoves"`
	Moves      []meta.Migration `json:"moves,omitempty"` // that it asked for, the oldest first
}

// show writes what the balancer does and thinks.
func (f *balanceFlags) show(ctx context.Context, s *meta.Store) error {
	snapshot, err := s.Read(ctx)
	if err != nil {
		return err
	}
	r := balanceReport{Balancer: snapshot.Balancer, Policy: server.BalancerPolicy(snapshot.Balancer), Decision: snapshot.Decision}
	r.Balancer.Mode = r.Balancer.Does()
	since := time.Now().Add(-time.Hour)
	r.SpentMoves, r.SpentBytes = snapshot.Spent(since)
	for _, m := range snapshot.AllMigrations() {
		if m.By == meta.ByBalancer && (!m.Stage.Ended() || m.Ended.After(since)) {
			r.Moves = append(r.Moves, m)
		}
	}
	if f.json {
		return json.NewEncoder(os.Stdout).Encode(r)
	}
	r.print()
	return nil
}

func (r *balanceReport) print() {
	p := r.Policy
	fmt.Printf("balancer: %s, from %.2f times the average and %.0f operations a second on\n", r.Balancer.Mode, p.Trigger, p.MinOps)
	fmt.Printf("budget:   %s of %s and %d of %d moves within the last hour, %d at once\n",
		size(r.SpentBytes), size(int64(p.HourBytes)), r.SpentMoves, p.HourMoves, p.Moves)
	d := r.Decision
	if d.At.IsZero() || r.Balancer.Mode == meta.BalancerOff {
		return
	}
	fmt.Printf("%s ago: %s\n", time.Since(d.At).Round(time.Second), d.Why)
	for _, m := range d.Moves {
		fmt.Println("  " + m)
	}
	if d.Held != "" {
		fmt.Printf("  held back: %s\n", d.Held)
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, n := range d.Nodes {
		fmt.Fprintf(w, "  %s\t%.0f ops/s\t%s\t\n", n.Node, n.Ops, size(int64(n.Bytes)))
	}
	_ = w.Flush() // To standard output, as all else here.
	for _, m := range r.Moves {
		fmt.Printf("  %s migration %d, %s: %s\n", m.Requested.Local().Format(time.TimeOnly), m.ID, m.Stage, m.Why)
	}
}

func size(bytes int64) string { return server.Size(bytes).Short() }

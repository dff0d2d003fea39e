package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/ostrodb/ostro/cluster/meta"
)

type balanceFlags struct {
	which   whichCluster
	json    bool
	trigger float64
	moves   int
}

func newClusterBalance() *cobra.Command {
	f := &balanceFlags{}
	cmd := &cobra.Command{
		Use:   "balance [auto|dry-run|off]",
		Short: "Let ranges move from busy nodes to others by themselves, or see what would",
		Long: `Without an argument: show what the balancer does and what it last thought.

With one: decide what it does from now on. It watches what clients do on every node, by
slot. When one node carries much more than the average for several seconds, the ranges
that are used most move to others, live. auto moves them; dry-run, which is the default, says
what it would move; off does neither. Without load it balances space instead.`,
		Example: `  ostro cluster balance                             what it thinks
  ostro cluster balance auto                        let it move ranges
  ostro cluster balance auto --trigger 1.5          only if a node carries 1.5 times the average
  ostro cluster balance off --cluster etcd://a,b,c`,
		Args: takes(0, 1, "auto, dry-run or off, or nothing to see what it thinks"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), 10*time.Second)
			defer cancel()
			s, _, err := f.which.open(ctx)
			if err != nil {
				return err
			}
			defer s.Close()
			if len(args) == 1 {
				b := meta.Balancer{Mode: meta.BalancerMode(args[0]), Trigger: f.trigger, Moves: f.moves}
				if err := s.SetBalancer(ctx, b); err != nil {
					return err
				}
			}
			return f.show(ctx, s)
		},
	}
	cmd.Flags().SortFlags = false
	f.which.add(cmd)
	cmd.Flags().BoolVar(&f.json, "json", false, "write it as JSON")
	cmd.Flags().Float64Var(&f.trigger, "trigger", 0, "how many times the average a node must carry before anything moves (default 1.25)")
	cmd.Flags().IntVar(&f.moves, "moves", 0, "how many ranges may move at once (default 4)")
	return cmd
}

// show writes what the balancer does and thinks.
func (f *balanceFlags) show(ctx context.Context, s *meta.Store) error {
	snapshot, err := s.Read(ctx)
	if err != nil {
		return err
	}
	b, d := snapshot.Balancer, snapshot.Decision
	b.Mode = b.Does()
	if f.json {
		return json.NewEncoder(os.Stdout).Encode(struct {
			Balancer meta.Balancer `json:"balancer"`
			Decision meta.Decision `json:"decision"`
		}{b, d})
	}
	fmt.Printf("balancer: %s\n", b.Mode)
	if d.At.IsZero() || b.Mode == meta.BalancerOff {
		return nil
	}
	fmt.Printf("%s ago: %s\n", time.Since(d.At).Round(time.Second), d.Why)
	for _, m := range d.Moves {
		fmt.Println("  " + m)
	}
	return nil
}

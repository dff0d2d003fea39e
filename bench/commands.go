package bench

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// Commands returns what stands below `ostro bench`.
func Commands() []*cobra.Command {
	return []*cobra.Command{
		engineCommand(),
		respCommand(),
		memoryCommand(),
		recoveryCommand(),
		largerCommand(),
		fullCommand(),
		hyperCommand(),
		tailwindCommand(),
		takeoverCommand(),
		balanceCommand(),
		rocksteadyCommand(),
		shadowfaxCommand(),
		splinterCommand(),
		busyCommand(),
	}
}

// commonFlags are those that every experiment has.
type commonFlags struct {
	json bool
	plot string
}

// given leaves out the zeros of a list, which is how a user says that it shall be empty.
func given(list []int) []int {
	return slices.DeleteFunc(slices.Clone(list), func(n int) bool { return n == 0 })
}

func (f *commonFlags) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.json, "json", false, "write the result as JSON instead of a table")
	cmd.Flags().StringVar(&f.plot, "plot", "", "also draw the result into this SVG file")
}

// experiment runs measure for cmd and writes its outcome. An interrupt ends
// the run and whatever it started.
func experiment(cmd *cobra.Command, claim string, f commonFlags, measure func(context.Context, *progress) (outcome, error)) error {
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cmd.SilenceUsage = true
	rep := Report{
		Experiment: cmd.Name(),
		Claim:      claim,
		Machine:    thisMachine(),
		Command:    commandLine(os.Args),
		Started:    time.Now(),
	}
	p := newProgress(cmd.ErrOrStderr())
	first := pace()
	before := readMachineTime()
	out, err := interruptible(ctx, grace, func() (outcome, error) { return measure(ctx, p) })
	p.end()
	if err != nil {
		return err
	}
	rep.Company = readMachineTime().since(before)
	rep.Company.Pace = [2]float64{first, pace()}
	return emit(cmd.OutOrStdout(), rep, out, f)
}

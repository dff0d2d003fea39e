package bench

import (
	"errors"
	"fmt"
	"runtime"
	"syscall"

	"github.com/spf13/cobra"
)

// busy is the company of an experiment that measures under contention: processes
// that compute without end, many to a core. They are stopped but for the rounds
// that want them.
type busy struct{ all []*child }

const busyRole = "busy-process"

// busyCommand is one of the processes.
func busyCommand() *cobra.Command {
	return &cobra.Command{
		Use: busyRole, Hidden: true, Args: cobra.NoArgs,
		Short:   "Compute without end: what `ostro bench hyperloop` starts beside replicas",
		Example: "  ostro bench " + busyRole,
		RunE: func(*cobra.Command, []string) error {
			runtime.LockOSThread()
			fmt.Println(`"busy"`)
			for n := uint64(1); ; n = n*6364136223846793005 + 1 {
				if n == 0 { // Once in 2^64 rounds: keeps the loop from being left out.
					fmt.Println()
				}
			}
		},
	}
}

// startBusy starts so many processes for each core, stopped.
func startBusy(perCore int) (*busy, error) {
	b := &busy{}
	for i := range perCore * runtime.NumCPU() {
		c, err := startChild(fmt.Sprintf("busy process %d", i), "bench", busyRole)
		if err == nil {
			b.all = append(b.all, c)
			var word string
			err = c.hear(&word)
		}
		if err == nil {
			err = c.signal(syscall.SIGSTOP)
		}
		if err != nil {
			b.end()
			return nil, err
		}
	}
	return b, nil
}

// set lets the processes compute, or stops them.
func (b *busy) set(on bool) error {
	s := syscall.SIGSTOP
	if on {
		s = syscall.SIGCONT
	}
	var errs []error
	for _, c := range b.all {
		errs = append(errs, c.signal(s))
	}
	return errors.Join(errs...)
}

func (b *busy) end() {
	for _, c := range b.all {
		c.kill()
	}
}

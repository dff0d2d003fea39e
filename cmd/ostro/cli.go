package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/ostrodb/ostro/wire/resp"
)

// cliOptions are the flags of `ostro cli`; letters as redis-cli has them.
type cliOptions struct {
	target   target
	json     bool
	raw      bool
	noRaw    bool
	lastArg  bool // -x
	repeat   int
	interval time.Duration
}

func newCLI() *cobra.Command {
	var o cliOptions
	cmd := &cobra.Command{
		Use:   "cli [command [argument...]]",
		Short: "Talk to a server: interactively, one command, or a pipe of commands",
		Long: `Talk to an Ostro server, or any other that speaks the Redis protocol.

Without a command it is interactive on a terminal, with history and completion
by Tab, and otherwise runs each line of its input as a command.

It exits with 1 when a command was answered with an error.`,
		Example: `  ostro cli                               interactive
  ostro cli -p 7000 SET greeting hello    one command
  ostro cli --json CONFIG GET '*memory*'  for scripts
  ostro cli -x SET page < index.html      the last argument from a file
  ostro cli < commands.txt                many commands, pipelined`,
		RunE: func(cmd *cobra.Command, args []string) error { return runCLI(cmd, &o, args) },
	}
	f := cmd.Flags()
	f.SetInterspersed(false) // A dash behind the command belongs to the command.
	f.Bool("help", false, "show this help")
	o.target.add(f, "password")
	f.StringVar(&o.target.user, "user", "", "user to authenticate as")
	f.IntVarP(&o.target.db, "db", "n", 0, "database")
	f.BoolVarP(&o.target.resp3, "resp3", "3", false, "speak RESP3")
	f.BoolVar(&o.json, "json", false, "print replies as JSON")
	f.BoolVar(&o.raw, "raw", false, "print strings as they are (default unless on a terminal)")
	f.BoolVar(&o.noRaw, "no-raw", false, "print replies with their types (default on a terminal)")
	f.BoolVarP(&o.lastArg, "stdin-arg", "x", false, "read the last argument from standard input")
	f.IntVarP(&o.repeat, "repeat", "r", 1, "run the command so many times; -1: for ever")
	f.DurationVarP(&o.interval, "interval", "i", 0, "wait between repeats, such as 1s")
	return cmd
}

func runCLI(cmd *cobra.Command, o *cliOptions, args []string) error {
	o.target.lookUpPassword()
	o.target.resp3 = o.target.resp3 || o.json // Only RESP3 tells a map from a list.
	c := &client{target: o.target}
	defer c.Close()
	p := &printer{out: cmd.OutOrStdout(), format: o.format()}
	switch {
	case o.lastArg:
		last, err := io.ReadAll(cmd.InOrStdin())
		if err != nil {
			return fmt.Errorf("read the last argument: %w", err)
		}
		return oneShot(c, p, append(args, string(last)), o)
	case len(args) > 0:
		return oneShot(c, p, args, o)
	case term.IsTerminal(int(os.Stdin.Fd())):
		return interactive(c, p)
	default:
		return pipe(c, p, cmd.InOrStdin())
	}
}

func (o *cliOptions) format() format {
	switch {
	case o.json:
		return formatJSON
	case o.noRaw:
		return formatTyped
	case o.raw || !term.IsTerminal(int(os.Stdout.Fd())):
		return formatRaw
	default:
		return formatTyped
	}
}

// errRefused is the exit after error replies; they have been printed.
var errRefused = silentError{code: exitFailure}

func oneShot(c *client, p *printer, args []string, o *cliOptions) error {
	var failed error
	for i := 0; i != o.repeat; i++ {
		if i > 0 {
			time.Sleep(o.interval)
		}
		reply, err := c.Do(args...)
		if err != nil {
			return ending(args, err)
		}
		p.Print(&reply)
		if reply.Err() != nil {
			failed = errRefused
		}
	}
	return failed
}

// ending forgives a server that hangs up because it was told to.
func ending(args []string, err error) error {
	name := strings.ToLower(args[0])
	hungUp := errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
	if (name == "shutdown" || name == "quit") && hungUp {
		return nil
	}
	return err
}

// pipeDepth is how many commands are sent before their replies are read.
const pipeDepth = 256

// pipe runs every line of in. It reads replies whenever the input pauses, so a
// slow writer sees each answer at once and a fast one is pipelined.
func pipe(c *client, p *printer, in io.Reader) error {
	lines := bufio.NewReaderSize(in, 1<<20)
	var failed error
	sent, number := 0, 0
	drain := func() error {
		for ; sent > 0; sent-- {
			reply, err := c.Receive()
			if err != nil {
				return err
			}
			p.Print(&reply)
			if reply.Err() != nil {
				failed = errRefused
			}
		}
		return nil
	}
	for {
		line, readErr := lines.ReadString('\n')
		number++
		words, ok := resp.SplitWords(line)
		if !ok {
			return fmt.Errorf("line %d has unbalanced quotes: %s", number, strings.TrimSpace(line))
		}
		if len(words) > 0 {
			if err := c.Send(words...); err != nil {
				return err
			}
			sent++
		}
		if sent >= pipeDepth || lines.Buffered() == 0 || readErr != nil {
			if err := drain(); err != nil {
				return err
			}
		}
		switch {
		case readErr == io.EOF:
			return failed
		case readErr != nil:
			return fmt.Errorf("read commands: %w", readErr)
		}
	}
}

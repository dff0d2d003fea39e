package main

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/ostrodb/ostro/fabric/nic"
	"github.com/ostrodb/ostro/fabric/shm"
	"github.com/ostrodb/ostro/server"
	"github.com/ostrodb/ostro/server/admin"
)

// nicFlags are what an operator decides about a NIC process.
type nicFlags struct {
	socket    string
	listen    string
	advertise string
	secret    string
	spin      time.Duration
	priority  int
	admin     string
	logs      logFlags
}

func newNIC() *cobra.Command {
	f := &nicFlags{}
	cmd := &cobra.Command{
		Use:   "nic",
		Short: "Run the soft NIC: one-sided memory for the processes of this machine",
		Long: `Run the soft NIC in a process of its own, until SIGINT or SIGTERM.

Processes attach to its socket and register memory. From then on the NIC moves
bytes between them, compares and swaps, and runs their prepared chains of
requests, whatever the processes do: also while they are stopped or starved.

With --listen it also reaches the NICs of other machines, and they reach it. All
of them share a secret; keep the network between them to yourself, for what
they send is not encrypted.

It asks for real-time priority, so that busy neighbours do not delay it, and
says so if it may not have it (CAP_SYS_NICE, or a limit: ulimit -r). It polls
while there is work and a little longer, then sleeps.`,
		Example: `  ostro nic                                        socket in $XDG_RUNTIME_DIR or the temporary directory
  ostro nic --socket /run/ostro/nic.sock
  ostro nic --listen 10.0.0.7:7400 --secret-file /etc/ostro/nic.secret
  ostro nic --admin 127.0.0.1:9120                 metrics on http://127.0.0.1:9120/metrics
  ostro nic --realtime 0                           no real-time priority
  ostro nic --spin -1s                             poll for ever, on a core of its own`,
		Args: takes(0, 0, "no arguments; the socket is given with --socket"),
		RunE: func(*cobra.Command, []string) error { return runNIC(f) },
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().StringVar(&f.socket, "socket", defaultSocket(), "unix socket that programs attach to")
	cmd.Flags().StringVar(&f.listen, "listen", "", "host:port to reach other machines by; none without")
	cmd.Flags().StringVar(&f.advertise, "advertise", "", "host:port that other machines are told, if not --listen")
	cmd.Flags().StringVar(&f.secret, "secret-file", "", "file with the secret that all NICs share; required with --listen")
	cmd.Flags().DurationVar(&f.spin, "spin", 50*time.Microsecond, "how long to poll after the last work before sleeping; negative is for ever")
	cmd.Flags().IntVar(&f.priority, "realtime", 10, "SCHED_RR priority from 1 to 99; 0 is none")
	addAdmin(cmd, &f.admin)
	f.logs.add(cmd)
	_ = cmd.MarkFlagFilename("socket", "sock")
	_ = cmd.MarkFlagFilename("secret-file")
	return cmd
}

func defaultSocket() string { return runtimePath("ostro-nic.sock") }

func runNIC(f *nicFlags) error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	if f.priority < 0 || f.priority > 99 {
		return usagef("--realtime is %d; it is a priority from 1 to 99, or 0 for none", f.priority)
	}
	log, err := f.logs.logger()
	if err != nil {
		return err
	}
	secret, err := nicSecret(f)
	if err != nil {
		return err
	}
	restCollector()
	engine, err := nic.New(nic.Config{Spin: f.spin, RealTime: f.priority, Log: log})
	if err != nil {
		return err
	}
	err = serveNIC(f, engine, secret, log, signals)
	return errors.Join(err, engine.Close())
}

// collectorLimit is how much garbage a NIC may have. It makes some when programs come
// and go, none when bytes move.
const collectorLimit = 256 << 20

// restCollector keeps the collector from running by the clock: its threads would spin
// at real-time priority.
func restCollector() {
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(collectorLimit)
}

// serveNIC lets programs and peers in until a signal comes.
func serveNIC(f *nicFlags, engine *nic.Engine, secret []byte, log *slog.Logger, signals <-chan os.Signal) error {
	addr := ""
	if f.listen != "" {
		board, err := engine.Listen(f.listen, f.advertise, secret)
		if err != nil {
			return err
		}
		defer board.Close()
		addr = board.Addr()
	}
	s, err := shm.Serve(f.socket, engine, log)
	if err != nil {
		return err
	}
	defer s.Close()
	facts := []admin.Fact{{Name: "Programs attach to", Value: f.socket}, {Name: "Other machines reach it at", Value: addr}}
	at, stop, err := startAdmin(f.admin, &nicNode{engine, facts}, log)
	if err != nil {
		return err
	}
	defer stop()
	log.Info("serving", "socket", f.socket, "listen", addr, "nic", engine.ID().String(), "admin", at, "version", server.BuildInfo().Version)
	log.Info("stopping", "signal", (<-signals).String())
	return nil
}

// nicSecret reads what NICs of several machines share.
func nicSecret(f *nicFlags) ([]byte, error) {
	if f.listen == "" {
		return nil, nil
	}
	if f.secret == "" {
		return nil, usagef("--listen needs --secret-file, a file with the secret that all NICs share")
	}
	return readSecret(f.secret)
}

func readSecret(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the secret: %w", err)
	}
	if secret := bytes.TrimSpace(text); len(secret) > 0 {
		return secret, nil
	}
	return nil, usagef("%s is empty; it should hold the secret that all sides share", path)
}

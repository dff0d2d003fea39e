package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/server"
)

func newServer() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "server",
		Aliases: []string{"serve"},
		Short:   "Serve Redis clients",
		Long: `Serve Redis clients until SIGINT, SIGTERM or the command SHUTDOWN.

Settings come from a YAML file (--config), then the environment (OSTRO_PORT for
--port), then flags; later ones win. ` + "`ostro config default`" + ` prints them all.`,
		Example: `  ostro server
  ostro server --port 7000 --dir /var/lib/ostro --durability always
  ostro server --memory-limit 2GB --memory-policy evict --dir ""   a cache, nothing on disk
  ostro server --bind 0.0.0.0 --requirepass "$PASSWORD"            for other machines
  OSTRO_LOG_FORMAT=json ostro server --config /etc/ostro.yaml`,
		Args: takes(0, 0, "no arguments; a configuration file is given with --config"),
	}
	flags := addSettings(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		loaded, err := server.Load(flags.sources(cmd))
		if err != nil {
			return err
		}
		return serve(loaded)
	}
	return cmd
}

// settingFlags are a flag for every setting, and one for the file. The flags
// are bound to a Config that nobody reads; Load sets those that were given.
type settingFlags struct{ file string }

func addSettings(cmd *cobra.Command) *settingFlags {
	f := &settingFlags{}
	cmd.Flags().SortFlags = false
	cmd.Flags().StringVarP(&f.file, "config", "c", "", "YAML file of settings (or OSTRO_CONFIG)")
	scratch := server.Default()
	for _, s := range scratch.Settings() {
		short := ""
		if s.Key == "port" {
			short = "p"
		}
		cmd.Flags().VarP(s.Value, s.Key, short, s.Doc) // Also a bool wants its value, as in Redis: --protected-mode no.
	}
	_ = cmd.MarkFlagFilename("config", "yaml", "yml")
	_ = cmd.MarkFlagDirname("dir")
	return f
}

func (f *settingFlags) sources(cmd *cobra.Command) server.Sources {
	from := server.Sources{File: f.file, Environ: os.Environ(), Flags: map[string]string{}}
	if from.File == "" {
		from.File = os.Getenv("OSTRO_CONFIG")
	}
	scratch := server.Default()
	for _, s := range scratch.Settings() {
		if flag := cmd.Flags().Lookup(s.Key); flag.Changed {
			from.Flags[s.Key] = flag.Value.String()
		}
	}
	return from
}

// serve runs a node until it is told to stop.
func serve(loaded server.Loaded) error {
	// Take signals before anything is opened: an early one must not skip the flush.
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)

	bar := newProgressBar(os.Stderr)
	log := server.NewLogger(loaded.Config, screen{bar, os.Stderr})
	slog.SetDefault(log)
	for _, w := range loaded.Warnings {
		log.Warn(w)
	}
	node, err := startNode(loaded, log, bar, signals)
	if err != nil {
		return err
	}
	announce(log, node, bar != nil)
	select {
	case s := <-signals:
		log.Info("stopping; a second signal ends at once", "signal", s.String())
	case <-node.ShutdownRequested():
		if node.Failure() == nil {
			log.Info("stopping", "cause", "a client sent SHUTDOWN")
		}
	}
	go forceOnSignal(log, signals)
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), loaded.ShutdownTimeout)
	defer cancel()
	if err := node.Stop(ctx); err != nil {
		return fmt.Errorf("stop: %w", err)
	}
	log.Info("stopped", "took", time.Since(began).Round(time.Millisecond).String())
	return node.Failure()
}

// startNode starts, and stops waiting for it when a signal comes: recovery only
// reads, so ending in the middle of it is safe.
func startNode(loaded server.Loaded, log *slog.Logger, bar *progressBar, signals <-chan os.Signal) (*server.Node, error) {
	type result struct {
		node *server.Node
		err  error
	}
	options := []server.Option{server.WithLogger(log), server.WithProgress(recoveryProgress(log, bar))}
	if loaded.Origin["admin-addr"] == "default" {
		options = append(options, server.WithAnyAdminPort())
	}
	done := make(chan result, 1)
	go func() {
		node, err := server.Start(loaded.Config, options...)
		done <- result{node, err}
	}()
	select {
	case r := <-done:
		bar.Finish()
		return r.node, r.err
	case s := <-signals:
		bar.Finish()
		return nil, fmt.Errorf("stopped by %s during start; nothing was changed", s)
	}
}

// graceAfterSignal is how long further signals are taken for echoes of the
// first: a terminal and whatever started the server often send one each.
const graceAfterSignal = time.Second

func forceOnSignal(log *slog.Logger, signals <-chan os.Signal) {
	began := time.Now()
	for s := range signals {
		if time.Since(began) < graceAfterSignal {
			continue
		}
		log.Error("ended at once by a second signal; the next start recovers from the log", "signal", s.String())
		os.Exit(exitFailure)
	}
}

// logEvery is how often recovery is logged when there is no terminal.
const logEvery = 2 * time.Second

// recoveryProgress draws on a terminal and logs elsewhere.
func recoveryProgress(log *slog.Logger, bar *progressBar) func(store.Progress) {
	if bar != nil {
		return bar.Update
	}
	var last time.Time
	var stage string
	return func(p store.Progress) {
		if p.Total == 0 || p.Stage == stage && time.Since(last) < logEvery {
			return
		}
		stage, last = p.Stage, time.Now()
		log.Info("recovering", "stage", p.Stage, "done", amount(p.Done, p.Unit), "of", amount(p.Total, p.Unit))
	}
}

// announce tells where to connect: sentences on a terminal, else one log line.
func announce(log *slog.Logger, n *server.Node, terminal bool) {
	c := n.Config()
	metrics, _ := n.Store()
	limit := server.Size(metrics.MemoryLimit).Short()
	if terminal && c.LogFormat == "text" {
		fmt.Fprint(os.Stderr, banner(c, n.Addr(), n.AdminAddr(), limit))
		return
	}
	log.Info("serving", "addr", n.Addr(), "tlsPort", c.TLSPort, "dir", c.Dir, "durability", c.Durability.String(),
		"keys", metrics.Keys, "memoryLimit", limit, "memoryPolicy", c.MemoryPolicy.String(), "admin", n.AdminAddr(),
		"version", server.BuildInfo().Version)
}

func banner(c server.Config, addr, admin, limit string) string {
	lines := []string{"Ostro is ready on " + addr + ": try `redis-cli " + clientFlags(c, addr) + "` or `ostro cli " + clientFlags(c, addr) + "`."}
	where := "Data in " + c.Dir + ", durability " + c.Durability.String() + "; "
	if c.Dir == "" {
		where = "Nothing is kept on disk; "
	}
	lines = append(lines, where+limit+" of memory, then "+c.MemoryPolicy.String()+".")
	if admin != "" {
		lines = append(lines, "Status and metrics on http://"+admin+"/. Ctrl-C stops.")
	}
	return strings.Join(lines, "\n") + "\n"
}

// clientFlags are what redis-cli needs to reach addr.
func clientFlags(c server.Config, addr string) string {
	_, port, err := net.SplitHostPort(addr)
	switch {
	case err != nil:
		return "-s " + addr
	case c.Port == 0:
		return "-p " + port + " --tls"
	default:
		return "-p " + port
	}
}

// screen keeps log lines and a progress bar apart on one terminal.
type screen struct {
	bar *progressBar
	out io.Writer
}

func (s screen) Write(p []byte) (int, error) {
	s.bar.Clear()
	return s.out.Write(p)
}

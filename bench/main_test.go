package bench

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ostrodb/ostro/internal/await"
	"github.com/ostrodb/ostro/server"
)

// TestMain lets this binary stand in for the servers that experiments start:
// `ostro server --flag value ...` and `redis-server --flag value ...`.
func TestMain(m *testing.M) {
	args := os.Args[1:]
	if len(args) > 0 && args[0] == "server" {
		args = args[1:]
	}
	if len(args) > 0 && args[0] == "--port" {
		if err := serve(args); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(await.Run(m))
}

// serve runs a node until a signal; settings that only Redis has are ignored.
func serve(args []string) error {
	cfg := server.Default()
	known := make(map[string]string)
	for i := 0; i < len(args); i++ {
		key, text, whole := strings.Cut(strings.TrimPrefix(args[i], "--"), "=")
		if !whole && i+1 < len(args) {
			i++
			text = args[i]
		}
		known[key] = text
	}
	for _, s := range cfg.Settings() {
		if text, given := known[s.Key]; given {
			if err := s.Set(text); err != nil {
				return err
			}
		}
	}
	cfg.AdminAddr = ""
	node, err := server.Start(cfg, server.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return err
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	<-signals
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return node.Stop(ctx)
}

package bench

import (
	"time"

	"github.com/spf13/cobra"
)

// loadFlags are those of experiments that drive their own servers.
type loadFlags struct {
	value      int
	duration   time.Duration
	rounds     int
	pipeline   int
	clients    int
	durability string
}

func (f *loadFlags) add(cmd *cobra.Command, rounds int) {
	fl := cmd.Flags()
	fl.IntVar(&f.value, "value", 100, "bytes of a value")
	fl.DurationVar(&f.duration, "duration", 3*time.Second, "length of each round")
	fl.IntVar(&f.rounds, "rounds", rounds, "rounds of each measurement")
	fl.IntVar(&f.pipeline, "pipeline", 16, "requests that a client sends at once")
	fl.IntVar(&f.clients, "clients", 50, "connections")
	fl.StringVar(&f.durability, "durability", "everysec", "durability of the servers: none, checkpoint, everysec or always")
}

// driver drives a server with so many records.
func (f *loadFlags) driver(records uint64) *ownDriver {
	return &ownDriver{f: respFlags{records: count(records), duration: f.duration, clients: f.clients, value: f.value}}
}

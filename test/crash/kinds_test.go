package crash

import "time"

// kind is a sort of life.
type kind struct {
	name                        string
	durability                  []string // one of them for each start
	args                        []string
	vary                        [][]string // more arguments, one of them for each start
	writers, transfers, setters int
	mix                         mix
	longest                     time.Duration // under load before a kill
	deaths                      []death       // besides plain kills
	blob                        bool          // closed segments go to a shared tier
}

var (
	// usual does a little of everything.
	usual = mix{keys: 300, valueBytes: 200, largeBytes: 600_000, saves: true, flushes: true}
	// churn overwrites more than fits into the memory that it gets.
	churn = mix{keys: 3000, valueBytes: 1000, largeBytes: 300_000, saves: true, overwrite: true}
	// saved makes checkpoints, where nothing else keeps anything.
	saved = mix{keys: 300, valueBytes: 200, largeBytes: 300_000, saves: true}
)

// tight keeps little in memory, so that segments are cleaned and spilled all
// the time.
var tight = []string{"--loops", "2", "--segment-size", "64KiB", "--memory-limit", "2MiB"}

var (
	paused   = death{"kill while stopped", false, killPaused}
	resumed  = death{"kill after a stop", false, killResumed}
	polite   = death{"SIGTERM", true, terminate}
	stopping = death{"kill after SIGTERM", false, killStopping}
	atBGSAVE = death{"kill at BGSAVE", false, killAt(20*time.Millisecond, "BGSAVE")}
)

// kinds are all sorts of lives, in the order in which they come.
func kinds() []kind {
	everysec, always := []string{"everysec"}, []string{"always"}
	return []kind{
		{
			name: "everysec", durability: everysec, args: []string{"--loops", "2", "--segment-size", "256KiB"},
			writers: 3, transfers: 2, setters: 1, mix: usual, longest: 300 * time.Millisecond,
			deaths: []death{paused, resumed, polite, stopping},
		},
		{
			name: "always", durability: always, args: []string{"--loops", "2", "--segment-size", "256KiB"},
			writers: 3, transfers: 3, setters: 1, mix: usual, longest: 300 * time.Millisecond,
			deaths: []death{paused, resumed, polite, stopping},
		},
		{
			name: "everysec-cleaning", durability: everysec, args: tight,
			writers: 3, transfers: 2, mix: churn, longest: 400 * time.Millisecond,
			deaths: []death{atBGSAVE, polite, stopping},
		},
		{
			name: "checkpoint", durability: []string{"checkpoint"}, args: []string{"--loops", "2", "--segment-size", "64KiB"},
			writers: 2, transfers: 2, setters: 1, mix: saved, longest: 300 * time.Millisecond,
			deaths: []death{atBGSAVE, atBGSAVE, paused, polite, stopping},
		},
		{
			name: "always-cleaning", durability: always, args: tight,
			writers: 3, transfers: 2, mix: churn, longest: 400 * time.Millisecond,
			deaths: []death{atBGSAVE, polite, stopping},
		},
		{
			name: "transfers", durability: []string{"everysec", "always"}, args: []string{"--loops", "2", "--segment-size", "64KiB"},
			transfers: 6, longest: 100 * time.Millisecond, deaths: []death{paused},
		},
		{
			name: "flushing", durability: []string{"everysec", "always"}, args: []string{"--loops", "2", "--segment-size", "64KiB"},
			writers: 1, transfers: 1, setters: 3, mix: usual, longest: 100 * time.Millisecond,
		},
		{
			name: "checkpoint-cleaning", durability: []string{"checkpoint"}, args: tight,
			writers: 2, transfers: 2, mix: churn, longest: 400 * time.Millisecond,
			deaths: []death{atBGSAVE, atBGSAVE, polite, stopping},
		},
		{
			name: "none", durability: []string{"none"}, args: []string{"--loops", "2", "--segment-size", "256KiB"},
			writers: 2, transfers: 2, setters: 1, mix: saved, longest: 300 * time.Millisecond,
			deaths: []death{atBGSAVE, polite, stopping},
		},
		{
			name: "changing", durability: []string{"everysec", "always", "checkpoint", "none"},
			vary: [][]string{
				{"--loops", "2", "--segment-size", "64KiB"},
				{"--loops", "1", "--segment-size", "64KiB", "--memory-limit", "2MiB"},
				{"--loops", "3", "--segment-size", "128KiB", "--memory-limit", "1GiB"}, // The directory keeps its size.
			},
			writers: 2, transfers: 2, mix: saved, longest: 200 * time.Millisecond,
			deaths: []death{atBGSAVE, polite, stopping},
		},
		{
			name: "defaults", durability: everysec,
			writers: 4, transfers: 2, setters: 1, mix: mix{keys: 3000, valueBytes: 400, largeBytes: 3_000_000, flushes: true},
			longest: 500 * time.Millisecond, deaths: []death{resumed, polite, stopping},
		},
		{
			name: "cache", durability: []string{"everysec", "always"}, args: append([]string{"--memory-policy", "evict"}, tight...),
			writers: 3, mix: mix{keys: 4000, valueBytes: 1000, largeBytes: 100_000, saves: true, cache: true},
			longest: 400 * time.Millisecond, deaths: []death{atBGSAVE, polite, stopping},
		},
		{
			name: "blob", durability: everysec, args: append([]string{"--disk-limit", "1MiB"}, tight...), blob: true,
			writers: 2, transfers: 2, mix: churn, longest: 3 * time.Second, deaths: []death{atBGSAVE, polite, stopping},
		},
	}
}

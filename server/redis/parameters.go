package redis

import (
	"errors"
	"fmt"
	"math"
	"net"
	"strconv"
	"strings"

	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/tenant"
)

// parameter is one setting of CONFIG. What stands fixed has no set.
type parameter struct {
	name string
	get  func(s *Server) string
	// set checks a value and returns what makes it take effect.
	set func(s *Server, value string) (apply func(), err error)
}

// parameters are all settings, in the order in which CONFIG GET shows them.
//
// Durability and the memory limit carry Redis' names: appendfsync is always,
// everysec or, for everything less durable, no; maxmemory-policy is noeviction
// for refusing writes, allkeys-lru for evicting, and spill, which Redis does not
// know, for moving cold records to disk.
func parameters() []parameter {
	return []parameter{
		{"maxmemory", func(s *Server) string { return number(s.store.Options().MemoryBytes) }, setMaxmemory},
		{"maxmemory-policy", (*Server).memoryPolicy, setMemoryPolicy},
		{"save", (*Server).savePoints, nil},
		{"appendonly", func(s *Server) string { return yesNo(s.store.Options().Durability >= store.EverySec) }, nil},
		{"appendfsync", (*Server).appendFsync, nil},
		{"dir", func(s *Server) string { return s.store.Options().Dir }, nil},
		{"databases", func(s *Server) string { return strconv.Itoa(s.cfg.Databases) }, nil},

		{"port", func(s *Server) string { return strconv.Itoa(s.port()) }, nil},
		{"bind", func(s *Server) string { return strings.Join(s.cfg.Binds, " ") }, nil},
		{"unixsocket", func(s *Server) string { return s.cfg.UnixSocket }, nil},
		{"unixsocketperm", func(s *Server) string { return strconv.FormatUint(uint64(s.cfg.UnixSocketPerm), 8) }, nil},
		{"tls-port", func(s *Server) string { return strconv.Itoa(s.cfg.TLS.Port) }, nil},
		{"tls-cert-file", func(s *Server) string { return s.cfg.TLS.CertFile }, nil},
		{"tls-key-file", func(s *Server) string { return s.cfg.TLS.KeyFile }, nil},
		{"tls-ca-cert-file", func(s *Server) string { return s.cfg.TLS.CAFile }, nil},
		{"io-threads", func(s *Server) string { return strconv.Itoa(max(s.cfg.Loops, 1)) }, nil},

		{"requirepass", func(s *Server) string { return *s.settings.requirePass.Load() }, setRequirePass},
		{"protected-mode", func(s *Server) string { return yesNo(s.settings.protectedMode.Load()) }, setProtectedMode},
		integer("maxclients", 1, math.MaxInt32, func(s *Server) counter { return &s.settings.maxClients }),
		scaled("timeout", 0, math.MaxInt32, 1000, func(s *Server) counter { return &s.settings.timeoutMillis }),
		integer("tcp-keepalive", 0, math.MaxInt32, func(s *Server) counter { return &s.settings.keepAliveSecs }),
		memory("proto-max-bulk-len", 1<<20, func(s *Server) counter { return &s.settings.maxBulkBytes }),
		memory("client-query-buffer-limit", 1<<20, func(s *Server) counter { return &s.settings.maxQueryBytes }),
		{"client-output-buffer-limit", (*Server).outputLimits, setOutputLimits},
		integer("slowlog-log-slower-than", -1, math.MaxInt64, func(s *Server) counter { return &s.settings.slowlogMicros }),
		{"slowlog-max-len", func(s *Server) string { return strconv.Itoa(s.slowlog.getMaxLen()) }, setSlowlogMaxLen},

		{"cluster-enabled", func(s *Server) string { return yesNo(s.cfg.Cluster != nil) }, nil},
		fixed("hz", "10"),
		fixed("latency-monitor-threshold", "0"),
		fixed("notify-keyspace-events", ""),
		fixed("rename-command", ""),
	}
}

// counter is a setting that is a number.
type counter interface {
	Load() int64
	Store(int64)
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

func fixed(name, value string) parameter {
	return parameter{name: name, get: func(*Server) string { return value }}
}

func integer(name string, low, high int64, field func(*Server) counter) parameter {
	return scaled(name, low, high, 1, field)
}

// scaled is a number that is kept in a finer unit than it is shown in.
func scaled(name string, low, high, unit int64, field func(*Server) counter) parameter {
	return parameter{
		name: name,
		get:  func(s *Server) string { return number(field(s).Load() / unit) },
		set: func(s *Server, value string) (func(), error) {
			n, err := parseWithin(value, low, high)
			return func() { field(s).Store(n * unit) }, err
		},
	}
}

func parseWithin(value string, low, high int64) (int64, error) {
	n, ok := parseInt([]byte(value))
	switch {
	case !ok:
		return 0, errors.New("argument couldn't be parsed into an integer")
	case n < low || n > high:
		return 0, fmt.Errorf("argument must be between %d and %d inclusive", low, high)
	}
	return n, nil
}

// memory is a number of bytes that may be given with a unit.
func memory(name string, low int64, field func(*Server) counter) parameter {
	return parameter{
		name: name,
		get:  func(s *Server) string { return number(field(s).Load()) },
		set: func(s *Server, value string) (func(), error) {
			n, err := parseMemory(value)
			if err == nil && n < low {
				err = fmt.Errorf("argument must be between %d and %d inclusive", low, int64(math.MaxInt64))
			}
			return func() { field(s).Store(n) }, err
		},
	}
}

// parseMemory reads 100, 1k (1000), 1kb (1024), 1m, 1mb, 1g and 1gb in any case.
func parseMemory(value string) (int64, error) {
	text, unit := strings.ToLower(value), int64(1)
	for _, u := range []struct {
		suffix string
		bytes  int64
	}{{"kb", 1 << 10}, {"mb", 1 << 20}, {"gb", 1 << 30}, {"k", 1e3}, {"m", 1e6}, {"g", 1e9}, {"b", 1}} {
		if digits, found := strings.CutSuffix(text, u.suffix); found {
			text, unit = digits, u.bytes
			break
		}
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil || int64(n) > math.MaxInt64/unit {
		return 0, errors.New("argument must be a memory value")
	}
	return int64(n) * unit, nil
}

// setMaxmemory refuses limits that the store cannot work in.
func setMaxmemory(s *Server, value string) (func(), error) {
	n, err := parseMemory(value)
	if least := int64(8 * s.store.Options().SegmentBytes); err == nil && n != 0 && n < least {
		err = fmt.Errorf("argument must be 0 for no limit or at least %d, eight segments", least)
	}
	return func() { s.store.SetMemoryLimit(n, s.store.Options().Policy) }, err
}

// port is the TCP port that clients connect to, 0 if there is none.
func (s *Server) port() int {
	if a, ok := s.Addr().(*net.TCPAddr); ok {
		return a.Port
	}
	return 0
}

// memoryPolicy is the store's policy by Redis' name. There is nowhere to spill to
// without a data directory.
func (s *Server) memoryPolicy() string {
	o := s.store.Options()
	switch {
	case o.Policy == store.Evict:
		return "allkeys-lru"
	case o.Policy == store.Refuse || o.Dir == "":
		return "noeviction"
	}
	return "spill"
}

func setMemoryPolicy(s *Server, value string) (func(), error) {
	var p store.Policy
	switch name := strings.ToLower(value); {
	case name == "noeviction":
		p = store.Refuse
	case name == "spill" && s.store.Options().Dir != "":
		p = store.Spill
	case name == "spill":
		return nil, errors.New("spill needs a data directory: start the server with --dir")
	case strings.HasPrefix(name, "allkeys-") && s.store.Options().Cluster:
		return nil, errors.New("a node of a cluster cannot evict yet: use noeviction or spill")
	case strings.HasPrefix(name, "allkeys-"):
		p = store.Evict
	default:
		return nil, errors.New("argument(s) must be one of the following: noeviction, allkeys-lru, allkeys-lfu, allkeys-random, spill")
	}
	return func() { s.store.SetMemoryLimit(s.store.Options().MemoryBytes, p) }, nil
}

func (s *Server) appendFsync() string {
	switch d := s.store.Options().Durability; d {
	case store.Always, store.EverySec:
		return d.String()
	}
	return "no"
}

// savePoints shows periodic checkpoints as Redis shows snapshots.
func (s *Server) savePoints() string {
	if every := s.store.Options().CheckpointEvery; every > 0 {
		return fmt.Sprintf("%d 1", int64(every.Seconds()))
	}
	return ""
}

func setRequirePass(s *Server, value string) (func(), error) {
	if err := tenant.CheckPassword(value); err != nil {
		return nil, err
	}
	return func() { s.settings.requirePass.Store(&value) }, nil
}

func setProtectedMode(s *Server, value string) (func(), error) {
	on := strings.EqualFold(value, "yes")
	if !on && !strings.EqualFold(value, "no") {
		return nil, errors.New("argument must be 'yes' or 'no'")
	}
	return func() { s.settings.protectedMode.Store(on) }, nil
}

func setSlowlogMaxLen(s *Server, value string) (func(), error) {
	n, err := parseWithin(value, 0, math.MaxInt32)
	return func() { s.slowlog.setMaxLen(int(n)) }, err
}

// outputLimits shows the limit of normal clients; there are no others.
func (s *Server) outputLimits() string {
	return fmt.Sprintf("normal %d %d %d", s.settings.outputHard.Load(), s.settings.outputSoft.Load(), s.settings.outputSecs.Load())
}

func setOutputLimits(s *Server, value string) (func(), error) {
	words := strings.Fields(value)
	if len(words)%4 != 0 {
		return nil, errors.New("Wrong number of arguments in buffer limit configuration.")
	}
	apply := func() {}
	for ; len(words) > 0; words = words[4:] {
		hard, err1 := parseMemory(words[1])
		soft, err2 := parseMemory(words[2])
		secs, err3 := parseWithin(words[3], 0, math.MaxInt32)
		if errors.Join(err1, err2, err3) != nil {
			return nil, errors.New("Error in hard, soft or soft_seconds setting in buffer limit configuration.")
		}
		switch strings.ToLower(words[0]) {
		case "normal":
			apply = func() {
				s.settings.outputHard.Store(hard)
				s.settings.outputSoft.Store(soft)
				s.settings.outputSecs.Store(secs)
			}
		case "slave", "replica", "pubsub":
		default:
			return nil, errors.New("Invalid client class specified in buffer limit configuration.")
		}
	}
	return apply, nil
}

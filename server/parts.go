package server

import (
	"log/slog"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/server/redis"
)

// storeOptions translates a Config for the engine.
func (c *Config) storeOptions(limit Size, heads int, log *slog.Logger, progress func(store.Progress)) store.Options {
	return store.Options{
		Dir:             c.Dir,
		Durability:      c.Durability,
		SegmentBytes:    int(c.segmentSize(log)),
		MemoryBytes:     int64(limit),
		Policy:          c.MemoryPolicy,
		Heads:           heads,
		Databases:       c.Databases,
		BlobURL:         c.BlobURL,
		DiskBytes:       int64(c.DiskLimit),
		CheckpointEvery: c.CheckpointEvery,
		Logger:          log.With("part", "store"),
		Progress:        progress,
	}
}

// redisConfig translates a Config for the front door, where zero means default.
func (c *Config) redisConfig(log *slog.Logger) redis.Config {
	r := redis.Config{
		Binds:                  c.Bind,
		Port:                   c.Port,
		RequirePass:            c.RequirePass,
		MaxClients:             c.MaxClients,
		Timeout:                c.Timeout,
		TCPKeepAlive:           c.TCPKeepAlive,
		UnixSocket:             c.UnixSocket,
		MaxBulkBytes:           int64(c.MaxArgument),
		MaxQueryBytes:          int64(c.MaxInput),
		OutputLimit:            redis.OutputLimit{HardBytes: int64(c.MaxOutput)},
		Databases:              c.Databases,
		Loops:                  c.Loops,
		SlowlogThresholdMicros: c.SlowlogThreshold.Microseconds(),
		Logger:                 log.With("part", "redis"),
		TLS: redis.TLSConfig{
			Port:       c.TLSPort,
			CertFile:   c.TLSCertFile,
			KeyFile:    c.TLSKeyFile,
			CAFile:     c.TLSCACertFile,
			ClientAuth: c.clientAuth(),
		},
	}
	if c.Port == 0 {
		r.Port = -1
	}
	if c.TCPKeepAlive == 0 {
		r.TCPKeepAlive = -1
	}
	if !c.ProtectedMode {
		r.ProtectedMode = redis.ProtectedOff
	}
	if c.SlowlogThreshold == 0 {
		r.SlowlogThresholdMicros = redis.LogEverything
	}
	return r
}

func (c *Config) clientAuth() redis.ClientAuth {
	switch {
	case c.TLSAuthClients == "no", c.TLSAuthClients == "" && c.TLSCACertFile == "":
		return redis.ClientAuthNo
	case c.TLSAuthClients == "optional":
		return redis.ClientAuthOptional
	default:
		return redis.ClientAuthYes
	}
}

// segmentSize is the one that the data directory was made with; the setting is
// for new directories.
func (c *Config) segmentSize(log *slog.Logger) Size {
	id, _, err := store.ReadIdentity(device.MetaDir(c.Dir))
	if err != nil || id.SegmentBytes == 0 {
		return c.SegmentSize // There is none, or the store reports what is wrong with it.
	}
	if Size(id.SegmentBytes) != c.SegmentSize {
		log.Info("the data directory keeps its segment size", "segmentSize", Size(id.SegmentBytes).String(), "configured", c.SegmentSize.String())
	}
	return Size(id.SegmentBytes)
}

package store

// Temporary signatures; the lead replaces this file.

import (
	"context"
	"log/slog"
	"time"

	"github.com/ostrodb/ostro/engine/record"
)

type Durability uint8

const (
	None Durability = iota
	Checkpoint
	EverySec
	Always
)

func ParseDurability(s string) (Durability, error) { panic("stub") }
func (d Durability) String() string                { panic("stub") }

type Policy uint8

const (
	Spill Policy = iota
	Refuse
	Evict
)

func ParsePolicy(s string) (Policy, error) { panic("stub") }
func (p Policy) String() string            { panic("stub") }

type Progress struct {
	Stage       string
	Done, Total int64
	Unit        string
}

type Options struct {
	Dir             string
	LogID           record.LogID
	Durability      Durability
	SegmentBytes    int
	MemoryBytes     int64
	Policy          Policy
	Heads           int
	Now             func() int64
	BlobURL         string
	DiskBytes       int64
	CheckpointEvery time.Duration
	Logger          *slog.Logger
	Progress        func(Progress)
}

type Metrics struct {
	Keys, Expires                                    int64
	IndexBytes, LogBytes, MemoryBytes, DiskBytes     int64
	MemoryLimit                                      int64
	SegmentsInMemory, SegmentsOnDisk, SegmentsOnBlob int64
	Reads, Hits, Misses, Writes, Deletes             int64
	ColdReads, Expired, Evicted, Syncs               int64
	CleanedSegments, CleanedBytes, RelocatedBytes    int64
	Checkpoints                                      int64
	UploadedSegments                                 int64
	RecoveryMillis                                   int64
}

type Store struct{}

func Open(o Options) (*Store, error)                  { panic("stub") }
func (s *Store) NewSession() (*Session, error)        { panic("stub") }
func (s *Store) Close() error                         { panic("stub") }
func (s *Store) Metrics() Metrics                     { panic("stub") }
func (s *Store) Count(db int) (keys, expires int64)   { panic("stub") }
func (s *Store) Truncate(db int) error                { panic("stub") }
func (s *Store) TruncateAll() error                   { panic("stub") }
func (s *Store) Swap(a, b int) error                  { panic("stub") }
func (s *Store) Checkpoint(ctx context.Context) error { panic("stub") }
func (s *Store) LastCheckpoint() time.Time            { panic("stub") }
func (s *Store) SetMemoryLimit(bytes int64, p Policy) { panic("stub") }

type Status uint8

const (
	OK Status = iota
	NotFound
	Cold
	Conflict
	Refused
	TooLarge
	Failed
)

type Key struct {
	Place record.Place
	Table record.TableID
	Bytes []byte
}

type View struct {
	Value    []byte
	Version  uint64
	ExpireAt int64
	Kind     record.Kind
}

type Write struct {
	Value    []byte
	ExpireAt int64
	Kind     record.Kind
}

type Ticket struct{}

type Session struct{}

func (ss *Session) Begin()                                         { panic("stub") }
func (ss *Session) End()                                           { panic("stub") }
func (ss *Session) Close()                                         { panic("stub") }
func (ss *Session) Err() error                                     { panic("stub") }
func (ss *Session) Key(db int, key []byte) Key                     { panic("stub") }
func (ss *Session) Get(k *Key) (View, Status)                      { panic("stub") }
func (ss *Session) GetBatch(keys []Key, views []View, st []Status) { panic("stub") }
func (ss *Session) Put(k *Key, w Write, expect *View) Status       { panic("stub") }
func (ss *Session) Delete(k *Key, expect *View) Status             { panic("stub") }
func (ss *Session) Add(k *Key, delta int64) (int64, Status)        { panic("stub") }
func (ss *Session) RMW(k *Key, f func(old *View, exists bool) (Write, bool)) Status {
	panic("stub")
}
func (ss *Session) TakeFetch() *Fetch                        { panic("stub") }
func (ss *Session) Resume(f *Fetch)                          { panic("stub") }
func (ss *Session) Fetch(ctx context.Context) error          { panic("stub") }
func (ss *Session) Lock(keys []Key) Status                   { panic("stub") }
func (ss *Session) Commit() Status                           { panic("stub") }
func (ss *Session) Abort()                                   { panic("stub") }
func (ss *Session) Unchanged(k *Key, v *View) (bool, Status) { panic("stub") }
func (ss *Session) Scan(db int, cursor uint64, count int, f func(key []byte, v *View)) (uint64, Status) {
	panic("stub")
}
func (ss *Session) RandomKey(db int, dst []byte) ([]byte, Status) { panic("stub") }
func (ss *Session) Usage(k *Key) (int, Status)                    { panic("stub") }
func (ss *Session) Seal() Ticket                                  { panic("stub") }
func (ss *Session) Durable(t Ticket) bool                         { panic("stub") }
func (ss *Session) Notify(f func())                               { panic("stub") }
func (ss *Session) WaitDurable(t Ticket) error                    { panic("stub") }

type Fetch struct{}

func (f *Fetch) Start(done func()) { panic("stub") }
func (f *Fetch) Err() error        { panic("stub") }
func (f *Fetch) Release()          { panic("stub") }

package ostropebble

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// CopyOptions say how a replica keeps its copy of the database.
type CopyOptions struct {
	// Pebble is how the copy is opened; comparer, merger and format must be those
	// of the front end. What concerns files and the write-ahead log is overwritten.
	Pebble *pebble.Options
	// Wake is how often the replica looks for new pieces; default 5 ms.
	Wake time.Duration
	// BaseBytes is how much of the journal it applies between two bases; default a
	// quarter of it.
	BaseBytes uint64
}

// Area shows a replica's data area to a function, for as long as it runs, while
// nothing but executed transactions is in it. (*txn.Reader).View without locks is one.
type Area func(ctx context.Context, show func(data []byte) error) error

// Copy is a replica's own database. It follows the journal in the replica's
// memory off the critical path. Its methods may be called by many goroutines at once.
type Copy struct {
	dir  string
	opts CopyOptions
	area Area
	db   *pebble.DB

	ctx    context.Context // over when the copy is closed
	cancel context.CancelFunc
	done   chan struct{} // closed when nobody follows any more

	applying chan struct{} // holds one who applies or makes bases; guards the next three
	now      position
	base     uint64 // position of the newest base
	ring     uint64 // bytes of the journal; 0 before the first front end came

	mu  sync.Mutex
	err error // why it does not go on, for now
}

// OpenCopy opens the copy in a directory, or an empty one, and lets it follow.
func OpenCopy(dir string, area Area, o CopyOptions) (*Copy, error) {
	if o.Wake == 0 {
		o.Wake = 5 * time.Millisecond
	}
	c := &Copy{dir: dir, opts: o, area: area, done: make(chan struct{}), applying: make(chan struct{}, 1)}
	if err := c.open(); err != nil {
		return nil, fmt.Errorf("pebble: open a replica's copy: %w", err)
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	go c.follow()
	return c, nil
}

func (c *Copy) open() error {
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return err
	}
	base, err := tidyBases(c.dir)
	if err != nil {
		return err
	}
	if base != "" {
		if c.now, err = readPosition(base); err != nil {
			return err
		}
	}
	c.base = c.now.Position
	live := filepath.Join(c.dir, liveName)
	if err := revive(base, live); err != nil {
		return err
	}
	c.db, err = pebble.Open(live, c.pebbleOptions())
	return err
}

// pebbleOptions are those of a database without a log of its own: the journal is its log.
func (c *Copy) pebbleOptions() *pebble.Options {
	o := &pebble.Options{}
	if c.opts.Pebble != nil {
		o = c.opts.Pebble.Clone()
	}
	o.FS, o.WALDir, o.DisableWAL, o.ReadOnly = nil, "", true, false
	if o.Logger == nil {
		o.Logger = onlyFailures{}
	}
	return o
}

// follow wakes up from time to time and brings the copy up to date. What fails is
// tried again.
func (c *Copy) follow() {
	defer close(c.done)
	tick := time.NewTicker(c.opts.Wake)
	defer tick.Stop()
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-tick.C:
			_ = c.exclusively(c.ctx, func() error { return c.catchUp(c.ctx) })
		}
	}
}

// exclusively runs f while nobody else applies.
func (c *Copy) exclusively(ctx context.Context, f func() error) error {
	select {
	case c.applying <- struct{}{}:
		defer func() { <-c.applying }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if c.ctx.Err() != nil {
		return errors.New("pebble: the replica's copy is closed")
	}
	err := f()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
	return err
}

// stepBytes is how much is copied out of the journal at a time.
const stepBytes = 1 << 20

// catchUp applies what the journal has, and makes a base when that was much.
func (c *Copy) catchUp(ctx context.Context) error {
	for {
		pieces, err := c.look(ctx)
		if err != nil || len(pieces) == 0 {
			return err
		}
		for _, p := range pieces {
			if err := c.now.Stream.add(p.piece, func(b []byte) error { return applyBatch(c.db, b) }); err != nil {
				return err
			}
			c.now.Position = p.next
		}
		if c.now.Position-c.base >= c.baseBytes() {
			if err := c.makeBase(); err != nil {
				return err
			}
		}
	}
}

func (c *Copy) baseBytes() uint64 {
	if c.opts.BaseBytes != 0 {
		return c.opts.BaseBytes
	}
	return c.ring / 4
}

// found is a piece, and where the next one is.
type found struct {
	piece
	next uint64
}

// look takes the next pieces out of the journal. They are applied only after the
// area has said that they were good.
func (c *Copy) look(ctx context.Context) (pieces []found, err error) {
	err = c.area(ctx, func(data []byte) error {
		pieces = nil
		j, err := openJournal(data)
		if err != nil || j == nil {
			return err
		}
		c.ring = uint64(len(j.ring))
		pieces, err = j.from(c.now.Position, stepBytes)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("pebble: follow in %s: %w", c.dir, err)
	}
	return pieces, nil
}

// makeBase makes a base of all that was applied.
func (c *Copy) makeBase() error {
	if err := makeBase(c.db, c.dir, c.now); err != nil {
		return fmt.Errorf("pebble: make a base: %w", err)
	}
	c.base = c.now.Position
	return nil
}

// at runs f when the copy is at a position of the journal or behind it.
func (c *Copy) at(ctx context.Context, pos uint64, f func() error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	tick := time.NewTicker(c.opts.Wake)
	defer tick.Stop()
	for {
		there := false
		err := c.exclusively(ctx, func() error {
			err := c.catchUp(ctx)
			if there = c.now.Position >= pos; there {
				return f()
			}
			return err
		})
		if there {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		}
	}
}

// Persist returns when the copy up to a position of the journal is on the
// replica's disk, and tells how far it is: the journal's room up to there can be used again.
func (c *Copy) Persist(ctx context.Context, upTo uint64) (base uint64, err error) {
	err = c.at(ctx, upTo, func() (err error) {
		if c.base < upTo {
			err = c.makeBase()
		}
		base = c.base
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("pebble: persist up to %d: %w", upTo, err)
	}
	return base, nil
}

// Checkpoint makes a directory with the database as it is at a position of the
// journal or later: a database to open, or a new replica's copy to begin with (Seed).
func (c *Copy) Checkpoint(ctx context.Context, upTo uint64, dir string) error {
	if err := c.at(ctx, upTo, func() error { return checkpoint(c.db, dir, c.now) }); err != nil {
		return fmt.Errorf("pebble: make a checkpoint at %d: %w", upTo, err)
	}
	return nil
}

// Reader reads the copy as far as it has come: behind the front end by about
// Wake, and more on a busy machine.
func (c *Copy) Reader() pebble.Reader { return c.db }

// Err tells why the copy does not follow, or nothing while it does.
func (c *Copy) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Close stops following. What was applied since the last base is applied again
// when the copy is opened.
func (c *Copy) Close() error {
	c.cancel()
	<-c.done
	c.applying <- struct{}{} // whoever applies ends first
	defer func() { <-c.applying }()
	return c.db.Close()
}

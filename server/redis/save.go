package redis

import (
	"context"
	"sync/atomic"
)

// saves is what the server knows of checkpoints that clients asked for.
type saves struct {
	running atomic.Bool // BGSAVE's, in the background
	failed  atomic.Bool // the last of them
}

const errSaving = "ERR Background save already in progress"

// save takes a checkpoint and answers when it is complete. As in Redis nothing
// else is served here meanwhile; other loops go on. The session steps out of its
// round, for a checkpoint waits until every session has.
func save(c *call) verdict {
	if c.srv.books.saves.running.Load() {
		return c.fail(errSaving)
	}
	c.ss.End()
	err := c.srv.store.Checkpoint(context.Background())
	c.ss.Begin()
	return c.okUnless(err)
}

func bgsave(c *call) verdict {
	if len(c.args) > 2 || len(c.args) == 2 && !c.is(1, "schedule") {
		return c.fail(errSyntax)
	}
	if !c.srv.startSave() {
		return c.fail(errSaving)
	}
	c.out.SimpleString("Background saving started")
	return done
}

// startSave begins a checkpoint in the background unless one is running.
func (s *Server) startSave() bool {
	if !s.books.saves.running.CompareAndSwap(false, true) {
		return false
	}
	go func() {
		err := s.store.Checkpoint(context.Background())
		if err != nil {
			s.log.Error("BGSAVE failed", "error", err)
		}
		s.books.saves.failed.Store(err != nil)
		s.books.saves.running.Store(false)
	}()
	return true
}

func lastsave(c *call) verdict { return c.int(c.srv.lastSave()) }

// lastSave is when the last checkpoint was taken, in Unix seconds; the start
// where there was none.
func (s *Server) lastSave() int64 {
	if at := s.store.LastCheckpoint(); !at.IsZero() {
		return at.Unix()
	}
	return s.started.Unix()
}

func shutdown(c *call) verdict {
	how, abort := saveDefault, false
	for i := 1; i < len(c.args); i++ {
		switch {
		case c.is(i, "nosave") && how != saveYes:
			how = saveNo
		case c.is(i, "save") && how != saveNo:
			how = saveYes
		case c.is(i, "now"), c.is(i, "force"):
		case c.is(i, "abort") && len(c.args) == 2:
			abort = true
		default:
			return c.fail(errSyntax)
		}
	}
	if abort {
		return c.fail("ERR No shutdown in progress.")
	}
	c.conn.closing = true
	c.srv.requestShutdown(how)
	return done
}

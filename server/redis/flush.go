package redis

import "github.com/ostrodb/ostro/cluster/view"

// flushdb and flushall take ASYNC and SYNC for compatibility: emptying a database
// is instant either way, and its memory comes back in the background.
func flushdb(c *call) verdict {
	st, db := c.srv.store, c.db
	return c.flush(db, func() error { return st.Truncate(db) })
}

func flushall(c *call) verdict {
	if c.conn.account() != nil {
		return c.flush(c.conn.firstDB, c.emptyTenant())
	}
	return c.flush(-1, c.srv.store.TruncateAll)
}

// emptyTenant empties all databases of a tenant. In a cluster it has but one.
func (c *call) emptyTenant() func() error {
	st, first, databases := c.srv.store, c.conn.firstDB, c.conn.databases
	return func() error {
		for n := range databases {
			if err := st.Truncate(first + n); err != nil {
				return err
			}
		}
		return nil
	}
}

func (c *call) flush(db int, empty func() error) verdict {
	if len(c.args) > 2 || len(c.args) == 2 && !c.is(1, "async") && !c.is(1, "sync") {
		return c.fail(errSyntax)
	}
	if c.routing != nil {
		return c.flushLater(db)
	}
	return c.changeDatabases(empty)
}

// changeDatabases runs f in the background, for the map of databases is synced to disk, and others need not wait for that.
func (c *call) changeDatabases(f func() error) verdict {
	over, err := c.await(func(finished func(error)) { go func() { finished(f()) }() })
	if !over {
		return later
	}
	return c.okUnless(err)
}

// flushLater empties a database key by key, as heirs must hear of each; -1 is all
// databases. Meanwhile the client waits. It begins when this node knows of all that was its own when the command came: a proxy
// relies on that, see proxy_flush.go. For places of which nobody knows whose they are it waits as long as other commands.
func (c *call) flushLater(db int) verdict {
	srv := c.srv
	over, err := c.await(func(finished func(error)) {
		srv.latest(func(_ view.Map, err error) {
			if err != nil {
				finished(err)
				return
			}
			srv.store.StartTruncate(db, srv.cfg.ClusterWait, finished)
		})
	})
	if !over {
		return later
	}
	return c.okUnless(err)
}

// latest is the Cluster's, if it has one; else the map is zero.
func (s *Server) latest(done func(view.Map, error)) {
	if by, ok := s.cfg.Cluster.(Mapper); ok {
		by.Latest(done)
		return
	}
	done(view.Map{}, nil)
}

func swapdb(c *call) verdict {
	first, ok := parseInt(c.args[1])
	if !ok || first != int64(int32(first)) {
		return c.fail("ERR invalid first DB index")
	}
	second, ok := parseInt(c.args[2])
	if !ok || second != int64(int32(second)) {
		return c.fail("ERR invalid second DB index")
	}
	a, isFirst := c.conn.database(int(first))
	b, isSecond := c.conn.database(int(second))
	if !isFirst || !isSecond {
		return c.fail(errDBRange)
	}
	if c.routing != nil {
		return c.fail("ERR SWAPDB is not allowed in cluster mode")
	}
	if first == second {
		return c.ok()
	}
	st := c.srv.store
	return c.changeDatabases(func() error { return st.Swap(a, b) })
}

// okUnless answers +OK, or what went wrong.
func (c *call) okUnless(err error) verdict {
	if err != nil {
		return c.fail(c.srv.storeError(err))
	}
	return c.ok()
}

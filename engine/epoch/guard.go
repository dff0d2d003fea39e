package epoch

// Guard is one goroutine's slot in a table. Between Enter and Leave everything
// that the goroutine can reach stays in place. All of its methods belong to the
// goroutine that owns it.
type Guard struct {
	table *Table
	slot  *slot
}

// looksEvery is how often a guard that held nothing up looks for safe actions
// all the same: when nobody was inside at the time of a Defer, nobody else would.
const looksEvery = 64

// Enter begins protection. Guards do not nest.
func (g *Guard) Enter() {
	t := g.table
	for {
		e := t.current.Load()
		g.slot.epoch.Store(e) // Sequentially consistent: the reads that follow come after it.
		if t.current.Load() == e {
			return
		}
		// A bump came between. The old epoch would be safe, but it would hold
		// up actions that this guard cannot disturb.
	}
}

// Leave ends protection, and runs what had waited for this guard.
func (g *Guard) Leave() {
	e := g.slot.epoch.Load()
	g.slot.epoch.Store(0)
	if g.table.pending.Load() != 0 {
		g.look(e)
	}
}

// Refresh is Leave and Enter in one: all that was reached before is given up.
func (g *Guard) Refresh() {
	e := g.slot.epoch.Load()
	g.Enter()
	if g.table.pending.Load() != 0 {
		g.look(e)
	}
}

// Inside tells whether the guard protects at the moment.
func (g *Guard) Inside() bool { return g.slot.epoch.Load() != 0 }

// look drains if this guard, inside since e, may have held an action up. With
// a slow guard somewhere, the others look once for each bump and not each time.
func (g *Guard) look(e uint64) {
	if e >= g.table.newest.Load() {
		if g.slot.skips++; g.slot.skips%looksEvery != 0 {
			return
		}
	}
	g.table.Drain()
}

// Unregister leaves if need be and gives the slot back. The guard is dead then.
func (g *Guard) Unregister() {
	if g.slot == nil {
		return
	}
	g.Leave()
	g.slot.taken.Store(false)
	g.slot = nil
}

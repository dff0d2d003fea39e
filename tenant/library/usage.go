package library

import (
	"maps"
	"slices"
)

// Usage is a module, and what its calls have used of this node.
type Usage struct {
	Entry
	Tenant    string            `json:"tenant"`
	Ready     bool              `json:"ready"` // compiled now
	Instances int               `json:"instances"`
	Counts    Counts            `json:"usage"`
	Of        map[string]Counts `json:"usageByFunction"`
}

// Usage tells of all modules, in order. Who has many functions has much to tell: it is not for a front door's loop.
func (s *Shelf) Usage() []Usage {
	c := s.content.Load()
	all := make([]Usage, 0, len(c.editions))
	for _, name := range slices.Sorted(maps.Keys(c.editions)) {
		all = append(all, c.editions[name].usage())
	}
	return all
}

// UsageOf tells of one module; false: there is none of that name.
func (s *Shelf) UsageOf(name string) (Usage, bool) {
	e := s.content.Load().editions[name]
	if e == nil {
		return Usage{}, false
	}
	return e.usage(), true
}

func (e *edition) usage() Usage {
	u := Usage{Entry: e.entry, Tenant: e.shelf.tenant, Of: make(map[string]Counts, len(e.functions))}
	u.Ready, u.Instances = e.instances()
	for _, f := range e.functions {
		counts := f.tally.counts()
		u.Of[f.Name] = counts
		u.Counts.Add(&counts)
	}
	return u
}

// instances tells whether the edition is compiled now, and how many instances it has.
func (e *edition) instances() (ready bool, n int) {
	if w := e.warm.Load(); w != nil {
		return true, w.pool.Metrics().Instances
	}
	return false, 0
}

// Count tells how many modules and functions there are.
func (s *Shelf) Count() (modules, functions int) {
	c := s.content.Load()
	return len(c.editions), len(c.functions)
}

// Has tells that this very code is installed under this name.
func (s *Shelf) Has(p Package) bool {
	e := s.content.Load().editions[p.Name]
	return e != nil && e.entry.Sum == SumOf(p.Code)
}

// Total is what a tenant's functions are, and what they have used of this node.
type Total struct {
	Tenant             string
	Modules, Functions int
	Ready, Instances   int
	CodeBytes          int64
	Counts             Counts // of deleted modules, too
}

// Totals tells of all tenants that have installed something.
func (l *Library) Totals() []Total {
	var all []Total
	for _, s := range l.all() {
		t := s.total()
		l.mu.Lock()
		t.Counts.Add(&s.past)
		l.mu.Unlock()
		if t.Modules > 0 || t.Counts.Calls > 0 {
			all = append(all, t)
		}
	}
	return all
}

func (s *Shelf) total() Total {
	c := s.content.Load()
	t := Total{Tenant: s.tenant, Modules: len(c.editions)}
	for _, e := range c.editions {
		t.Functions += len(e.entry.Functions)
		t.CodeBytes += e.entry.Bytes
		ready, instances := e.instances()
		if t.Instances += instances; ready {
			t.Ready++
		}
		for _, f := range e.functions {
			counts := f.tally.counts()
			t.Counts.Add(&counts)
		}
	}
	return t
}

// Add adds another's.
func (t *Total) Add(o *Total) {
	t.Modules += o.Modules
	t.Functions += o.Functions
	t.Ready += o.Ready
	t.Instances += o.Instances
	t.CodeBytes += o.CodeBytes
	t.Counts.Add(&o.Counts)
}

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

// Usage tells of all modules, in order.
func (s *Shelf) Usage() []Usage {
	c := s.content.Load()
	all := make([]Usage, 0, len(c.editions))
	for _, name := range slices.Sorted(maps.Keys(c.editions)) {
		e := c.editions[name]
		u := Usage{Entry: e.entry, Tenant: s.tenant, Of: map[string]Counts{}}
		if w := e.warm.Load(); w != nil {
			u.Ready, u.Instances = true, w.pool.Metrics().Instances
		}
		for _, f := range e.functions {
			counts := f.tally.counts()
			u.Of[f.Name] = counts
			u.Counts.Add(&counts)
		}
		all = append(all, u)
	}
	return all
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
	t := Total{Tenant: s.tenant}
	for _, u := range s.Usage() {
		t.Modules++
		t.Functions += len(u.Functions)
		t.CodeBytes += u.Bytes
		t.Instances += u.Instances
		if u.Ready {
			t.Ready++
		}
		t.Counts.Add(&u.Counts)
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

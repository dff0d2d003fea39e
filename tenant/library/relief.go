package library

import "github.com/ostrodb/ostro/tenant/extension"

// Relieve gives back what instances without work have of a tenant's memory: it is short of it.
func (l *Library) Relieve(tenantName string) {
	for _, p := range l.warm.poolsOf(tenantName) {
		p.Trim(0)
	}
}

func (s *warmSet) poolsOf(tenantName string) (all []*extension.Pool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for e := range s.editions {
		if w := e.warm.Load(); w != nil && e.shelf.tenant == tenantName {
			all = append(all, w.pool)
		}
	}
	return all
}

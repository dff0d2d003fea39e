package extension

import (
	"context"
	"crypto/sha256"
	"sync"

	"github.com/ostrodb/ostro/tenant/extension/meter"
)

// moduleKey is what makes two modules the same: their bytes, and the limits that they were rewritten for.
type moduleKey struct {
	sum    [sha256.Size]byte
	limits meter.Limits
}

// sharedModule is a compiled module and how many have asked for it.
type sharedModule struct {
	key   moduleKey
	users int // guarded by the runtime
	once  sync.Once
	m     *Module
	err   error
}

// Compile checks a module, rewrites it so that it is metered, and compiles it, or takes what a cache has. Whoever brings
// the same bytes gets the same module: tenants share code, and nothing else, for a pool is of one. Close it once for
// each time.
func (r *Runtime) Compile(ctx context.Context, code []byte, limits Limits) (*Module, error) {
	s := r.acquire(moduleKey{sha256.Sum256(code), limits.Module})
	s.once.Do(func() {
		s.m, s.err = r.load(ctx, s.key, code, limits)
		if s.m != nil {
			s.m.shared = s
		}
	})
	if s.err != nil {
		r.release(s)
		return nil, s.err
	}
	return s.m, nil
}

func (r *Runtime) acquire(key moduleKey) *sharedModule {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.modules[key]
	if s == nil {
		s = &sharedModule{key: key}
		r.modules[key] = s
	}
	s.users++
	return s
}

// release reports whether nobody has the module any more.
func (r *Runtime) release(s *sharedModule) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.users--
	if s.users > 0 {
		return false
	}
	delete(r.modules, s.key)
	return true
}

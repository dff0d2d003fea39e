package extension

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/ostrodb/ostro/tenant/extension/meter"
)

// Options are those of a Runtime.
type Options struct {
	// CacheDir keeps compiled modules, so that a restart does not compile them again. Whoever can write there can run
	// code in this process: it must be the server's own. Empty: nothing is kept.
	CacheDir string
	// Unmetered leaves metering out, to measure what it costs. Such a function cannot be interrupted, and holds up the
	// whole process as long as it runs: never where anybody can install one.
	Unmetered bool
}

// Runtime compiles modules and has what they import. One serves all tenants: what separates those is that an instance
// has its own memory, and a call its own Store.
type Runtime struct {
	opts   Options
	engine wazero.Runtime
	cache  wazero.CompilationCache

	cached atomic.Int64 // bytes that came to the cache since it was trimmed

	mu      sync.Mutex
	modules map[moduleKey]*sharedModule
}

// NewRuntime returns a runtime. Close it when no call runs any more.
func NewRuntime(ctx context.Context, opts Options) (*Runtime, error) {
	r := &Runtime{opts: opts, modules: map[moduleKey]*sharedModule{}}
	config := wazero.NewRuntimeConfigCompiler().WithCoreFeatures(api.CoreFeaturesV2)
	if opts.CacheDir != "" {
		cache, err := wazero.NewCompilationCacheWithDir(opts.CacheDir)
		if err != nil {
			return nil, fmt.Errorf("open the cache of compiled functions %s: %w", opts.CacheDir, err)
		}
		r.cache = cache
		config = config.WithCompilationCache(cache)
	}
	r.engine = wazero.NewRuntimeWithConfig(ctx, config)
	if err := r.addHost(ctx); err != nil {
		return nil, errors.Join(err, r.Close(ctx))
	}
	return r, nil
}

func (r *Runtime) addHost(ctx context.Context) error {
	i64 := []api.ValueType{api.ValueTypeI64}
	b := exportCalls(r.engine.NewHostModuleBuilder(HostModule), hostCalls)
	b = b.NewFunctionBuilder().WithGoFunction(api.GoFunc(hostSlice), i64, i64).Export(meter.SliceImport)
	if _, err := b.Instantiate(ctx); err != nil {
		return fmt.Errorf("make the host's functions: %w", err)
	}
	if _, err := exportCalls(r.engine.NewHostModuleBuilder(wasiModule), wasiCalls).Instantiate(ctx); err != nil {
		return fmt.Errorf("make the host's WASI functions: %w", err)
	}
	return nil
}

// Close ends the runtime, all modules and instances.
func (r *Runtime) Close(ctx context.Context) error {
	err := r.engine.Close(ctx)
	if r.cache != nil {
		err = errors.Join(err, r.cache.Close(ctx))
	}
	return err
}

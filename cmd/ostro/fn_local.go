package main

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ostrodb/ostro/tenant/extension"
	"github.com/ostrodb/ostro/tenant/extension/local"
)

// fnLocal is a module with data, for a call without a server.
type fnLocal struct {
	fn       string
	keys     []string
	args     []string
	hex      bool
	readOnly bool
	fresh    bool
	fuel     int64
	data     string
	cache    string
	seed     uint64

	runtime   *extension.Runtime
	module    *extension.Module
	pool      *extension.Pool
	store     *local.Store
	compiling time.Duration
}

func (l *fnLocal) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.SortFlags = false
	fl.StringVar(&l.fn, "fn", "", "the function; not needed if the module has only one")
	fl.StringArrayVar(&l.keys, "key", nil, "a key that it is invoked with; may be given again")
	fl.StringArrayVar(&l.args, "args", nil, "an argument; may be given again")
	fl.BoolVar(&l.hex, "hex", false, "keys and arguments are hexadecimal")
	fl.StringVar(&l.data, "data", "", `keys to work on: a file of lines {"key": "a", "value": "b"}; also key_b64, value_b64, table, ttl_ms`)
	fl.BoolVar(&l.readOnly, "read-only", false, "invoke it for reading only")
	fl.BoolVar(&l.fresh, "fresh", false, "begin every call with memory as it was after initialization")
	fl.Int64Var(&l.fuel, "fuel", 0, "units of fuel for a call, about one a simple instruction; 0: the default of 1,000 million")
	fl.Uint64Var(&l.seed, "seed", 0, "make random bytes the same in every run")
	fl.StringVar(&l.cache, "cache", "", "a directory for compiled modules, so that the next run need not compile")
}

// open compiles the module and reads the data.
func (l *fnLocal) open(cmd *cobra.Command, path string) error {
	limits := extension.DefaultLimits()
	code, err := readModule(path, limits)
	if err != nil {
		return err
	}
	if err := l.load(); err != nil {
		return err
	}
	l.runtime, err = extension.NewRuntime(context.Background(), extension.Options{CacheDir: l.cache})
	if err != nil {
		return err
	}
	start := time.Now()
	l.module, err = l.runtime.Compile(context.Background(), code, limits)
	l.compiling = time.Since(start)
	if err == nil {
		l.pool, err = l.module.NewPool(limits, extension.PoolOptions{Fresh: l.fresh, Seed: l.seedOf(cmd)})
	}
	if err != nil {
		l.close()
		return err
	}
	return nil
}

func (l *fnLocal) seedOf(cmd *cobra.Command) *[32]byte {
	if f := cmd.Flags().Lookup("seed"); f == nil || !f.Changed {
		return nil
	}
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], l.seed)
	return &seed
}

func (l *fnLocal) load() error {
	l.store = local.New(nil)
	if l.data == "" {
		return nil
	}
	f, err := os.Open(l.data)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := l.store.Load(f); err != nil {
		return fmt.Errorf("%s: %w", l.data, err)
	}
	return nil
}

func (l *fnLocal) close() {
	if l.pool != nil {
		l.pool.Close()
	}
	if l.module != nil {
		_ = l.module.Close(context.Background())
	}
	if l.runtime != nil {
		_ = l.runtime.Close(context.Background())
	}
}

// invocation is what the flags ask for.
func (l *fnLocal) invocation() (*extension.Invocation, error) {
	inv := &extension.Invocation{Function: l.fn, ReadOnly: l.readOnly, Store: l.store, Fuel: l.fuel}
	if all := l.module.About().Functions; inv.Function == "" {
		if len(all) != 1 {
			return nil, usagef("the module has several functions, choose one with --fn: %s", strings.Join(all, ", "))
		}
		inv.Function = all[0]
	}
	var err error
	if inv.Keys, err = l.bytes("--key", l.keys); err != nil {
		return nil, err
	}
	inv.Args, err = l.bytes("--args", l.args)
	return inv, err
}

func (l *fnLocal) bytes(flag string, all []string) ([][]byte, error) {
	var out [][]byte
	for _, s := range all {
		b := []byte(s)
		if l.hex {
			var err error
			if b, err = hex.DecodeString(s); err != nil {
				return nil, usagef("%s %q is not hexadecimal", flag, s)
			}
		}
		out = append(out, b)
	}
	return out, nil
}

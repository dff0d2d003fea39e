package redis

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/ostrodb/ostro/tenant/library"
)

// FUNCTION is about what the connection's tenant has installed, and about nothing else.

// installPatience bounds how long an installation may take; the largest modules take seconds to compile.
const installPatience = 2 * time.Minute

// functions is what the connection's tenant has installed; nil: this server has no functions.
func (c *conn) functions() *library.Shelf {
	if c.shelf == nil && c.srv.cfg.Functions != nil {
		c.shelf = c.srv.cfg.Functions.Shelf(c.account())
	}
	return c.shelf
}

// shelved is what a FUNCTION command is about, or it answers with an error.
func (c *call) shelved() (s *library.Shelf, ok bool) {
	if s = c.on; s == nil {
		s = c.conn.functions()
	}
	if s == nil {
		c.out.Error("ERR this server has no functions")
	}
	return s, s != nil
}

// working runs work in the background while the client waits. over is false as long as it does. Arguments are not
// valid in work.
func (c *call) working(work func(ctx context.Context) (any, error)) (value any, over bool, err error) {
	return c.awaitValue(func(finished func(any, error)) {
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), installPatience)
			defer cancel()
			finished(work(ctx))
		}()
	})
}

const errAlone = "ERR functions are not changed or listed inside a transaction: send the command by itself"

// alone refuses what takes its time inside a transaction. It is for TENANT FUNCTION: of FUNCTION itself nothing is queued
// that has flagAlone.
func (c *call) alone() bool {
	if c.conn.multi.active {
		c.out.Error(errAlone)
	}
	return !c.conn.multi.active
}

// tenantFunction is TENANT FUNCTION <name> <subcommand> ..., the operator's way to a tenant's functions.
func tenantFunction(c *call) verdict {
	switch {
	case c.srv.cfg.Functions == nil:
		return c.fail("ERR this server has no functions")
	case string(c.args[2]) == defaultUser:
		c.on = c.srv.cfg.Functions.Shelf(nil)
	default:
		r := c.srv.cfg.Tenants
		if r == nil || r.Account(string(c.args[2])) == nil {
			return c.fail("ERR there is no tenant " + shown(c.args[2]) + ": TENANT LIST names them")
		}
		c.on = c.srv.cfg.Functions.Shelf(r.Account(string(c.args[2])))
	}
	defer func() { c.on = nil }()
	c.cmd, c.args = lookup([]byte("function")), c.args[2:]
	if refusal := c.cmd.misnamed(c.args); refusal != "" {
		return c.fail(refusal)
	}
	return container(c)
}

func functionLoad(c *call) verdict {
	s, ok := c.shelved()
	if !ok || !c.alone() {
		return done
	}
	replace := len(c.args) == 4 && c.is(2, "replace")
	if len(c.args) > 4 || len(c.args) == 4 && !replace {
		return c.fail("ERR Unknown option given: " + shown(c.args[2]))
	}
	var p library.Package
	if c.conn.resume.errand == nil { // Otherwise it is under way.
		var err error
		if p, err = packageOf(s, c.args[len(c.args)-1]); err != nil {
			return c.fail("ERR " + err.Error())
		}
	}
	clustered := c.routing != nil
	name, over, err := c.working(func(ctx context.Context) (any, error) {
		return p.Name, install(ctx, s, p, replace, clustered)
	})
	switch {
	case !over:
		return later
	case errors.Is(err, library.ErrExists):
		return c.fail("ERR Library '" + name.(string) + "' already exists: say REPLACE for another version")
	case err != nil:
		return c.fail(functionCode(err) + " " + err.Error())
	}
	c.out.BulkString(name.(string))
	return done
}

// install installs a module. Where each node of a cluster is told the same, as those do who know Redis Cluster, what is
// there already is fine.
func install(ctx context.Context, s *library.Shelf, p library.Package, replace, clustered bool) error {
	_, err := s.Install(ctx, p, replace)
	if clustered && errors.Is(err, library.ErrExists) && s.Has(p) {
		return nil
	}
	return err
}

// packageOf reads what LOAD takes: "#!wasm name=NAME", a new line, and the module. It is a copy.
func packageOf(s *library.Shelf, arg []byte) (p library.Package, err error) {
	line, _, found := bytes.Cut(arg[:min(len(arg), maxHeadline)], []byte("\n"))
	words := strings.Fields(string(line))
	switch {
	case !found || len(words) == 0 || !strings.HasPrefix(words[0], "#!"):
		return p, errors.New("Missing library metadata: begin with #!wasm name=NAME and a new line, then the module's bytes")
	case !strings.EqualFold(words[0], "#!wasm"):
		return p, errors.New("Engine '" + shown([]byte(words[0][2:])) + "' not found: functions are WebAssembly modules, #!wasm")
	}
	for _, w := range words[1:] {
		name, ok := strings.CutPrefix(w, "name=")
		if !ok || p.Name != "" {
			return p, errors.New("Invalid metadata value given: " + shown([]byte(w)))
		}
		p.Name = name
	}
	if p.Name == "" {
		return p, errors.New("Library name was not given: #!wasm name=NAME")
	}
	code := arg[len(line)+1:]
	if err := errors.Join(library.CheckName(p.Name), s.Fits(len(code))); err != nil {
		return p, err
	}
	p.Code = bytes.Clone(code)
	return p, nil
}

// maxHeadline is how long the first line of what LOAD takes may be.
const maxHeadline = 1024

func functionDelete(c *call) verdict {
	name := string(c.args[2])
	return c.changeFunctions(func(ctx context.Context, s *library.Shelf) error { return s.Delete(ctx, name) })
}

func functionFlush(c *call) verdict {
	if len(c.args) > 3 || len(c.args) == 3 && !c.is(2, "async") && !c.is(2, "sync") {
		return c.fail("ERR FUNCTION FLUSH only supports SYNC|ASYNC option")
	}
	return c.changeFunctions(func(ctx context.Context, s *library.Shelf) error { return s.Flush(ctx) })
}

func (c *call) changeFunctions(change func(context.Context, *library.Shelf) error) verdict {
	s, ok := c.shelved()
	if !ok || !c.alone() {
		return done
	}
	_, over, err := c.working(func(ctx context.Context) (any, error) { return nil, change(ctx, s) })
	switch {
	case !over:
		return later
	case errors.Is(err, library.ErrUnknown):
		return c.fail("ERR Library not found")
	}
	return c.okUnless(err)
}

func functionKill(c *call) verdict {
	s, ok := c.shelved()
	switch {
	case !ok:
		return done
	case s.Kill() == 0:
		return c.fail("NOTBUSY No scripts in execution right now.")
	}
	return c.ok()
}

func functionStats(c *call) verdict {
	s, ok := c.shelved()
	if !ok {
		return done
	}
	c.out.Map(2)
	c.out.BulkString("running_script")
	if r := s.Oldest(); r != nil {
		c.out.Map(3)
		c.out.BulkString("name")
		c.out.BulkString(r.Function.Name)
		c.out.BulkString("command")
		c.words([]string{"FCALL", r.Function.Name})
		c.out.BulkString("duration_ms")
		c.out.Int(time.Since(r.Began).Milliseconds())
	} else {
		c.out.Null()
	}
	c.out.BulkString("engines")
	c.out.Map(1)
	c.out.BulkString(engineName)
	modules, functions := s.Count()
	c.out.Map(2)
	c.out.BulkString("libraries_count")
	c.out.Int(int64(modules))
	c.out.BulkString("functions_count")
	c.out.Int(int64(functions))
	return done
}

const engineName = "WASM"

package redis

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/ostrodb/ostro/tenant/library"
)

// functionList answers as Redis does, so nothing can be added to it; FUNCTION INFO has the rest.
func functionList(c *call) verdict {
	s, ok := c.shelved()
	if !ok {
		return done
	}
	pattern, withCode, ok := c.listOptions()
	if !ok || withCode && !c.alone() {
		return done
	}
	var entries []library.Entry
	for _, e := range s.Entries() {
		if pattern == nil || globMatch(pattern, []byte(e.Name), false) {
			entries = append(entries, e)
		}
	}
	if !withCode {
		c.listModules(entries, nil)
		return done
	}
	value, over, err := c.working(func(ctx context.Context) (any, error) { return s.Packages(ctx, entries) })
	switch {
	case !over:
		return later
	case err != nil:
		return c.fail("ERR " + err.Error())
	}
	packages := value.([]library.Package)
	// What was deleted or installed meanwhile is not told: it would have no code.
	kept := slices.DeleteFunc(entries, func(e library.Entry) bool {
		return !slices.ContainsFunc(packages, func(p library.Package) bool { return p.Name == e.Name && library.SumOf(p.Code) == e.Sum })
	})
	c.listModules(kept, packages)
	return done
}

func (c *call) listOptions() (pattern []byte, withCode, ok bool) {
	for i := 2; i < len(c.args); i++ {
		switch {
		case c.is(i, "withcode") && !withCode:
			withCode = true
		case c.is(i, "libraryname") && pattern == nil && i+1 < len(c.args):
			i++
			pattern = c.args[i]
		case c.is(i, "libraryname") && pattern == nil:
			c.out.Error("ERR library name argument was not given")
			return nil, false, false
		default:
			c.out.Error("ERR Unknown argument " + shown(c.args[i]))
			return nil, false, false
		}
	}
	return pattern, withCode, true
}

func (c *call) listModules(entries []library.Entry, packages []library.Package) {
	c.out.Array(len(entries))
	for _, e := range entries {
		fields := 3
		if packages != nil {
			fields = 4
		}
		c.out.Map(fields)
		c.out.BulkString("library_name")
		c.out.BulkString(e.Name)
		c.out.BulkString("engine")
		c.out.BulkString(engineName)
		c.out.BulkString("functions")
		c.out.Array(len(e.Functions))
		for _, name := range e.Functions {
			c.out.Map(3)
			c.out.BulkString("name")
			c.out.BulkString(name)
			c.out.BulkString("description")
			c.out.Null()
			c.out.BulkString("flags")
			c.out.Set(0)
		}
		if packages != nil {
			i := slices.IndexFunc(packages, func(p library.Package) bool { return p.Name == e.Name })
			c.out.BulkString("library_code")
			c.out.BulkString("#!wasm name=" + e.Name + "\n" + string(packages[i].Code))
		}
	}
}

// functionInfo answers with JSON: for each module what it is, and what its calls have used of this node.
func functionInfo(c *call) verdict {
	s, ok := c.shelved()
	if !ok {
		return done
	}
	if len(c.args) > 3 {
		return c.badArguments()
	}
	all := s.Usage()
	if len(c.args) == 3 {
		name := string(c.args[2])
		if all = slices.DeleteFunc(all, func(u library.Usage) bool { return u.Name != name }); len(all) == 0 {
			return c.fail("ERR Library not found")
		}
	}
	return c.json(all)
}

func (c *call) json(v any) verdict {
	text, err := json.Marshal(v)
	if err != nil {
		return c.fail("ERR " + err.Error())
	}
	c.out.Bulk(text)
	return done
}

// functionLogs is FUNCTION LOGS <name> [AFTER <number>] [LEVEL <level>] [COUNT <n>].
func functionLogs(c *call) verdict {
	s, ok := c.shelved()
	if !ok {
		return done
	}
	after, most, least := int64(0), int64(1000), library.Debug
	for i := 3; i < len(c.args); i += 2 {
		if i+1 == len(c.args) {
			return c.fail(errSyntax)
		}
		ok := true
		switch {
		case c.is(i, "after"):
			after, ok = c.intArg(i + 1)
		case c.is(i, "count"):
			most, ok = c.intArg(i + 1)
		case c.is(i, "level"):
			var known bool
			if least, known = library.ParseLevel(strings.ToLower(string(c.args[i+1]))); !known {
				return c.fail("ERR levels are debug, info, warning and error")
			}
		default:
			return c.fail(errSyntax)
		}
		if !ok {
			return done
		}
	}
	lines, ok := s.Logs(string(c.args[2]), after, least, int(max(most, 0)))
	if !ok {
		return c.fail("ERR Library not found")
	}
	return c.json(lines)
}

func functionDump(c *call) verdict {
	s, ok := c.shelved()
	if !ok || !c.alone() {
		return done
	}
	value, over, err := c.working(func(ctx context.Context) (any, error) {
		packages, err := s.Packages(ctx, s.Entries())
		if err != nil {
			return nil, err
		}
		return library.Dump(packages), nil
	})
	switch {
	case !over:
		return later
	case err != nil:
		return c.fail("ERR " + err.Error())
	}
	c.out.Bulk(value.([]byte))
	return done
}

func functionRestore(c *call) verdict {
	s, ok := c.shelved()
	if !ok || !c.alone() {
		return done
	}
	mode := library.Append
	switch {
	case len(c.args) > 4:
		return c.badArguments()
	case len(c.args) == 4 && c.is(3, "flush"):
		mode = library.Flush
	case len(c.args) == 4 && c.is(3, "replace"):
		mode = library.Replace
	case len(c.args) == 4 && !c.is(3, "append"):
		return c.fail("ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.")
	}
	var packages []library.Package
	var bad error
	if c.conn.resume.errand == nil {
		if bad = s.FitAll(len(c.args[2])); bad == nil {
			packages, bad = library.Undump(c.args[2])
		}
	}
	_, over, err := c.working(func(ctx context.Context) (any, error) {
		if bad != nil {
			return nil, bad
		}
		_, err := s.InstallAll(ctx, packages, mode)
		return nil, err
	})
	switch {
	case !over:
		return later
	case errors.Is(err, library.ErrExists):
		return c.fail("ERR " + err.Error() + ": say REPLACE or FLUSH")
	}
	return c.okUnless(err)
}

package redis

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/ostrodb/ostro/tenant/library"
	"github.com/ostrodb/ostro/wire/resp"
)

// What tells of many functions, or brings code, is made in the background, for it can be long: thirty thousand functions
// took 14 ms of the time of all who share the loop. A transaction would have it made on the loop: it is refused there.

// functionList answers as Redis does, so nothing can be added to it; FUNCTION INFO has the rest.
func functionList(c *call) verdict {
	s, ok := c.shelved()
	if !ok || !c.alone() {
		return done
	}
	pattern, withCode, ok := c.listOptions()
	if !ok {
		return done
	}
	if !withCode {
		pattern = bytes.Clone(pattern)
		return c.told(s, func(_ context.Context, out *resp.Writer) error {
			listModules(out, matching(s, pattern), nil)
			return nil
		})
	}
	entries := matching(s, pattern)
	if refusal := c.borrow(entries); refusal != "" {
		return c.fail(refusal)
	}
	return c.told(s, func(ctx context.Context, out *resp.Writer) error {
		packages, err := s.Packages(ctx, entries)
		if err != nil {
			return err
		}
		code := make(map[string][]byte, len(packages))
		for _, p := range packages {
			code[p.Name] = p.Code
		}
		// What was deleted or installed meanwhile is not told: it would have no code.
		listModules(out, slices.DeleteFunc(entries, func(e library.Entry) bool { return code[e.Name] == nil }), code)
		return nil
	})
}

// matching are the modules whose names match a pattern; nil matches all.
func matching(s *library.Shelf, pattern []byte) []library.Entry {
	return slices.DeleteFunc(s.Entries(), func(e library.Entry) bool {
		return pattern != nil && !globMatch(pattern, []byte(e.Name), false)
	})
}

// told answers with what tell writes in the background. Arguments are not valid there.
func (c *call) told(s *library.Shelf, tell func(ctx context.Context, out *resp.Writer) error) verdict {
	proto := c.out.Proto()
	value, over, err := c.working(func(ctx context.Context) (any, error) {
		var out resp.Writer
		out.SetProto(proto)
		err := s.Tell(ctx, func() error { return tell(ctx, &out) })
		return out.Bytes(), err
	})
	switch {
	case !over:
		return later
	case errors.Is(err, library.ErrUnknown):
		return c.fail("ERR Library not found")
	case err != nil:
		return c.fail("ERR " + err.Error())
	}
	reply := value.([]byte)
	if c.overReply(len(reply)) {
		return c.fail(errReplyModules)
	}
	c.hand(reply)
	return done
}

// borrow tells why the connection cannot have the code of modules now; "" if it can. Whoever asks has one such answer at a time
// until it is read, for as long as that takes.
func (c *call) borrow(entries []library.Entry) (refusal string) {
	cn, own := c.conn, c.conn.functions()
	if cn.resume.errand != nil || cn.lent == own { // It is under way, or stands behind another of the same pipeline.
		return ""
	}
	bytes := int64(0)
	for i := range entries {
		bytes += entries[i].Bytes
	}
	if c.overReply(int(bytes)) {
		return errReplyModules
	}
	cn.giveBack()
	if !own.Lend() {
		return errLent
	}
	cn.lent = own
	return ""
}

// giveBack says that the client has read the code that it asked for, or never will.
func (c *conn) giveBack() {
	if c.lent != nil {
		c.lent.TakeBack()
		c.lent = nil
	}
}

// hand makes bytes the reply, without a copy if nothing stands before them.
func (c *call) hand(reply []byte) {
	if c.out.Len() > 0 {
		c.out.Raw(reply)
		return
	}
	c.conn.loop.Load().pool.put(c.out.Swap(reply))
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

// listModules writes modules, with their code if there is any.
func listModules(out *resp.Writer, entries []library.Entry, code map[string][]byte) {
	out.Array(len(entries))
	for _, e := range entries {
		fields := 3
		if code != nil {
			fields = 4
		}
		out.Map(fields)
		out.BulkString("library_name")
		out.BulkString(e.Name)
		out.BulkString("engine")
		out.BulkString(engineName)
		out.BulkString("functions")
		out.Array(len(e.Functions))
		for _, name := range e.Functions {
			out.Map(3)
			out.BulkString("name")
			out.BulkString(name)
			out.BulkString("description")
			out.Null()
			out.BulkString("flags")
			out.Set(0)
		}
		if code != nil {
			out.BulkString("library_code")
			out.BulkString("#!wasm name=" + e.Name + "\n" + string(code[e.Name]))
		}
	}
}

// functionInfo answers with JSON: for each module what it is, and what its calls have used of this node.
func functionInfo(c *call) verdict {
	s, ok := c.shelved()
	switch {
	case !ok || !c.alone():
		return done
	case len(c.args) > 3:
		return c.badArguments()
	case len(c.args) == 2:
		return c.told(s, func(_ context.Context, out *resp.Writer) error { return asJSON(out, s.Usage()) })
	}
	name := string(c.args[2])
	return c.told(s, func(_ context.Context, out *resp.Writer) error {
		u, ok := s.UsageOf(name)
		if !ok {
			return library.ErrUnknown
		}
		return asJSON(out, []library.Usage{u})
	})
}

func asJSON(out *resp.Writer, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	out.Bulk(text)
	return nil
}

// functionLogs is FUNCTION LOGS <name> [AFTER <number>] [LEVEL <level>] [COUNT <n>].
func functionLogs(c *call) verdict {
	s, ok := c.shelved()
	if !ok || !c.alone() {
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
	name := string(c.args[2])
	return c.told(s, func(_ context.Context, out *resp.Writer) error {
		lines, ok := s.Logs(name, after, least, int(max(most, 0)))
		if !ok {
			return library.ErrUnknown
		}
		return asJSON(out, lines)
	})
}

func functionDump(c *call) verdict {
	s, ok := c.shelved()
	if !ok || !c.alone() {
		return done
	}
	entries := s.Entries()
	if refusal := c.borrow(entries); refusal != "" {
		return c.fail(refusal)
	}
	return c.told(s, func(ctx context.Context, out *resp.Writer) error {
		packages, err := s.Packages(ctx, entries)
		if err == nil {
			out.Bulk(library.Dump(packages))
		}
		return err
	})
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
	var dump []byte
	restored := func() {}
	if c.conn.resume.errand == nil { // Otherwise it is under way.
		if c.conn.account() != nil {
			if !s.Restore() {
				return c.fail(errRestored)
			}
			restored = s.Restored
		}
		var err error
		if dump, err = dumpOf(s, c.args[2]); err != nil {
			restored()
			return c.fail("ERR " + err.Error())
		}
	}
	_, over, err := c.working(func(ctx context.Context) (any, error) {
		defer restored()
		packages, err := s.Undump(dump)
		if err != nil {
			return nil, err
		}
		_, err = s.InstallAll(ctx, packages, mode)
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

// dumpOf is a copy of what RESTORE takes, if that may be one. The sum of it all is looked at in the background.
func dumpOf(s *library.Shelf, arg []byte) ([]byte, error) {
	if err := s.FitAll(len(arg)); err != nil {
		return nil, err
	}
	if !library.Dumped(arg) {
		return nil, library.ErrNoDump
	}
	return bytes.Clone(arg), nil
}

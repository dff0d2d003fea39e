package redis

import (
	"strconv"
	"strings"
)

func clientID(c *call) verdict { return c.int(int64(c.conn.id)) }

func clientSetname(c *call) verdict {
	if !c.setName(c.args[2]) {
		return done
	}
	return c.ok()
}

// setName names the connection, or answers with an error. Names stand in CLIENT
// LIST between blanks, so they may hold none.
func (c *call) setName(name []byte) bool {
	if !printable(name) {
		c.out.Error("ERR Client names cannot contain spaces, newlines or special characters.")
		return false
	}
	c.conn.name.Store(nil)
	if len(name) > 0 {
		s := string(name)
		c.conn.name.Store(&s)
	}
	return true
}

func printable(b []byte) bool {
	for _, c := range b {
		if c < '!' || c > '~' {
			return false
		}
	}
	return true
}

func clientGetname(c *call) verdict {
	if name := c.conn.name.Load(); name != nil {
		c.out.BulkString(*name)
	} else {
		c.out.Null()
	}
	return done
}

func clientSetinfo(c *call) verdict {
	field := &c.conn.libName
	switch {
	case c.is(2, "lib-name"):
	case c.is(2, "lib-ver"):
		field = &c.conn.libVer
	default:
		return c.fail("ERR Unrecognized option '" + cString(c.args[2]) + "'")
	}
	if !printable(c.args[3]) {
		return c.fail("ERR " + strings.ToLower(string(c.args[2])) + " cannot contain spaces, newlines or special characters.")
	}
	value := string(c.args[3])
	field.Store(&value)
	return c.ok()
}

func clientReply(c *call) verdict {
	switch {
	case c.is(2, "on"):
		c.conn.reply = replyOn
		return c.ok()
	case c.is(2, "off"):
		c.conn.reply = replyOff
	case c.is(2, "skip"):
		if c.conn.reply != replyOff {
			c.conn.reply = replySkipNext
		}
	default:
		return c.fail(errSyntax)
	}
	return done
}

func clientNoEvict(c *call) verdict { return c.noteSwitch(c.conn.noEvict.Store) }
func clientNoTouch(c *call) verdict { return c.noteSwitch(c.conn.noTouch.Store) }

func (c *call) noteSwitch(store func(bool)) verdict {
	on := c.is(2, "on")
	if !on && !c.is(2, "off") {
		return c.fail(errSyntax)
	}
	store(on)
	return c.ok()
}

// clientUnblock finds nobody: no command of this server blocks.
func clientUnblock(c *call) verdict {
	if len(c.args) > 4 {
		return c.badArguments()
	}
	if len(c.args) == 4 && !c.is(3, "timeout") && !c.is(3, "error") {
		return c.fail("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")
	}
	if _, ok := c.intArg(2); !ok {
		return done
	}
	return c.int(0)
}

func clientPause(c *call) verdict {
	all := true
	switch {
	case len(c.args) > 4:
		return c.badArguments()
	case len(c.args) == 4 && c.is(3, "write"):
		all = false
	case len(c.args) == 4 && !c.is(3, "all"):
		return c.fail("ERR CLIENT PAUSE mode must be WRITE or ALL")
	}
	millis, ok := c.timeoutArg(2)
	if !ok {
		return done
	}
	c.srv.pauseClients(c.now+millis, all)
	return c.ok()
}

func clientUnpause(c *call) verdict {
	c.srv.unpauseClients()
	return c.ok()
}

func clientGetredir(c *call) verdict { return c.int(-1) }

func clientTracking(c *call) verdict {
	if c.is(2, "off") {
		return c.ok()
	}
	return c.fail("ERR CLIENT TRACKING is not supported: keep client-side caching off")
}

func clientTrackinginfo(c *call) verdict {
	c.out.Map(3)
	c.out.BulkString("flags")
	c.out.Set(1)
	c.out.BulkString("off")
	c.out.BulkString("redirect")
	c.out.Int(-1)
	c.out.BulkString("prefixes")
	c.out.Array(0)
	return done
}

func clientInfo(c *call) verdict {
	c.out.Verbatim("txt", c.conn.describe(c.now))
	return done
}

func clientList(c *call) verdict {
	chosen := c.srv.clients.all()
	switch {
	case len(c.args) == 2:
	case len(c.args) == 4 && c.is(2, "type"):
		kind, ok := c.clientType(3)
		if !ok {
			return done
		}
		if kind != "normal" {
			chosen = nil
		}
	case len(c.args) > 3 && c.is(2, "id"):
		chosen = chosen[:0]
		for i := 3; i < len(c.args); i++ {
			id, ok := parseInt(c.args[i])
			if !ok {
				return c.fail("ERR Invalid client ID")
			}
			if cn := c.srv.clients.get(uint64(id)); cn != nil {
				chosen = append(chosen, cn)
			}
		}
	default:
		return c.fail(errSyntax)
	}
	var b strings.Builder
	for _, cn := range chosen {
		b.WriteString(cn.describe(c.now))
	}
	c.out.Verbatim("txt", b.String())
	return done
}

// clientType reads an argument as a type of client, or answers with an error.
// All clients here are normal ones.
func (c *call) clientType(i int) (kind string, ok bool) {
	for _, kind := range []string{"normal", "slave", "replica", "pubsub", "master"} {
		if c.is(i, kind) {
			return kind, true
		}
	}
	c.out.Error("ERR Unknown client type '" + cString(c.args[i]) + "'")
	return "", false
}

// describe is the client's line in CLIENT LIST. Any loop may ask.
func (cn *conn) describe(now int64) string {
	cmd, flags := "NULL", "N"
	if last := cn.lastCommand.Load(); last != nil {
		cmd = last.name
	}
	if cn.shownMulti.Load() >= 0 {
		flags = "x"
	}
	user := load(&cn.user)
	if user == "" {
		user = defaultUser
	}
	var b strings.Builder
	field := func(name, value string) {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(name + "=" + value)
	}
	number := func(name string, n int64) { field(name, strconv.FormatInt(n, 10)) }
	number("id", int64(cn.id))
	field("addr", cn.addr)
	field("laddr", cn.laddr)
	number("fd", int64(cn.fd))
	field("name", load(&cn.name))
	number("age", max(now-cn.created, 0)/1000)
	number("idle", max(now-cn.lastSeen.Load(), 0)/1000)
	field("flags", flags)
	number("db", int64(cn.shownDB.Load()))
	number("sub", 0)
	number("psub", 0)
	number("ssub", 0)
	number("multi", int64(cn.shownMulti.Load()))
	number("qbuf", cn.queryBytes.Load())
	number("qbuf-free", 0)
	number("obl", cn.outputBytes.Load())
	number("oll", 0)
	number("omem", cn.outputBytes.Load())
	number("tot-mem", cn.queryBytes.Load()+cn.outputBytes.Load())
	field("events", "r")
	field("cmd", cmd)
	field("user", user)
	number("redir", -1)
	number("resp", max(int64(cn.shownProto.Load()), 2))
	field("lib-name", load(&cn.libName))
	field("lib-ver", load(&cn.libVer))
	b.WriteByte('\n')
	return b.String()
}

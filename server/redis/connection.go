package redis

import (
	"strconv"
	"time"

	"github.com/ostrodb/ostro/tenant"
)

// redisVersion is the Redis whose commands, replies and errors are spoken here.
// Tools decide by it what they may ask.
const redisVersion = "7.2.4"

// defaultUser is the operator; all others are tenants.
const defaultUser = tenant.Operator

const errWrongPass = "WRONGPASS invalid username-password pair or user is disabled."

func ping(c *call) verdict {
	switch len(c.args) {
	case 1:
		c.out.SimpleString("PONG")
	case 2:
		c.out.Bulk(c.args[1])
	default:
		return c.fail("ERR wrong number of arguments for 'ping' command")
	}
	return done
}

func echo(c *call) verdict {
	c.out.Bulk(c.args[1])
	return done
}

func selectDB(c *call) verdict {
	db, ok := c.dbArg(1)
	if !ok {
		return done
	}
	if db != c.conn.firstDB && c.routing != nil {
		return c.fail("ERR SELECT is not allowed in cluster mode")
	}
	c.conn.db = db
	return c.ok()
}

func quit(c *call) verdict {
	c.conn.closing = true
	return c.ok()
}

func reset(c *call) verdict {
	cn := c.conn
	cn.endMulti()
	_ = cn.become(nil) // The operator has no limits.
	cn.db = 0
	cn.reply = replyOn
	cn.asking = false
	cn.name.Store(nil)
	cn.user.Store(nil)
	cn.noEvict.Store(false)
	cn.noTouch.Store(false)
	cn.authenticated = *c.srv.settings.requirePass.Load() == ""
	c.out.SetProto(2)
	c.out.SimpleString("RESET")
	return done
}

func auth(c *call) verdict {
	user, password := []byte(defaultUser), c.args[1]
	switch {
	case len(c.args) > 3:
		return c.fail(errSyntax)
	case len(c.args) == 3:
		user, password = c.args[1], c.args[2]
	}
	c.redact(1, len(c.args))
	switch {
	case len(c.args) == 2 && *c.srv.settings.requirePass.Load() == "":
		return c.fail("ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?")
	}
	if refusal := c.authenticate(user, password); refusal != "" {
		return c.fail(refusal)
	}
	return c.ok()
}

// redact hides arguments from the slow log.
func (c *call) redact(from, to int) {
	for i := from; i < to; i++ {
		c.args[i] = []byte("(redacted)")
	}
}

// authenticate makes the connection the user's, or tells why not.
func (c *call) authenticate(user, password []byte) (refusal string) {
	account, right := c.knows(user, password)
	if !right {
		c.srv.totals.authFailures.Add(1)
		return errWrongPass
	}
	if c.conn.multi.active && account != c.conn.account() {
		return errNoMulti // What is queued is another's.
	}
	if err := c.conn.become(account); err != nil {
		return "QUOTA " + err.Error()
	}
	name := string(user)
	c.conn.authenticated = true
	c.conn.user.Store(&name)
	return ""
}

// knows checks a password in a time that tells nothing about it. Without a configured
// password the default user may give any. The account of the default user is nil.
func (c *call) knows(user, password []byte) (*tenant.Account, bool) {
	if string(user) != defaultUser {
		if c.srv.cfg.Tenants == nil {
			return nil, false
		}
		return c.srv.cfg.Tenants.Authenticate(user, password)
	}
	want := *c.srv.settings.requirePass.Load()
	return nil, tenant.SamePassword(password, []byte(want)) || want == ""
}

func hello(c *call) verdict {
	version := int64(0)
	if len(c.args) > 1 {
		var ok bool
		if version, ok = parseInt(c.args[1]); !ok {
			return c.fail("ERR Protocol version is not an integer or out of range")
		}
		if version != 2 && version != 3 {
			return c.fail("NOPROTO unsupported protocol version")
		}
	}
	if !c.helloOptions() {
		return done
	}
	if !c.conn.authenticated {
		return c.fail("NOAUTH HELLO must be called with the client already authenticated, " +
			"otherwise the HELLO AUTH <user> <pass> option can be used to authenticate the client " +
			"and select the RESP protocol version at the same time")
	}
	if version != 0 {
		c.out.SetProto(int(version))
	}
	c.answerHello()
	return done
}

// helloOptions carries HELLO's options out in their order, or answers with an error.
func (c *call) helloOptions() bool {
	for i := 2; i < len(c.args); i++ {
		rest := len(c.args) - i - 1
		switch {
		case c.is(i, "auth") && rest >= 2:
			refusal := c.authenticate(c.args[i+1], c.args[i+2])
			c.redact(i+1, i+3)
			if refusal != "" {
				c.out.Error(refusal)
				return false
			}
			i += 2
		case c.is(i, "setname") && rest >= 1:
			if !c.setName(c.args[i+1]) {
				return false
			}
			i++
		default:
			c.out.Error("ERR Syntax error in HELLO option '" + cString(c.args[i]) + "'")
			return false
		}
	}
	return true
}

func (c *call) answerHello() {
	out := c.out
	out.Map(7)
	out.BulkString("server")
	out.BulkString("redis")
	out.BulkString("version")
	out.BulkString(redisVersion)
	out.BulkString("proto")
	out.Int(int64(out.Proto()))
	out.BulkString("id")
	out.Int(int64(c.conn.id))
	out.BulkString("mode")
	out.BulkString(c.srv.mode())
	out.BulkString("role")
	out.BulkString("master")
	out.BulkString("modules")
	out.Array(0)
}

// wait answers at once. A node on its own has nobody to wait for; in a cluster the
// replies to the writes before it, which come first, have waited for all copies.
func wait(c *call) verdict {
	if _, ok := c.intArg(1); !ok {
		return done
	}
	if _, ok := c.timeoutArg(2); !ok {
		return done
	}
	if c.routing != nil {
		return c.int(int64(c.routing.change.Copies))
	}
	return c.int(0)
}

// timeoutArg reads an argument as a number of milliseconds, or answers with an error.
func (c *call) timeoutArg(i int) (int64, bool) {
	millis, ok := parseInt(c.args[i])
	switch {
	case !ok:
		c.out.Error("ERR timeout is not an integer or out of range")
	case millis < 0:
		c.out.Error("ERR timeout is negative")
		ok = false
	}
	return millis, ok
}

func timeNow(c *call) verdict {
	now := time.Now()
	c.out.Array(2)
	c.out.BulkString(strconv.FormatInt(now.Unix(), 10))
	c.out.BulkString(strconv.Itoa(now.Nanosecond() / 1000))
	return done
}

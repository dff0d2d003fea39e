package redis

import (
	"fmt"
	"strconv"

	"github.com/ostrodb/ostro/tenant"
)

// A connection belongs to a tenant from AUTH on, and to the operator before. A tenant
// has databases of its own: what it calls database n is another one in the store, and
// no number reaches a database that is not its. Commands about the server are the operator's.

const errNoTenant = "NOAUTH the tenant was deleted"

// account is the tenant's whose connection it is; nil: the operator's.
func (c *conn) account() *tenant.Account { return c.purse.Account() }

// become makes the connection a tenant's, or with nil the operator's. What it watched was
// another's.
func (c *conn) become(a *tenant.Account) error {
	if a == c.account() {
		return nil
	}
	if a != nil && !c.inner {
		if err := a.Connect(); err != nil {
			return err
		}
	}
	c.leave()
	c.endMulti()
	c.share = nil
	c.shelf = nil
	c.paid = false
	c.db, c.firstDB, c.databases = 0, 0, c.srv.cfg.Databases
	if a != nil {
		t := a.Tenant()
		c.purse = a.Purse()
		c.firstDB, c.databases = t.First, t.Databases
		c.db = c.firstDB
		c.settled = [2]int64{c.bytesIn.Load(), c.bytesOut.Load()}
	}
	return nil
}

// leave ends what a tenant is charged for.
func (c *conn) leave() {
	if a := c.account(); a != nil {
		c.settle()
		c.proceed()
		c.landed()
		_ = c.count(0) // Nothing is never too much.
		a.Unread(&c.unread, 0)
		if !c.inner {
			a.Disconnect()
		}
		c.purse = tenant.Purse{}
	}
}

// settle adds what the connection did to its tenant's account.
func (c *conn) settle() {
	in, out := c.bytesIn.Load(), c.bytesOut.Load()
	c.purse.Settle()
	c.account().Traffic(in-c.settled[0], out-c.settled[1])
	c.settled = [2]int64{in, out}
}

// database is the store's number of what the client calls database n.
func (c *conn) database(n int) (int, bool) { return c.firstDB + n, 0 <= n && n < c.databases }

// charge tells why a tenant's command may not run; "" if it may.
func (l *loop) charge(c *conn, cmd *command, args [][]byte, size int) string {
	a, paid := c.account(), c.paid
	c.paid = false
	switch {
	case a.Gone():
		c.closing = true
		return errNoTenant
	case cmd.free():
		return ""
	case !cmd.forTenants(args):
		return "NOPERM tenant " + a.Tenant().Name + " has no permission to run the '" + cmd.fullName(args) + "' command: it is the operator's"
	case paid:
		return ""
	}
	grows, keys := cmd.flags&flagDenyOOM != 0, cmd.cost(args)
	if grows && keys > tenant.MaxKeys {
		return errManyKeys // Others go on in pieces: see inPieces.
	}
	err := c.purse.Spend(keys, l.now*1e6)
	if err == nil && grows {
		err = a.Room()
	}
	switch {
	case err != nil:
		return "QUOTA " + err.Error()
	case grows && size > tenant.MaxValueBytes && c.tooLong(args):
		return errTenantValue
	case size >= paidBytes:
		c.purse.Owe(int64(size/paidBytes), l.now*1e6)
	}
	return ""
}

// free reports that a command costs nothing: what is none, and the one by which a client leaves. AUTH and HELLO cost a tenant
// that is logged in as much as others, and so does RESET, or it would make them free.
func (cmd *command) free() bool { return cmd == nil || cmd == commandQuit }

// cost is how many operations a command is: one for each of its keys. A call of a function is one, and so is what has no keys.
func (cmd *command) cost(args [][]byte) int64 {
	first, last, step := cmd.first, cmd.last, cmd.step
	if first == 0 || first == last {
		return 1
	}
	if last < 0 {
		last += len(args)
	}
	return max(int64(last-first)/int64(step)+1, 1)
}

// setAside notes that the connection's command will be run again, for which its tenant need not pay.
func (c *conn) setAside() { c.paid = c.account() != nil }

// refund takes a charge back: the command stands behind one that waits, and comes again.
func (c *conn) refund(n int64) {
	if c.account() != nil {
		c.purse.Return(n)
	}
}

// refundCommand is refund for a command, if it was paid for.
func (c *conn) refundCommand(cmd *command, args [][]byte) {
	if c.net.refusal == "" && !cmd.free() {
		c.refund(cmd.cost(args))
	}
	c.net.refusal = ""
}

// owe charges a tenant for what its command did beside what commands do.
func (c *call) owe(operations int) {
	if operations > 0 && c.conn.account() != nil {
		c.conn.purse.Owe(int64(operations), c.now*1e6)
	}
}

// operatorOnly are commands that tell of the server or of all its databases, beside those that are
// marked as an administrator's.
var operatorOnly = map[string]bool{
	"migrate": true, "memory|stats": true, "memory|doctor": true, "memory|malloc-stats": true, "memory|purge": true,
	"cluster|forwarded": true, "cluster|links": true, "lastsave": true,
}

// forTenants tells whether a tenant may run the command.
func (cmd *command) forTenants(args [][]byte) bool {
	flags := cmd.flags
	if sub := cmd.subcommand(args); sub != nil {
		flags |= sub.flags
	}
	return flags&flagAdmin == 0 && !operatorOnly[cmd.fullName(args)]
}

// fullName is the command's name, with that of its subcommand.
func (cmd *command) fullName(args [][]byte) string {
	if sub := cmd.subcommand(args); sub != nil {
		return sub.name
	}
	return cmd.name
}

// mayWait notes that the connection's command waits; it says why it may not.
func (c *conn) mayWait() string {
	if a := c.account(); a != nil && !c.waiting {
		if err := a.Wait(1); err != nil {
			return "QUOTA " + err.Error()
		}
		c.waiting = true
	}
	c.setAside()
	return ""
}

// proceed takes mayWait back.
func (c *conn) proceed() {
	if c.waiting {
		c.waiting = false
		c.account().Proceed(1)
	}
}

// infoTenant is what INFO tells a tenant: of the server what clients decide by, of the rest its own.
func (c *call) infoTenant() string {
	var w infoWriter
	t := c.conn.account().Tenant()
	w.heading("server")
	w.line("redis_version", redisVersion)
	w.line("redis_mode", c.srv.mode())
	w.heading("tenant")
	w.line("tenant", t.Name)
	bytes, results, connections, waiting := c.conn.account().Used()
	w.line("used_bytes", bytes)
	w.line("used_result_bytes", results)
	w.line("used_connections", connections)
	w.line("used_inflight", waiting)
	w.line("limit_bytes", t.Limits.Bytes)
	w.line("limit_operations", t.Limits.Operations)
	w.line("limit_connections", t.Limits.Connections)
	w.line("limit_inflight", t.Limits.InFlight)
	w.line("limit_function_cpu", t.Limits.Cores())
	w.line("limit_function_memory", t.Limits.FunctionMemory)
	w.heading("cluster")
	c.srv.infoCluster(&w)
	w.heading("keyspace")
	for n := range c.conn.databases {
		db, _ := c.conn.database(n)
		if keys, expires := c.srv.store.Count(db); keys > 0 {
			w.line("db"+strconv.Itoa(n), fmt.Sprintf("keys=%d,expires=%d,avg_ttl=0", keys, expires))
		}
	}
	return w.text.String()
}

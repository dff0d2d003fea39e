package redis

import (
	"sync/atomic"

	"github.com/ostrodb/ostro/tenant"
)

// What one command of a tenant can take of the memory and of the time of a loop that
// others share is bounded, whatever its limits are. The operator knows what it does.
const (
	tenantArgBytes   = 65 << 20  // of an argument: modules may be that large in all
	tenantQueryBytes = 128 << 20 // of what was sent and not executed
	tenantQueueBytes = 64 << 20  // of what MULTI queues
	tenantWatches    = 10_000    // keys

	// paidBytes is how much of a command or of its reply one operation pays for.
	paidBytes = 64 << 10
)

const (
	errReplyKeys    = "ERR the keys do not fit one reply of a tenant: use SCAN, or a pattern that matches fewer"
	errReplyValues  = "ERR the values do not fit one reply of a tenant: ask for fewer at a time"
	errReplyModules = "ERR the modules do not fit one reply of a tenant, 32 MiB: ask for some of them, with FUNCTION LIST LIBRARYNAME <pattern> [WITHCODE] or FUNCTION INFO <name>"
	errLent         = "TRYAGAIN another client has not read the code yet that it asked for: FUNCTION DUMP and LIST WITHCODE of a tenant are answered one at a time"
	errRestored     = "TRYAGAIN another client restores functions: FUNCTION RESTORE of a tenant is executed one at a time"
	errLCSBytes     = "ERR Insufficient memory, transient memory for LCS exceeds what a tenant may have, 32 MiB"
	errLCSMulti     = "ERR LCS of strings that long takes its time, and is not possible inside a tenant's transaction: send it by itself"
	errSources      = "ERR the strings are too many or too long for one command of a tenant: use fewer at a time"
	errTenantValue  = "ERR string exceeds maximum allowed size of a tenant's strings, 16 MiB: divide it"
	errQueueBytes   = "ERR the transaction of a tenant is longer than 64 MiB: divide it"
	errQueueKeys    = "ERR the transaction of a tenant has at most 4096 keys, and as many commands: divide it"
	errManyKeys     = "ERR a tenant's command that is one step has at most 4096 keys: divide it"
	errWatches      = "ERR a tenant watches at most 10000 keys at a time: use fewer"
)

// overReply tells whether so many bytes are more than a command of a tenant may answer, or read.
func (c *call) overReply(bytes int) bool {
	return bytes > tenant.MaxReplyBytes && c.conn.account() != nil
}

// maxBulk is how long a string of the connection's client may be.
func (c *conn) maxBulk() int64 { return c.bounded(&c.srv.settings.maxBulkBytes, tenant.MaxValueBytes) }

// maxArg is how long an argument may be, and maxQuery what was sent and not executed.
func (c *conn) maxArg() int64 { return c.bounded(&c.srv.settings.maxBulkBytes, tenantArgBytes) }

func (c *conn) maxQuery() int64 { return c.bounded(&c.srv.settings.maxQueryBytes, tenantQueryBytes) }

// hold tells the connection's tenant how much waits here of what the client has sent, if that has changed; or it says that it is
// too much. Links of other nodes do not count: what they bring is complete there.
func (c *conn) hold() error {
	if c.account() == nil || c.inner {
		return nil
	}
	bytes := int64(cap(c.net.in)) + c.multi.size()
	if bytes <= tenant.UncountedBytes {
		bytes = 0
	}
	return c.count(bytes)
}

// count makes what the tenant was told of so many bytes.
func (c *conn) count(bytes int64) error {
	if bytes == c.counted {
		return nil
	}
	if err := c.account().Hold(bytes - c.counted); err != nil {
		return err
	}
	c.counted = bytes
	return nil
}

// leaveUnread tells the connection's tenant how many bytes of replies its client has not read, if they are many. If all its clients have
// left too many, this one is closed: what it would get has no place, and nothing can be told to who does not read.
func (l *loop) leaveUnread(c *conn, bytes int64) (closed bool) {
	if c.account() == nil || !c.account().Unread(&c.unread, bytes) {
		return false
	}
	l.srv.totals.outputLimitClosed.Add(1)
	l.srv.log.Warn("closing client whose tenant leaves too many replies unread", "client", c.addr, "id", c.id, "tenant", c.account().Tenant().Name, "bytes", bytes)
	l.close(c)
	return true
}

// slowReader tells that the client is to read before it gets more.
func (c *conn) slowReader() bool {
	unsent := c.unsent()
	return unsent > replyPauseBytes || unsent > tenant.UncountedBytes && c.account() != nil && c.account().Crowded()
}

// bounded is a setting, or what a tenant may have of it.
func (c *conn) bounded(setting *atomic.Int64, most int64) int64 {
	if c.account() == nil {
		return setting.Load()
	}
	return min(setting.Load(), most)
}

// queueRefusal tells why a tenant cannot have a transaction as large as that; "" if it can.
func (c *conn) queueRefusal() string {
	switch m := &c.multi; {
	case c.account() == nil:
		return ""
	case m.bytes > tenantQueueBytes:
		return errQueueBytes
	case m.steps > tenant.MaxKeys:
		return errQueueKeys
	}
	return ""
}

// oweReply charges for a long reply.
func (l *loop) oweReply(c *conn, bytes int) {
	if bytes >= paidBytes && c.account() != nil {
		c.purse.Owe(int64(bytes/paidBytes), l.now*1e6)
	}
}

// tooLong tells that a tenant would write a string that is too long.
func (c *conn) tooLong(args [][]byte) bool {
	for _, a := range args {
		if len(a) > tenant.MaxValueBytes {
			return true
		}
	}
	return false
}

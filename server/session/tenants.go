package session

import (
	"crypto/subtle"
	"encoding/binary"
	"hash/fnv"
	"net"
	"time"

	"github.com/ostrodb/ostro/tenant"
	"github.com/ostrodb/ostro/wire"
)

// A session belongs to a tenant or to the operator from its hello on. A tenant's table n is
// another one in the store; operations carry the store's number once they are decoded.

// noTable is the number of a table that the session does not have.
const noTable = 1<<32 - 1

// identify makes the session whose it is, or tells why not.
func (c *conn) identify(h *wire.Hello) error {
	if h.Version != wire.Version {
		return &wire.Goodbye{Reason: wire.ReasonVersion, Text: "the client speaks another version of the protocol: update the older side"}
	}
	c.tables = uint32(c.srv.databases)
	if len(h.User) == 0 || string(h.User) == tenant.Operator {
		return c.srv.allow(c.net, h)
	}
	var account *tenant.Account
	known := false
	if r := c.srv.opts.Tenants; r != nil {
		account, known = r.Authenticate(h.User, h.Secret)
	}
	if !known {
		return &wire.Goodbye{Reason: wire.ReasonDenied, Text: "wrong name or password"}
	}
	if err := account.Connect(); err != nil {
		return &wire.Goodbye{Reason: wire.ReasonTooMany, Text: err.Error()}
	}
	t := account.Tenant()
	c.purse, c.first, c.tables = account.Purse(), uint32(t.First), uint32(t.Databases)
	return nil
}

// allow checks whether who is there may be the operator.
func (s *Server) allow(c net.Conn, h *wire.Hello) error {
	password, protected := s.opts.Password, s.opts.Protected
	if s.opts.Access != nil {
		password, protected = s.opts.Access()
	}
	switch {
	case password == "" && protected && !local(c.RemoteAddr()):
		return &wire.Goodbye{Reason: wire.ReasonDenied, Text: "the server takes no clients from other machines while it has no password: set requirepass, or protected-mode no"}
	case password != "" && subtle.ConstantTimeCompare(h.Secret, []byte(password)) != 1:
		return &wire.Goodbye{Reason: wire.ReasonDenied, Text: "wrong password"}
	}
	return nil
}

// leave ends what a tenant is charged for.
func (c *conn) leave() {
	if a := c.purse.Account(); a != nil {
		c.purse.Settle()
		a.Disconnect()
	}
}

// table is the store's number of what the client calls table n.
func (c *conn) table(n uint32) uint32 {
	if n >= c.tables {
		return noTable
	}
	return c.first + n
}

// writer is who a batch is from. Tenants choose ids as they like: one that another tenant uses, too, is
// another one here, or its results could be asked for.
func (c *conn) writer(client uint64) uint64 {
	if c.purse.Account() == nil {
		return client
	}
	var b [12]byte
	binary.LittleEndian.PutUint64(b[:], client)
	binary.LittleEndian.PutUint32(b[8:], c.first)
	h := fnv.New64a()
	h.Write(b[:])
	return h.Sum64()
}

// charge pays for the first n operations of the window, and tells how many of them a tenant may
// begin now. The others are refused.
func (w *worker) charge(n int) (paid int, err error) {
	c := w.on.c
	a := c.purse.Account()
	switch {
	case a == nil:
		return n, nil
	case a.Gone():
		return 0, &wire.Goodbye{Reason: wire.ReasonDenied, Text: "the tenant was deleted"}
	}
	now := int64(time.Since(w.srv.began))
	for paid < n {
		exceeded := c.purse.Spend(1, now)
		if exceeded == nil {
			paid++
			continue
		}
		for i := paid; i < n; i++ {
			w.refuse(&w.ops[i], wire.Refused, exceeded.Error())
		}
		break
	}
	c.purse.Settle()
	return paid, nil
}

// mayWait notes that an operation waits, or tells why it may not.
func (c *conn) mayWait() error {
	if a := c.purse.Account(); a != nil {
		return a.Wait(1)
	}
	return nil
}

// proceed takes mayWait back.
func (c *conn) proceed() {
	if a := c.purse.Account(); a != nil {
		a.Proceed(1)
	}
}

// noRoom refuses a write for which a tenant has no room.
func (w *worker) noRoom(op *wire.Op) bool {
	a := w.on.c.purse.Account()
	if a == nil || !op.Code.Grows() {
		return false
	}
	err := a.Room()
	if err != nil {
		w.refuse(op, wire.Refused, err.Error())
	}
	return err != nil
}

func (c *conn) traffic(in, out int) {
	if a := c.purse.Account(); a != nil {
		a.Traffic(int64(in), int64(out))
	}
}

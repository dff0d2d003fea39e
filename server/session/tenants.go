package session

import (
	"errors"
	"net"
	"time"

	"github.com/ostrodb/ostro/engine/store"
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
	if s.opts.Access == nil {
		return nil
	}
	switch password, protected := s.opts.Access(); {
	case password == "" && protected && !local(c.RemoteAddr()):
		return &wire.Goodbye{Reason: wire.ReasonDenied, Text: "the server takes no clients from other machines while it has no password: set requirepass, or protected-mode no"}
	case password != "" && !tenant.SamePassword(h.Secret, []byte(password)):
		return &wire.Goodbye{Reason: wire.ReasonDenied, Text: "wrong password"}
	}
	return nil
}

// leave ends what a tenant is charged for.
func (c *conn) leave() {
	if a := c.purse.Account(); a != nil {
		c.purse.Settle()
		_ = a.Hold(-c.counted) // Less is never too much.
		c.mu.Lock()
		c.left = true
		c.weigh(0)
		c.mu.Unlock()
		a.Disconnect()
	}
}

// weigh counts so many bytes more, or less, that the client has to read, and tells the session's tenant if they are many. If all its
// clients have left too many unread the connection closes. The caller holds mu.
func (c *conn) weigh(bytes int) {
	c.unsent += bytes
	unread := int64(c.unsent)
	if c.left {
		unread = 0
	}
	if a := c.purse.Account(); a != nil && a.Unread(&c.unread, unread) {
		c.srv.opts.Logger.Warn("closing session whose tenant leaves too many answers unread", "client", c.net.RemoteAddr().String(), "tenant", a.Tenant().Name, "bytes", unread)
		go c.close() // It takes mu.
	}
}

// hold tells the session's tenant how long its buffer is, if that is more than usual; or it says that all of them are too long.
func (c *conn) hold() error {
	bytes := int64(cap(c.in))
	if bytes <= readBytes {
		bytes = 0
	}
	a := c.purse.Account()
	if a == nil || bytes == c.counted {
		return nil
	}
	if err := a.Hold(bytes - c.counted); err != nil {
		return &wire.Goodbye{Reason: wire.ReasonTooMany, Text: err.Error()}
	}
	c.counted = bytes
	return nil
}

// slowReader tells that the client is to read before it gets more. The caller holds mu.
func (c *conn) slowReader() bool {
	a := c.purse.Account()
	return c.unsent > unsentBytes || c.unsent > tenant.UncountedBytes && a != nil && a.Crowded()
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
	a := c.purse.Account()
	if a == nil {
		return client
	}
	if c.chosen != client || c.known == 0 { // A session is one client's, as a rule.
		c.chosen, c.known = client, a.Tenant().ClientID(client)
	}
	return c.known
}

const (
	deletedText  = "the tenant was deleted"
	manyKeysText = "an operation of a tenant has at most 4096 keys: divide it"
	manyOpsText  = "a batch of a tenant has at most 8192 operations: send several"

	tenantOps        = 8192     // of a batch, as a round executes all of it
	tenantFrameBytes = 64 << 20 // of which a write has half
)

// maxOps is how many operations may be unanswered, and in a batch; maxFrame how long a frame may be.
func (c *conn) maxOps() int { return c.bounded(c.srv.opts.MaxOps, tenantOps) }

func (c *conn) maxFrame() int { return c.bounded(c.srv.opts.MaxFrameBytes, tenantFrameBytes) }

// bounded is an option, or what a tenant may have of it.
func (c *conn) bounded(option, most int) int {
	if c.purse.Account() == nil {
		return option
	}
	return min(option, most)
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
		return 0, &wire.Goodbye{Reason: wire.ReasonDenied, Text: deletedText}
	}
	now := int64(time.Since(w.srv.began))
	for paid < n {
		op, k := &w.ops[paid], &w.keys[paid]
		keys := cost(op)
		if keys > tenant.MaxKeys {
			w.refuse(op, wire.TooLarge, manyKeysText)
			n = w.without(paid, n)
			continue
		}
		switch err := c.purse.Spend(keys, now); {
		case err == nil:
			paid++
			continue
		case tooMany(err):
			if w.refuseNew(op, k, err) { // Those behind it have their own chance.
				n = w.without(paid, n)
			} else {
				paid++
			}
			continue
		default:
			w.refuseRest(paid, n, err)
		}
		break
	}
	c.purse.Settle()
	return paid, nil
}

// without takes operation i out of the n of the window, and tells how many are left.
func (w *worker) without(i, n int) int {
	copy(w.ops[i:n], w.ops[i+1:n])
	copy(w.keys[i:n], w.keys[i+1:n])
	return n - 1
}

// tooMany tells that an operation is more than there ever is at once.
func tooMany(err error) bool {
	var exceeded *tenant.Exceeded
	return errors.As(err, &exceeded) && exceeded.Asked > 0
}

// refuseRest refuses the operations of the window from one on, but for those that were run before.
func (w *worker) refuseRest(from, n int, why error) {
	for i := from; i < n; i++ {
		if !w.refuseNew(&w.ops[i], &w.keys[i], why) {
			w.one(&w.ops[i], &w.keys[i])
		}
	}
}

// cost is how many operations one is that has many keys: as many.
func cost(op *wire.Op) (n int64) {
	if op.Code != wire.OpMultiGet && op.Code != wire.OpMultiPut {
		return 1
	}
	for rest, err := op.Arg, error(nil); len(rest) > 0 && err == nil; n++ {
		if op.Code == wire.OpMultiGet {
			_, rest, err = wire.NextKey(rest)
		} else {
			_, rest, err = wire.NextPut(rest)
		}
	}
	return max(n, 1)
}

// owe charges a tenant for what an operation did beside what operations do.
func (w *worker) owe(operations int64) {
	if c := w.on.c; c.purse.Account() != nil {
		c.purse.Owe(operations, int64(time.Since(w.srv.began)))
	}
}

// maxAnswer is how long an answer with many values may be.
func (w *worker) maxAnswer() int {
	if w.on.c.purse.Account() != nil {
		return tenant.MaxReplyBytes
	}
	return wire.MaxFrameBytes / 2
}

// maxValue is how long a value may be that an operation makes.
func (w *worker) maxValue() int {
	if w.on.c.purse.Account() != nil {
		return tenant.MaxValueBytes
	}
	return wire.MaxFrameBytes
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

// noRoom refuses an operation for which a tenant has no room: for what it writes, or for its result if that is kept.
func (w *worker) noRoom(op *wire.Op, k *store.Key) bool {
	a := w.on.c.purse.Account()
	if a == nil || op.Code == wire.OpInvoke { // Calls ask when they know what they write.
		return false
	}
	var err error
	switch {
	case op.Code.Grows() && len(op.Arg) > tenant.MaxReplyBytes:
		w.refuse(op, wire.TooLarge, "a tenant writes at most 32 MiB at a time: divide it")
		return true
	case op.Code.Grows():
		err = a.Room()
	case op.Flags&wire.FlagOnce != 0:
		err = a.Keep()
	}
	return err != nil && w.refuseNew(op, k, err)
}

// refuseNew refuses an operation unless it was run before, or may have been: then it is to be executed, which finds
// its first answer. To be refused would tell its client that nothing was done.
func (w *worker) refuseNew(op *wire.Op, k *store.Key, why error) (refused bool) {
	if op.Flags&wire.FlagOnce != 0 && op.Table != noTable {
		switch st := w.earlier(op, k); st {
		case store.OK:
			return false
		case store.Cold:
			w.park(op, w.sess.TakeFetch())
			return true
		}
	}
	w.refuse(op, wire.Refused, why.Error())
	return true
}

// earlier looks for the result of an earlier attempt.
func (w *worker) earlier(op *wire.Op, k *store.Key) store.Status {
	if op.Code == wire.OpMultiPut {
		first, _, err := wire.NextPut(op.Arg)
		if err != nil {
			return store.NotFound
		}
		k = new(store.Key)
		w.sess.Name(k, int(op.Table), first.Key)
	}
	if !w.here(k) {
		return store.OK // Whoever has the key knows.
	}
	_, st := w.sess.Completed(k.Place, w.id(op))
	return st
}

// serve makes t the one whose operations are executed, and who is charged for what is kept of them.
func (w *worker) serve(t target) {
	w.on = t
	if a := t.c.purse.Account(); a != nil {
		w.sess.PaidBy(a.Results())
	} else {
		w.sess.PaidBy(nil)
	}
}

// told is what the store knows from a connection: a client has the answers of operations below some. It knows that until
// a time, in Unix milliseconds.
type told struct {
	client, below uint64
	until         int64
}

// answered takes what a client says that it knows. What is remembered of clients is charged, so a tenant cannot have
// any number of them. Who only reads says the same again and again: then nothing is looked up.
func (w *worker) answered(b *wire.Batch) error {
	t := &w.on.c.told
	if b.Acked == 0 || b.Client == t.client && b.Acked <= t.below && w.sess.Now() < t.until {
		return nil
	}
	if a := w.on.c.purse.Account(); a != nil && !w.sess.Heard(b.Client) {
		if err := a.Keep(); err != nil {
			return &wire.Goodbye{Reason: wire.ReasonTooMany, Text: err.Error()}
		}
	}
	*t = told{b.Client, b.Acked, w.sess.Answered(b.Client, b.Acked)}
	return nil
}

func (c *conn) traffic(in, out int) {
	if a := c.purse.Account(); a != nil {
		a.Traffic(int64(in), int64(out))
	}
}

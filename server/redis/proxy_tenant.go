package redis

import (
	"strconv"

	"github.com/ostrodb/ostro/tenant"
)

// What a tenant's client asks of other nodes goes over links that carry nobody else's
// commands. Such a link begins as the operator's, whose password the nodes share, and
// says once for whom it speaks: from then on the other node treats it as it treats the
// tenant's own connections, databases, limits and permissions included, and nothing that
// is forwarded changes that. So whatever mistake is made here, the worst that an answer
// can hold is the same tenant's.
//
// A name alone is not enough: a tenant may be deleted and another made of that name,
// and nodes hear of it at different times. The number of its first database is never
// given out twice.

// linkIdleMillis is after which time without commands a tenant's link is closed, for there
// may be thousands of tenants.
const linkIdleMillis = 30_000

// identity is who a link speaks for; the zero value is the operator.
type identity struct {
	tenant string
	first  int // the store's number of its database 0
}

// identity is whose commands the connection's are.
func (c *conn) identity() identity {
	a := c.account()
	if a == nil {
		return identity{}
	}
	return identityOf(a.Tenant())
}

func identityOf(t *tenant.Tenant) identity { return identity{t.Name, t.First} }

// forwarded is the command by which a link says for whom it speaks.
func (who identity) forwarded() []string {
	if who == (identity{}) {
		return []string{"cluster", "forwarded"}
	}
	return []string{"cluster", "forwarded", who.tenant, strconv.Itoa(who.first)}
}

// clusterForwarded marks the connection as another node's: what it asks for is
// never passed on again. Given a tenant, it is that tenant's from here on.
func clusterForwarded(c *call) verdict {
	cn := c.conn
	if cn.net.flying || cn.multi.active || len(c.args) != 2 && len(c.args) != 4 {
		return c.fail("ERR CLUSTER FORWARDED [tenant number] is what nodes begin with when they speak to each other")
	}
	cn.inner = true
	name := "proxy"
	cn.name.Store(&name) // for who looks at CLIENT LIST
	if len(c.args) == 2 {
		return c.ok()
	}
	if !cn.standFor(string(c.args[2]), string(c.args[3])) {
		cn.closing = true
		return c.fail("TRYAGAIN this node knows no tenant " + cString(c.args[2]) + " whose databases begin at " + cString(c.args[3]) + ": one of the two has not heard of a change yet")
	}
	return c.ok()
}

// standFor makes the connection a tenant's, who does not pay for it: it is not the tenant's
// own, and there are few.
func (c *conn) standFor(name, first string) bool {
	if c.srv.cfg.Tenants == nil {
		return false
	}
	a := c.srv.cfg.Tenants.Account(name)
	if a == nil || strconv.Itoa(a.Tenant().First) != first {
		return false
	}
	c.user.Store(&name)
	return c.become(a) == nil
}

// mayFly notes that the connection waits for other nodes, if it does not already; it says why it may not.
func (c *conn) mayFly() string {
	a := c.account()
	if a == nil || c.flight.counted {
		return ""
	}
	if err := a.Wait(1); err != nil {
		return "QUOTA " + err.Error()
	}
	c.flight.counted = true
	return ""
}

// landed takes mayFly back.
func (c *conn) landed() {
	if c.flight.counted {
		c.flight.counted = false
		c.account().Proceed(1)
	}
}

// ground answers a command that may not leave. Nothing of its client's is under way.
func (l *loop) ground(h *hop, refusal string) {
	if h.watch {
		h.c.unwatch()
	}
	if h.pin != nil {
		h.pin.close()
	}
	h.c.out.Error(refusal)
}

// closeIdleLinks ends links of tenants that have not used them for a while.
func (l *loop) closeIdleLinks() {
	for key, k := range l.links {
		if key.who != (identity{}) && l.now-k.used > linkIdleMillis && k.isIdle() {
			k.close()
			delete(l.links, key)
		}
	}
}

// isIdle tells whether nobody waits for an answer.
func (k *link) isIdle() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.queue) == 0
}

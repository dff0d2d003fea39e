package redis

// killFilter is whom CLIENT KILL means.
type killFilter struct {
	id          uint64 // 0: any
	addr, laddr []byte // nil: any
	nobody      bool   // a type or user that no client has
	sparesSelf  bool
}

func (f *killFilter) matches(cn *conn) bool {
	return !f.nobody &&
		(f.id == 0 || f.id == cn.id) &&
		(f.addr == nil || string(f.addr) == cn.addr) &&
		(f.laddr == nil || string(f.laddr) == cn.laddr)
}

func clientKill(c *call) verdict {
	oldStyle := len(c.args) == 3
	f := killFilter{addr: c.args[2]}
	if !oldStyle {
		var ok bool
		if f, ok = c.killFilter(); !ok {
			return done
		}
	}
	var killed int64
	for _, cn := range c.srv.clients.all() {
		switch {
		case !f.matches(cn):
			continue
		case cn != c.conn:
			c.srv.kill(cn)
		case f.sparesSelf:
			continue
		default:
			c.conn.closing = true
		}
		killed++
	}
	switch {
	case !oldStyle:
		return c.int(killed)
	case killed == 0:
		return c.fail("ERR No such client")
	}
	return c.ok()
}

// killFilter reads CLIENT KILL's options, or answers with an error.
func (c *call) killFilter() (f killFilter, ok bool) {
	f.sparesSelf = true
	for i := 2; i < len(c.args); i += 2 {
		if i+1 == len(c.args) {
			c.out.Error(errSyntax)
			return f, false
		}
		if !c.killOption(&f, i) {
			return f, false
		}
	}
	return f, true
}

func (c *call) killOption(f *killFilter, i int) bool {
	value := c.args[i+1]
	switch {
	case c.is(i, "id"):
		n, ok := parseInt(value)
		if !ok || n < 1 {
			c.out.Error("ERR client-id should be greater than 0")
			return false
		}
		f.id = uint64(n)
	case c.is(i, "type"):
		kind, ok := c.clientType(i + 1)
		f.nobody = f.nobody || kind != "normal"
		return ok
	case c.is(i, "user"):
		if string(value) != defaultUser {
			c.out.Error("ERR No such user '" + cString(value) + "'")
			return false
		}
	case c.is(i, "addr"):
		f.addr = value
	case c.is(i, "laddr"):
		f.laddr = value
	case c.is(i, "skipme") && equalFold(value, "yes"):
		f.sparesSelf = true
	case c.is(i, "skipme") && equalFold(value, "no"):
		f.sparesSelf = false
	default:
		c.out.Error(errSyntax)
		return false
	}
	return true
}

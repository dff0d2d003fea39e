package redis

import (
	"math"

	"github.com/ostrodb/ostro/engine/store"
)

// set is kept short for its common form: no options, nothing to look at.
func set(c *call) verdict {
	if len(c.args) > 3 {
		return setWithOptions(c)
	}
	k := c.key(1)
	if st := c.ss.Put(&k, store.Write{Value: c.args[2]}, nil); st != store.OK {
		return c.stopped(st)
	}
	return c.ok()
}

func setWithOptions(c *call) verdict {
	o, ok := c.setOptions(3, true)
	if !ok {
		return c.fail(errSyntax)
	}
	wrote, v := c.setString(2, &o)
	if wrote && !o.get {
		c.out.OK()
	} else if v == done && o.refused && !o.get {
		c.out.Null()
	}
	return v
}

func setnx(c *call) verdict {
	o := &setOptions{ifAbsent: true}
	wrote, v := c.setString(2, o)
	if wrote || o.refused {
		return c.truth(wrote)
	}
	return v
}

func setex(c *call) verdict  { return c.setExpiring(expiryEX) }
func psetex(c *call) verdict { return c.setExpiring(expiryPX) }

func (c *call) setExpiring(e expiryOption) verdict {
	wrote, v := c.setString(3, &setOptions{expiry: e, time: c.args[2]})
	if wrote {
		c.out.OK()
	}
	return v
}

// setString writes the value argument as the options ask. It answers errors and,
// for GET, the old value; the rest is left to the command.
func (c *call) setString(value int, o *setOptions) (wrote bool, _ verdict) {
	w := store.Write{Value: c.args[value]}
	if o.expiry.takesTime() {
		at, ok := c.expireAt(*o)
		if !ok {
			return false, done
		}
		w.ExpireAt = at
	}
	k := c.key(1)
	return c.modify(&k, func(old store.View, found bool) (store.Write, action) {
		if o.get {
			if found && !isString(old) {
				c.out.Error(errWrongType)
				return w, leave
			}
			c.bulkOrNull(old, found)
		}
		if found && o.ifAbsent || !found && o.ifPresent {
			o.refused = true
			return w, leave
		}
		if o.expiry == expiryKeep {
			w.ExpireAt = old.ExpireAt
		}
		if o.expiry.takesTime() && w.ExpireAt <= c.now {
			return w, remove // born expired
		}
		return w, put
	})
}

// setOptions are the options of SET and GETEX.
type setOptions struct {
	ifAbsent, ifPresent, get bool

	expiry expiryOption
	time   []byte // the argument of an expiry that takes one

	refused bool // NX or XX did not hold
}

// expiryOption is the one option among EX, PX, EXAT, PXAT, KEEPTTL and PERSIST
// that a command has. They exclude each other, but one may be repeated.
type expiryOption uint8

const (
	expiryNone expiryOption = iota
	expiryEX
	expiryPX
	expiryEXAT
	expiryPXAT
	expiryKeep
	expiryPersist
)

func (e expiryOption) takesTime() bool  { return expiryEX <= e && e <= expiryPXAT }
func (e expiryOption) inSeconds() bool  { return e == expiryEX || e == expiryEXAT }
func (e expiryOption) isRelative() bool { return e == expiryEX || e == expiryPX }

// setOptions reads the arguments from i on as options of SET, or else of GETEX.
func (c *call) setOptions(i int, isSet bool) (o setOptions, ok bool) {
	for ; i < len(c.args); i++ {
		arg := c.args[i]
		switch {
		case isSet && equalFold(arg, "nx") && !o.ifPresent:
			o.ifAbsent = true
		case isSet && equalFold(arg, "xx") && !o.ifAbsent:
			o.ifPresent = true
		case isSet && equalFold(arg, "get"):
			o.get = true
		default:
			e := expiryByName(arg, isSet)
			if e == expiryNone || o.expiry != expiryNone && o.expiry != e {
				return o, false
			}
			o.expiry = e
			if e.takesTime() {
				if i++; i == len(c.args) {
					return o, false
				}
				o.time = c.args[i]
			}
		}
	}
	return o, true
}

func expiryByName(arg []byte, isSet bool) expiryOption {
	switch {
	case equalFold(arg, "ex"):
		return expiryEX
	case equalFold(arg, "px"):
		return expiryPX
	case equalFold(arg, "exat"):
		return expiryEXAT
	case equalFold(arg, "pxat"):
		return expiryPXAT
	case isSet && equalFold(arg, "keepttl"):
		return expiryKeep
	case !isSet && equalFold(arg, "persist"):
		return expiryPersist
	}
	return expiryNone
}

// expireAt turns the option's time into unix milliseconds, or answers with an error.
func (c *call) expireAt(o setOptions) (int64, bool) {
	at, ok := parseInt(o.time)
	if !ok {
		c.out.Error(errNotInteger)
		return 0, false
	}
	ok = at > 0
	if o.expiry.inSeconds() {
		ok = ok && at <= math.MaxInt64/1000
		at *= 1000
	}
	if ok && o.expiry.isRelative() {
		at, ok = addInt(at, c.now)
	}
	if !ok {
		c.badExpireTime()
	}
	return at, ok
}

func (c *call) badExpireTime() {
	c.out.Error("ERR invalid expire time in '" + c.cmd.name + "' command")
}

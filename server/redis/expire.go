package redis

import (
	"math"
	"strings"

	"github.com/ostrodb/ostro/engine/store"
)

func expire(c *call) verdict    { return c.expire(c.now, 1000) }
func pexpire(c *call) verdict   { return c.expire(c.now, 1) }
func expireat(c *call) verdict  { return c.expire(0, 1000) }
func pexpireat(c *call) verdict { return c.expire(0, 1) }

// expire sets when a key ends: base plus the argument, in units of so many
// milliseconds. What ends in the past is removed at once.
func (c *call) expire(base, unit int64) verdict {
	o, ok := c.expireOptions()
	if !ok {
		return done
	}
	when, ok := c.intArg(2)
	if !ok {
		return done
	}
	if when > math.MaxInt64/unit || when < math.MinInt64/unit || when*unit > math.MaxInt64-base {
		c.badExpireTime()
		return done
	}
	when = when*unit + base
	k := c.key(1)
	wrote, v := c.modify(&k, func(old store.View, found bool) (store.Write, action) {
		w := store.Write{Value: old.Value, ExpireAt: when, Kind: old.Kind}
		switch {
		case !found || !o.allow(old.ExpireAt, when):
			c.out.Int(0)
			return w, leave
		case when <= c.now:
			return w, remove
		}
		return w, put
	})
	if wrote {
		c.out.Int(1)
	}
	return v
}

// expireOptions say when EXPIRE may replace an expiry.
type expireOptions struct{ nx, xx, gt, lt bool }

// allow decides; a key without expiry (0) counts as ending never.
func (o expireOptions) allow(current, when int64) bool {
	switch {
	case o.nx && current != 0, o.xx && current == 0:
		return false
	case o.gt && (current == 0 || when <= current):
		return false
	case o.lt && current != 0 && when >= current:
		return false
	}
	return true
}

// expireOptions reads EXPIRE's options, or answers with an error.
func (c *call) expireOptions() (o expireOptions, ok bool) {
	for i := 3; i < len(c.args); i++ {
		switch {
		case c.is(i, "nx"):
			o.nx = true
		case c.is(i, "xx"):
			o.xx = true
		case c.is(i, "gt"):
			o.gt = true
		case c.is(i, "lt"):
			o.lt = true
		default:
			c.out.Error("ERR Unsupported option " + strings.TrimRight(cString(c.args[i]), "\r\n"))
			return o, false
		}
	}
	switch {
	case o.nx && (o.xx || o.gt || o.lt):
		c.out.Error("ERR NX and XX, GT or LT options at the same time are not compatible")
	case o.gt && o.lt:
		c.out.Error("ERR GT and LT options at the same time are not compatible")
	default:
		return o, true
	}
	return o, false
}

func persist(c *call) verdict {
	k := c.key(1)
	wrote, v := c.modify(&k, func(old store.View, found bool) (store.Write, action) {
		if !found || old.ExpireAt == 0 {
			c.out.Int(0)
			return store.Write{}, leave
		}
		return store.Write{Value: old.Value, Kind: old.Kind}, put
	})
	if wrote {
		c.out.Int(1)
	}
	return v
}

func ttl(c *call) verdict         { return c.timeToLive(c.now, toSeconds) }
func pttl(c *call) verdict        { return c.timeToLive(c.now, toMillis) }
func expiretime(c *call) verdict  { return c.timeToLive(0, toSeconds) }
func pexpiretime(c *call) verdict { return c.timeToLive(0, toMillis) }

// toSeconds rounds; the farthest time does not overflow.
func toSeconds(millis int64) int64 { return int64((uint64(millis) + 500) / 1000) }
func toMillis(millis int64) int64  { return millis }

// timeToLive answers when the key ends, counted from base: -2 for no key, -1 for
// no expiry.
func (c *call) timeToLive(base int64, unit func(int64) int64) verdict {
	k := c.key(1)
	view, st := c.ss.Get(&k)
	switch {
	case st == store.NotFound:
		return c.int(-2)
	case st != store.OK:
		return c.stopped(st)
	case view.ExpireAt == 0:
		return c.int(-1)
	}
	return c.int(unit(max(view.ExpireAt-base, 0)))
}

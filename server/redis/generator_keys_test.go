package redis_test

import "strconv"

func (g *generator) bitOffset() string {
	if g.oneIn(12) {
		return g.pick("-1", "4294967296", "9223372036854775807", "x", "#1", "01")
	}
	return strconv.Itoa(g.rand.IntN(300))
}

func (g *generator) bitCommand() []string {
	k := g.key()
	switch g.rand.IntN(6) {
	case 0:
		return []string{"setbit", k, g.bitOffset(), g.pick("0", "1", "1", "0", "2", "x")}
	case 1:
		return []string{"getbit", k, g.bitOffset()}
	case 2:
		return append([]string{"bitcount", k}, g.bitRange(2)...)
	case 3:
		return append([]string{"bitpos", k, g.pick("0", "1", "0", "1", "0", "1", "2", "x")}, g.bitRange(0)...)
	default:
		args := []string{"bitop", g.pick("and", "or", "xor", "not", "AND", "Xor", "nand"), k}
		return append(args, g.keys()...)
	}
}

// bitRange is start, end and unit, or the first few of them.
func (g *generator) bitRange(atLeast int) []string {
	args := []string{g.index(), g.index(), g.pick("bit", "byte", "BIT", "Byte", "nibble")}
	if g.oneIn(4) {
		return nil
	}
	return args[:max(atLeast, g.rand.IntN(4))]
}

func (g *generator) bitfieldCommand() []string {
	args := []string{g.pick("bitfield", "bitfield", "bitfield_ro"), g.key()}
	for range g.rand.IntN(4) {
		args = append(args, g.bitfieldOp(args[0] == "bitfield_ro")...)
	}
	return args
}

func (g *generator) bitfieldOp(readonly bool) []string {
	width := g.pick("i", "u") + strconv.Itoa(1+g.rand.IntN(64))
	if g.oneIn(30) {
		width = g.pick("i65", "u64", "i0", "x8", "u", "")
	}
	offset := strconv.Itoa(g.rand.IntN(100))
	switch g.rand.IntN(12) {
	case 0:
		offset = "#" + strconv.Itoa(g.rand.IntN(10))
	case 1:
		offset = g.bitOffset()
	}
	op := g.rand.IntN(4)
	if readonly && !g.oneIn(10) {
		op = 0
	}
	switch op {
	case 0:
		return []string{g.anyCase("get"), width, offset}
	case 1:
		return []string{g.anyCase("set"), width, offset, g.integer()}
	case 2:
		return []string{g.anyCase("incrby"), width, offset, g.integer()}
	default:
		return []string{g.anyCase("overflow"), g.pick("wrap", "sat", "fail", "SAT", "FAIL", "panic")}
	}
}

func (g *generator) genericCommand() []string {
	k := g.key()
	switch g.rand.IntN(13) {
	case 0:
		return append([]string{g.pick("del", "unlink")}, g.keys()...)
	case 1:
		return append([]string{g.pick("exists", "touch")}, g.keys()...)
	case 2:
		return []string{"type", k}
	case 3, 4:
		return []string{g.pick("rename", "renamenx"), k, g.key()}
	case 5, 6:
		args := []string{"copy", k, g.key()}
		for g.oneIn(2) {
			if g.oneIn(2) {
				args = append(args, g.anyCase("replace"))
			} else {
				args = append(args, g.anyCase("db"), g.database())
			}
		}
		return args
	case 7:
		return []string{"move", k, g.database()}
	case 8:
		return []string{"keys", g.pick("*", "k*", "k[1-3]", "k?", "[^k]*", "nothing", "k\\1", "*1", "k[", "", "?*", "**")}
	case 9:
		return []string{"randomkey"}
	case 10:
		return []string{"dbsize"}
	case 11:
		return []string{"persist", k}
	default:
		return []string{"memory", "usage", k}
	}
}

func (g *generator) database() string {
	if g.oneIn(10) {
		return g.pick("16", "-1", "x", "99999999999", "15")
	}
	return strconv.Itoa(g.rand.IntN(3))
}

func (g *generator) expireCommand() []string {
	k := g.key()
	if g.oneIn(2) {
		return []string{g.pick("ttl", "pttl", "expiretime", "pexpiretime"), k}
	}
	name := g.pick("expire", "pexpire", "expireat", "pexpireat")
	when := g.seconds()
	switch name {
	case "expireat":
		when = g.unixTime(1)
	case "pexpireat":
		when = g.unixTime(1000)
	}
	args := []string{name, k, when}
	for g.oneIn(3) {
		args = append(args, g.anyCase(g.pick("nx", "xx", "gt", "lt", "gt", "lt", "zz")))
	}
	return args
}

func (g *generator) databaseCommand() []string {
	switch g.rand.IntN(12) {
	case 0:
		return []string{g.pick("flushdb", "flushdb", "flushall"), g.pick("async", "sync", "ASYNC", "now")}
	case 1:
		return []string{"flushdb"}
	case 2:
		return []string{"swapdb", g.database(), g.database()}
	case 3, 4, 5:
		return []string{"select", g.database()}
	case 6:
		return []string{"unwatch"}
	default:
		return []string{"get", g.key()}
	}
}

// otherCommand is about the connection or the server, mostly wrong.
func (g *generator) otherCommand() []string {
	all := [][]string{
		{"ping"},
		{"ping", g.value()},
		{"ping", "a", "b"},
		{"echo", g.value()},
		{"exec"},
		{"discard"},
		{"wait", "0", "10"},
		{"wait", "x", "0"},
		{"wait", "0", "-1"},
		{"wait", "0", "x"},
		{"scan", "x"},
		{"scan", "0", "count", "0"},
		{"scan", "0", "count", "x"},
		{"scan", "0", "match"},
		{"scan", "0", "foo", "bar"},
		{"object", "freq", g.key()},
		{"object", "encoding"},
		{"object", "nosuch", "k1"},
		{"memory", "nosuch"},
		{"memory", "usage"},
		{"memory", "usage", "k1", "samples"},
		{"memory", "usage", "k1", "samples", "-1"},
		{"client", "getname"},
		{"client", "setname", g.pick("me", "", "a b", "x\n")},
		{"client", "nosuch"},
		{"client", "id", "x"},
		{"client", "no-evict", "perhaps"},
		{"client", "no-evict", "on"},
		{"client", "list", "id", "x"},
		{"client", "list", "type", "x"},
		{"client", "kill", "nowhere:1"},
		{"client", "kill", "id", "0"},
		{"client", "kill", "id", "x"},
		{"client", "kill", "id", "9999"},
		{"client", "unblock", "9999"},
		{"client", "unblock", "x"},
		{"client", "unblock", "1", "why"},
		{"client", "getredir"},
		{"client", "trackinginfo"},
		{"client", "pause", "x"},
		{"client", "pause", "-1"},
		{"client", "pause", "0", "some"},
		{"client", "unpause"},
		{"config", "get"},
		{"config", "nosuch"},
		{"config", "set", "nosuch", "1"},
		{"config", "set", "maxclients"},
		{"config", "set", "databases", "1"},
		{"config", "set", "maxmemory", "much"},
		{"config", "set", "slowlog-max-len", "x"},
		{"config", "set", "protected-mode", "maybe"},
		{"config", "set", "timeout", "0", "timeout", "0"},
		{"config", "get", "databases"},
		{"slowlog", "get", "-2"},
		{"slowlog", "get", "x"},
		{"slowlog", "nosuch"},
		{"slowlog", "reset"},
		{"command", "getkeys", "get", "a"},
		{"command", "getkeys", "mset", "a", "1", "b", "2"},
		{"command", "getkeys", "ping", "x"},
		{"command", "getkeys", "nosuch", "x"},
		{"command", "getkeys", "get", "a", "b"},
		{"command", "getkeys", "object", "encoding", "x"},
		{"command", "nosuch"},
		{"command", "list", "filterby", "x", "y"},
		{"command", "count", "x"},
		{"auth", "x"},
		{"auth", "default", "x"},
		{"auth", "nobody", "x"},
		{"auth", "a", "b", "c"},
		{"hello", "4"},
		{"hello", "x"},
		{"hello", "2", "auth"},
		{"hello", "2", "setname", "a b"},
		{"latency", "reset"},
		{"latency", "nosuch"},
		{"latency", "latest"},
		{"role"},
		{"replicaof", "no", "one"},
		{"shutdown", "abort"},
		{"shutdown", "save", "nosave"},
		{"shutdown", "soon"},
		{"bgsave", "x"},
	}
	return all[g.rand.IntN(len(all))]
}

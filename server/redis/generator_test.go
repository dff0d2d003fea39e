package redis_test

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// generator makes random commands: most of them sensible, some with edges for
// arguments, some broken.
type generator struct {
	rand      *rand.Rand
	seed      uint64
	keyCount  int // how many different keys there are
	fillEvery int // one in so many commands writes a large value; 0: none
}

func newGenerator(seed uint64) *generator {
	return &generator{rand: rand.New(rand.NewPCG(seed, seed)), seed: seed, keyCount: 8}
}

// commands returns one command, or several that belong together.
func (g *generator) commands(inMulti, watching bool) [][]string {
	if g.fillEvery > 0 && !inMulti && g.oneIn(g.fillEvery) {
		return [][]string{{"set", "filler" + strconv.Itoa(g.rand.IntN(1000)), strings.Repeat("fill", 1000)}}
	}
	if inMulti && g.oneIn(6) {
		return [][]string{strings.Fields(g.pick("exec", "exec", "exec", "discard", "multi", "watch k1", "unwatch"))}
	}
	if !inMulti && g.oneIn(25) {
		return g.transaction()
	}
	if !inMulti && g.oneIn(100) {
		return g.watch()
	}
	args := g.command(inMulti)
	for watching && watchedOtherwise(args) {
		args = g.command(inMulti)
	}
	if g.oneIn(30) && !delicate(args) {
		args = g.broken(args)
	}
	if args[0] == "set" {
		// Redis keeps a key that was born expired until somebody looks at it.
		return [][]string{args, {"exists", args[min(1, len(args)-1)]}}
	}
	return [][]string{args}
}

func (g *generator) transaction() [][]string {
	begin := [][]string{{"multi"}}
	if g.oneIn(2) {
		begin = append(g.watch(), begin...)
	}
	return begin
}

// watch makes sure that the keys exist: here a deletion of another key may, rarely,
// look to the watcher of an absent key as if that had come and gone.
func (g *generator) watch() (commands [][]string) {
	keys := g.keys()
	for _, k := range keys {
		commands = append(commands, []string{"setnx", k, g.value()})
	}
	return append(commands, append([]string{"watch"}, keys...))
}

// watchedOtherwise commands do not end the same transactions here and there. A
// flush ends all that watch something here, in Redis those that watch a key that
// exists. A key that is born expired was never there here. And BITFIELD tells no
// watcher that it made a string longer if all its operations failed.
func watchedOtherwise(args []string) bool {
	line := strings.ToLower(strings.Join(args, " "))
	switch args[0] {
	case "flushdb", "flushall", "swapdb":
		return true
	case "set":
		return strings.Contains(line, "exat 1") || strings.Contains(line, "pxat 1")
	case "bitfield":
		return strings.Contains(line, "fail")
	}
	return false
}

// delicate commands could end or block a server when they are changed at random.
func delicate(args []string) bool {
	switch args[0] {
	case "auth", "bgsave", "client", "command", "config", "hello", "replicaof", "shutdown", "wait":
		return true
	}
	return false
}

// broken drops an argument, repeats one, or replaces one.
func (g *generator) broken(args []string) []string {
	i := g.rand.IntN(len(args))
	switch g.rand.IntN(4) {
	case 0:
		return append(args[:max(i, 1):max(i, 1)], args[min(max(i, 1)+1, len(args)):]...)
	case 1:
		return append(args[:len(args):len(args)], g.value())
	case 2:
		if i > 0 {
			args[i] = g.value()
		}
	case 3:
		args[0] = g.pick("nosuchcommand", strings.ToUpper(args[0]), args[0]+"x")
	}
	return args
}

// command is one command of any family.
func (g *generator) command(inMulti bool) []string {
	for {
		family := []func() []string{
			g.stringCommand, g.stringCommand, g.numberCommand, g.rangeCommand, g.setCommand, g.bitCommand, g.bitfieldCommand,
			g.genericCommand, g.genericCommand, g.expireCommand, g.databaseCommand, g.otherCommand,
		}[g.rand.IntN(12)]
		args := family()
		if !inMulti || repeatable(args) {
			return args
		}
	}
}

// repeatable tells whether a command's reply may stand inside EXEC's, where
// replies are compared as they are.
func repeatable(args []string) bool {
	switch args[0] {
	case "keys", "scan", "randomkey", "ttl", "pttl", "expiretime", "pexpiretime", "memory":
		return false
	}
	return true
}

func (g *generator) oneIn(n int) bool { return g.rand.IntN(n) == 0 }

func (g *generator) pick(words ...string) string { return words[g.rand.IntN(len(words))] }

func (g *generator) key() string {
	if g.oneIn(60) {
		return g.pick("", "K1", "key with blanks", "\x00\xff", strings.Repeat("long", 100))
	}
	return "k" + strconv.Itoa(g.rand.IntN(g.keyCount))
}

func (g *generator) keys() (keys []string) {
	for range 1 + g.rand.IntN(4) {
		keys = append(keys, g.key())
	}
	return keys
}

func (g *generator) value() string {
	switch g.rand.IntN(8) {
	case 0:
		return g.pick("", "0", "1", "-1", "01", "+1", " 1", "1 ", "-0", "9223372036854775807", "-9223372036854775808",
			"9223372036854775808", "99999999999999999999", "10.5", "3.0e3", "5.0", "-1e-5", "inf", "nan", "0x10", "1e5000", ".5", "5.", "abc")
	case 1:
		return strings.Repeat(g.pick("a", "ab", "xyz"), g.rand.IntN(30))
	case 2:
		b := make([]byte, g.rand.IntN(60))
		for i := range b {
			b[i] = byte(g.rand.IntN(256))
		}
		return string(b)
	case 3, 4:
		return g.letters(20)
	default:
		return g.integer()
	}
}

// letters draws from a small alphabet, so that strings have much in common.
func (g *generator) letters(most int) string {
	b := make([]byte, g.rand.IntN(most))
	for i := range b {
		b[i] = "abcd"[g.rand.IntN(4)]
	}
	return string(b)
}

func (g *generator) integer() string {
	if g.oneIn(8) {
		return g.pick("9223372036854775807", "-9223372036854775808", "9223372036854775806", "4611686018427387904", "x", "1.5", "")
	}
	return strconv.Itoa(g.rand.IntN(2000) - 1000)
}

func (g *generator) float() string {
	if g.oneIn(3) {
		return g.pick("0.1", "10.5", "3.0e3", "-3.14159", "1e17", "1e-17", "1e4930", "123456789.123456789", "0.2", "5e-324",
			"inf", "-inf", "nan", "1e5000", "0x1p3", "1_000", "", " 1", "1e", "--1", "+5", "00012.50", "1.7976931348623157e308")
	}
	return strconv.FormatFloat(g.rand.Float64()*1000-500, 'f', g.rand.IntN(12), 64)
}

func (g *generator) anyCase(word string) string {
	if g.oneIn(3) {
		return strings.ToUpper(word)
	}
	return word
}

func (g *generator) stringCommand() []string {
	k := g.key()
	switch g.rand.IntN(14) {
	case 0, 1:
		return []string{"get", k}
	case 2:
		return []string{"setnx", k, g.value()}
	case 3:
		return []string{g.pick("setex", "psetex"), k, g.seconds(), g.value()}
	case 4:
		return []string{"getset", k, g.value()}
	case 5:
		return []string{"getdel", k}
	case 6:
		return append([]string{"mget"}, g.keys()...)
	case 7, 8:
		args := []string{g.pick("mset", "msetnx")}
		for _, k := range g.keys() {
			args = append(args, k, g.value())
		}
		return args
	case 9:
		return []string{"append", k, g.value()}
	case 10:
		return []string{"strlen", k}
	case 11:
		args := []string{"lcs", k, g.key()}
		for g.oneIn(2) {
			args = append(args, g.pick("len", "idx", "withmatchlen", "minmatchlen"))
			if args[len(args)-1] == "minmatchlen" && !g.oneIn(8) {
				args = append(args, g.pick("0", "1", "2", "3", "-1", "x"))
			}
		}
		return args
	case 12:
		args := []string{"getex", k}
		if g.oneIn(2) {
			args = append(args, g.expiry()...)
		} else if g.oneIn(2) {
			args = append(args, g.anyCase("persist"))
		}
		return args
	default:
		return []string{"set", k, g.letters(40)}
	}
}

func (g *generator) setCommand() []string {
	args := []string{"set", g.key(), g.value()}
	for g.oneIn(2) {
		switch g.rand.IntN(6) {
		case 0:
			args = append(args, g.anyCase("nx"))
		case 1:
			args = append(args, g.anyCase("xx"))
		case 2:
			args = append(args, g.anyCase("get"))
		case 3:
			args = append(args, g.anyCase("keepttl"))
		default:
			args = append(args, g.expiry()...)
		}
	}
	return args
}

// expiry is an option with a time that is far away or past, never near.
func (g *generator) expiry() []string {
	if g.oneIn(20) {
		return []string{g.pick("ex", "px", "exat", "pxat")}
	}
	switch g.rand.IntN(4) {
	case 0:
		return []string{g.anyCase("ex"), g.seconds()}
	case 1:
		return []string{g.anyCase("px"), g.seconds()}
	case 2:
		return []string{g.anyCase("exat"), g.unixTime(1)}
	default:
		return []string{g.anyCase("pxat"), g.unixTime(1000)}
	}
}

func (g *generator) seconds() string {
	if g.oneIn(10) {
		return g.pick("0", "-1", "-1000", "9223372036854775807", "9223372036854775", "9223372036854776", "x", "1.5", "")
	}
	return strconv.Itoa(1000000 + g.rand.IntN(1000000000))
}

func (g *generator) unixTime(unit int64) string {
	switch g.rand.IntN(8) {
	case 0:
		return g.pick("1", "1000", "0", "-1", "9223372036854775807", "x")
	default:
		return strconv.FormatInt((time.Now().Unix()+100000+g.rand.Int64N(1000000000))*unit, 10)
	}
}

func (g *generator) numberCommand() []string {
	k := g.key()
	switch g.rand.IntN(6) {
	case 0:
		return []string{"incr", k}
	case 1:
		return []string{"decr", k}
	case 2:
		return []string{"incrby", k, g.integer()}
	case 3:
		return []string{"decrby", k, g.integer()}
	default:
		return []string{"incrbyfloat", k, g.float()}
	}
}

func (g *generator) index() string {
	if g.oneIn(10) {
		return g.pick("9223372036854775807", "-9223372036854775808", "x", "-0", "1000000")
	}
	return strconv.Itoa(g.rand.IntN(60) - 25)
}

func (g *generator) rangeCommand() []string {
	switch g.rand.IntN(3) {
	case 0:
		offset := strconv.Itoa(g.rand.IntN(80))
		if g.oneIn(10) {
			offset = g.pick("-1", "536870912", "536870911", "9223372036854775807", "x")
		}
		value := g.value()
		if offset == "536870911" {
			value = "ab" // one byte too long
		}
		return []string{"setrange", g.key(), offset, value}
	default:
		return []string{g.pick("getrange", "substr"), g.key(), g.index(), g.index()}
	}
}

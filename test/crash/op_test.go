package crash

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// op is something that happens as a whole or not at all: one command, or a
// transaction of several.
type op struct {
	commands [][]string
	want     []string // the reply to each command; any: not foretold
	changes  []change
	save     bool // a checkpoint, complete when it is answered
}

// anyReply stands for a reply that cannot be foretold.
const anyReply = "\x00any"

// author invents a writer's operations. It alone writes to its databases, so it
// knows what each operation finds, changes and answers.
type author struct {
	rng   *rand.Rand
	dbs   [2]string // numbers of its databases
	ahead *image    // after all that was sent
	mix   mix
	seq   int // makes every value unlike any other
}

// mix is what a writer prefers to do.
type mix struct {
	keys       int  // of each kind
	valueBytes int  // of most values
	largeBytes int  // of a few
	overwrite  bool // little else than SET
	saves      bool
	flushes    bool // also SWAPDB
	cache      bool // the server may forget: only what needs no old value
}

// next invents an operation and looks ahead past it.
func (a *author) next() op {
	o := a.pick()
	a.ahead.apply(o.changes)
	return o
}

func (a *author) pick() op {
	n := a.rng.IntN(10_000)
	switch {
	case n < 2 && a.mix.flushes:
		return one("OK", []change{{act: emptyDB}}, "FLUSHDB")
	case n < 4 && a.mix.flushes:
		return one("OK", []change{{act: swapDBs}}, "SWAPDB", a.dbs[0], a.dbs[1])
	case n < 8 && a.mix.saves:
		return op{commands: [][]string{{"SAVE"}}, want: []string{anyReply}, save: true}
	case n < 30:
		return a.large()
	case a.mix.cache:
		return cached[a.rng.IntN(len(cached))](a)
	case n < 400:
		return a.multi()
	case n < 800:
		return a.expiring()
	case n < 9000 && a.mix.overwrite:
		return a.set()
	}
	return a.single()
}

// singles are the operations of one command that transactions are made of, too.
var singles = []func(*author) op{
	(*author).set, (*author).set, (*author).set, (*author).get, (*author).incr, (*author).incr,
	(*author).del, (*author).getdel, (*author).appendTo, (*author).mset, (*author).setnx,
	(*author).getset, (*author).setrange, (*author).rename, (*author).copyTo, (*author).lasting,
}

// cached are operations that answer and do the same whatever was forgotten.
var cached = []func(*author) op{(*author).set, (*author).set, (*author).set, (*author).mset, (*author).expiring, (*author).forget}

func (a *author) forget() op {
	k := a.key("s")
	return one(anyReply, []change{{act: dropKey, key: k}}, "DEL", k)
}

func (a *author) single() op { return singles[a.rng.IntN(len(singles))](a) }

// key names one of the keys of a kind: s strings, n counters, a appended to,
// x expiring soon, f expiring far away.
func (a *author) key(kind string) string {
	return kind + ":" + strconv.Itoa(a.rng.IntN(a.mix.keys))
}

// value makes a value that was never used before.
func (a *author) value() string {
	n := 1 + a.rng.IntN(a.mix.valueBytes)
	if a.rng.IntN(20) == 0 {
		n *= 8
	}
	return a.filled(n)
}

func (a *author) filled(n int) string {
	a.seq++
	head := fmt.Sprintf("%s/%d/", a.dbs[0], a.seq)
	return head + strings.Repeat(string(rune('a'+a.seq%26)), max(n-len(head), 0))
}

func one(want string, changes []change, command ...string) op {
	return op{commands: [][]string{command}, want: []string{want}, changes: changes}
}

func puts(key, value string) []change {
	return []change{{putKey, key, entry{value: value}}}
}

// found gives what a read of key answers.
func (a *author) found(key string) string {
	if e, ok := a.ahead[0][key]; ok {
		return e.value
	}
	return "(nil)"
}

func (a *author) has(key string) bool {
	_, ok := a.ahead[0][key]
	return ok
}

func (a *author) set() op {
	k, v := a.key("s"), a.value()
	return one("OK", puts(k, v), "SET", k, v)
}

func (a *author) get() op {
	k := a.key("s")
	return one(a.found(k), nil, "GET", k)
}

func (a *author) incr() op {
	k, by := a.key("n"), a.rng.IntN(100)
	old, _ := strconv.Atoi(a.ahead[0][k].value)
	sum := strconv.Itoa(old + by)
	return one(sum, puts(k, sum), "INCRBY", k, strconv.Itoa(by))
}

func (a *author) del() op {
	command, gone := []string{"DEL"}, map[string]bool{}
	for range 1 + a.rng.IntN(3) {
		k := a.key([]string{"s", "n", "a"}[a.rng.IntN(3)])
		command = append(command, k)
		if a.has(k) {
			gone[k] = true
		}
	}
	var changes []change
	for k := range gone {
		changes = append(changes, change{act: dropKey, key: k})
	}
	return one(strconv.Itoa(len(gone)), changes, command...)
}

func (a *author) getdel() op {
	k := a.key("s")
	return one(a.found(k), []change{{act: dropKey, key: k}}, "GETDEL", k)
}

func (a *author) appendTo() op {
	k := a.key("a")
	more := a.filled(8 + a.rng.IntN(40))
	all := a.ahead[0][k].value + more
	if len(all) > 4096 {
		return one("1", []change{{act: dropKey, key: k}}, "DEL", k)
	}
	return one(strconv.Itoa(len(all)), puts(k, all), "APPEND", k, more)
}

func (a *author) mset() op {
	command := []string{"MSET"}
	var changes []change
	for range 2 + a.rng.IntN(6) {
		k, v := a.key("s"), a.value()
		command = append(command, k, v)
		changes = append(changes, puts(k, v)...)
	}
	return one("OK", changes, command...)
}

func (a *author) setnx() op {
	k, v := a.key("s"), a.value()
	if a.has(k) {
		return one("(nil)", nil, "SET", k, v, "NX")
	}
	return one("OK", puts(k, v), "SET", k, v, "NX")
}

func (a *author) getset() op {
	k, v := a.key("s"), a.value()
	return one(a.found(k), puts(k, v), "GETSET", k, v)
}

func (a *author) setrange() op {
	k, part := a.key("a"), a.filled(16)
	old := a.ahead[0][k].value
	at := a.rng.IntN(len(old) + 8)
	b := []byte(old + strings.Repeat("\x00", max(at+len(part)-len(old), 0)))
	copy(b[at:], part)
	return one(strconv.Itoa(len(b)), puts(k, string(b)), "SETRANGE", k, strconv.Itoa(at), part)
}

func (a *author) rename() op {
	from, to := a.key("s"), a.key("s")
	if !a.has(from) || from == to {
		return a.set()
	}
	e := a.ahead[0][from]
	return one("OK", []change{{act: dropKey, key: from}, {putKey, to, e}}, "RENAME", from, to)
}

func (a *author) copyTo() op {
	from, to := a.key("s"), a.key("s")
	if !a.has(from) || from == to {
		return a.set()
	}
	return one("1", []change{{putKey, to, a.ahead[0][from]}}, "COPY", from, to, "REPLACE")
}

// lasting sets, moves or takes away an expiry that is far off.
func (a *author) lasting() op {
	k := a.key("f")
	at := time.Now().UnixMilli() + int64(time.Hour/time.Millisecond) + a.rng.Int64N(1e9)
	stamp := strconv.FormatInt(at, 10)
	old, ok := a.ahead[0][k]
	switch n := a.rng.IntN(4); {
	case ok && n == 0:
		return one("1", []change{{putKey, k, entry{old.value, at}}}, "PEXPIREAT", k, stamp)
	case ok && n == 1:
		was := strconv.Itoa(b2i(old.expireAt != 0))
		return one(was, []change{{putKey, k, entry{value: old.value}}}, "PERSIST", k)
	}
	v := a.value()
	return one("OK", []change{{putKey, k, entry{v, at}}}, "SET", k, v, "PXAT", stamp)
}

// expiring writes keys whose time comes during the test. Nothing reads them,
// for nobody could say what a read must find.
func (a *author) expiring() op {
	k, v := a.key("x"), a.value()
	switch a.rng.IntN(4) {
	case 0:
		return one("OK", puts(k, v), "SET", k, v)
	case 1:
		return one(anyReply, []change{{act: dropKey, key: k}}, "DEL", k)
	}
	at := time.Now().UnixMilli() + a.rng.Int64N(1500)
	return one("OK", []change{{putKey, k, entry{v, at}}}, "SET", k, v, "PXAT", strconv.FormatInt(at, 10))
}

func (a *author) large() op {
	k := "b:" + strconv.Itoa(a.rng.IntN(8))
	if a.rng.IntN(4) == 0 {
		return one(anyReply, []change{{act: dropKey, key: k}}, "UNLINK", k)
	}
	v := a.filled(1 + a.rng.IntN(a.mix.largeBytes))
	return one("OK", puts(k, v), "SET", k, v)
}

// multi makes one operation of several.
func (a *author) multi() op {
	all := op{commands: [][]string{{"MULTI"}}, want: []string{"OK"}}
	var replies []string
	for range 2 + a.rng.IntN(5) {
		o := a.single()
		a.ahead.apply(o.changes) // What follows finds it done.
		all.commands = append(all.commands, o.commands...)
		all.changes = append(all.changes, o.changes...)
		all.want = append(all.want, "QUEUED")
		replies = append(replies, o.want...)
	}
	all.commands = append(all.commands, []string{"EXEC"})
	all.want = append(all.want, "["+strings.Join(replies, " ")+"]")
	return all
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

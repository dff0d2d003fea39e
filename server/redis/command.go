package redis

import (
	"encoding/binary"
	"strings"
)

// commandFlags are what COMMAND reports of a command, and what dispatch asks.
type commandFlags uint32

const (
	flagWrite commandFlags = 1 << iota
	flagReadonly
	flagDenyOOM
	flagAdmin
	flagPubsub
	flagNoScript
	flagBlocking
	flagLoading
	flagStale
	flagSkipMonitor
	flagSkipSlowlog
	flagFast
	flagNoAuth       // may run before AUTH
	flagMayReplicate //
	flagNoMulti      // never allowed inside MULTI: an error, and EXEC aborts
	flagMovableKeys
	flagAllowBusy
	flagNoMandatoryKeys
	flagFunction // runs a function, which may write unless flagReadonly: never inside MULTI
	flagAlone    // takes its time in the background: never inside MULTI
	flagDirect   // runs at once even inside MULTI: EXEC, DISCARD, MULTI, WATCH, QUIT, RESET
)

// command describes one command. Values are never changed after init.
type command struct {
	name  string // lower case
	arity int    // as COMMAND reports: counts the name; negative means at least
	run   handler
	flags commandFlags

	first, last, step int // positions of keys as COMMAND reports; first 0: no keys

	group, summary, since, complexity string

	// keys names the keys where positions are not enough.
	keys func(args [][]byte) [][]byte

	subs []*command // of a container; their names are "container|name"

	index int  // place in commandList, for counters
	quick bool // takes a short time whatever the data, or goes on elsewhere: not worth a clock
}

var (
	// table finds a command by its lower-case name. It is complete after init.
	table map[string]*command
	// commandList holds the same commands in the order of their families.
	commandList []*command

	commandGet   *command // GET, SET and FCALL are looked up without hashing
	commandSet   *command
	commandFcall *command

	commandExec   *command // and these are treated apart in a cluster
	commandAsking *command
	commandWatch  *command

	commandQuit *command // and this one costs nothing
)

func init() { indexCommands(allCommands()) }

// indexCommands fills table and commandList.
func indexCommands(all []command) {
	table = make(map[string]*command, len(all))
	commandList = make([]*command, len(all))
	for i := range all {
		c := &all[i]
		c.index = i
		c.quick = c.flags&(flagFast|flagFunction) != 0 || c.complexity == "O(1)"
		if c.name != strings.ToLower(c.name) || table[c.name] != nil {
			panic("redis: command " + c.name + " is listed twice or not in lower case")
		}
		table[c.name] = c
		commandList[i] = c
	}
	commandGet, commandSet, commandFcall = table["get"], table["set"], table["fcall"]
	commandExec, commandAsking, commandWatch = table["exec"], table["asking"], table["watch"]
	commandQuit = table["quit"]
}

const longestCommandName = 32

// lookup finds a command by its name in any case, or returns nil.
func lookup(name []byte) *command {
	switch len(name) {
	case 3:
		switch uint32(name[0]|0x20) | uint32(name[1]|0x20)<<8 | uint32(name[2]|0x20)<<16 {
		case 'g' | 'e'<<8 | 't'<<16:
			return commandGet
		case 's' | 'e'<<8 | 't'<<16:
			return commandSet
		}
	case 5:
		if binary.LittleEndian.Uint32(name)|0x20202020 == 'f'|'c'<<8|'a'<<16|'l'<<24 && name[4]|0x20 == 'l' {
			return commandFcall
		}
	}
	if len(name) > longestCommandName {
		return nil
	}
	var lower [longestCommandName]byte
	for i, b := range name {
		if 'A' <= b && b <= 'Z' {
			b += 'a' - 'A'
		}
		lower[i] = b
	}
	return table[string(lower[:len(name)])]
}

// acceptsArgs reports whether n arguments, the name included, fit the arity.
func (c *command) acceptsArgs(n int) bool {
	if c.arity < 0 {
		return n >= -c.arity
	}
	return n == c.arity
}

// mayWrite tells whether the command can change data.
func (c *command) mayWrite() bool {
	return c.flags&(flagWrite|flagMayReplicate) != 0 || c.flags&(flagFunction|flagReadonly) == flagFunction
}

package redis

import "strings"

// commandCommand is COMMAND: alone it describes everything.
func commandCommand(c *call) verdict {
	if len(c.args) > 1 {
		return container(c)
	}
	c.out.Array(len(commandList))
	for _, cmd := range commandList {
		c.describeCommand(cmd)
	}
	return done
}

func commandCount(c *call) verdict { return c.int(int64(len(commandList))) }

func commandInfo(c *call) verdict {
	if len(c.args) == 2 {
		c.args = c.args[:1]
		return commandCommand(c)
	}
	c.out.Array(len(c.args) - 2)
	for _, name := range c.args[2:] {
		if cmd := commandByFullName(name); cmd != nil {
			c.describeCommand(cmd)
		} else {
			c.out.Null()
		}
	}
	return done
}

// commandByFullName finds a command or, by "container|name", a subcommand.
func commandByFullName(name []byte) *command {
	first, second, isSub := strings.Cut(string(name), "|")
	cmd := lookup([]byte(first))
	if cmd == nil || !isSub {
		return cmd
	}
	return cmd.subcommand([][]byte{nil, []byte(second)})
}

// describeCommand is a command's entry in COMMAND INFO.
func (c *call) describeCommand(cmd *command) {
	c.out.Array(10)
	c.out.BulkString(cmd.name)
	c.out.Int(int64(cmd.arity))
	c.words(cmd.flagNames())
	c.out.Int(int64(cmd.first))
	c.out.Int(int64(cmd.last))
	c.out.Int(int64(cmd.step))
	c.words(cmd.categories())
	c.out.Set(0) // tips
	c.describeKeys(cmd)
	subs := cmd.subs
	c.out.Array(len(subs))
	for _, sub := range subs {
		c.describeCommand(sub)
	}
}

// words answers with a set of simple strings.
func (c *call) words(words []string) {
	c.out.Set(len(words))
	for _, w := range words {
		c.out.SimpleString(w)
	}
}

// describeKeys is where a command's keys stand, in the form of key specifications.
func (c *call) describeKeys(cmd *command) {
	if cmd.first == 0 {
		c.out.Set(0)
		return
	}
	last := cmd.last
	if last > 0 {
		last -= cmd.first
	}
	out := c.out
	out.Set(1)
	out.Map(3)
	out.BulkString("flags")
	c.words(cmd.keyFlags())
	out.BulkString("begin_search")
	out.Map(2)
	out.BulkString("type")
	out.BulkString("index")
	out.BulkString("spec")
	out.Map(1)
	out.BulkString("index")
	out.Int(int64(cmd.first))
	out.BulkString("find_keys")
	out.Map(2)
	out.BulkString("type")
	out.BulkString("range")
	out.BulkString("spec")
	out.Map(3)
	out.BulkString("lastkey")
	out.Int(int64(last))
	out.BulkString("keystep")
	out.Int(int64(cmd.step))
	out.BulkString("limit")
	out.Int(0)
}

// keyFlags tell what the command does with its keys.
func (cmd *command) keyFlags() []string {
	if cmd.flags&flagWrite != 0 {
		return []string{"RW", "access", "update"}
	}
	return []string{"RO", "access"}
}

// flagNames are the command's flags in the order in which Redis lists them.
func (cmd *command) flagNames() (names []string) {
	for _, f := range []struct {
		flag commandFlags
		name string
	}{
		{flagWrite, "write"},
		{flagReadonly, "readonly"},
		{flagDenyOOM, "denyoom"},
		{flagAdmin, "admin"},
		{flagPubsub, "pubsub"},
		{flagNoScript, "noscript"},
		{flagBlocking, "blocking"},
		{flagLoading, "loading"},
		{flagStale, "stale"},
		{flagSkipMonitor, "skip_monitor"},
		{flagSkipSlowlog, "skip_slowlog"},
		{flagFast, "fast"},
		{flagNoAuth, "no_auth"},
		{flagMayReplicate, "may_replicate"},
		{flagNoMandatoryKeys, "no_mandatory_keys"},
		{flagMovableKeys, "movablekeys"},
		{flagNoMulti, "no_multi"},
		{flagAllowBusy, "allow_busy"},
	} {
		if cmd.flags&f.flag != 0 {
			names = append(names, f.name)
		}
	}
	return names
}

// categories are the command's ACL categories, derived from its flags and group.
func (cmd *command) categories() (names []string) {
	container, _, _ := strings.Cut(cmd.name, "|")
	add := func(when bool, name string) {
		if when {
			names = append(names, name)
		}
	}
	onKeyspace := cmd.group == "generic" && container != "wait" || cmd.onDatabase() && cmd.group != "scripting"
	dangerous := cmd.flags&flagAdmin != 0
	switch container {
	case "keys", "migrate", "flushdb", "flushall", "swapdb", "info", "role", "lastsave":
		dangerous = true
	}
	add(onKeyspace && (cmd.flags != 0 || len(cmd.subs) == 0), "@keyspace")
	add(cmd.flags&(flagReadonly|flagFunction) == flagReadonly, "@read")
	add(cmd.flags&flagWrite != 0, "@write")
	add(cmd.group == "string", "@string")
	add(cmd.group == "bitmap", "@bitmap")
	add(cmd.flags&flagAdmin != 0 || container == "role" || container == "lastsave", "@admin")
	add(cmd.flags&flagFast != 0, "@fast")
	add(cmd.flags&flagFast == 0, "@slow")
	add(dangerous, "@dangerous")
	clusterSession := cmd.group == "cluster" && container != "cluster" // ASKING and the like
	add(clusterSession || cmd.group == "connection" && (cmd.flags != 0 || container != cmd.name) || container == "wait" || container == "command", "@connection")
	add(cmd.group == "transactions", "@transaction")
	add(cmd.group == "scripting" && len(cmd.subs) == 0, "@scripting")
	return names
}

package redis

import "strings"

// allCommands is every command, by family.
func allCommands() []command {
	const (
		write = flagWrite
		read  = flagReadonly
		oom   = flagDenyOOM
		fast  = flagFast
		admin = flagAdmin | flagNoScript

		always      = flagLoading | flagStale
		session     = flagNoScript | always | flagFast | flagAllowBusy
		transaction = session | flagDirect
		function    = flagFunction | flagNoScript | flagStale | flagSkipMonitor | flagNoMandatoryKeys | flagMovableKeys
	)
	var (
		none  = keySpan{}
		one   = keySpan{1, 1, 1}
		two   = keySpan{1, 2, 1}
		all   = keySpan{1, -1, 1}
		pairs = keySpan{1, -1, 2}
	)
	return []command{
		row("get", 2, get, read|fast, one, "string", "1.0.0", "O(1)", "Returns the string value of a key."),
		row("set", -3, set, write|oom, one, "string", "1.0.0", "O(1)", "Sets the string value of a key, whatever it held, with conditions and an expiry on request."),
		row("setnx", 3, setnx, write|oom|fast, one, "string", "1.0.0", "O(1)", "Sets the string value of a key only if the key does not exist."),
		row("setex", 4, setex, write|oom, one, "string", "2.0.0", "O(1)", "Sets the string value and the expiry in seconds of a key."),
		row("psetex", 4, psetex, write|oom, one, "string", "2.6.0", "O(1)", "Sets the string value and the expiry in milliseconds of a key."),
		row("getset", 3, getset, write|oom|fast, one, "string", "1.0.0", "O(1)", "Sets the string value of a key and returns the one it had."),
		row("getdel", 2, getdel, write|fast, one, "string", "6.2.0", "O(1)", "Returns the string value of a key and deletes the key."),
		row("getex", -2, getex, write|fast, one, "string", "6.2.0", "O(1)", "Returns the string value of a key and changes its expiry."),
		row("mget", -2, inPieces(mget, joinElements), read|fast, all, "string", "1.0.0", "O(N)", "Returns the string values of all the given keys."),
		row("mset", -3, mset, write|oom, pairs, "string", "1.0.1", "O(N)", "Sets the string values of one or more keys, all at once."),
		row("msetnx", -3, msetnx, write|oom, pairs, "string", "1.0.1", "O(N)", "Sets the string values of keys only if none of them exists."),
		row("append", 3, appendString, write|oom|fast, one, "string", "2.0.0", "O(1)", "Appends to the string value of a key."),
		row("strlen", 2, strlen, read|fast, one, "string", "2.2.0", "O(1)", "Returns the length of a string value."),
		row("setrange", 4, setrange, write|oom, one, "string", "2.2.0", "O(1)", "Overwrites part of a string value from an offset on."),
		row("getrange", 4, getrange, read, one, "string", "2.4.0", "O(N)", "Returns part of a string value."),
		row("substr", 4, getrange, read, one, "string", "1.0.0", "O(N)", "Returns part of a string value; an old name of GETRANGE."),
		row("incr", 2, incr, write|oom|fast, one, "string", "1.0.0", "O(1)", "Adds one to the integer value of a key."),
		row("decr", 2, decr, write|oom|fast, one, "string", "1.0.0", "O(1)", "Takes one from the integer value of a key."),
		row("incrby", 3, incrby, write|oom|fast, one, "string", "1.0.0", "O(1)", "Adds a number to the integer value of a key."),
		row("decrby", 3, decrby, write|oom|fast, one, "string", "1.0.0", "O(1)", "Takes a number from the integer value of a key."),
		row("incrbyfloat", 3, incrbyfloat, write|oom|fast, one, "string", "2.6.0", "O(1)", "Adds a number to the floating point value of a key."),
		row("lcs", -3, lcs, read, two, "string", "7.0.0", "O(N*M)", "Finds the longest common subsequence of two strings."),

		row("setbit", 4, setbit, write|oom, one, "bitmap", "2.2.0", "O(1)", "Sets or clears a bit of a string value and returns what it was."),
		row("getbit", 3, getbit, read|fast, one, "bitmap", "2.2.0", "O(1)", "Returns a bit of a string value."),
		row("bitcount", -2, bitcount, read, one, "bitmap", "2.6.0", "O(N)", "Counts the set bits of a string value."),
		row("bitpos", -3, bitpos, read, one, "bitmap", "2.8.7", "O(N)", "Finds the first set or clear bit of a string value."),
		row("bitop", -4, bitop, write|oom, keySpan{2, -1, 1}, "bitmap", "2.6.0", "O(N)", "Combines string values bit by bit and stores the result."),
		row("bitfield", -2, bitfield, write|oom, one, "bitmap", "3.2.0", "O(1)", "Reads and writes integers of any width inside a string value."),
		row("bitfield_ro", -2, bitfieldRO, read|fast, one, "bitmap", "6.0.0", "O(1)", "Reads integers of any width inside a string value."),

		row("del", -2, inPieces(del, joinSum), write, all, "generic", "1.0.0", "O(N)", "Deletes one or more keys."),
		row("unlink", -2, inPieces(del, joinSum), write|fast, all, "generic", "4.0.0", "O(N)", "Deletes one or more keys; memory comes back in the background."),
		row("exists", -2, inPieces(exists, joinSum), read|fast, all, "generic", "1.0.0", "O(N)", "Counts how many of the given keys exist."),
		row("touch", -2, inPieces(exists, joinSum), read|fast, all, "generic", "3.2.1", "O(N)", "Counts how many of the given keys exist."),
		row("expire", -3, expire, write|fast, one, "generic", "1.0.0", "O(1)", "Sets the expiry of a key in seconds from now."),
		row("pexpire", -3, pexpire, write|fast, one, "generic", "2.6.0", "O(1)", "Sets the expiry of a key in milliseconds from now."),
		row("expireat", -3, expireat, write|fast, one, "generic", "1.2.0", "O(1)", "Sets the expiry of a key to a Unix time in seconds."),
		row("pexpireat", -3, pexpireat, write|fast, one, "generic", "2.6.0", "O(1)", "Sets the expiry of a key to a Unix time in milliseconds."),
		row("ttl", 2, ttl, read|fast, one, "generic", "1.0.0", "O(1)", "Returns the seconds that a key has left."),
		row("pttl", 2, pttl, read|fast, one, "generic", "2.6.0", "O(1)", "Returns the milliseconds that a key has left."),
		row("expiretime", 2, expiretime, read|fast, one, "generic", "7.0.0", "O(1)", "Returns when a key expires as a Unix time in seconds."),
		row("pexpiretime", 2, pexpiretime, read|fast, one, "generic", "7.0.0", "O(1)", "Returns when a key expires as a Unix time in milliseconds."),
		row("persist", 2, persist, write|fast, one, "generic", "2.2.0", "O(1)", "Removes the expiry of a key."),
		row("type", 2, typeOf, read|fast, one, "generic", "1.0.0", "O(1)", "Returns the type of the value at a key."),
		row("rename", 3, rename, write, two, "generic", "1.0.0", "O(1)", "Renames a key; the new name is overwritten."),
		row("renamenx", 3, renamenx, write|fast, two, "generic", "1.0.0", "O(1)", "Renames a key only if the new name is free."),
		row("copy", -3, copyKey, write|oom, two, "generic", "6.2.0", "O(N)", "Copies the value and expiry of a key to another key."),
		row("move", 3, move, write|fast, one, "generic", "1.0.0", "O(1)", "Moves a key to another database."),
		row("migrate", -6, migrate, write|flagMovableKeys, keySpan{3, 3, 1}, "generic", "2.6.0", "O(1)", "Moves the slot of keys, announced with CLUSTER SETSLOT MIGRATING, to another node of the cluster."),
		row("randomkey", 1, randomkey, read, none, "generic", "1.0.0", "O(1)", "Returns a random key of the database."),
		row("keys", 2, keys, read, none, "generic", "1.0.0", "O(N)", "Returns all keys that match a pattern."),
		row("scan", -2, scan, read, none, "generic", "2.8.0", "O(1) per call", "Goes through the keys of the database, some at a time."),
		row("object", -2, container, 0, none, "generic", "2.2.3", "O(1)", "A container for commands that look at a value's representation."),
		row("wait", 3, wait, flagNoScript, none, "generic", "3.0.0", "O(1)", "Returns how many replicas have received the writes so far."),

		row("multi", 1, multi, transaction, none, "transactions", "1.2.0", "O(1)", "Begins a transaction."),
		row("exec", 1, exec, flagNoScript|always|flagSkipSlowlog|flagDirect, none, "transactions", "1.2.0", "Depends on the queued commands", "Runs all commands of a transaction."),
		row("discard", 1, discard, transaction, none, "transactions", "2.0.0", "O(N)", "Gives a transaction up."),
		row("watch", -2, watch, transaction, all, "transactions", "2.2.0", "O(1) for every key", "Makes the next transaction depend on keys staying unchanged."),
		row("unwatch", 1, unwatch, session, none, "transactions", "2.2.0", "O(1)", "Forgets all watched keys."),

		row("ping", -1, ping, fast, none, "connection", "1.0.0", "O(1)", "Answers PONG or the given message."),
		row("echo", 2, echo, always|fast, none, "connection", "1.0.0", "O(1)", "Answers the given message."),
		row("select", 2, selectDB, always|fast, none, "connection", "1.0.0", "O(1)", "Chooses the database of the connection."),
		row("auth", -2, auth, session|flagNoAuth, none, "connection", "1.0.0", "O(1)", "Authenticates the connection."),
		row("hello", -1, hello, session|flagNoAuth, none, "connection", "6.0.0", "O(1)", "Chooses the protocol version and shakes hands."),
		row("quit", -1, quit, transaction|flagNoAuth, none, "connection", "1.0.0", "O(1)", "Closes the connection."),
		row("reset", 1, reset, transaction|flagNoAuth, none, "connection", "6.2.0", "O(1)", "Brings the connection back to its first state."),
		row("client", -2, container, 0, none, "connection", "2.4.0", "Depends on the subcommand", "A container for commands about connections."),

		keyed(row("fcall", -3, fcall, function, none, "scripting", "7.0.0", "Depends on the function", "Calls a function."), fcallKeys),
		keyed(row("fcall_ro", -3, fcallRO, read|function, none, "scripting", "7.0.0", "Depends on the function", "Calls a function that may not write."), fcallKeys),

		row("cluster", -2, container, 0, none, "cluster", "3.0.0", "Depends on the subcommand", "A container for commands about the cluster."),
		row("asking", 1, inCluster(asking), fast, none, "cluster", "3.0.0", "O(1)", "Lets the next command use keys that are being imported."),
		row("readonly", 1, inCluster(readonly), always|fast, none, "cluster", "3.0.0", "O(1)", "Does nothing: there are no replicas to read from."),
		row("readwrite", 1, inCluster(readonly), always|fast, none, "cluster", "3.0.0", "O(1)", "Does nothing: there are no replicas to read from."),

		row("dbsize", 1, dbsize, read|fast, none, "server", "1.0.0", "O(1)", "Returns the number of keys of the database."),
		row("flushdb", -1, flushdb, write, none, "server", "1.0.0", "O(1)", "Removes all keys of the database."),
		row("flushall", -1, flushall, write, none, "server", "1.0.0", "O(1)", "Removes all keys of all databases."),
		row("swapdb", 3, swapdb, write|fast, none, "server", "4.0.0", "O(1)", "Swaps two databases."),
		row("info", -1, info, always, none, "server", "1.0.0", "O(1)", "Returns information and statistics about the server."),
		row("config", -2, container, 0, none, "server", "2.0.0", "Depends on the subcommand", "A container for commands about the configuration."),
		row("command", -1, commandCommand, always, none, "server", "2.8.13", "O(N)", "Describes the commands of the server."),
		row("memory", -2, container, 0, none, "server", "4.0.0", "Depends on the subcommand", "A container for commands about memory."),
		row("slowlog", -2, container, 0, none, "server", "2.2.12", "Depends on the subcommand", "A container for commands about slow commands."),
		row("latency", -2, container, 0, none, "server", "2.8.13", "Depends on the subcommand", "A container for commands about latency."),
		row("function", -2, container, 0, none, "scripting", "7.0.0", "Depends on the subcommand", "A container for commands about functions."),
		row("tenant", -2, container, 0, none, "server", "7.2.0", "Depends on the subcommand", "A container for commands about tenants."),
		row("time", 1, timeNow, always|fast, none, "server", "2.6.0", "O(1)", "Returns the server's time."),
		row("role", 1, role, flagNoScript|always|fast, none, "server", "2.8.12", "O(1)", "Returns the replication role of the server."),
		row("replicaof", 3, replicaof, admin|flagStale, none, "server", "5.0.0", "O(1)", "Makes a server a replica of another; only NO ONE is accepted."),
		row("slaveof", 3, replicaof, admin|flagStale, none, "server", "1.0.0", "O(1)", "An old name of REPLICAOF."),
		row("save", 1, save, admin|flagNoMulti, none, "server", "1.0.0", "O(N)", "Takes a checkpoint and waits for it."),
		row("bgsave", -1, bgsave, admin, none, "server", "1.0.0", "O(1)", "Takes a checkpoint in the background."),
		row("lastsave", 1, lastsave, always|fast, none, "server", "1.0.0", "O(1)", "Returns the time of the last checkpoint."),
		row("shutdown", -1, shutdown, admin|always|flagNoMulti|flagAllowBusy, none, "server", "1.0.0", "O(N)", "Stops the server after everything is on disk."),
	}
}

// allSubcommands is every subcommand of the containers, by its full name.
func allSubcommands() []command {
	const (
		read   = flagReadonly
		always = flagLoading | flagStale
		own    = flagNoScript | always // about the client's own connection
		admin  = flagAdmin | own
		byHand = flagAdmin | flagStale // what is not done by hand here

		useAdd     = "start a node with `ostro server --cluster` and it joins; see `ostro cluster add`"
		useRemove  = "use `ostro cluster remove NODE`"
		useDrain   = "use `ostro cluster drain NODE`"
		useNothing = "the coordinator does it; `ostro cluster status` shows the result"
	)
	none, second := keySpan{}, keySpan{2, 2, 1}
	return []command{
		row("object|encoding", 3, objectEncoding, read, second, "generic", "2.2.3", "O(1)", "Names the representation of the value at <key>."),
		row("object|freq", 3, objectFreq, read, second, "generic", "4.0.0", "O(1)", "Returns the access frequency of <key>; not tracked here."),
		row("object|idletime", 3, objectIdletime, read, second, "generic", "2.2.3", "O(1)", "Returns the seconds since <key> was used; not tracked here, always 0."),
		row("object|refcount", 3, objectRefcount, read, second, "generic", "2.2.3", "O(1)", "Returns the number of references to the value at <key>, always 1."),
		row("object|help", 2, help, always, none, "generic", "6.2.0", "O(1)", "Prints this help."),

		row("memory|usage", -3, memoryUsage, read, second, "server", "4.0.0", "O(1)", "Returns the bytes that <key> and its value take."),
		row("memory|stats", 2, memoryStats, 0, none, "server", "4.0.0", "O(1)", "Returns figures about memory."),
		row("memory|doctor", 2, memoryDoctor, 0, none, "server", "4.0.0", "O(1)", "Tells in words how memory is doing."),
		row("memory|purge", 2, memoryPurge, 0, none, "server", "4.0.0", "O(1)", "Does nothing: memory comes back by itself."),
		row("memory|malloc-stats", 2, memoryMallocStats, 0, none, "server", "4.0.0", "O(1)", "Says that there is no such allocator here."),
		row("memory|help", 2, help, always, none, "server", "4.0.0", "O(1)", "Prints this help."),

		row("config|get", -3, configGet, admin, none, "server", "2.0.0", "O(N)", "Returns the parameters that match <pattern> [<pattern> ...]."),
		row("config|set", -4, configSet, admin, none, "server", "2.0.0", "O(N)", "Sets <parameter> <value> [<parameter> <value> ...]: all of them or none."),
		row("config|resetstat", 2, configResetstat, admin, none, "server", "2.0.0", "O(1)", "Sets the counters of INFO back to zero."),
		row("config|rewrite", 2, configRewrite, admin, none, "server", "2.8.0", "O(1)", "Is refused: the configuration file is written by people."),
		row("config|help", 2, help, always, none, "server", "5.0.0", "O(1)", "Prints this help."),

		row("command|count", 2, commandCount, always, none, "server", "2.8.13", "O(1)", "Returns the number of commands."),
		row("command|info", -2, commandInfo, always, none, "server", "2.8.13", "O(N)", "Describes [<command> ...] for machines."),
		row("command|docs", -2, commandDocs, always, none, "server", "7.0.0", "O(N)", "Describes [<command> ...] for people."),
		row("command|list", -2, commandListNames, always, none, "server", "7.0.0", "O(N)", "Names all commands, or [FILTERBY MODULE <name> | ACLCAT <category> | PATTERN <pattern>]."),
		row("command|getkeys", -4, commandGetkeys, always, none, "server", "2.8.13", "O(N)", "Names the keys in <command> <arg> [<arg> ...]."),
		row("command|getkeysandflags", -4, commandGetkeysAndFlags, always, none, "server", "7.0.0", "O(N)", "Names the keys in <command> <arg> [<arg> ...] and what it does with them."),
		row("command|help", 2, help, always, none, "server", "5.0.0", "O(1)", "Prints this help."),

		row("slowlog|get", -2, slowlogGet, flagAdmin|always, none, "server", "2.2.12", "O(N)", "Returns the last [<count>] slow commands; -1 means all, 10 is the default."),
		row("slowlog|len", 2, slowlogLen, flagAdmin|always, none, "server", "2.2.12", "O(1)", "Returns how many slow commands are kept."),
		row("slowlog|reset", 2, slowlogReset, flagAdmin|always, none, "server", "2.2.12", "O(N)", "Forgets the slow commands."),
		row("slowlog|help", 2, help, always, none, "server", "6.2.0", "O(1)", "Prints this help."),

		row("tenant|create", -3, tenantCreate, admin, none, "server", "7.2.0", "O(N)", "Makes tenant <name> PASSWORD <password> [DATABASES <n>] [BYTES <n>] [OPERATIONS <n>] [CONNECTIONS <n>] [INFLIGHT <n>] [FUNCTION-CPU <cores>] [FUNCTION-MEMORY <n>]."),
		row("tenant|set", -3, tenantSet, admin, none, "server", "7.2.0", "O(N)", "Changes the password or the limits of tenant <name>; 0 is no limit."),
		row("tenant|delete", 3, tenantDelete, admin, none, "server", "7.2.0", "O(N)", "Deletes tenant <name> and all its data."),
		row("tenant|list", 2, tenantList, admin, none, "server", "7.2.0", "O(N)", "Returns all tenants as JSON: what they may, and what they have used of this node."),
		row("tenant|function", -4, tenantFunction, admin, none, "server", "7.2.0", "Depends on the subcommand", "Runs FUNCTION <subcommand> [<arg> ...] for tenant <name>, as it would itself."),
		row("tenant|help", 2, help, always, none, "server", "7.2.0", "O(1)", "Prints this help."),

		row("function|load", -3, functionLoad, flagAlone|flagWrite|flagDenyOOM|flagNoScript, none, "scripting", "7.0.0", "O(N)", "Installs [REPLACE] a module: <#!wasm name=NAME, a new line, and the module's bytes>."),
		row("function|delete", 3, functionDelete, flagAlone|flagWrite|flagNoScript, none, "scripting", "7.0.0", "O(1)", "Deletes module <name> and its functions."),
		row("function|flush", -2, functionFlush, flagAlone|flagWrite|flagNoScript, none, "scripting", "7.0.0", "O(N)", "Deletes all modules [ASYNC|SYNC]."),
		row("function|list", -2, functionList, flagAlone|flagNoScript, none, "scripting", "7.0.0", "O(N)", "Lists modules and functions [LIBRARYNAME <pattern>] [WITHCODE]."),
		row("function|info", -2, functionInfo, flagAlone|flagNoScript, none, "scripting", "7.2.0", "O(N)", "Returns modules, or [<name>], as JSON: versions, sizes, and what their calls have used of this node."),
		row("function|logs", -3, functionLogs, flagAlone|flagNoScript, none, "scripting", "7.2.0", "O(N)", "Returns as JSON what functions of module <name> have logged on this node [AFTER <number>] [LEVEL <level>] [COUNT <n>]."),
		row("function|stats", 2, functionStats, flagNoScript|flagAllowBusy, none, "scripting", "7.0.0", "O(1)", "Returns the function that runs for longest, and how many there are."),
		row("function|kill", 2, functionKill, flagNoScript|flagAllowBusy, none, "scripting", "7.0.0", "O(1)", "Ends the functions that run on this node; what they wrote is not applied."),
		row("function|dump", 2, functionDump, flagAlone|flagNoScript, none, "scripting", "7.0.0", "O(N)", "Returns all modules as a payload for RESTORE."),
		row("function|restore", -3, functionRestore, flagAlone|flagWrite|flagDenyOOM|flagNoScript, none, "scripting", "7.0.0", "O(N)", "Installs what DUMP returned <payload> [FLUSH|APPEND|REPLACE], all of it or nothing."),
		row("function|help", 2, help, always, none, "scripting", "7.0.0", "O(1)", "Prints this help."),

		row("latency|latest", 2, latencyLatest, admin, none, "server", "2.8.13", "O(1)", "Returns the latest latency spikes; none are recorded."),
		row("latency|history", 3, latencyLatest, admin, none, "server", "2.8.13", "O(1)", "Returns the latency spikes of <event>; none are recorded."),
		row("latency|reset", -2, latencyReset, admin, none, "server", "2.8.13", "O(1)", "Forgets latency spikes; none are recorded."),
		row("latency|doctor", 2, latencyDoctor, admin, none, "server", "2.8.13", "O(1)", "Tells where to look for latencies."),
		row("latency|help", 2, help, always, none, "server", "2.8.13", "O(1)", "Prints this help."),

		row("client|id", 2, clientID, own, none, "connection", "5.0.0", "O(1)", "Returns the connection's id."),
		row("client|info", 2, clientInfo, own, none, "connection", "6.2.0", "O(1)", "Describes the connection."),
		row("client|list", -2, clientList, admin, none, "connection", "2.4.0", "O(N)", "Describes all connections, or those of [TYPE <type> | ID <id> ...]."),
		row("client|kill", -3, clientKill, admin, none, "connection", "2.4.0", "O(N)", "Closes connections by <addr> or by [ID | TYPE | USER | ADDR | LADDR | SKIPME] <value> ..."),
		row("client|setname", 3, clientSetname, own, none, "connection", "2.6.9", "O(1)", "Names the connection <name>."),
		row("client|getname", 2, clientGetname, own, none, "connection", "2.6.9", "O(1)", "Returns the connection's name."),
		row("client|setinfo", 4, clientSetinfo, own, none, "connection", "7.2.0", "O(1)", "Notes the client's LIB-NAME or LIB-VER <value>."),
		row("client|reply", 3, clientReply, own, none, "connection", "3.2.0", "O(1)", "Switches replies ON or OFF, or leaves the next one out with SKIP."),
		row("client|no-evict", 3, clientNoEvict, admin, none, "connection", "7.0.0", "O(1)", "Notes ON or OFF; connections are never evicted here."),
		row("client|no-touch", 3, clientNoTouch, own, none, "connection", "7.2.0", "O(1)", "Notes ON or OFF; reading leaves no trace here."),
		row("client|unblock", -3, clientUnblock, admin, none, "connection", "5.0.0", "O(1)", "Returns 0: no command of this server blocks."),
		row("client|pause", -3, clientPause, admin, none, "connection", "3.0.0", "O(1)", "Postpones all commands, or those that WRITE, for <milliseconds> [WRITE | ALL]."),
		row("client|unpause", 2, clientUnpause, admin, none, "connection", "6.2.0", "O(N)", "Ends a pause."),
		row("client|getredir", 2, clientGetredir, own, none, "connection", "6.0.0", "O(1)", "Returns -1: tracking is off."),
		row("client|trackinginfo", 2, clientTrackinginfo, own, none, "connection", "6.2.0", "O(1)", "Says that tracking is off."),
		row("client|tracking", -3, clientTracking, own, none, "connection", "6.0.0", "O(1)", "Accepts OFF; tracking is not supported."),
		row("cluster|info", 2, inCluster(clusterInfo), flagStale, none, "cluster", "3.0.0", "O(1)", "Tells the state of the cluster."),
		row("cluster|nodes", 2, inCluster(clusterNodes), flagStale, none, "cluster", "3.0.0", "O(N)", "Lists the nodes and their slots as text."),
		row("cluster|slots", 2, inCluster(clusterSlots), flagStale, none, "cluster", "3.0.0", "O(N)", "Lists ranges of slots and who serves them."),
		row("cluster|shards", 2, inCluster(clusterShards), flagStale, none, "cluster", "7.0.0", "O(N)", "Lists the nodes with their slots."),
		row("cluster|myid", 2, inCluster(clusterMyid), flagStale, none, "cluster", "3.0.0", "O(1)", "Returns the node's id."),
		row("cluster|keyslot", 3, inCluster(clusterKeyslot), flagStale, none, "cluster", "3.0.0", "O(N)", "Returns the slot of <key>."),
		row("cluster|countkeysinslot", 3, inCluster(clusterCountkeysinslot), flagStale, none, "cluster", "3.0.0", "O(N)", "Returns the number of keys in <slot> that are here."),
		row("cluster|getkeysinslot", 4, inCluster(clusterGetkeysinslot), flagStale, none, "cluster", "3.0.0", "O(N)", "Returns keys in <slot> that are here, up to <count>."),
		row("cluster|links", 2, inCluster(clusterLinks), flagStale, none, "cluster", "7.0.0", "O(1)", "Returns nothing: there is no bus between the nodes."),
		row("cluster|replicas", 3, inCluster(clusterReplicas), flagAdmin|flagStale, none, "cluster", "5.0.0", "O(1)", "Returns nothing: the backups of <node-id> serve no clients."),
		row("cluster|slaves", 3, inCluster(clusterReplicas), flagAdmin|flagStale, none, "cluster", "3.0.0", "O(1)", "An old name of REPLICAS."),
		row("cluster|count-failure-reports", 3, inCluster(clusterFailureReports), flagAdmin|flagStale, none, "cluster", "3.0.0", "O(1)", "Returns 0: leases tell who of <node-id> is alive."),
		row("cluster|meet", -4, notByHand(useAdd), byHand, none, "cluster", "3.0.0", "O(1)", "Is refused: nodes join by `ostro server --cluster`."),
		row("cluster|forget", 3, notByHand(useRemove), byHand, none, "cluster", "3.0.0", "O(1)", "Is refused: see `ostro cluster remove`."),
		row("cluster|replicate", 3, notByHand(useNothing), byHand, none, "cluster", "3.0.0", "O(1)", "Is refused: every node is a backup of others."),
		row("cluster|failover", -2, notByHand(useDrain), byHand, none, "cluster", "3.0.0", "O(1)", "Is refused: see `ostro cluster drain`."),
		row("cluster|addslots", -3, notByHand(useNothing), byHand, none, "cluster", "3.0.0", "O(N)", "Is refused: the coordinator assigns ranges."),
		row("cluster|addslotsrange", -4, notByHand(useNothing), byHand, none, "cluster", "7.0.0", "O(N)", "Is refused: the coordinator assigns ranges."),
		row("cluster|delslots", -3, notByHand(useDrain), byHand, none, "cluster", "3.0.0", "O(N)", "Is refused: the coordinator assigns ranges."),
		row("cluster|delslotsrange", -4, notByHand(useDrain), byHand, none, "cluster", "7.0.0", "O(N)", "Is refused: the coordinator assigns ranges."),
		row("cluster|flushslots", 2, notByHand(useDrain), byHand, none, "cluster", "3.0.0", "O(1)", "Is refused: the coordinator assigns ranges."),
		row("cluster|setslot", -4, inCluster(clusterSetslot), byHand, none, "cluster", "3.0.0", "O(1)", "Moves <slot> to a node (NODE), whole and live; MIGRATING, IMPORTING and STABLE announce it or take that back."),
		row("cluster|reset", -2, notByHand(useRemove), flagAdmin|flagNoScript|flagStale, none, "cluster", "3.0.0", "O(1)", "Is refused: see `ostro cluster remove`."),
		row("cluster|saveconfig", 2, notByHand(useNothing), byHand, none, "cluster", "3.0.0", "O(1)", "Is refused: etcd keeps the configuration."),
		row("cluster|set-config-epoch", 3, notByHand(useNothing), byHand, none, "cluster", "3.0.0", "O(1)", "Is refused: etcd keeps the configuration."),
		row("cluster|bumpepoch", 2, notByHand(useNothing), byHand, none, "cluster", "3.0.0", "O(1)", "Is refused: etcd keeps the configuration."),
		row("cluster|forwarded", -2, inCluster(clusterForwarded), flagStale, none, "cluster", "7.2.0", "O(1)", "Marks the connection as a proxy's: nothing is forwarded for it. Given a tenant, what follows is that tenant's."),
		row("cluster|help", 2, inCluster(help), always, none, "cluster", "5.0.0", "O(1)", "Prints this help."),

		row("client|help", 2, help, always, none, "connection", "5.0.0", "O(1)", "Prints this help."),
	}
}

// keySpan is where a command's keys stand, as COMMAND reports.
type keySpan struct{ first, last, step int }

func row(name string, arity int, run handler, flags commandFlags, k keySpan, group, since, complexity, summary string) command {
	return command{
		name: name, arity: arity, run: run, flags: flags, first: k.first, last: k.last, step: k.step,
		group: group, since: since, complexity: complexity, summary: summary,
	}
}

// keyed is a command whose keys a function finds.
func keyed(c command, keys func(args [][]byte) [][]byte) command {
	c.keys = keys
	return c
}

func init() {
	all := allSubcommands()
	for i := range all {
		name, _, _ := strings.Cut(all[i].name, "|")
		table[name].subs = append(table[name].subs, &all[i])
	}
}

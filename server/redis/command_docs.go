package redis

import "slices"

func commandDocs(c *call) verdict {
	chosen := commandList
	if len(c.args) > 2 {
		chosen = nil
		for _, name := range c.args[2:] {
			if cmd := commandByFullName(name); cmd != nil {
				chosen = append(chosen, cmd)
			}
		}
	}
	c.documentAll(chosen)
	return done
}

// documentAll answers with a map from names to documentation.
func (c *call) documentAll(cmds []*command) {
	c.out.Map(len(cmds))
	for _, cmd := range cmds {
		c.out.BulkString(cmd.name)
		c.document(cmd)
	}
}

func (c *call) document(cmd *command) {
	subs := cmd.subs
	fields := []struct{ name, text string }{
		{"summary", cmd.summary}, {"since", cmd.since}, {"group", cmd.group}, {"complexity", cmd.complexity},
	}
	n := len(fields)
	if len(subs) > 0 {
		n++
	}
	c.out.Map(n)
	for _, f := range fields {
		c.out.BulkString(f.name)
		c.out.BulkString(f.text)
	}
	if len(subs) > 0 {
		c.out.BulkString("subcommands")
		c.documentAll(subs)
	}
}

func commandListNames(c *call) verdict {
	filter, ok := c.listFilter()
	if !ok {
		return c.fail(errSyntax)
	}
	var names []string
	for _, cmd := range commandList {
		for _, each := range append([]*command{cmd}, cmd.subs...) {
			if filter != nil && filter(each) || filter == nil && each == cmd {
				names = append(names, each.name)
			}
		}
	}
	c.out.Array(len(names))
	for _, name := range names {
		c.out.BulkString(name)
	}
	return done
}

// listFilter reads COMMAND LIST's options: nil for none.
func (c *call) listFilter() (filter func(*command) bool, ok bool) {
	if len(c.args) == 2 {
		return nil, true
	}
	if len(c.args) != 5 || !c.is(2, "filterby") {
		return nil, false
	}
	arg := c.args[4]
	switch {
	case c.is(3, "module"):
		return func(*command) bool { return false }, true
	case c.is(3, "aclcat"):
		return func(cmd *command) bool {
			return slices.ContainsFunc(cmd.categories(), func(name string) bool { return equalFold(arg, name[1:]) })
		}, true
	case c.is(3, "pattern"):
		return func(cmd *command) bool { return globMatch(arg, []byte(cmd.name), true) }, true
	}
	return nil, false
}

func commandGetkeys(c *call) verdict         { return c.answerKeys(false) }
func commandGetkeysAndFlags(c *call) verdict { return c.answerKeys(true) }

// answerKeys names the keys of the command that stands in the arguments.
func (c *call) answerKeys(withFlags bool) verdict {
	args := c.args[2:]
	cmd := lookup(args[0])
	if cmd != nil {
		if sub := cmd.subcommand(args); sub != nil {
			cmd = sub
		}
	}
	switch {
	case cmd == nil:
		return c.fail("ERR Invalid command specified")
	case cmd.first == 0 && cmd.keys == nil:
		return c.fail("ERR The command has no key arguments")
	case !cmd.acceptsArgs(len(args)):
		return c.fail("ERR Invalid number of arguments specified for command")
	}
	keys := cmd.keysOf(args)
	c.out.Array(len(keys))
	for _, k := range keys {
		if withFlags {
			c.out.Array(2)
		}
		c.out.Bulk(k)
		if withFlags {
			c.words(cmd.keyFlags())
		}
	}
	return done
}

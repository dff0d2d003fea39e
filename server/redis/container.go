package redis

import "strings"

// container runs the subcommand that its first argument names. Dispatch has made
// sure that there is one.
func container(c *call) verdict { return c.cmd.subcommand(c.args).run(c) }

// misnamed tells what is wrong with the subcommand that a container's arguments
// name, "" if nothing is.
func (cmd *command) misnamed(args [][]byte) string {
	if len(args) < 2 {
		return "" // COMMAND alone
	}
	sub := cmd.subcommand(args)
	switch {
	case sub == nil:
		return "ERR unknown subcommand '" + shown(args[1]) + "'. Try " + strings.ToUpper(cmd.name) + " HELP."
	case !sub.acceptsArgs(len(args)):
		return "ERR wrong number of arguments for '" + sub.name + "' command"
	}
	return ""
}

// subcommand finds the subcommand that the arguments name; nil if there is none.
func (cmd *command) subcommand(args [][]byte) *command {
	if len(args) < 2 {
		return nil
	}
	for _, sub := range cmd.subs {
		if equalFold(args[1], sub.name[len(cmd.name)+1:]) {
			return sub
		}
	}
	return nil
}

// alone reports that the subcommand may not wait for EXEC.
func (cmd *command) alone(args [][]byte) bool {
	sub := cmd.subcommand(args)
	return sub != nil && sub.flags&flagAlone != 0
}

// badArguments answers for a subcommand that takes fewer arguments than it got.
func (c *call) badArguments() verdict {
	return c.fail("ERR unknown subcommand or wrong number of arguments for '" + shown(c.args[1]) + "'. Try " +
		strings.ToUpper(c.cmd.name) + " HELP.")
}

// shown is what an error tells of an argument: its first 128 bytes.
func shown(arg []byte) string {
	return cString(arg[:min(len(arg), 128)])
}

// help lists a container's subcommands.
func help(c *call) verdict {
	subs, name := c.cmd.subs, strings.ToUpper(c.cmd.name)
	c.out.Array(1 + 2*len(subs))
	c.out.SimpleString(name + " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:")
	for _, sub := range subs {
		c.out.SimpleString(strings.ToUpper(sub.name[len(name)+1:]))
		c.out.SimpleString("    " + sub.summary)
	}
	return done
}

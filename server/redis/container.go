package redis

import "strings"

// container runs the subcommand that its first argument names.
func container(c *call) verdict {
	sub := c.cmd.subcommand(c.args)
	if sub == nil {
		return c.fail("ERR unknown subcommand '" + shown(c.args[1]) + "'. Try " + strings.ToUpper(c.cmd.name) + " HELP.")
	}
	if !sub.acceptsArgs(len(c.args)) {
		return c.fail("ERR wrong number of arguments for '" + sub.name + "' command")
	}
	return sub.run(c)
}

// subcommand finds the subcommand that the arguments name; nil if there is none
// or the command has none at all.
func (cmd *command) subcommand(args [][]byte) *command {
	if len(args) < 2 {
		return nil
	}
	for _, sub := range subcommands[cmd.name] {
		if equalFold(args[1], sub.name[len(cmd.name)+1:]) {
			return sub
		}
	}
	return nil
}

// shown is what an error tells of an argument: its first 128 bytes.
func shown(arg []byte) string {
	return cString(arg[:min(len(arg), 128)])
}

// help lists a container's subcommands.
func help(c *call) verdict {
	subs, name := subcommands[c.cmd.name], strings.ToUpper(c.cmd.name)
	c.out.Array(1 + 2*len(subs))
	c.out.SimpleString(name + " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:")
	for _, sub := range subs {
		c.out.SimpleString(strings.ToUpper(sub.name[len(name)+1:]))
		c.out.SimpleString("    " + sub.summary)
	}
	return done
}

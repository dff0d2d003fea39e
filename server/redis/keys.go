package redis

// keysOf names the keys among a command's arguments, whose number fits its arity.
func (cmd *command) keysOf(args [][]byte) [][]byte {
	if sub := cmd.subcommand(args); sub != nil {
		cmd = sub
	}
	if cmd.keys != nil {
		return cmd.keys(args)
	}
	if cmd.first == 0 {
		return nil
	}
	last := cmd.last
	if last < 0 {
		last += len(args)
	}
	var keys [][]byte
	for i := cmd.first; i <= last && i < len(args); i += cmd.step {
		keys = append(keys, args[i])
	}
	return keys
}

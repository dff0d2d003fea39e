package redis

// resumption is what a command keeps on its connection while it waits for cold
// keys. Most commands keep nothing: they run again from their start. These two
// cannot, for one would never end and the other would act twice.
type resumption struct {
	keys keysProgress
	exec execProgress
}

// giveUp forgets a command that waited for cold keys and could not have them. It
// was EXEC if a transaction is under way.
func (cn *conn) giveUp() {
	if cn.multi.active {
		cn.endMulti()
	}
	cn.resume = resumption{}
}

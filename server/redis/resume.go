package redis

import calls "github.com/ostrodb/ostro/server/call"

// resumption is what a command keeps on its connection while it waits for cold
// keys, or for its work in the background. Most commands keep nothing: they run again from
// their start. These cannot, for they would never end or act twice.
type resumption struct {
	keys keysProgress
	exec execProgress

	pieces piecesProgress

	errand *errand     // under way, or done and not answered
	task   *calls.Task // a function that did not end at once
}

// giveUp forgets a command that waited for cold keys and could not have them. It
// was EXEC if a transaction is under way.
func (cn *conn) giveUp() {
	if cn.multi.active {
		cn.endMulti()
	}
	cn.dropTask()
	cn.resume = resumption{}
}

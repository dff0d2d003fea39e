package redis

import (
	"bytes"
	"strings"
)

// Errors of commands that never ran, in Redis' words.
const (
	errNoAuth    = "NOAUTH Authentication required."
	errNoMulti   = "ERR Command not allowed inside a transaction"
	unknownBytes = 128 // how much of an unknown command the error shows
)

// command runs the parsed command, which takes size bytes of the input at
// pos. It returns false if the connection has to wait before the command can
// be answered: then the input from pos on was put aside.
func (l *loop) command(c *conn, pos, size int) bool {
	args := l.parser.Args
	cmd := lookup(args[0])
	if l.call.running && (cmd == nil || cmd.flags&flagFunction == 0) {
		l.endCalls()
	}
	if c.account() != nil {
		c.net.refusal = l.charge(c, cmd, args, size)
	}
	if l.batchable(c, cmd, args, size) {
		return l.enbatch(c, cmd, args, pos, size)
	}
	return l.single(c, cmd, args, pos, size)
}

// single runs a command that does not wait in the batch.
func (l *loop) single(c *conn, cmd *command, args [][]byte, pos, size int) bool {
	c.net.sure = unsure
	if c.net.flying && l.mustLand(c, cmd) {
		c.setAside()
		l.blockOnFlight(c, pos)
		return false
	}
	if c.net.pending > 0 {
		l.flushBatch() // replies keep their order
		if c.net.parked {
			c.refundCommand(cmd, args)
			return false
		}
		l.call.conn, l.call.out = c, &c.out
	}
	if next := pos + size; pos >= l.ahead.end && next < len(c.net.window) {
		l.lookAhead(c, pos)
	}
	start := c.out.Len()
	switch {
	case c.net.failure != nil:
		c.out.Error(l.srv.storeError(c.net.failure))
		c.net.failure = nil
		c.giveUp()
	case !l.admit(c, cmd, args):
		c.dropTask() // The refusal is written.
	case l.routing != nil && !l.gate(c, cmd, args, pos):
		if c.net.parked {
			c.setAside()
			return false
		}
	case c.multi.active && cmd.flags&flagDirect == 0:
		l.enqueueMulti(c, cmd, args)
	case l.pause.until != 0 && l.postpones(c, cmd):
		c.setAside()
		l.postpone(c, pos)
		return false
	default:
		switch l.invoke(c, cmd, args, size) {
		case cold:
			c.out.Truncate(start)
			if refusal := c.mayWait(); refusal != "" {
				l.sess.TakeFetch() // Nobody waits for it.
				l.mayNotWait(c, refusal)
				break
			}
			l.parkCommand(c, pos)
			return false
		case later:
			c.out.Truncate(start)
			c.setAside()
			l.setInput(c, c.net.window[pos:])
			c.net.parked = true
			return false
		}
	}
	if c.asking && cmd != commandAsking && !c.multi.active {
		c.asking = false
	}
	if c.reply != replyOn {
		c.dropReply(start)
	}
	if c.net.flying {
		l.tuck(c, start)
	}
	return true
}

// mayNotWait answers a command that would have to wait, and may not.
func (l *loop) mayNotWait(c *conn, refusal string) {
	if c.resume.exec.next > 0 {
		c.closing = true // A part has run and the rest cannot: there is no true answer.
		return
	}
	c.giveUp()
	c.out.Error(refusal)
}

// plain reports that commands run at once and are answered.
func (c *conn) plain() bool {
	return c.authenticated && !c.multi.active && c.reply == replyOn && c.net.failure == nil && c.net.refusal == ""
}

// admit checks whether a command may run, and answers why not.
func (l *loop) admit(c *conn, cmd *command, args [][]byte) bool {
	var refusal string
	switch {
	case cmd == nil:
		if isWebRequest(args[0]) {
			l.refuseWebRequest(c)
			return false
		}
		refusal = unknownCommand(args)
	case !cmd.acceptsArgs(len(args)):
		refusal = "ERR wrong number of arguments for '" + cmd.name + "' command"
	case !c.authenticated && cmd.flags&flagNoAuth == 0 && l.srv.authRequired():
		refusal = errNoAuth
	case c.net.refusal != "":
		refusal, c.net.refusal = c.net.refusal, ""
	case c.multi.active && cmd.flags&flagNoMulti != 0:
		refusal = errNoMulti
	case c.multi.active && cmd.flags&flagFunction != 0:
		refusal = errNoFunctionInMulti
	case cmd.subs == nil:
		return true
	default:
		refusal = cmd.misnamed(args)
		if refusal == "" && c.multi.active && cmd.alone(args) {
			refusal = errAlone
		}
		if refusal == "" {
			return true
		}
	}
	c.multi.dirty = c.multi.dirty || c.multi.active
	if cmd != nil && cmd.name == "exec" {
		c.endMulti()
		refusal = "EXECABORT Transaction discarded because of: " + strings.TrimPrefix(refusal, "ERR ")
	}
	c.out.Error(refusal)
	l.tally.refused(cmd, refusal)
	return false
}

// invoke runs the handler and counts it.
func (l *loop) invoke(c *conn, cmd *command, args [][]byte, size int) verdict {
	start := c.out.Len()
	l.call.cmd, l.call.args, l.call.db = cmd, args, c.db
	l.last = cmd
	var v verdict
	if cmd.quick && size <= timedBytes && !l.tally.timeAll && c.resume.task == nil {
		v = cmd.run(&l.call)
	} else {
		v = l.timed(cmd)
	}
	if v != done {
		return v
	}
	l.tally.ran(cmd)
	c.net.bulky = c.out.Len()-start > bulkyBytes
	l.oweReply(c, c.out.Len()-start)
	if c.out.Len() > start && c.out.Bytes()[start] == '-' {
		l.tally.failed(cmd, c.out.Bytes()[start+1:])
	}
	return done
}

// timed runs the handler with a clock and logs it if it is slow. Quick
// commands run without, unless the slow log wants to know.
func (l *loop) timed(cmd *command) verdict {
	began := l.load.clock()
	v := cmd.run(&l.call)
	if v != done {
		return v
	}
	nanos := l.load.clock() - began
	l.tally.took(cmd, nanos)
	limit := l.srv.settings.slowlogMicros.Load()
	if micros := nanos / 1000; limit >= 0 && micros >= limit && cmd.flags&flagSkipSlowlog == 0 {
		l.srv.slowlog.add(&l.call, micros)
	}
	return v
}

// endCalls ends a run of calls of functions, if there is one.
func (l *loop) endCalls() {
	if l.call.running {
		l.call.running = false
		l.call.caller.End()
	}
}

// enqueueMulti copies a command for EXEC.
func (l *loop) enqueueMulti(c *conn, cmd *command, args [][]byte) {
	total := 0
	for _, a := range args {
		total += len(a)
	}
	c.multi.bytes += total + queuedBytes
	c.multi.steps += cmd.cost(args)
	if refusal := c.queueRefusal(); refusal != "" {
		l.refuseQueued(c, cmd, refusal)
		return
	}
	bytes := make([]byte, 0, total)
	copies := make([][]byte, len(args))
	for i, a := range args {
		start := len(bytes)
		bytes = append(bytes, a...)
		copies[i] = bytes[start:len(bytes):len(bytes)]
	}
	c.multi.queue = append(c.multi.queue, queued{cmd: cmd, args: copies})
	if err := c.hold(); err != nil {
		l.refuseQueued(c, cmd, "QUOTA "+err.Error())
		return
	}
	c.out.SimpleString("QUEUED")
}

// refuseQueued gives a transaction up that is too long, with all that it has queued.
func (l *loop) refuseQueued(c *conn, cmd *command, why string) {
	c.multi.dirty = true
	clear(c.multi.queue)
	c.multi.queue = c.multi.queue[:0]
	_ = c.hold() // Less is never too much.
	c.out.Error(why)
	l.tally.refused(cmd, why)
}

// dropReply removes what a command answered that should not answer.
func (c *conn) dropReply(start int) {
	c.out.Truncate(start)
	switch c.reply {
	case replySkipNext:
		c.reply = replySkip
	case replySkip:
		c.reply = replyOn
	}
}

// Access tells the operator's password, and whether clients from other machines are refused while there is none.
func (s *Server) Access() (password string, protected bool) {
	return *s.settings.requirePass.Load(), s.settings.protectedMode.Load()
}

// authRequired reports whether clients must show a password.
func (s *Server) authRequired() bool { return *s.settings.requirePass.Load() != "" }

// unknownCommand is the error for a command that does not exist.
func unknownCommand(args [][]byte) string {
	var shown strings.Builder
	for _, a := range args[1:] {
		if shown.Len() >= unknownBytes {
			break
		}
		shown.WriteString("'" + firstBytes(a, unknownBytes-shown.Len()) + "' ")
	}
	return "ERR unknown command '" + firstBytes(args[0], unknownBytes) + "', with args beginning with: " + shown.String()
}

// firstBytes is what C prints of b with %.*s.
func firstBytes(b []byte, n int) string {
	if end := bytes.IndexByte(b, 0); end >= 0 {
		b = b[:end]
	}
	return string(b[:min(n, len(b))])
}

// isWebRequest recognises the first words of an HTTP request, which a web
// page may make a browser send to us.
func isWebRequest(name []byte) bool {
	return strings.EqualFold(string(name), "post") || strings.EqualFold(string(name), "host:")
}

func (l *loop) refuseWebRequest(c *conn) {
	l.srv.log.Warn("possible security attack: a client speaks HTTP (POST or Host:), perhaps a browser misled by a web page; connection closed", "client", c.addr)
	c.closing = true
}

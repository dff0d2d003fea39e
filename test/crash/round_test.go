package crash

import "time"

// round loads the server, lets it die in some way, starts another and looks.
func (l *life) round() {
	l.t.Helper()
	ways := append([]death{{"kill", false, (*life).kill}, {"kill", false, (*life).kill}}, l.kind.deaths...)
	died := ways[l.rng.IntN(len(ways))]
	everything := l.logged() || died.graceful && l.durability != "none"
	began, ld := l.progress(), l.load()
	died.how(l, ld)
	ld.join()
	l.note("%s under %s after %d acknowledgements", died.name, l.durability, l.progress()-began)
	l.keep()
	for l.budget.left() && l.rng.IntN(4) == 0 {
		l.killDuringStart()
	}
	l.start()
	l.verify(everything)
}

// death is a way to end a server.
type death struct {
	name     string
	graceful bool
	how      func(l *life, ld *load)
}

// moment is how long a server lives under load: often some hundred
// milliseconds, sometimes hardly any time.
func (l *life) moment() time.Duration {
	if l.rng.IntN(4) == 0 {
		return time.Duration(l.rng.Int64N(int64(5 * time.Millisecond)))
	}
	return time.Duration(l.rng.Int64N(int64(l.kind.longest)))
}

// shot kills the server now.
func (l *life) shot() {
	l.server.Kill()
	l.budget.kills--
}

// kill kills it at a random moment.
func (l *life) kill(ld *load) {
	ld.last(l.moment())
	l.shot()
}

// killAt sends a command, waits for no answer, and kills a moment later.
func killAt(longest time.Duration, command ...string) func(*life, *load) {
	return func(l *life, ld *load) {
		ld.last(l.moment())
		c, err := l.server.Dial()
		if err != nil {
			l.fail(err)
		}
		defer c.Close()
		_ = c.Send(command...)
		_ = c.Flush()
		ld.last(time.Duration(l.rng.Int64N(int64(longest))))
		l.shot()
	}
}

// killPaused stops the server by SIGSTOP and kills it where it stands.
func killPaused(l *life, ld *load) {
	ld.last(l.moment())
	if err := l.server.Pause(); err != nil {
		l.fail(err)
	}
	l.shot()
}

// killResumed stops the server for a moment, lets it go on, sees it work
// again, and kills it.
func killResumed(l *life, ld *load) {
	ld.last(l.moment())
	if err := l.server.Pause(); err != nil {
		l.fail(err)
	}
	ld.last(l.moment())
	before := l.progress()
	if err := l.server.Resume(); err != nil {
		l.fail(err)
	}
	for end := time.Now().Add(time.Minute); l.progress() == before; {
		ld.last(time.Millisecond)
		if time.Now().After(end) {
			l.fail(l.server.Hung("go on after SIGCONT"))
		}
	}
	l.kill(ld)
}

// terminate stops the server in good order, under load.
func terminate(l *life, ld *load) {
	ld.last(l.moment())
	if err := l.server.Terminate(); err != nil {
		l.fail(err)
	}
}

// killStopping asks the server to stop, and kills it before it has.
func killStopping(l *life, ld *load) {
	ld.last(l.moment())
	l.server.AskToStop()
	select {
	case <-time.After(time.Duration(l.rng.Int64N(int64(30 * time.Millisecond)))):
	case <-l.server.Exited():
	}
	l.shot()
}

// killDuringStart kills a server that is recovering, or has just begun to serve.
func (l *life) killDuringStart() {
	was := l.durability
	l.launch()
	d := time.Duration(l.rng.Int64N(l.startMs*5/4+2)) * time.Millisecond
	select {
	case <-time.After(d):
	case <-l.server.Exited():
		l.fail(l.server.Ready())
	}
	l.shot()
	l.note("killed %s after its start under %s", d, l.durability)
	l.durability = was
}

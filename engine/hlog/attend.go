package hlog

// Attended is a Replicator that lets those who wait for copies look after them. Who looks for
// itself needs nobody to wake it, and most of what a small copy costs is waking.
//
// An attendant says Attend when it wakes, looks between its other work, and says Leave before it
// sleeps. All of it may be called by several at once.
type Attended interface {
	// Look takes note of copies that were made since the last look.
	Look()
	// Linger looks until over says that it is enough, or until it is better to sleep.
	Linger(over func() bool)
	// Attend begins. waited is what the last Leave was told.
	Attend(waited bool)
	// Leave ends it. Who leaves waiting is told by Source.Advanced as soon as something was copied; else
	// that may take a moment longer.
	Leave(waiting bool)
}

// Attended is the log's replicator if it lets others look after copies, else nil.
func (l *Log) Attended() Attended {
	a, _ := l.opts.Replicator.(Attended)
	return a
}

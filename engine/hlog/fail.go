package hlog

// failure is what ended all writing.
type failure struct {
	what  error // as operators see it
	write error // what a write is told
}

// fail notes the first failure; false if there was one before.
func (l *Log) fail(f *failure) bool { return l.failed.CompareAndSwap(nil, f) }

// Err is the failure that ended all durability, if there was one: a sync failed,
// and nobody knows what is on the disk, or copies cannot be made any more. What
// is not durable by then never will be.
func (l *Log) Err() error {
	if f := l.failed.Load(); f != nil {
		return f.what
	}
	return nil
}

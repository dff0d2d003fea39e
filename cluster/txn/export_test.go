package txn

// Marks is for a callback of CopyTo: it tells whether an execution has marked
// something to be copied again.
func (l *Log) Marks() (marked func() bool) {
	p := l.changed
	return func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, word := range p.bits {
			if word != 0 {
				return true
			}
		}
		return false
	}
}

// Waiting is how many writers of this client have a lock or wait for it.
func (l *Log) Waiting(lock int) int {
	l.writers.mu.Lock()
	defer l.writers.mu.Unlock()
	if e := l.writers.at[lock]; e != nil {
		return e.users
	}
	return 0
}

// LastOwner makes an owner the last one that was given out.
func (l *Log) LastOwner(o Owner) { l.lastID.Store(uint32(o)) }

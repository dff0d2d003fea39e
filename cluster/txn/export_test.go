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

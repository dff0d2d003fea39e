package epoch

// Current returns the global epoch.
func (t *Table) Current() Epoch { return Epoch(t.current.Load()) }

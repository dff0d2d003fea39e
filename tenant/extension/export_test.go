package extension

// Rest gives the memory of idle instances back to the system. They stay, and their next calls begin as first ones do.
// It returns how many it was done for; of modules that cannot begin anew there are none.
func (p *Pool) Rest() int {
	p.mu.Lock()
	p.gather()
	all := p.idle
	p.idle = nil
	p.mu.Unlock()
	rested := 0
	for _, in := range all {
		if in.first || in.reset() {
			rested++
		}
		p.giveBack(in)
	}
	return rested
}

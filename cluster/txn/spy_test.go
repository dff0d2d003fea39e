package txn_test

import (
	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/fabrictest"
)

// loop is the queue pair by which a chain's replica changes its own memory: the deepest.
func loop(s *fabrictest.Spy) (deepest fabric.QP) {
	for _, q := range s.QPs() {
		if deepest == nil || q.SendDepth() > deepest.SendDepth() {
			deepest = q
		}
	}
	return deepest
}

// oneOf is one of a device's queue pairs.
func oneOf(s *fabrictest.Spy, i int) fabric.QP {
	all := s.QPs()
	return all[i%len(all)]
}

package view

import (
	"fmt"
	"regexp"
)

// NodeID names a node for as long as its data lives: 1 to 64 of the letters,
// digits, dots, dashes and underscores, so that it fits into keys and file names.
type NodeID string

var nodeID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// Check says what is wrong with the name, if anything.
func (n NodeID) Check() error {
	if !nodeID.MatchString(string(n)) {
		return fmt.Errorf("%q is no name of a node: use 1 to 64 letters, digits, dots, dashes and underscores, the first a letter or digit", string(n))
	}
	return nil
}

// ViewID numbers what one node owns at a time. The numbers of two nodes have
// nothing to do with each other. 0 is the view of a node that never owned anything.
type ViewID uint64

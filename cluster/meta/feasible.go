package meta

import (
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
)

// Heard tells who has answered with the replicas that it has had since it joined. The snapshot that is asked is the one that says what
// follows: if it has another directory of a node, it has a ghost in the place of the former, too.
func (s *Snapshot) Heard(answered func(n view.NodeID, directory uint64) bool) func(view.NodeID) bool {
	return func(n view.NodeID) bool { return answered(n, s.Nodes[n].Replicas) }
}

// Recoverable tells whether a log can be recovered, given which backups have answered,
// and if not, whom to wait for: the node itself, or backups.
//
// Every segment has Copies backups. So while fewer than Copies are silent, one of each
// segment's has answered. Who is lost for good, or not known any more, or lost what it had, is silent and not
// waited for; what only it had is lost with it. But the node itself has everything, and so only an operator who gave it up, too, makes us go on
// without what may be missing.
func (s *Snapshot) Recoverable(id record.LogID, answered func(view.NodeID) bool) (waitFor []view.NodeID, ok bool) {
	log := s.Logs[id]
	silent := 0
	for _, b := range log.Backups {
		if answered(b) {
			continue
		}
		silent++
		if _, known := s.Nodes[b]; known && !s.Lost(b) {
			waitFor = append(waitFor, b)
		}
	}
	switch {
	case silent < log.Copies:
		return nil, true
	case s.Lost(log.Node):
		return waitFor, len(waitFor) == 0
	}
	return append([]view.NodeID{log.Node}, waitFor...), false
}

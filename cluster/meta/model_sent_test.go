package meta

import "slices"

// modelSent is a record that the cleaner of a source has sent to the target of a migration, who has it safe now: it is about to be
// dropped here.
type modelSent struct {
	migration uint64
	entry     modelEntry
}

// send is what the cleaner of a source does about a record of a place that is another's.
func (n *modelNode) send(m Migration, key int, to *modelNode, a *modelArrival) {
	e := n.store.index[key]
	to.store.take(e, true, to.store.log.appendSide)
	if n.w.flaw != "what was sent is not adopted" {
		to.adopt(a.ranges)
	}
	n.sent = append(n.sent, modelSent{m.ID, e})
}

// drop takes what was sent out of the index, and its entry out of the log: older ones may stay. It does nothing if it is not the
// target's any more as far as this node knows, for then it may have begun to take it back.
func (n *modelNode) drop() {
	s := n.sent[0]
	n.sent = n.sent[1:]
	if !n.yielded(s.migration) && n.w.flaw != "what was sent is dropped though it came back" {
		return
	}
	if n.store.index[s.entry.key] != s.entry {
		return
	}
	delete(n.store.index, s.entry.key)
	n.store.dropped[s.entry.key] = true
	n.store.log.entries = slices.DeleteFunc(slices.Clone(n.store.log.entries), func(e modelEntry) bool { return e == s.entry })
}

func (w *modelWorld) sendSteps(m Migration, a *modelArrival, all *modelSteps) {
	source, target := w.node(m.Source), w.node(m.Target)
	for key := range modelKeys {
		e, there := source.store.index[key]
		can := there && !e.unsafe && a.ranges.Contains(modelPlace(key)) && source.works() && source.yielded(m.ID)
		all.add(chore, can, func() { source.send(m, key, target, a) }, "%s sends key %d", m.Source, key)
	}
}

package group

import "github.com/ostrodb/ostro/fabric"

// A message down a chain of n, as replica i receives it:
//
//	execute 48  copy 32  flush 32 │ forward 32  (the same for replicas i+1 to n-1)  found 8n  data
//	   into the loop's requests   │            into the replica's slot
//
// The first three land in requests of the replica's loop, the rest in its slot. The
// loop's last request moves forward into the request that passes the message on:
//
//	forward │ all behind it: what replica i+1 receives, or for the last one, found
//
// A message down a naive chain is a header, found and data, and lies in the slot whole.
const (
	patchBytes = fabric.SlotBytes - fabric.PatchOffset // of a request that may be a CAS
	copyBytes  = fabric.SlotBytes - fabric.CopyOffset  // of any other
	hopBytes   = patchBytes + 3*copyBytes
	wordBytes  = 8
)

// foundBytes is the size of the result map.
func (s Spec) foundBytes() int { return s.Replicas * wordBytes }

// messageBytes is the size of the longest message that replica i receives.
func (s Spec) messageBytes(i int) int {
	switch s.Mode {
	case Chain:
		return (s.Replicas-i)*hopBytes + s.foundBytes() + s.MaxWrite
	case FanOut:
		return s.MaxWrite
	default:
		return headerBytes + s.foundBytes() + s.MaxWrite
	}
}

// stageBytes is the size of a replica's slot, the same on all.
func (s Spec) stageBytes() int { return roundUp(s.messageBytes(0)) }

// ackBytes is the size of the client's slot for a result map.
func (s Spec) ackBytes() int { return MaxReplicas * wordBytes }

func roundUp(n int) int { return (n + 63) &^ 63 }

// foundAt is where the result map lies in the slot of replica i of a chain.
func (s Spec) foundAt(i int) int { return copyBytes + (s.Replicas-i-1)*hopBytes }

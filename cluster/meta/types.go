package meta

import (
	"slices"
	"time"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
)

// Settings are what all nodes of a cluster must do alike.
type Settings struct {
	// Replicas is how many copies of a segment there are, the primary's included.
	Replicas int `json:"replicas"`
	// LeaseMillis is how long a silent node counts as alive.
	LeaseMillis int `json:"leaseMillis"`
	// SegmentBytes is the size of a segment.
	SegmentBytes int `json:"segmentBytes"`
	// MinNodes is how many nodes there must be before the space is dealt out to them.
	// 0: as many as are there once no other has come for a few seconds.
	MinNodes int `json:"minNodes,omitempty"`
	// Databases is how many numbered tables there are: a node that had fewer than another could not take what that has. It grows when a
	// node comes that was told to have more, and never shrinks. 0: the nodes so far were of a version that did not say.
	Databases int `json:"databases,omitempty"`
}

// DefaultSettings are for tests: a node brings the settings that it was configured with.
func DefaultSettings() Settings {
	return Settings{Replicas: 3, LeaseMillis: 2000, SegmentBytes: record.MaxSegmentBytes}
}

// Lease is LeaseMillis as a duration.
func (s Settings) Lease() time.Duration { return time.Duration(s.LeaseMillis) * time.Millisecond }

// Node is what is known of a node, dead or alive.
type Node struct {
	ID            view.NodeID  `json:"id"`
	Address       string       `json:"address"`
	RedisAddress  string       `json:"redisAddress,omitempty"`
	RedisTLS      string       `json:"redisTLS,omitempty"` // its encrypted Redis port
	AdminAddress  string       `json:"adminAddress,omitempty"`
	Zone          string       `json:"zone,omitempty"`
	CapacityBytes uint64       `json:"capacityBytes"`
	Log           record.LogID `json:"log"`
	// Replicas names the directory of replicas that the node has. If it is another one than before,
	// those are gone. 0: it has no name.
	Replicas uint64 `json:"replicas,omitempty"`
	// Left says that the node ended in good order: it had ceased to serve before its lease ended.
	Left bool `json:"left,omitempty"`
}

// Presence exists while a node's lease does.
type Presence struct {
	Started time.Time `json:"started"`
}

// Log is a primary's log.
type Log struct {
	ID   record.LogID `json:"id"`
	Node view.NodeID  `json:"node"`
	// ReplicaVersion rises when a backup is replaced. An open replica of a lower version
	// is a stale one.
	ReplicaVersion uint64 `json:"replicaVersion"`
	// Retired says that others have taken the log over. Nobody may serve from it again.
	Retired bool `json:"retired,omitempty"`
	// Backups are all nodes that may hold replicas which a recovery needs. A node is
	// here before it gets its first one.
	Backups []view.NodeID `json:"backups,omitempty"`
	// Copies is how many backups every segment of the log has. So a recovery can go
	// without all but Copies-1 of the Backups and still find a copy of each.
	Copies int `json:"copies"`
	// Floors are where records of places begin to count that were given to the node, and which it had before.
	Floors []Floor `json:"floors,omitempty"`
	// Leaving are places that others have now and do not need this log for, and whose records the node
	// has not dropped yet. It must not be given them until it has.
	Leaving view.Ranges `json:"leaving,omitempty"`
}

// Recovery is work that any coordinator can go on with: the parts of a dead
// node's log that heirs replay, or of a living one's that returns ranges.
type Recovery struct {
	Node  view.NodeID  `json:"node"`
	Log   record.LogID `json:"log"`
	Parts []Part       `json:"parts"`
	// Return is the migration whose target gives back what it got, 0 if the node is dead. The log of
	// a return lives on: it is neither retired nor closed, and its replicas stay.
	Return uint64 `json:"return,omitempty"`
	// Plan is what all heirs replay. It is written once, after all backups that could be
	// asked had closed the log to its primary.
	Plan *Plan `json:"plan,omitempty"`
}

// Plan is which part of a dead log counts: so a batch is recovered by all heirs or by none.
type Plan struct {
	// Cut is the last batch that does.
	Cut record.BatchID `json:"cut"`
	// Roster numbers the list of the log's segments that was the newest.
	Roster uint64 `json:"roster"`
	// Without are segments of it of which no copy is left, and which an operator
	// gave up with the nodes that had them.
	Without []record.SegmentID `json:"without,omitempty"`
}

// Part is what one heir takes.
type Part struct {
	Heir   view.NodeID `json:"heir"`
	Ranges view.Ranges `json:"ranges"`
	// Served says that the heir has all of it and serves it. Nothing is decided by it: the log is needed until
	// Done, and an heir that starts again replays it again.
	Served bool `json:"served,omitempty"`
	// Done says that it has its copies, too: nobody needs the log for it any more.
	Done bool `json:"done,omitempty"`
}

// Served tells whether all heirs serve their parts.
func (r Recovery) Served() bool {
	return !slices.ContainsFunc(r.Parts, func(p Part) bool { return !p.Served && !p.Done })
}

// Done tells whether all heirs have their parts, and copies of them.
func (r Recovery) Done() bool {
	for _, p := range r.Parts {
		if !p.Done {
			return false
		}
	}
	return true
}

// inherited is the recovery after one of its heirs died and others took what it had.
func (r Recovery) inherited(dead view.NodeID, moves []view.Move) Recovery {
	var parts []Part
	for _, p := range r.Parts {
		if p.Heir != dead || p.Done {
			parts = append(parts, p)
			continue
		}
		for _, m := range moves {
			if both := p.Ranges.Intersect(m.Ranges); len(both) > 0 {
				parts = append(parts, Part{Heir: m.To, Ranges: both})
			}
		}
	}
	r.Parts = parts
	return r
}

package replica

import "github.com/ostrodb/ostro/engine/record"

// NameOf is the name of a replica's file.
func NameOf(log record.LogID, id record.SegmentID) string { return replicaName(log, id) }

package migrate

import (
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/store"
)

// Ranges are places as a store wants them.
func Ranges(ranges view.Ranges) []store.Range {
	list := make([]store.Range, len(ranges))
	for i, r := range ranges {
		list[i] = store.Range(r)
	}
	return list
}

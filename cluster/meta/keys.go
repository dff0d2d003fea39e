package meta

import (
	"fmt"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
)

// Keys, below the cluster's prefix.
const (
	keySettings = "settings"
	keyMap      = "map"
	keySecret   = "secret"
	keyBalancer = "balancer"
	keyDecision = "decision"

	keyMigrationCounter = "counters/migration"

	dirNodes       = "nodes/"
	dirAlive       = "alive/"
	dirLogs        = "logs/"
	dirMigrations  = "migrations/"
	dirMoves       = "moves/"
	dirReturns     = "returns/"
	dirRecoveries  = "recoveries/"
	dirCoordinator = "coordinator/"
	dirMarks       = "marks/"
	dirWishes      = "wishes/"
	dirProgress    = "progress/"
)

func keyNode(n view.NodeID) string      { return dirNodes + string(n) }
func keyAlive(n view.NodeID) string     { return dirAlive + string(n) }
func keyLog(l record.LogID) string      { return fmt.Sprintf("%s%016x", dirLogs, uint64(l)) }
func keyRecovery(l record.LogID) string { return fmt.Sprintf("%s%016x", dirRecoveries, uint64(l)) }

func keyMarks(n view.NodeID) string { return dirMarks + string(n) }
func keyWish(n view.NodeID) string  { return dirWishes + string(n) }
func keyProgress(l record.LogID, by string) string {
	return fmt.Sprintf("%s%016x/%s", dirProgress, uint64(l), by)
}

func keyMigration(id uint64) string { return fmt.Sprintf("%s%016x", dirMigrations, id) }
func keyMove(id uint64) string      { return fmt.Sprintf("%s%016x", dirMoves, id) }
func keyReturn(id uint64) string    { return fmt.Sprintf("%s%016x", dirReturns, id) }

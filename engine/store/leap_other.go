//go:build !amd64

package store

import "github.com/ostrodb/ostro/engine/record"

// canLeap tells whether leap works here.
const canLeap = false

func leap(*Session, *table, uint64) (p record.Ptr, word uint64, state uint32) { return }

package background

import (
	"sync"
	"time"
)

// Diligence is for bulk work whose end clients wait for in a way, as for that of a migration. The goroutine that asks it between pieces of work
// has a thread of its own from the first time on, for as long as it lives. That goes after those who serve and before what is quiet. In its first
// moments it has little of a core that those never leave: what queued up when the work began, as when ranges change hands, is served first. From
// then on it has some. A process that may not raise priorities again gives it that at once.
//
// The zero value is ready. It belongs to one goroutine.
type Diligence struct {
	began time.Time
	full  bool
}

// headStart is for how long who serves goes before.
const headStart = 100 * time.Millisecond

// Piece is asked before a piece of work.
func (d *Diligence) Piece() {
	switch {
	case d.full:
	case d.began.IsZero():
		d.began, d.full = time.Now(), !mayRaise()
		if d.full {
			nice(diligence)()
		} else {
			nice(modesty)()
		}
	case time.Since(d.began) >= headStart:
		d.full = true
		_ = lower(diligence) // Refused after all, it goes on as it was.
	}
}

// mayRaise tells whether a thread of this process that was made nice may be made less so.
var mayRaise = sync.OnceValue(func() (may bool) {
	apart(nice(modesty), func() { may = lower(diligence) })
	return may
})

package hlog

import (
	"errors"
	"sync"
	"time"
)

// shortage is what keeps the machine from giving segments, when it does. Clients are refused one by one then, and whoever
// runs the server is told, too: at once, and from time to time.
type shortage struct {
	mu    sync.Mutex
	why   error // nil: there is none
	since time.Time
	told  time.Time
}

// tellAgain is how long after a word of a shortage that goes on the next one follows.
const tellAgain = time.Minute

// attempted takes note of an attempt to make a segment. It is for those who make them in good time: whoever is served waits for no
// log of the server's.
func (l *Log) attempted(err error) {
	if err != nil && !errors.Is(err, ErrNoSegment) {
		return // It was not the machine.
	}
	s := &l.shortage
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	switch {
	case err == nil && s.why != nil && !s.told.Before(s.since): // Of one that comes and goes nobody hears more often.
		l.opts.Logger.Info("there is room for new segments again", "after", now.Sub(s.since).Round(time.Millisecond).String())
	case err != nil && s.why == nil:
		s.since = now
	}
	if s.why = err; err != nil && now.Sub(s.told) >= tellAgain {
		s.told = now
		l.opts.Logger.Warn("there is no room for another segment: writes are refused until there is", "error", err)
	}
}

// Shortage tells why no segment could be made when that was last tried, if that is the machine's fault.
func (l *Log) Shortage() error {
	l.shortage.mu.Lock()
	defer l.shortage.mu.Unlock()
	return l.shortage.why
}

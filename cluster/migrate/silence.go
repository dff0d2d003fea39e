package migrate

import (
	"context"
	"strings"
	"time"
)

// silence is the time in which steps fail and nothing comes from the source. Losses of a connection now and
// then are no silence, as long as each time something comes that need not come again.
type silence struct {
	since    time.Time // zero if there is none
	advances int64     // there were by then
}

func (s *silence) end() { *s = silence{} }

// lasts is for how long there is silence, when a step has failed after so many advances: it begins with the first failure
// after the last of them.
func (s *silence) lasts(advances int64) time.Duration {
	if s.since.IsZero() || s.advances != advances {
		*s = silence{time.Now(), advances}
		return 0
	}
	return time.Since(s.since)
}

// reason is an error in one line, without those that only say that another one ended them.
func reason(err error) string {
	var all []string
	for line := range strings.Lines(err.Error()) {
		if line = strings.TrimSpace(line); line != "" && line != context.Canceled.Error() {
			all = append(all, line)
		}
	}
	return strings.Join(all, "; ")
}

package meta

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/ostrodb/ostro/engine/record"
)

// Progress tells people how far a recovery has come. Nothing is decided by it.
type Progress struct {
	// Who tells: an heir, or the coordinator if empty.
	Who string `json:"who,omitempty"`
	// Log is whose recovery it is.
	Log   record.LogID `json:"log"`
	Stage string       `json:"stage"`
	Done  int64        `json:"done,omitempty"` // of Total, in Unit
	Total int64        `json:"total,omitempty"`
	Unit  string       `json:"unit,omitempty"`
	Began time.Time    `json:"began"`
	At    time.Time    `json:"at"`
}

// Left estimates how long it goes on, 0 if nobody knows.
func (p Progress) Left() time.Duration {
	took := p.At.Sub(p.Began)
	if p.Done <= 0 || p.Total <= p.Done || took <= 0 {
		return 0
	}
	return time.Duration(float64(took) * float64(p.Total-p.Done) / float64(p.Done))
}

// TheCoordinator is under which name a snapshot has what the coordinator tells.
const TheCoordinator = "-"

func (p Progress) by() string {
	if p.Who == "" {
		return TheCoordinator
	}
	return p.Who
}

func (s *Snapshot) decodeProgress(by string, value []byte) error {
	var p Progress
	if err := json.Unmarshal(value, &p); err != nil {
		return err
	}
	if s.Progress[p.Log] == nil {
		s.Progress[p.Log] = map[string]Progress{}
	}
	s.Progress[p.Log][by] = p
	return nil
}

// Tell shows progress to whoever looks, for as long as the dead node is not back and
// the recovery has not ended.
func (w writer) Tell(ctx context.Context, p Progress) error {
	if strings.Contains(p.Who, "/") {
		return fmt.Errorf("%q is no name of a node", p.Who)
	}
	return w.change(ctx, func(e *edit) error {
		if was, there := e.seen.Progress[p.Log][p.by()]; there && was.Stage == p.Stage && was.Done == p.Done && was.Total == p.Total {
			return nil
		}
		if _, ok := e.seen.Recoveries[p.Log]; !ok && p.Who != "" {
			return nil // It has ended.
		}
		return e.put(keyProgress(p.Log, p.by()), p)
	})
}

// Hush takes back what was told of a recovery that will not be: its node came back by itself.
func (t *Term) Hush(ctx context.Context, log record.LogID) error {
	return t.change(ctx, func(e *edit) error {
		for by := range e.seen.Progress[log] {
			e.delete(keyProgress(log, by))
		}
		return nil
	})
}

package server

import (
	"errors"
	"fmt"
	"time"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/server/admin"
)

// MigrationStatus is a migration, under way or one of the last that have ended.
type MigrationStatus struct {
	meta.Migration
	Share float64 `json:"share"` // of all keys
	// Doing is what it does now, or what it waits for; empty once it has ended.
	Doing string `json:"doing,omitempty"`
	// Progress is what its target tells of it, while it is under way.
	Progress *meta.MigrationProgress `json:"progress,omitempty"`
	// Left estimates how long it goes on; 0 if nobody knows.
	Left time.Duration `json:"left,omitempty"`
}

// Took is how long it has moved data: until its target carried all load, if cold records were to follow.
func (m MigrationStatus) Took() time.Duration {
	switch {
	case m.Began.IsZero():
		return 0
	case !m.Served.IsZero():
		return m.Served.Sub(m.Began)
	case m.Ended.IsZero():
		return time.Since(m.Began)
	}
	return m.Ended.Sub(m.Began)
}

// MigrationsOf makes a status of every migration that is known, the oldest first.
func MigrationsOf(s *meta.Snapshot) (all []MigrationStatus) {
	for _, m := range s.AllMigrations() {
		all = append(all, migrationStatus(s, m))
	}
	return all
}

func migrationStatus(s *meta.Snapshot, m meta.Migration) MigrationStatus {
	st := MigrationStatus{Migration: m, Share: m.Ranges.Fraction()}
	if m.Stage.Ended() {
		return st
	}
	if p, told := s.Moves[m.ID]; told {
		st.Progress, st.Left = &p, p.Left()
		if m.Served.IsZero() {
			st.Records, st.Bytes = p.Records, p.Bytes
		}
	}
	st.Doing = doing(s, m, st.Progress)
	return st
}

// doing says in a few words what happens to a migration that has not ended.
func doing(s *meta.Snapshot, m meta.Migration, p *meta.MigrationProgress) string {
	switch {
	case m.Stage == meta.Wanted:
		if err := s.Ready(m); errors.Is(err, meta.ErrNotYet) {
			return "waits, " + err.Error()
		} else if err != nil {
			return "will fail: " + err.Error()
		}
	case m.Cancel && m.Stage == meta.Moving:
		return "is being cancelled"
	case m.Stage == meta.Returning:
		return string(m.Source) + " takes back what " + string(m.Target) + " wrote"
	}
	at := string(m.Stage)
	switch {
	case m.Remaining(p) > 0:
		at = fmt.Sprintf("settling, %d cold records to come", m.Remaining(p))
	case p != nil:
		at = p.Stage
	case m.Stage == meta.Wanted:
		at = "about to begin"
	}
	if p != nil && p.Waiting != "" {
		at += ", waits: " + p.Waiting
	}
	return at
}

// moves are lines of the status page: migrations in which the node has part.
func (h *host) moves() (facts []admin.Fact) {
	for _, m := range MigrationsOf(h.cache.Snapshot()) {
		if m.Stage.Ended() || m.Source != h.self && m.Target != h.self {
			continue
		}
		text := fmt.Sprintf("%.1f%% of the keys from %s to %s: %s", 100*m.Share, m.Source, m.Target, m.Doing)
		if p := m.Progress; p != nil && m.Served.IsZero() {
			text += fmt.Sprintf(", %d records, %s, %s/s", p.Records, Size(p.Bytes).Short(), Size(p.Rate).Short())
		}
		facts = append(facts, admin.Fact{Name: fmt.Sprintf("migration %d", m.ID), Value: text})
	}
	return facts
}

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/server"
)

// migrationReport is what `ostro migrate` says of a migration. Its JSON is for scripts: fields are
// added, never renamed.
type migrationReport struct {
	server.MigrationStatus
	Impact []nodeImpactReport `json:"impact,omitempty"`
}

// lookEvery is how often the nodes are asked what they do to clients.
const lookEvery = 500 * time.Millisecond

// ended tells whether a migration has ended.
func ended(m meta.Migration) bool { return m.Stage.Ended() }

// moved tells whether it has, or its target carries all load.
func moved(m meta.Migration) bool { return m.Stage.Ended() || m.Moved() && !m.Cancel }

// followMigration waits until a migration is as over says, and shows meanwhile how far it is.
func followMigration(ctx context.Context, store *meta.Store, id uint64, over func(meta.Migration) bool, look *impact, screen *migrationScreen) (server.MigrationStatus, error) {
	cache, err := store.Follow(ctx)
	if err != nil {
		return server.MigrationStatus{}, err
	}
	defer cache.Close()
	defer screen.clear()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		changed := cache.Changed()
		st, there := migrationIn(cache.Snapshot(), id)
		if !there {
			return st, fmt.Errorf("migration %d is not known any more: only the last ones are remembered", id)
		}
		screen.draw(st, look)
		if over(st.Migration) {
			look.look(ctx)
			return st, nil
		}
		select {
		case <-changed:
		case <-tick.C:
			look.look(ctx)
		case <-ctx.Done():
			return st, ctx.Err()
		}
	}
}

func migrationIn(s *meta.Snapshot, id uint64) (server.MigrationStatus, bool) {
	for _, m := range server.MigrationsOf(s) {
		if m.ID == id {
			return m, true
		}
	}
	return server.MigrationStatus{}, false
}

// migrationScreen shows a migration that goes on: on a terminal in a line that changes, else in a line for every
// new stage. A nil one shows nothing.
type migrationScreen struct {
	bar   *progressBar // nil if nobody looks
	out   io.Writer
	doing string
}

func newMigrationScreen(out io.Writer, quiet bool) *migrationScreen {
	if quiet {
		return nil
	}
	s := &migrationScreen{out: out}
	if f, ok := out.(*os.File); ok {
		s.bar = newProgressBar(f)
	}
	return s
}

func (s *migrationScreen) draw(m server.MigrationStatus, look *impact) {
	switch {
	case s == nil || m.Stage.Ended():
	case s.bar != nil:
		s.bar.line(migrationLine(m, s.bar.width()-1, look.text()))
	case m.Doing != s.doing:
		fmt.Fprintf(s.out, "Migration %d: %s\n", m.ID, m.Doing)
	}
	if s != nil {
		s.doing = m.Doing
	}
}

func (s *migrationScreen) clear() {
	if s != nil {
		s.bar.Clear()
	}
}

// migrationLine is how far a migration is, in at most width columns:
//
//	pulling  ███████░░░░░  56%  1,234,567 records  90 of 161 MB  212 MB/s  1s left  p99.9 node1 0.98 ms (was 0.91 ms), ...
//
// Where that does not fit, what it does to clients matters more than how many records there were.
func migrationLine(m server.MigrationStatus, width int, impact string) string {
	line := []rune(migrationText(m, 16, true, impact))
	if len(line) > width {
		line = []rune(migrationText(m, 6, false, impact))
	}
	return string(line[:min(len(line), max(width, 0))])
}

// migrationText is migrationLine with a bar of so many blocks, as long as it gets.
func migrationText(m server.MigrationStatus, bar int, amount bool, impact string) string {
	parts := []string{m.Doing}
	if p := m.Progress; p != nil && (m.Stage == meta.Moving && !m.Settling() || m.Stage == meta.Copying) {
		if p.Total > 0 {
			share := min(1, float64(p.Bytes)/float64(p.Total))
			parts = append(parts, blocks(share, bar)+fmt.Sprintf(" %3.0f%%", share*100))
		}
		if amount {
			parts = append(parts, counted(p.Records, "record"), megabytes(p.Bytes)+" MB")
		}
		if p.Rate > 0 {
			parts = append(parts, megabytes(int64(p.Rate))+" MB/s")
		}
		if m.Left > 0 {
			parts = append(parts, fmt.Sprintf("%.0fs left", m.Left.Seconds()))
		}
	}
	if impact != "" {
		parts = append(parts, impact)
	}
	return strings.Join(parts, "  ")
}

// megabytes writes bytes as whole megabytes, small numbers with a digit more.
func megabytes(n int64) string {
	mb := float64(n) / 1e6
	if mb < 10 {
		return fmt.Sprintf("%.1f", mb)
	}
	return thousands(int64(mb))
}

// print writes how a migration has ended, or how far it is.
func (r migrationReport) print(out io.Writer) {
	m := r.MigrationStatus
	what := slotText(m.Ranges)
	switch {
	case m.Stage == meta.Done:
		fmt.Fprintf(out, "Migration %d is done: %s went from %s to %s.\n", m.ID, what, m.Source, m.Target)
	case m.Settling() && !m.Cancel:
		fmt.Fprintf(out, "Migration %d has moved %s from %s to %s; %s follow in the background.\n", m.ID, what, m.Source, m.Target, counted(r.remaining(), "cold record"))
	case m.Stage.Ended():
		fmt.Fprintf(out, "Migration %d is %s: %s %s at %s.\n", m.ID, m.Stage, what, stay(m.Ranges), m.Source)
	default:
		fmt.Fprintf(out, "Migration %d, %s from %s to %s: %s.\n", m.ID, what, m.Source, m.Target, m.Doing)
	}
	if m.Why != "" {
		fmt.Fprintf(out, "  %s\n", m.Why)
	}
	if line := r.amount(); line != "" {
		fmt.Fprintf(out, "  %s\n", line)
	}
	if m.Closed > 0 {
		fmt.Fprintf(out, "  clients of these keys waited for up to %s when they changed hands\n", latencyText(m.Closed))
	}
	if line := impactLine(r.Impact); line != "" {
		fmt.Fprintf(out, "  %s\n", line)
	}
}

// remaining is how many cold records are still at the source, as far as is known.
func (r migrationReport) remaining() int64 { return r.Migration.Remaining(r.Progress) }

func stay(ranges view.Ranges) string {
	if len(ranges.AtSlots()) == 1 {
		return "stays"
	}
	return "stay"
}

// amount is how much was moved how fast.
func (r migrationReport) amount() string {
	m := r.MigrationStatus
	if m.Records == 0 && m.Bytes == 0 {
		return ""
	}
	text := fmt.Sprintf("%s, %s MB", counted(m.Records, "record"), megabytes(m.Bytes))
	if took := m.Took(); took > 0 {
		text += fmt.Sprintf(" in %s: %s MB/s", took.Round(time.Millisecond), megabytes(int64(float64(m.Bytes)/took.Seconds())))
	}
	switch {
	case m.Cold > 0 && m.Stage == meta.Done:
		text += fmt.Sprintf("; %s followed%s", counted(m.Cold, "cold record"), ways(m.Followed))
	case m.Cold > 0 && m.Stage.Ended():
		text += fmt.Sprintf("; it ended before all of %s had followed", counted(m.Cold, "cold record"))
	}
	if p := m.Progress; p != nil && p.Followed != (meta.Followed{}) {
		text += "; cold records so far" + ways(p.Followed)
	}
	if p := m.Progress; p != nil && p.PriorityPulls > 0 {
		text += fmt.Sprintf("; %s", counted(p.PriorityPulls, "priority pull"))
	}
	return text
}

// ways tells how cold records came.
func ways(f meta.Followed) string {
	var parts []string
	for _, way := range []struct {
		n    int64
		text string
	}{{f.Shared, "from the shared tier"}, {f.Asked, "asked for"}, {f.Sent, "sent by the source's cleaner"}} {
		if way.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", way.n, way.text))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

func impactLine(all []nodeImpactReport) string {
	var parts []string
	for _, r := range all {
		if r.Before != 0 || r.During != 0 {
			parts = append(parts, fmt.Sprintf("%s %s before, %s meanwhile", r.Node, latencyText(r.Before), latencyText(r.During)))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "p99.9 of replies: " + strings.Join(parts, "; ")
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/server"
)

// paperCluster is a cluster of which there is only the metadata, in a real etcd. Whoever runs
// the test does what its nodes would do.
type paperCluster struct {
	url   string
	store *meta.Store
	nodes map[view.NodeID]*meta.Member
}

// newPaperCluster has the nodes share all keys. admin is where their metrics are.
func newPaperCluster(t *testing.T, admin string, ids ...view.NodeID) *paperCluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	e, err := meta.StartEmbedded(ctx, meta.EmbeddedConfig{Dir: t.TempDir(), Log: quietLog()})
	must(t, err)
	t.Cleanup(e.Close)
	p := &paperCluster{url: "etcd://" + e.Addr(), nodes: map[view.NodeID]*meta.Member{}}
	c, err := meta.ParseURL(p.url)
	must(t, err)
	c.Log = quietLog()
	p.store, err = meta.Open(ctx, c)
	must(t, err)
	t.Cleanup(func() { _ = p.store.Close() })
	s := meta.DefaultSettings()
	s.LeaseMillis = 60_000 // Nobody dies of a slow machine.
	_, err = p.store.Configure(ctx, s)
	must(t, err)
	for i, id := range ids {
		m, err := p.store.Join(ctx, meta.Node{ID: id, Log: record.LogID(i + 1), AdminAddress: admin})
		must(t, err)
		t.Cleanup(func() { _ = m.Lease.Close(context.Background()) })
		p.nodes[id] = m
	}
	term, err := p.nodes[ids[0]].Campaign(ctx)
	must(t, err)
	must(t, term.Begin(ctx, ids...))
	must(t, term.Resign(ctx))
	return p
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// ostro runs a command on the cluster.
func (p *paperCluster) ostro(t *testing.T, line string) (string, error) {
	t.Helper()
	return ostro(t, append(strings.Fields(line), "--cluster", p.url)...)
}

func TestWhatToMoveIsSaidInOneOfThreeWays(t *testing.T) {
	owned := view.RangesOf(view.SlotsRange(0, 99))
	for _, c := range []struct {
		what whatToMove
		want view.Ranges
	}{
		{whatToMove{slots: "0-9, 20"}, view.RangesOf(view.SlotsRange(0, 9), view.SlotsRange(20, 20))},
		{whatToMove{ranges: "40-4f"}, view.RangesOf(view.Range{First: 0x40 << 56, Last: 0x50<<56 - 1})},
		{whatToMove{ranges: "1"}, view.RangesOf(view.Range{First: 1 << 60, Last: 2<<60 - 1})},
		{whatToMove{ranges: "00000000000000aa-00000000000000ab"}, view.RangesOf(view.Range{First: 0xaa, Last: 0xab})},
		{whatToMove{fraction: 0.25}, view.RangesOf(view.SlotsRange(75, 99))},
		{whatToMove{fraction: 1}, owned},
	} {
		got, err := c.what.of(owned)
		if err != nil || !got.Equal(c.want) || c.what.check() != nil {
			t.Errorf("%+v is %s, %v; want %s", c.what, got, err, c.want)
		}
	}
	for _, c := range []struct {
		what whatToMove
		want string
	}{
		{whatToMove{}, "one of --slots"},
		{whatToMove{slots: "1", fraction: 0.5}, "in one way"},
		{whatToMove{fraction: 1.5}, "up to 1, not 1.5"},
		{whatToMove{fraction: -1}, "up to 1, not -1"},
		{whatToMove{fraction: math.NaN(), share: true}, "up to 1, not NaN"},
		{whatToMove{slots: "16384"}, "they go from 0 to 16383"},
		{whatToMove{slots: "9-3"}, "ends before it begins"},
		{whatToMove{slots: "all"}, "is no slot"},
		{whatToMove{ranges: "8-7"}, "ends before it begins"},
		{whatToMove{ranges: "xyz"}, "want hexadecimal digits"},
		{whatToMove{ranges: "-7f"}, "is no place"},
	} {
		if err := c.what.check(); exitCode(err) != exitUsage || !strings.Contains(said(err), c.want) {
			t.Errorf("%+v: %v, want %q", c.what, err, c.want)
		}
	}
}

func TestAMigrationIsRefusedWithWhatToDo(t *testing.T) {
	p := newPaperCluster(t, "", "a", "b")
	for line, want := range map[string]string{
		"--from a":                                                 "--from NODE --to NODE",
		"--from a --to b":                                          "one of --slots",
		"--from a --to b --fraction 0":                             "above 0, up to 1, not 0",
		"--from a --to x --fraction 1":                             "there is no node x: `ostro cluster status` lists them",
		"--from x --to b --fraction 1":                             "there is no node x",
		"--from a --to b --slots 8000-8191,9000":                   "a does not own slot 9000: b does",
		"--from a --to a --slots 1 --detach":                       "a has these ranges already",
		"--from a --to b --slots 1 --detach --priority-pulls soon": "use async, sync or none",
		"--from a --to b --slots 1 --detach --ownership never":     "use early or late",
		"status 7":  "there is no migration 7",
		"cancel 7":  "there is no migration 7",
		"cancel it": `"it" is no number of a migration`,
	} {
		out, err := p.ostro(t, "migrate "+line)
		if err == nil || !strings.Contains(said(err), want) {
			t.Errorf("ostro migrate %s: %q, %v; want %q", line, out, err, want)
		}
	}
}

func TestAMigrationIsShownFromItsWishToItsEnd(t *testing.T) {
	p := newPaperCluster(t, "", "a", "b", "c")
	ctx := t.Context()
	out, err := p.ostro(t, "migrate list")
	if err != nil || !strings.Contains(out, "no migration yet") {
		t.Fatalf("%q, %v", out, err)
	}
	out, err = p.ostro(t, "migrate --from a --to b --slots 0-99 --why spring --detach --json")
	must(t, err)
	var m meta.Migration
	must(t, json.Unmarshal([]byte(out), &m))
	if m.Stage != meta.Wanted || m.Source != "a" || m.Target != "b" || !m.Options.Sample || m.Options.PriorityPulls != "async" || m.Why != "spring" {
		t.Fatalf("%+v", m)
	}
	// A chain: c gets what b does not have yet.
	if out, err = p.ostro(t, "migrate --from b --to c --slots 50 --detach"); err != nil || !strings.Contains(out, "Migration 2 is wanted: slot 50 from b to c") {
		t.Fatalf("%q, %v", out, err)
	}
	if out, err = p.ostro(t, "migrate status 2"); err != nil || !strings.Contains(out, "waits, not yet: migration 1 of the same places goes first") {
		t.Fatalf("%q, %v", out, err)
	}
	_, err = p.nodes["a"].Move(ctx, m.ID, p.nodes["b"].Asks(1, 1))
	must(t, err)
	must(t, p.nodes["b"].TellMigration(ctx, meta.MigrationProgress{
		ID: m.ID, Stage: "pulling", Records: 1000, Bytes: 50e6, Total: 150e6, Rate: 40e6, PriorityPulls: 7, Began: time.Now(), At: time.Now(),
	}))
	out, err = p.ostro(t, "migrate list")
	for _, want := range []string{"0-99", "moving", "1,000", "50", "40", "pulling, about 2.5s left", "wanted"} {
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("the list lacks %q: %v\n%s", want, err, out)
		}
	}
	out, err = p.ostro(t, "migrate status 1 --json")
	var st server.MigrationStatus
	must(t, err)
	must(t, json.Unmarshal([]byte(out), &st))
	if st.Progress == nil || st.Progress.PriorityPulls != 7 || st.Left != 2500*time.Millisecond || st.Bytes != 50e6 {
		t.Fatalf("%s", out)
	}
	must(t, p.nodes["b"].CompleteMigration(ctx, m.ID, meta.MigrationStats{Records: 3000, Bytes: 150e6, Closed: 1500 * time.Microsecond}))
	if out, err = p.ostro(t, "migrate status 1"); err != nil || !strings.Contains(out, "100 slots (0-99) went from a to b") || !strings.Contains(out, "3,000 records, 150 MB in") || !strings.Contains(out, "waited for up to 1.50 ms") || !strings.Contains(out, "spring") {
		t.Fatalf("%q, %v", out, err)
	}
	if _, err = p.ostro(t, "migrate cancel 1"); err == nil || !strings.Contains(err.Error(), "has ended: it is done") {
		t.Fatal(err)
	}
	if out, err = p.ostro(t, "migrate cancel 2"); err != nil || !strings.Contains(out, "Migration 2 is cancelled: slot 50 stays at b") {
		t.Fatalf("%q, %v", out, err)
	}
	s, err := p.store.Read(ctx)
	must(t, err)
	var page bytes.Buffer
	reportOf("etcd://x", "", server.StatusOf(s, nil, nil)).print(&page)
	if !strings.Contains(page.String(), "cancelled before it began") || !strings.Contains(page.String(), "done") {
		t.Errorf("the status does not tell of migrations:\n%s", page.String())
	}
}

func TestWhatALateMigrationCopiesCanBeMovedOnAfterIt(t *testing.T) {
	p := newPaperCluster(t, "", "a", "b", "c")
	_, err := p.ostro(t, "migrate --from a --to b --slots 0-99 --ownership late --detach")
	must(t, err)
	_, err = p.nodes["b"].Copy(t.Context(), 1)
	must(t, err)
	if out, err := p.ostro(t, "migrate --from b --to c --slots 50 --detach"); err != nil || !strings.Contains(out, "Migration 2 is wanted: slot 50 from b to c") {
		t.Fatalf("%q, %v", out, err)
	}
}

func TestACancellationThatNobodyWaitsForIsToldAsAsked(t *testing.T) {
	p := newPaperCluster(t, "", "a", "b")
	for range 2 {
		_, err := p.ostro(t, "migrate --from a --to b --slots 0-99 --detach")
		must(t, err)
	}
	if out, err := p.ostro(t, "migrate cancel 1 --detach"); err != nil || out != "Migration 1 is being cancelled.\n" {
		t.Fatalf("%q, %v", out, err)
	}
	out, err := p.ostro(t, "migrate cancel 2 --detach --json")
	must(t, err)
	var m server.MigrationStatus
	must(t, json.Unmarshal([]byte(out), &m))
	if m.ID != 2 || m.Stage != meta.Cancelled {
		t.Fatalf("%s", out)
	}
}

// slowNode has metrics that say that replies took a millisecond and, from when slow is set, ten.
func slowNode(t *testing.T, slow *atomic.Bool) string {
	var asked, late atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := asked.Add(2000)
		if slow.Load() {
			late.Add(2000)
		}
		fmt.Fprintf(w, "ostro_reply_seconds_bucket{le=\"0.001\"} %d\n", n-late.Load())
		fmt.Fprintf(w, "ostro_reply_seconds_bucket{le=\"0.01\"} %d\nostro_reply_seconds_bucket{le=\"+Inf\"} %d\n", n, n)
	}))
	t.Cleanup(srv.Close)
	return srv.Listener.Addr().String()
}

func TestAMigrationThatIsWaitedForTellsWhatItDidToClients(t *testing.T) {
	var slow atomic.Bool
	p := newPaperCluster(t, slowNode(t, &slow), "a", "b")
	done := make(chan error, 1)
	go func() {
		ctx := context.Background()
		c, err := p.store.Follow(ctx)
		if err == nil {
			defer c.Close()
			if _, err = c.Wait(ctx, func(s *meta.Snapshot) bool { return len(s.Migrations) == 1 }); err == nil {
				slow.Store(true)
				if _, err = p.nodes["a"].Move(ctx, 1, p.nodes["b"].Asks(1, 1)); err == nil {
					err = p.nodes["b"].CompleteMigration(ctx, 1, meta.MigrationStats{Records: 5, Bytes: 500})
				}
			}
		}
		done <- err
	}()
	out, err := p.ostro(t, "migrate --from a --to b --fraction 0.5 --baseline 1ms --json")
	must(t, err)
	must(t, <-done)
	var r migrationReport
	must(t, json.Unmarshal([]byte(out), &r))
	if r.Stage != meta.Done || r.Records != 5 || len(r.Impact) != 2 {
		t.Fatalf("%+v", r)
	}
	for _, i := range r.Impact {
		if i.Before != time.Millisecond || i.During != 10*time.Millisecond || i.Replies < 2000 {
			t.Errorf("%+v", i)
		}
	}
	var text bytes.Buffer
	r.print(&text)
	if !strings.Contains(text.String(), "p99.9 of replies: a 1.00 ms before, 10 ms meanwhile; b") {
		t.Error(text.String())
	}
}

func TestACancelledMigrationFailsWhoWaitsForIt(t *testing.T) {
	p := newPaperCluster(t, "", "a", "b")
	go func() {
		ctx := context.Background()
		if c, err := p.store.Follow(ctx); err == nil {
			defer c.Close()
			_, _ = c.Wait(ctx, func(s *meta.Snapshot) bool { return len(s.Migrations) == 1 })
			_ = p.store.CancelMigration(ctx, 1)
		}
	}()
	out, err := p.ostro(t, "migrate --from a --to b --slots 5 --baseline 0")
	if exitCode(err) != exitFailure || !strings.Contains(out, "Migration 1 is cancelled: slot 5 stays at a") {
		t.Fatalf("%q, %v", out, err)
	}
}

func TestAMigrationsLineFitsItsTerminal(t *testing.T) {
	m := server.MigrationStatus{
		Migration: meta.Migration{Stage: meta.Moving}, Doing: "pulling", Left: 2 * time.Second,
		Progress: &meta.MigrationProgress{Records: 1234567, Bytes: 90e6, Total: 180e6, Rate: 45e6},
	}
	want := "pulling  ████████░░░░░░░░  50%  1,234,567 records  90 MB  45 MB/s  2s left  p99.9 x"
	if got := migrationLine(m, 200, "p99.9 x"); got != want {
		t.Errorf("%q", got)
	}
	want = "pulling  ███░░░  50%  45 MB/s  2s left  p99.9 x"
	if got := migrationLine(m, 79, "p99.9 x"); got != want {
		t.Errorf("%q", got)
	}
	if got := []rune(migrationLine(m, 30, "p99.9 x")); len(got) != 30 {
		t.Errorf("%d columns", len(got))
	}
}

func TestAMigrationThatSettlesIsMovedAndSaysWhatIsToCome(t *testing.T) {
	began := time.Now().Add(-time.Minute)
	r := migrationReport{MigrationStatus: server.MigrationStatus{
		Migration: meta.Migration{
			ID: 4, Source: "a", Target: "b", Stage: meta.Moving, Began: began, Served: began.Add(2 * time.Second), Records: 100, Bytes: 10e6, Cold: 900,
		},
		Doing:    "settling, 300 cold records to come",
		Progress: &meta.MigrationProgress{At: began.Add(3 * time.Second), Stage: "settling", Remaining: 300, Rate: 1e6},
	}}
	if !moved(r.Migration) || ended(r.Migration) {
		t.Error("it is not moved, or has ended")
	}
	var out strings.Builder
	r.print(&out)
	for _, want := range []string{"has moved", "300 cold records follow", "10 MB in 2s: 5.0 MB/s"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in %q", want, out.String())
		}
	}
	out.Reset()
	printMigrations(&out, []server.MigrationStatus{r.MigrationStatus})
	if !strings.Contains(out.String(), "settling  ") || !strings.Contains(out.String(), "300 cold records to come") {
		t.Errorf("the list says %q", out.String())
	}
	r.Cancel = true
	if moved(r.Migration) {
		t.Error("what is being cancelled is not moved")
	}
	for stage, want := range map[meta.Stage]string{
		meta.Done: "; 900 cold records followed", meta.Cancelled: "; it ended before all of 900 cold records had followed",
		meta.Failed: "; it ended before all of 900 cold records had followed",
	} {
		r.Stage, r.Progress = stage, nil
		if got := r.amount(); !strings.HasSuffix(got, want) {
			t.Errorf("one that is %s: %q, want %q", stage, got, want)
		}
	}
}

package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/server"
)

// checkOptions are the flags of `ostro check`.
type checkOptions struct {
	repair, quarantine, json bool
}

func newCheck() *cobra.Command {
	var o checkOptions
	cmd := &cobra.Command{
		Use:   "check DIR",
		Short: "Verify a data directory from end to end, and repair what is safe to repair",
		Long: `Verify a data directory from end to end: every segment, the checksum of every
entry, the chain of seals, checkpoint and snapshot. The server must be stopped.

An unfinished batch at the end of a segment is no damage: it was never
acknowledged, and the next start drops it.

--repair does only what loses nothing: it cuts unfinished batches off and
removes unfinished files.
--quarantine also moves damaged segments to DIR/quarantine, and puts back what
of them is whole. That loses records: try a backup first.

Exits with 0 if all is whole (or was made so), 3 if data is damaged.`,
		Example: `  ostro check ./ostro-data
  ostro check ./ostro-data --repair
  ostro check ./ostro-data --json | jq '.findings[]'`,
		Args: takes(1, 1, "one data directory"),
		RunE: func(cmd *cobra.Command, args []string) error { return runCheck(cmd, args[0], o) },
	}
	cmd.Flags().BoolVar(&o.repair, "repair", false, "cut off unfinished batches and remove unfinished files")
	cmd.Flags().BoolVar(&o.quarantine, "quarantine", false, "with --repair: move damaged segments aside and keep what is whole of them")
	cmd.Flags().BoolVar(&o.json, "json", false, "print JSON")
	return cmd
}

// severity sorts findings by what they mean for the data.
type severity string

const (
	harmless severity = "harmless" // nothing is lost; the next start tidies up
	damage   severity = "damage"   // data that was acknowledged is not whole
)

// finding is one thing that is not as it should be.
type finding struct {
	Severity severity          `json:"severity"`
	Segment  *record.SegmentID `json:"segment,omitempty"`
	Path     string            `json:"path"`
	What     string            `json:"what"`
	Advice   string            `json:"advice"`
	Repaired string            `json:"repaired,omitempty"` // what was done about it
}

// verdict is the outcome of a check.
type verdict struct {
	Dir      string    `json:"dir"`
	Segments int       `json:"segments"`
	Bytes    int64     `json:"bytes"`
	Entries  int64     `json:"entries"`
	Batches  int64     `json:"batches"`
	Findings []finding `json:"findings"`
	Whole    bool      `json:"whole"`
}

func runCheck(cmd *cobra.Command, path string, o checkOptions) error {
	if o.quarantine && !o.repair {
		return usagef("--quarantine needs --repair beside it")
	}
	d, err := openDataDir(path)
	if err != nil {
		return err
	}
	release, err := d.hold(o.repair)
	if err != nil {
		return err
	}
	defer release()
	s, err := survey(d, newProgressBar(os.Stderr), time.Now())
	if err != nil {
		return err
	}
	v := verify(d, s)
	if o.repair {
		if err := repair(d, s, v, o.quarantine); err != nil {
			return err
		}
	}
	v.Whole = v.whole()
	if o.json {
		if err := printJSON(cmd, v); err != nil {
			return err
		}
	} else {
		v.print(cmd.OutOrStdout())
	}
	if !v.Whole {
		return silentError{code: exitDamaged}
	}
	return nil
}

// verify collects findings of a survey.
func verify(d *dataDir, s *surveyed) *verdict {
	v := &verdict{Dir: d.path, Bytes: d.totalBytes(), Findings: []finding{}}
	for _, err := range s.metaErrs {
		v.add(finding{Severity: damage, Path: d.path, What: err.Error(), Advice: "no server starts before that"})
	}
	for _, id := range s.missing() {
		v.add(finding{
			Severity: damage, Path: d.path, What: fmt.Sprintf("the checkpoint names segment %d, which is not there", id),
			Advice: "restore the file from a backup of the data directory",
		})
	}
	if err := d.snapshotWhole(); err != nil {
		v.add(finding{Severity: harmless, Path: filepath.Join(d.path, store.SnapshotMeta), What: err.Error(), Advice: "the next start does without it and takes longer"})
	}
	v.Segments = len(s.segments)
	for i := range s.segments {
		r := &s.segments[i]
		v.Entries += int64(r.Entries)
		v.Batches += int64(r.Batches)
		v.judge(r)
		v.judgeLog(r, s.identity.LogID)
	}
	for _, path := range d.temps {
		v.add(finding{Severity: harmless, Path: path, What: "an unfinished write", Advice: "the next start removes it"})
	}
	for _, path := range d.strays {
		v.add(finding{Severity: harmless, Path: path, What: "not a file of Ostro", Advice: "move it elsewhere if you know it"})
	}
	return v
}

func (v *verdict) add(f finding) { v.Findings = append(v.Findings, f) }

// judge tells what a segment's state means.
func (v *verdict) judge(r *segmentReport) {
	f := finding{Segment: &r.ID, Path: r.Path}
	switch r.State {
	case stateCorrupt:
		f.Severity = damage
		f.What = fmt.Sprintf("%s; %s before that stand whole, %s from there on do not", r.Problem, counted(int64(r.Entries), "entry"), server.Size(r.LostBytes).Short())
		f.Advice = "restore the file from a backup or a replica; else `ostro check " + v.Dir + " --repair --quarantine` gives the damaged part up"
	case stateFormat:
		f.Severity = damage
		f.What = r.Problem
		f.Advice = "use the version of Ostro that wrote it"
	case stateTorn:
		f.Severity = harmless
		f.What = fmt.Sprintf("an unfinished batch of %s behind the last seal at byte %d; it was never acknowledged", server.Size(r.LostBytes).Short(), r.UsedBytes)
		f.Advice = "the next start drops it, and so does --repair"
		if r.SealsBeyond > 0 {
			f.Severity = damage
			f.What = fmt.Sprintf("%s after byte %d do not verify, yet hold %s: bytes were damaged, or power was lost before a sync", server.Size(r.LostBytes).Short(), r.UsedBytes, counted(int64(r.SealsBeyond), "seal"))
			f.Advice = "after a loss of power this is the last moment that `durability: everysec` gives up, and the next start goes on without it; else restore the file from a backup"
		}
	case stateAhead:
		f.Severity = harmless
		f.What = fmt.Sprintf("%s at its end must not count, for a loss of power took others that came before: all of it up to byte %d does", counted(int64(r.Dropped), "batch"), r.UsedBytes)
		f.Advice = "`durability: always` had not acknowledged them, to `everysec` they are the last moment; the next start drops them, and so does --repair"
	case stateStale:
		f.Severity = harmless
		f.What = "no part of the checkpoint"
		f.Advice = "it was spilled after it, and the next start removes it"
	default:
		return
	}
	v.add(f)
}

// judgeLog finds a segment that was copied from another directory.
func (v *verdict) judgeLog(r *segmentReport, log record.LogID) {
	if log == 0 || r.Created.IsZero() || r.Log == log || r.State == stateStale {
		return
	}
	v.add(finding{
		Severity: damage, Segment: &r.ID, Path: r.Path,
		What:   fmt.Sprintf("belongs to log %d, while the directory holds log %d", r.Log, log),
		Advice: "it was copied from another data directory: move it back",
	})
}

// whole tells whether nothing is damaged, or no longer.
func (v *verdict) whole() bool {
	for _, f := range v.Findings {
		if f.Severity == damage && f.Repaired == "" {
			return false
		}
	}
	return true
}

func (v *verdict) print(out io.Writer) {
	for _, f := range v.Findings {
		name := f.Path
		if f.Segment != nil {
			name = fmt.Sprintf("segment %d (%s)", *f.Segment, f.Path)
		}
		next := f.Advice
		if f.Repaired != "" {
			next = "repaired: " + f.Repaired
		}
		fmt.Fprintf(out, "%s: %s: %s.\n  %s.\n", f.Severity, name, f.What, upperFirst(next))
	}
	fmt.Fprintf(out, "Verified %s of %s: %s, %s.\n", counted(int64(v.Segments), "segment"), server.Size(v.Bytes).Short(), counted(v.Entries, "entry"), counted(v.Batches, "seal"))
	if v.Whole {
		fmt.Fprintf(out, "%s is whole.\n", v.Dir)
		return
	}
	fmt.Fprintf(out, "%s is DAMAGED; see above.\n", v.Dir)
}

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/server"
)

func newInspect() *cobra.Command {
	var segment string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "inspect DIR",
		Short: "Show the segments, seals and statistics of a data directory",
		Long: `Show what a data directory holds: segments with their entries, batches (each ends
in a seal) and the share that is alive, and the keys of each database. It only
reads; beside a running server it shows a moment that has passed.

With --segment it lists the entries of one segment.`,
		Example: `  ostro inspect ./ostro-data
  ostro inspect ./ostro-data --json | jq '.segments[] | select(.state == "torn")'
  ostro inspect ./ostro-data --segment 12
  ostro inspect ./ostro-data --segment 12 --json | jq -r .key`,
		Args: takes(1, 1, "one data directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := openDataDir(args[0])
			if err != nil {
				return err
			}
			if segment != "" {
				return dumpSegment(cmd.OutOrStdout(), d, segment, asJSON)
			}
			return inspect(cmd, d, asJSON)
		},
	}
	cmd.Flags().StringVar(&segment, "segment", "", "list the entries of this segment: a number, or its file's name")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON; with --segment one object per entry and line")
	return cmd
}

func inspect(cmd *cobra.Command, d *dataDir, asJSON bool) error {
	s, err := survey(d, newProgressBar(os.Stderr), time.Now())
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(cmd, s.json())
	}
	s.print(cmd.OutOrStdout())
	return nil
}

// json is the survey for machines.
func (s *surveyed) json() map[string]any {
	keys := map[string]int64{}
	for db, n := range s.keys {
		keys[strconv.Itoa(db)] = n
	}
	return map[string]any{
		"dir": s.dir.path, "inUse": s.dir.inUse() != "", "segments": s.segments, "keys": keys, "expired": s.expired,
		"unfinished": len(s.dir.temps), "strays": s.dir.strays,
	}
}

// print is the survey for people.
func (s *surveyed) print(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "SEGMENT\tSTATE\tFILE\tUSED\tENTRIES\tSEALS\tPUTS\tTOMBSTONES\tLIVE\t CREATED (UTC)")
	var files, used, live int64
	for i := range s.segments {
		r := &s.segments[i]
		created := ""
		if !r.Created.IsZero() {
			created = r.Created.Format(time.DateTime)
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%.0f%%\t %s\n", r.ID, r.State, server.Size(r.FileBytes).Short(), server.Size(r.UsedBytes).Short(),
			thousands(int64(r.Entries)), thousands(int64(r.Batches)), thousands(int64(r.Puts)), thousands(int64(r.Tombstones)), r.Live()*100, created)
		files, used, live = files+r.FileBytes, used+int64(r.UsedBytes), live+r.LiveBytes
	}
	_ = w.Flush()
	share := 0.0
	if used > 0 {
		share = float64(live) / float64(used) * 100
	}
	fmt.Fprintf(out, "\n%s, %s of files, %s used, %.0f%% of it alive\n", counted(int64(len(s.segments)), "segment"), server.Size(files).Short(), server.Size(used).Short(), share)
	for _, db := range slices.Sorted(maps.Keys(s.keys)) {
		fmt.Fprintf(out, "database %d: %s\n", db, counted(s.keys[db], "key"))
	}
	if s.expired > 0 {
		fmt.Fprintf(out, "%s past their time, waiting for the cleaner\n", counted(s.expired, "record"))
	}
	for _, r := range s.segments {
		if r.Dropped > 0 {
			fmt.Fprintf(out, "%s: %s at its end must not count, for a loss of power took others that came before; the next start drops them\n", r.Path, counted(int64(r.Dropped), "batch"))
		}
		if r.Problem != "" {
			fmt.Fprintf(out, "%s: %s; `ostro check %s` tells what to do\n", r.Path, r.Problem, s.dir.path)
		}
	}
	for _, err := range s.metaErrs {
		fmt.Fprintf(out, "%s; what it would tell is left out here\n", err)
	}
	if who := s.dir.inUse(); who != "" {
		fmt.Fprintf(out, "in use by %s: this shows a moment that has passed\n", who)
	}
}

// entryLine is one entry of a dump.
type entryLine struct {
	Offset    uint32    `json:"offset"`
	Type      string    `json:"type"`
	Bytes     int       `json:"bytes"`
	Kind      string    `json:"kind,omitempty"`
	Table     *uint32   `json:"table,omitempty"`
	Version   uint64    `json:"version,omitempty"`
	Key       string    `json:"key,omitempty"` // quoted as redis-cli does
	ValueLen  *int      `json:"valueBytes,omitempty"`
	ExpiresAt time.Time `json:"expiresAt,omitzero"`
	Chunked   bool      `json:"chunked,omitempty"`

	Batch record.BatchID `json:"batch,omitempty"` // of a seal
}

func dumpSegment(out io.Writer, d *dataDir, name string, asJSON bool) error {
	f, err := d.find(name)
	if err != nil {
		return err
	}
	r, b, err := scanSegment(f)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	lines := json.NewEncoder(out)
	lines.SetEscapeHTML(false)
	for off, p := range record.Entries(b[:r.UsedBytes]) {
		line := describe(off, p)
		if asJSON {
			if err := lines.Encode(line); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintln(w, line)
	}
	_ = w.Flush()
	if asJSON {
		return nil
	}
	fmt.Fprintf(out, "segment %d is %s: %d entries in %d batches, %s up to the last seal, %s beyond it\n",
		r.ID, r.State, r.Entries, r.Batches, server.Size(r.UsedBytes).Short(), server.Size(r.LostBytes).Short())
	if r.Problem != "" {
		fmt.Fprintln(out, r.Problem)
	}
	return nil
}

// find takes a segment's number, or the name of its file.
func (d *dataDir) find(name string) (segmentFile, error) {
	id, isFile := device.ParseSegmentName(filepath.Base(name))
	if !isFile {
		n, err := strconv.ParseUint(name, 0, 64)
		if err != nil {
			return segmentFile{}, usagef("--segment takes a number such as 12 or a file such as %016x%s, not %q", 12, device.SegmentSuffix, name)
		}
		id = record.SegmentID(n)
	}
	for _, f := range d.segments {
		if f.id == id {
			return f, nil
		}
	}
	return segmentFile{}, usagef("there is no segment %d in %s; `ostro inspect %s` lists those there are", id, d.path, d.path)
}

func describe(off uint32, p record.Ptr) entryLine {
	e := entryLine{Offset: off, Type: p.Type().String(), Bytes: p.Length()}
	switch p.Type() {
	case record.TypeSeal:
		e.Batch = p.Batch()
		return e
	case record.TypeVoid:
		return e
	case record.TypePut:
		e.Kind = p.Kind().String()
	}
	table, value := uint32(p.Table()), p.ValueLen()
	e.Table, e.ValueLen, e.Version, e.Chunked = &table, &value, p.Version(), p.Chunked()
	if len(p.Key()) > 0 {
		e.Key = quote(p.Key())
	}
	if at := p.ExpireAt(); at != 0 {
		e.ExpiresAt = time.UnixMilli(at).UTC()
	}
	return e
}

// String is the line for people, in columns divided by tabs.
func (e entryLine) String() string {
	text := fmt.Sprintf("%d\t%s\t%d B", e.Offset, e.Type, e.Bytes)
	if e.Batch != 0 {
		return fmt.Sprintf("%s\tbatch %d", text, e.Batch)
	}
	if e.Table == nil {
		return text
	}
	details := []string{fmt.Sprintf("table %d", *e.Table), fmt.Sprintf("version %d", e.Version)}
	if e.Key != "" {
		details = append(details, e.Key)
	}
	if e.Kind != "" {
		details = append(details, fmt.Sprintf("-> %s of %d B", e.Kind, *e.ValueLen))
	}
	if e.Chunked {
		details = append(details, "(in pieces)")
	}
	if !e.ExpiresAt.IsZero() {
		details = append(details, "expires "+e.ExpiresAt.Format(time.RFC3339))
	}
	return text + "\t" + strings.Join(details, "  ")
}

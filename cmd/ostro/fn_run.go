package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/ostrodb/ostro/tenant/extension"
)

type fnRun struct {
	fnLocal
	save string
	json bool
	logs []fnLine
}

// fnLine is a line of the function's log.
type fnLine struct {
	Level string `json:"level"`
	Line  string `json:"line"`
}

var fnLevels = [...]string{"debug", "info", "warning", "error"}

func newFnRun() *cobra.Command {
	f := &fnRun{}
	cmd := &cobra.Command{
		Use:   "run MODULE",
		Short: "Call a function on the data of a file",
		Long: `Call a function once, on the data of a file, with the limits and the metering that a
server has. Its response goes to the output, its log to the error output. With --save
what it wrote is kept, in the same format.`,
		Example: `  ostro fn run count.wasm --fn incr --key visits --data site.jsonl --save site.jsonl
  ostro fn run tree.wasm --fn walk --key root --args left --args right --data tree.jsonl --json
  ostro fn run tao.wasm --fn assoc_range --hex --key 0000000000000007 --args 0a --data graph.jsonl`,
		Args: takes(1, 1, "one module"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.open(cmd, args[0]); err != nil {
				return err
			}
			defer f.close()
			return f.run(cmd)
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&f.save, "save", "", "write all keys to this file when the function has ended well")
	cmd.Flags().BoolVar(&f.json, "json", false, "print the response, the log and what the call used as JSON")
	return cmd
}

// fnReport is what `ostro fn run --json` prints.
type fnReport struct {
	Function   string   `json:"function"`
	Response   *string  `json:"response,omitempty"`
	Response64 []byte   `json:"response_b64,omitempty"` // if it is no text
	Error      *fnError `json:"error,omitempty"`
	Fuel       int64    `json:"fuel"`
	HostCalls  int64    `json:"host_calls"`
	Slices     int      `json:"slices"`
	Reads      int      `json:"reads"`
	Writes     int      `json:"writes"`
	Micros     float64  `json:"micros"`
	Log        []fnLine `json:"log,omitempty"`
}

type fnError struct {
	Kind    string `json:"kind"`
	Code    int32  `json:"code,omitempty"`
	Message string `json:"message"`
	Trace   string `json:"trace,omitempty"`
}

func (f *fnRun) run(cmd *cobra.Command) error {
	inv, err := f.invocation()
	if err != nil {
		return err
	}
	inv.Log = func(level int, line []byte) {
		if f.json {
			f.logs = append(f.logs, fnLine{fnLevels[level], string(line)})
		} else {
			fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s\n", fnLevels[level], line)
		}
	}
	if err := f.pool.Warm(1); err != nil {
		return err
	}
	start := time.Now()
	res, err := f.pool.Call(inv)
	took := time.Since(start)
	var failed *extension.CallError
	if err != nil && !errors.As(err, &failed) {
		return err
	}
	if err == nil && f.save != "" {
		if err := f.saveTo(f.save); err != nil {
			return err
		}
	}
	if f.json {
		return f.printJSON(cmd, inv, res, failed, took)
	}
	if failed != nil {
		if failed.Trace != "" {
			fmt.Fprintf(cmd.ErrOrStderr(), "%s\n", failed.Trace)
		}
		return failed
	}
	return f.print(cmd, res)
}

// print writes the response as it is, and ends a line of text.
func (f *fnRun) print(cmd *cobra.Command, res extension.Result) error {
	out := res.Response
	if isText(out) && len(out) > 0 && !bytes.HasSuffix(out, []byte("\n")) {
		out = append(out, '\n')
	}
	_, err := cmd.OutOrStdout().Write(out)
	return err
}

// isText tells of bytes that a person would want to read as they are.
func isText(b []byte) bool {
	return utf8.Valid(b) && !bytes.ContainsFunc(b, func(r rune) bool { return unicode.IsControl(r) && !unicode.IsSpace(r) })
}

func (f *fnRun) printJSON(cmd *cobra.Command, inv *extension.Invocation, res extension.Result, failed *extension.CallError, took time.Duration) error {
	r := fnReport{
		Function: inv.Function, Fuel: res.Fuel, HostCalls: res.HostCalls, Slices: res.Slices,
		Reads: res.Reads, Writes: res.Writes, Micros: float64(took.Nanoseconds()) / 1000, Log: f.logs,
	}
	switch {
	case failed != nil:
		r.Error = &fnError{failed.Kind.String(), failed.Code, failed.Error(), failed.Trace}
	case isText(res.Response):
		text := string(res.Response)
		r.Response = &text
	default:
		r.Response64 = res.Response
	}
	if err := printJSON(cmd, r); err != nil {
		return err
	}
	if failed != nil {
		return silentError{exitFailure}
	}
	return nil
}

// saveTo replaces the file only when all is written.
func (f *fnRun) saveTo(path string) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".ostro-fn-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	err = errors.Join(f.store.Save(tmp), tmp.Chmod(0o644), tmp.Close())
	if err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}

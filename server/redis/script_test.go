package redis_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/ostrodb/ostro/server/redis"
)

// The scripts in testdata are commands and their replies as they come over the
// wire, one line each, with line ends shown as blanks:
//
//	run
//	SET greeting "hello world"
//	B: GET greeting
//	----
//	+OK
//	$11 hello world
//
// "B:" sends by another connection of that name, which stays open to the end of
// the script. "run proto=3" speaks RESP3 from there on. What stands under run
// holds for Redis as well; what stands under ostro is ours.

func TestScriptsHoldOnOstro(t *testing.T) {
	runScripts(t, startOstro(t, redis.Config{}), true)
}

func TestScriptsHoldOnRedis(t *testing.T) {
	runScripts(t, startRedis(t), false)
}

func runScripts(t *testing.T, addr string, isOstro bool) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := &script{addr: addr, clients: map[string]*rawClient{}}
		s.do(t, "", []string{"flushall"})
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch {
			case d.Cmd == "ostro" && !isOstro:
				return d.Expected
			case d.Cmd != "run" && d.Cmd != "ostro":
				t.Fatalf("%s: unknown directive %s", d.Pos, d.Cmd)
			}
			if d.HasArg("proto") {
				var proto string
				d.ScanArgs(t, "proto", &proto)
				s.do(t, "", []string{"hello", proto})
			}
			return s.run(t, d.Input)
		})
	})
}

// script is a script being run.
type script struct {
	addr    string
	clients map[string]*rawClient
}

func (s *script) run(t *testing.T, input string) string {
	var out strings.Builder
	for line := range strings.Lines(input) {
		name, command := "", strings.TrimSpace(line)
		if before, after, found := strings.Cut(command, ": "); found && len(before) == 1 {
			name, command = before, after
		}
		args, err := splitWords(command)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		fmt.Fprintln(&out, s.do(t, name, args))
	}
	return out.String()
}

func (s *script) do(t *testing.T, name string, args []string) string {
	t.Helper()
	c := s.clients[name]
	if c == nil {
		c = dialRaw(t, s.addr)
		s.clients[name] = c
	}
	r, err := c.do(args...)
	if err != nil {
		return "(closed)"
	}
	if n, e := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(r.raw, ":"))); strings.EqualFold(args[0], "ttl") && e == nil && n > 0 {
		return fmt.Sprintf(":%d", (n+99)/100*100) // A slow machine may take a second since the time was set.
	}
	return onOneLine(r.raw)
}

// onOneLine shows line ends as blanks and other bytes that do not print as \xNN.
func onOneLine(raw string) string {
	var b strings.Builder
	for _, c := range []byte(strings.ReplaceAll(strings.TrimSuffix(raw, "\r\n"), "\r\n", " ")) {
		if c < ' ' || c > '~' {
			fmt.Fprintf(&b, `\x%02x`, c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// splitWords cuts a line at blanks. Words in double quotes may hold blanks and
// escapes.
func splitWords(line string) (words []string, err error) {
	for line = strings.TrimLeft(line, " "); line != ""; line = strings.TrimLeft(line, " ") {
		if line[0] != '"' {
			word, rest, _ := strings.Cut(line, " ")
			words, line = append(words, word), rest
			continue
		}
		end := 1
		for end < len(line) && line[end] != '"' {
			if line[end] == '\\' {
				end++
			}
			end++
		}
		var word string
		if _, err := fmt.Sscanf(line[:min(end+1, len(line))], "%q", &word); err != nil {
			return nil, err
		}
		words, line = append(words, word), line[end+1:]
	}
	return words, nil
}

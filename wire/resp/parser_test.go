package resp

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// golden maps input to the commands it holds and the error it ends in.
var golden = []struct {
	name  string
	input string
	want  [][]string
	err   string
}{
	{"nothing", "", nil, ""},
	{"one command", "*1\r\n$4\r\nPING\r\n", [][]string{{"PING"}}, ""},
	{"two commands", "*2\r\n$3\r\nGET\r\n$1\r\na\r\n*1\r\n$4\r\nPING\r\n", [][]string{{"GET", "a"}, {"PING"}}, ""},
	{"binary and empty arguments", "*3\r\n$3\r\nSET\r\n$4\r\n\r\n\x00\xff\r\n$0\r\n\r\n", [][]string{{"SET", "\r\n\x00\xff", ""}}, ""},
	{"two digits", "*2\r\n$4\r\nECHO\r\n$12\r\nhello, world\r\n", [][]string{{"ECHO", "hello, world"}}, ""},
	{"an empty multibulk", "*0\r\n*1\r\n$4\r\nPING\r\n", [][]string{{}, {"PING"}}, ""},
	{"a negative multibulk", "*-5\r\nPING\r\n", [][]string{{}, {"PING"}}, ""},
	{"inline", "PING\r\nset a  b\n\r\n\n", [][]string{{"PING"}, {"set", "a", "b"}, {}, {}}, ""},
	{"inline with quotes", `set "a b" 'c"d' e` + "\n", [][]string{{"set", "a b", `c"d`, "e"}}, ""},
	{"inline with escapes", `echo "\x41\n\r\t\b\a\q\"\\" '\'\n'` + "\n", [][]string{{"echo", "A\n\r\t\b\aq\"\\", `'\n`}}, ""},
	{"inline with half a hex escape", `echo "\x4g"` + "\n", [][]string{{"echo", "x4g"}}, ""},
	{"inline with a quote inside a word", `echo a"b c"` + "\n", [][]string{{"echo", "ab c"}}, ""},
	{"inline with empty quotes", `echo "" ''` + "\n", [][]string{{"echo", "", ""}}, ""},
	{"an open double quote", `echo "a` + "\r\n", nil, "Protocol error: unbalanced quotes in request"},
	{"an open single quote", `echo 'a` + "\r\n", nil, "Protocol error: unbalanced quotes in request"},
	{"a quote followed by a letter", `echo "a"b` + "\r\n", nil, "Protocol error: unbalanced quotes in request"},
	{"no number of arguments", "*\r\n", nil, "Protocol error: invalid multibulk length"},
	{"letters as number of arguments", "*x\r\n", nil, "Protocol error: invalid multibulk length"},
	{"leading zero", "*01\r\n$4\r\nPING\r\n", nil, "Protocol error: invalid multibulk length"},
	{"too many arguments", "*1048577\r\n", nil, "Protocol error: invalid multibulk length"},
	{"absurdly many arguments", "*99999999999999999999\r\n", nil, "Protocol error: invalid multibulk length"},
	{"no dollar", "*1\r\n:4\r\nPING\r\n", nil, "Protocol error: expected '$', got ':'"},
	{"a line break for a dollar", "*1\r\n\r\nPING\r\n", nil, "Protocol error: expected '$', got ' '"},
	{"a negative argument", "*1\r\n$-1\r\n", nil, "Protocol error: invalid bulk length"},
	{"letters as length", "*1\r\n$abc\r\n", nil, "Protocol error: invalid bulk length"},
	{"an argument of 513 MB", "*1\r\n$536870913\r\n", nil, "Protocol error: invalid bulk length"},
	{"good commands before a bad one", "*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nPING\r\n*x\r\n", [][]string{{"PING"}, {"PING"}}, "Protocol error: invalid multibulk length"},
	{"too long a line", strings.Repeat("a", MaxLine+1), nil, "Protocol error: too big inline request"},
	{"too long a line, complete", strings.Repeat("a", MaxLine+1) + "\r\n", nil, "Protocol error: too big inline request"},
	{"too long a multibulk count", "*" + strings.Repeat("1", MaxLine+1), nil, "Protocol error: too big mbulk count string"},
	{"too long a bulk count", "*1\r\n$" + strings.Repeat("1", MaxLine+1), nil, "Protocol error: too big bulk count string"},
}

// parse feeds the pieces one after the other and returns all commands.
func parse(t testing.TB, p *Parser, pieces ...[]byte) (commands [][]string, err error) {
	t.Helper()
	var buf []byte
	var st State
	for _, piece := range pieces {
		buf = append(slices.Clone(buf), piece...) // the buffer moves each time
		for {
			n, err := p.Next(buf, &st)
			if err != nil {
				return commands, err
			}
			if n == 0 {
				break
			}
			if !st.Idle() {
				t.Fatalf("a complete command leaves state %+v", st)
			}
			command := []string{}
			for _, a := range p.Args {
				command = append(command, string(a))
			}
			commands = append(commands, command)
			buf = buf[n:]
		}
		if need := st.Need(); need != 0 && need <= len(buf) {
			t.Fatalf("needs %d bytes and has %d", need, len(buf))
		}
	}
	return commands, nil
}

func TestParserFindsCommandsAndErrorsAsRedisDoes(t *testing.T) {
	for _, g := range golden {
		t.Run(g.name, func(t *testing.T) {
			got, err := parse(t, &Parser{}, []byte(g.input))
			checkParsed(t, got, err, g.want, g.err)
		})
	}
}

func TestEverySplitOfTheInputGivesTheSameCommands(t *testing.T) {
	for _, g := range golden {
		if len(g.input) > 1000 {
			continue
		}
		input := []byte(g.input)
		for i := range len(input) + 1 {
			got, err := parse(t, &Parser{}, input[:i], input[i:])
			checkParsed(t, got, err, g.want, g.err)
			for j := i; j <= len(input); j++ {
				got, err := parse(t, &Parser{}, input[:i], input[i:j], input[j:])
				checkParsed(t, got, err, g.want, g.err)
			}
		}
		got, err := parse(t, &Parser{}, singleBytes(input)...)
		checkParsed(t, got, err, g.want, g.err)
	}
}

func checkParsed(t *testing.T, got [][]string, err error, want [][]string, wantErr string) {
	t.Helper()
	if !slices.EqualFunc(got, want, slices.Equal[[]string]) {
		t.Fatalf("got %q, want %q", got, want)
	}
	var text string
	if err != nil {
		text = err.Error()
	}
	var protocol ProtocolError
	if text != wantErr || err != nil && !errors.As(err, &protocol) {
		t.Fatalf("got error %q, want %q", text, wantErr)
	}
}

func singleBytes(b []byte) (pieces [][]byte) {
	for i := range b {
		pieces = append(pieces, b[i:i+1])
	}
	return pieces
}

func TestStrangersMaySendOnlyShortCommands(t *testing.T) {
	for _, c := range []struct{ input, err string }{
		{"*10\r\n" + strings.Repeat("$1\r\na\r\n", 10), ""},
		{"*11\r\n", "Protocol error: unauthenticated multibulk length"},
		{"*1\r\n$16384\r\n" + strings.Repeat("a", 16384) + "\r\n", ""},
		{"*1\r\n$16385\r\n", "Protocol error: unauthenticated bulk length"},
	} {
		_, err := parse(t, &Parser{Unauthenticated: true}, []byte(c.input))
		if got := fmt.Sprint(err); got != c.err && (err != nil || c.err != "") {
			t.Errorf("%.20q: %v, want %q", c.input, err, c.err)
		}
	}
}

func TestMaxBulkLimitsArguments(t *testing.T) {
	p := &Parser{MaxBulk: 5}
	if _, err := parse(t, p, []byte("*1\r\n$5\r\nhello\r\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := parse(t, p, []byte("*1\r\n$6\r\nhello!\r\n")); !errors.Is(err, errBulkLength) {
		t.Fatalf("got %v", err)
	}
}

func TestAnAnnouncedLengthCostsNoMemory(t *testing.T) {
	var p Parser
	var st State
	announced := []byte("*1000000\r\n$500000000\r\n")
	allocs := testing.AllocsPerRun(100, func() {
		st = State{}
		if n, err := p.Next(announced, &st); n != 0 || err != nil {
			t.Fatal(n, err)
		}
	})
	if allocs != 0 {
		t.Fatalf("%v allocations", allocs)
	}
	if want := len(announced) + 500000000 + 2; st.Need() != want {
		t.Fatalf("needs %d, want %d", st.Need(), want)
	}
}

func TestPeekSeesOnlyWholeCommands(t *testing.T) {
	var p Parser
	for cut := range len(get16) {
		if n := p.Peek(get16[:cut]); n != 0 {
			t.Fatalf("%d of %d bytes gave a command of %d", cut, len(get16), n)
		}
	}
	if n := p.Peek(get16); n != len(get16) || string(p.Args[0]) != "GET" {
		t.Fatalf("%d bytes, %q", n, p.Args)
	}
	if n := p.Peek([]byte("*x\r\n")); n != 0 {
		t.Fatalf("broken input gave a command of %d bytes", n)
	}
}

func TestParsingAllocatesNothing(t *testing.T) {
	input := bytes.Repeat(set100, 16)
	var p Parser
	if allocs := testing.AllocsPerRun(100, func() { drain(t, &p, input) }); allocs != 0 {
		t.Fatalf("%v allocations", allocs)
	}
}

func TestManyArgumentsInManyPiecesParseInLinearTime(t *testing.T) {
	// 200,000 arguments that arrive in pieces of 100 bytes: quadratic work
	// would be 2e11 steps.
	const args = 200_000
	input := []byte(fmt.Sprintf("*%d\r\n", args) + strings.Repeat("$1\r\na\r\n", args))
	var p Parser
	var st State
	for end := 100; ; end += 100 {
		n, err := p.Next(input[:min(end, len(input))], &st)
		if err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			if n != len(input) || len(p.Args) != args {
				t.Fatalf("%d bytes, %d arguments", n, len(p.Args))
			}
			return
		}
		if end >= len(input) {
			t.Fatal("no command found")
		}
	}
}

func TestSplitWordsSplitsAsInlineCommandsAreSplit(t *testing.T) {
	words, ok := SplitWords(`set "a b" c`)
	if !ok || !slices.Equal(words, []string{"set", "a b", "c"}) {
		t.Fatalf("%q %v", words, ok)
	}
	if _, ok := SplitWords(`set "a`); ok {
		t.Fatal("an open quote was accepted")
	}
}

// FuzzParser checks that no input breaks the Parser and that the way the
// network cuts the input does not matter.
func FuzzParser(f *testing.F) {
	for _, g := range golden {
		if len(g.input) < 1000 {
			f.Add([]byte(g.input), uint16(3), uint16(7))
		}
	}
	f.Fuzz(func(t *testing.T, input []byte, i, j uint16) {
		whole, wholeErr := parse(t, &Parser{}, input)
		a := min(int(i), len(input))
		b := min(a+int(j), len(input))
		cut, cutErr := parse(t, &Parser{}, input[:a], input[a:b], input[b:])
		if !slices.EqualFunc(whole, cut, slices.Equal[[]string]) || fmt.Sprint(wholeErr) != fmt.Sprint(cutErr) {
			t.Fatalf("whole %q %v, cut %q %v", whole, wholeErr, cut, cutErr)
		}
	})
}

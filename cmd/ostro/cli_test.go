package main

import (
	"bytes"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/ostrodb/ostro/wire/resp"
)

// reply decodes one reply from the wire.
func reply(t *testing.T, wire string) resp.Value {
	t.Helper()
	v, err := resp.NewReplyReader(strings.NewReader(wire)).Read()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestRepliesArePrintedAsRedisCliPrintsThem(t *testing.T) {
	for _, c := range []struct{ name, wire, typed, raw, json string }{
		{"simple string", "+OK\r\n", "OK\n", "OK\n", `"OK"`},
		{"error", "-ERR no\r\n", "(error) ERR no\n", "ERR no\n", `{"error":"ERR no"}`},
		{"integer", ":42\r\n", "(integer) 42\n", "42\n", "42"},
		{"string", "$5\r\na\"\n\x01b\r\n", `"a\"\n\x01b"` + "\n", "a\"\n\x01b\n", `"a\"\n\u0001b"`},
		{"bytes", "$2\r\n\xff\x00\r\n", `"\xff\x00"` + "\n", "\xff\x00\n", `{"base64":"/wA="}`},
		{"null", "$-1\r\n", "(nil)\n", "\n", "null"},
		{"empty array", "*0\r\n", "(empty array)\n", "\n", "[]"},
		{"array", "*2\r\n$1\r\na\r\n:1\r\n", "1) \"a\"\n2) (integer) 1\n", "a\n1\n", `["a",1]`},
		{"nested", "*2\r\n*2\r\n:1\r\n:2\r\n+x\r\n", "1) 1) (integer) 1\n   2) (integer) 2\n2) x\n", "1\n2\nx\n", `[[1,2],"x"]`},
		{"map", "%1\r\n+k\r\n*1\r\n:7\r\n", "1# k => 1) (integer) 7\n", "k\n7\n", `{"k":[7]}`},
		{"set", "~1\r\n:7\r\n", "1~ (integer) 7\n", "7\n", "[7]"},
		{"double", ",1.5\r\n", "(double) 1.5\n", "1.5\n", "1.5"},
		{"infinity", ",inf\r\n", "(double) inf\n", "inf\n", `"inf"`},
		{"boolean", "#t\r\n", "(true)\n", "true\n", "true"},
		{"verbatim", "=8\r\ntxt:a\nb\n\r\n", "a\nb\n", "a\nb\n\n", `"a\nb\n"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := reply(t, c.wire)
			for format, want := range map[format]string{formatTyped: c.typed, formatRaw: c.raw, formatJSON: c.json + "\n"} {
				var out bytes.Buffer
				(&printer{out: &out, format: format}).Print(&v)
				if out.String() != want {
					t.Errorf("format %d: got %q, want %q", format, out.String(), want)
				}
			}
		})
	}
}

func TestNumbersOfLongListsAreAligned(t *testing.T) {
	v := reply(t, "*10\r\n"+strings.Repeat(":1\r\n", 10))
	lines := strings.Split(typedText(&v, ""), "\n")
	if lines[0] != " 1) (integer) 1" || lines[9] != "10) (integer) 1" {
		t.Fatalf("got %q and %q", lines[0], lines[9])
	}
}

func TestAQuotedStringIsReadBack(t *testing.T) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	words, ok := resp.SplitWords(quote(every))
	if !ok || len(words) != 1 || words[0] != string(every) {
		t.Fatalf("%v %q", ok, words)
	}
}

// scripted is a server that answers each command with the next reply.
func scripted(t *testing.T, replies ...string) target {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		commands := resp.NewReplyReader(conn) // A command looks like a reply that is an array.
		for _, r := range replies {
			if _, err := commands.Read(); err != nil {
				return
			}
			_, _ = io.WriteString(conn, r)
		}
	}()
	addr := l.Addr().(*net.TCPAddr)
	return target{host: "127.0.0.1", port: addr.Port}
}

func TestAPipeRunsEveryLineAndRemembersErrors(t *testing.T) {
	var out bytes.Buffer
	c := &client{target: scripted(t, "+OK\r\n", "-ERR bad\r\n", "$2\r\nhi\r\n")}
	err := pipe(c, &printer{out: &out, format: formatRaw}, strings.NewReader("SET a hi\n\nBAD\nGET a"))
	if out.String() != "OK\nERR bad\nhi\n" || exitCode(err) != exitFailure || said(err) != "" {
		t.Fatalf("printed %q, error %v", out.String(), err)
	}
}

func TestAPipeNamesTheLineWithUnbalancedQuotes(t *testing.T) {
	err := pipe(&client{}, &printer{out: io.Discard}, strings.NewReader("\nSET a \"b\n"))
	if err == nil || !strings.Contains(err.Error(), "line 2 has unbalanced quotes") {
		t.Fatalf("got %v", err)
	}
}

func TestAFailedLoginEndsTheConnection(t *testing.T) {
	where := scripted(t, "-WRONGPASS invalid password\r\n")
	where.password = "wrong"
	_, err := (&client{target: where}).Do("PING")
	if err == nil || !strings.Contains(err.Error(), "WRONGPASS") {
		t.Fatalf("got %v", err)
	}
}

func TestTheFlagsAreSentBeforeTheFirstCommand(t *testing.T) {
	where := scripted(t, "+OK\r\n", "%0\r\n", "+OK\r\n", "+PONG\r\n")
	where.password, where.resp3, where.db = "x", true, 3
	v, err := (&client{target: where}).Do("PING")
	if err != nil || v.Text() != "PONG" {
		t.Fatalf("got %v, %v", v, err)
	}
}

func TestAServerThatHangsUpIsAnErrorExceptWhenItWasTold(t *testing.T) {
	for _, command := range []string{"GET", "SHUTDOWN"} {
		c := &client{target: scripted(t)}
		err := oneShot(c, &printer{out: io.Discard}, []string{command}, &cliOptions{repeat: 1})
		if (err == nil) != (command == "SHUTDOWN") {
			t.Errorf("%s: %v", command, err)
		}
	}
}

func TestPasswordsStayOutOfTheHistory(t *testing.T) {
	for line, want := range map[string]bool{
		"AUTH x": true, "hello 3 AUTH u p": true, "config set requirepass x": true,
		"GET auth": false, "CONFIG GET port": false,
	} {
		if got := secret(strings.Fields(line)); got != want {
			t.Errorf("%s: %v", line, got)
		}
	}
}

func TestThePromptFollowsTheServer(t *testing.T) {
	s := &shell{client: &client{target: target{host: "h", port: 1}, conn: &net.TCPConn{}}}
	ok := reply(t, "+OK\r\n")
	for _, step := range []struct{ line, want string }{
		{"PING", "h:1> "},
		{"SELECT 2", "h:1[2]> "},
		{"MULTI", "h:1[2](TX)> "},
		{"EXEC", "h:1[2]> "},
		{"RESET", "h:1> "},
	} {
		s.follow(strings.Fields(step.line), &ok)
		if s.prompt() != step.want {
			t.Errorf("after %s: %q, want %q", step.line, s.prompt(), step.want)
		}
	}
	refused := reply(t, "-ERR no\r\n")
	if s.follow([]string{"SELECT", "9"}, &refused); s.prompt() != "h:1> " {
		t.Errorf("after a refused SELECT: %q", s.prompt())
	}
}

package main

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	workModule    = "../../tenant/extension/testdata/work.wasm"
	hostileModule = "../../tenant/extension/testdata/hostile.wasm"
)

// dataFile writes lines of data.
func dataFile(t *testing.T, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "data.jsonl")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFnRunCallsAFunctionOnTheDataOfAFile(t *testing.T) {
	data := dataFile(t, "# a comment", `{"key": "k", "value": "hello"}`, "", `{"key_b64": "/w==", "value_b64": "/g=="}`)
	out, err := ostro(t, "fn", "run", workModule, "--fn", "get", "--key", "k", "--data", data)
	if err != nil || out != "hello\n" {
		t.Fatalf("%q, %v", out, err)
	}
	out, err = ostro(t, "fn", "run", workModule, "--fn", "get", "--hex", "--key", "ff", "--data", data, "--json")
	var r fnReport
	if err != nil || json.Unmarshal([]byte(out), &r) != nil || string(r.Response64) != "\xfe" || r.HostCalls != 3 {
		t.Fatalf("%s, %v", out, err)
	}
}

func TestFnRunSavesWhatTheFunctionWrote(t *testing.T) {
	data := dataFile(t, `{"key": "a", "value": "old"}`, `{"key": "c", "value": "gone"}`, `{"key": "d", "value": "stays"}`)
	saved := filepath.Join(t.TempDir(), "saved.jsonl")
	if _, err := ostro(t, "fn", "run", workModule, "--fn", "transfer", "--data", data, "--save", saved); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{"a": "1\n", "b": "2\n", "c": "(absent)\n", "d": "stays\n"} {
		if out, err := ostro(t, "fn", "run", workModule, "--fn", "get", "--key", key, "--data", saved); err != nil || out != want {
			t.Errorf("%s is %q, want %q, %v", key, out, want, err)
		}
	}
}

func TestFnRunTellsWhyAFunctionEnded(t *testing.T) {
	data := dataFile(t, `{"key": "a", "value": "old"}`)
	saved := filepath.Join(t.TempDir(), "saved.jsonl")
	out, err := ostro(t, "fn", "run", workModule, "--fn", "transfer", "--key", "a", "--args", "fail", "--data", data, "--save", saved)
	if exitCode(err) != exitFailure || said(err) != "function transfer failed: no money" {
		t.Fatalf("%q, said %q", out, said(err))
	}
	if _, err := os.Stat(saved); err == nil {
		t.Error("a function that failed was saved")
	}
	out, err = ostro(t, "fn", "run", hostileModule, "--fn", "loop", "--fuel", "1000000", "--json")
	var r fnReport
	if exitCode(err) != exitFailure || json.Unmarshal([]byte(out), &r) != nil || r.Error == nil || r.Error.Kind != "out-of-fuel" {
		t.Fatalf("%s, %v", out, err)
	}
}

func TestFnDescribeAndCheckTellWhatIsWrongWithAModule(t *testing.T) {
	out, err := ostro(t, "fn", "describe", workModule)
	if err != nil || !strings.Contains(out, "aggregate, ") || !strings.Contains(out, "ostro.multiget") {
		t.Fatalf("%s, %v", out, err)
	}
	bad := filepath.Join(t.TempDir(), "bad.wasm")
	if err := os.WriteFile(bad, []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := ostro(t, "fn", "describe", bad); exitCode(err) != exitFailure || !strings.Contains(said(err), "this is no WebAssembly module") {
		t.Errorf("said %q", said(err))
	}
	out, err = ostro(t, "fn", "check", workModule, bad)
	if exitCode(err) != exitFailure || !strings.Contains(out, "work.wasm: fine\n") || !strings.Contains(out, "bad.wasm: the module is refused") {
		t.Errorf("%s, %v", out, err)
	}
}

func TestFnBenchMeasures(t *testing.T) {
	data := dataFile(t, `{"key": "n", "value": ""}`)
	out, err := ostro(t, "fn", "bench", workModule, "--fn", "incr", "--key", "n", "--data", data, "--for", "50ms", "--workers", "2", "--json")
	var m fnMeasured
	if err != nil || json.Unmarshal([]byte(out), &m) != nil || m.Calls < 1 || m.HostCalls < 7 || m.Response != 8 {
		t.Fatalf("%s, %v", out, err)
	}
}

func TestFnSaysWhatIsMissing(t *testing.T) {
	for line, want := range map[string]string{
		"fn run":               "takes one module",
		"fn run /no/such.wasm": "/no/such.wasm does not exist",
		"fn run " + workModule: "choose one with --fn: aggregate, ",
		"fn describe ..":       "is a directory",
		"fn bench " + workModule + " --workers 0":           "--workers must be at least 1",
		"fn run " + workModule + " --fn get --hex --key zz": `--key "zz" is not hexadecimal`,
		"fn rnu": `did you mean "run"?`,
	} {
		if _, err := ostro(t, strings.Fields(line)...); exitCode(err) != exitUsage || !strings.Contains(said(err), want) {
			t.Errorf("ostro %s: exit %d, said %q, want %q", line, exitCode(err), said(err), want)
		}
	}
	if _, err := ostro(t, "fn", "run", workModule, "--fn", "gte", "--key", "k"); err == nil || !strings.Contains(said(err), `no function "gte"; it has aggregate, `) {
		t.Errorf("said %q", said(err))
	}
	broken := dataFile(t, `{"key": "a", "value": "b"}`, `{"kex": 1}`)
	if _, err := ostro(t, "fn", "run", workModule, "--fn", "get", "--key", "a", "--data", broken); err == nil || !strings.Contains(said(err), "line 2: ") {
		t.Errorf("said %q", said(err))
	}
}

func TestFnDescribeCallsNothingIgnoredThatIsUsed(t *testing.T) {
	out, err := ostro(t, "fn", "describe", "../../examples/functions/rank.wasm")
	if err != nil || strings.Contains(out, "ostro_first") {
		t.Errorf("%s, %v", out, err)
	}
}

func TestCommandsThatFindNoServerSayWhatToDo(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	_, port, _ := net.SplitHostPort(client.LocalAddr().String()) // It is taken, so nobody else listens there meanwhile.
	for _, words := range [][]string{{"tenant", "list"}, {"fn", "list"}, {"fn", "install", workModule}} {
		_, err := ostro(t, append(words, "-p", port)...)
		if want := "no server answers at 127.0.0.1:" + port + ": start one, or say with -h and -p where it is"; said(err) != want {
			t.Errorf("%v says %q", words, said(err))
		}
	}
}

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMistakesInFlagsAndFilesExitWithTwo(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ostro.yaml")
	if err := os.WriteFile(file, []byte("port: 6379\nmemroy-limit: 2GB\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, "", "server", "--prot", "1").wants(t, 2, "did you mean --port?")
	run(t, "", "server", "--durability", "maybe").wants(t, 2, "durability")
	run(t, "", "server", "--config", file).wants(t, 2, file+":2", `did you mean "memory-limit"?`)
	run(t, "", "config", "check", file).wants(t, 2, `did you mean "memory-limit"?`)
	run(t, "", "server", "--tls-port", "1", "--tls-cert-file", "/no/cert", "--tls-key-file", "/no/key").wants(t, 2, "/no/cert")
	run(t, "", "nonsense").wants(t, 2, "no command")
}

func TestConfigCheckAcceptsWhatConfigDefaultPrints(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ostro.yaml")
	if err := os.WriteFile(file, []byte(run(t, "", "config", "default").stdout), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, "", "config", "check", file).wants(t, 0, "is good")
}

func TestATakenPortIsSaidInOneSentence(t *testing.T) {
	p := serve(t, t.TempDir())
	second := launch(t, "--port", p.port, "--dir", t.TempDir())
	o := second.ended()
	o.wants(t, 1, p.port, "address already in use", "--port")
	if lines := strings.Count(o.stderr, "\n"); lines != 1 {
		t.Fatalf("%d lines:\n%s", lines, o.stderr)
	}
}

func TestASecondServerOnTheSameDirectoryIsRefused(t *testing.T) {
	dir := t.TempDir()
	p := serve(t, dir)
	second := launch(t, "--dir", dir)
	second.ended().wants(t, 1, "in use by process", "choose another directory")
	p.redisCLI("", "PING").wants(t, 0, "PONG")
}

func TestADirectoryThatCannotBeCreatedIsSaid(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	launch(t, "--dir", filepath.Join(file, "data")).ended().wants(t, 1, "not a directory")
}

func TestADamagedSegmentIsFoundNamedAndRefused(t *testing.T) {
	dir := t.TempDir()
	p := serve(t, dir, "--segment-size", "64KiB", "--checkpoint-every", "0s")
	fill(t, p.client(), 4000, value)
	p.stop()
	run(t, "", "check", dir).wants(t, 0, "is whole")

	segments, err := filepath.Glob(filepath.Join(dir, "segments", "*.seg"))
	if err != nil || len(segments) < 2 {
		t.Fatalf("%d segments, %v", len(segments), err)
	}
	victim := segments[0]
	flip(t, victim)

	run(t, "", "check", dir).wants(t, 3, victim, "DAMAGED", "backup")
	run(t, "", "check", dir, "--json").wants(t, 3, `"severity": "damage"`)
	run(t, "", "inspect", dir).wants(t, 0, "corrupt")
	launch(t, "--dir", dir).ended().wants(t, 3, "corrupt", "ostro check")

	run(t, "", "check", dir, "--repair", "--quarantine").wants(t, 0, "is whole")
	serve(t, dir, "--segment-size", "64KiB").redisCLI("", "PING").wants(t, 0, "PONG")
}

// flip changes one bit in the middle of a file.
func flip(t *testing.T, name string) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 4
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestATornTailIsDroppedOnTheNextStart(t *testing.T) {
	dir := t.TempDir()
	p := serve(t, dir)
	fill(t, p.client(), 1000, value)
	p.Kill()
	run(t, "", "inspect", dir).wants(t, 0, "database 0: 1,000 keys")
	run(t, "", "check", dir, "--repair").wants(t, 0, "is whole")
	verify(t, serve(t, dir).client(), 1000, value)
}

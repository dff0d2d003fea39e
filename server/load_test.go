package server_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/server"
)

// yamlFile writes text to a file called ostro.yaml.
func yamlFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "ostro.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestLaterSourcesWinOverEarlierOnes(t *testing.T) {
	file := yamlFile(t, "port: 1111\ndatabases: 4\nlog-level: warn\n")
	got, err := server.Load(server.Sources{
		File:    file,
		Environ: []string{"OSTRO_DATABASES=5", "OSTRO_LOG_LEVEL=error", "HOME=/"},
		Flags:   map[string]string{"log-level": "debug"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got.Port != 1111 || got.Databases != 5 || got.LogLevel != "debug" || got.LogFormat != "text" {
		t.Fatalf("got %+v", got.Config)
	}
	for key, want := range map[string]string{
		"port": file + ":1", "databases": "OSTRO_DATABASES", "log-level": "--log-level", "log-format": "default",
	} {
		if got.Origin[key] != want {
			t.Errorf("%s comes from %q, want %q", key, got.Origin[key], want)
		}
	}
}

func TestAFileMaySetEverythingAndNestWhatBeginsAlike(t *testing.T) {
	got, err := server.Load(server.Sources{File: yamlFile(t, `
bind: [127.0.0.1, "::1"]
port: 7000
memory:
  limit: 2GB
  policy: evict
durability: always
checkpoint-every: 90s
timeout: 60
protected-mode: no
blob-url: s3://bucket?region=x
`)})
	if err != nil {
		t.Fatal(err)
	}
	c := got.Config
	switch {
	case strings.Join(c.Bind, " ") != "127.0.0.1 ::1",
		c.MemoryLimit.Bytes != 2<<30, c.MemoryPolicy != store.Evict,
		c.Durability != store.Always, c.CheckpointEvery != 90*time.Second, c.Timeout != time.Minute, c.ProtectedMode:
		t.Fatalf("got %+v", c)
	}
}

func TestEveryMistakeIsReportedAtOnceWithItsPlace(t *testing.T) {
	file := yamlFile(t, `prot: 1
port: 99999
maxmemory: 1gb
tls:
  port: x
memory-limit: 12XB
port: 3
databases: {a: b}
zzzzzzzzzzzz: 1
`)
	_, err := server.Load(server.Sources{
		File:    file,
		Environ: []string{"OSTRO_LOOPS=many"},
		Flags:   map[string]string{"durability": "sometimes"},
	})
	var wrong *server.ConfigError
	if !errors.As(err, &wrong) {
		t.Fatalf("got %v", err)
	}
	text := strings.ReplaceAll(err.Error(), file, "ostro.yaml")
	for _, want := range []string{
		`ostro.yaml:1: unknown setting "prot"; did you mean "port"?`,
		`ostro.yaml:2: port must be from 0 to 65535, not 99999`,
		`ostro.yaml:3: unknown setting "maxmemory"; Ostro calls it "memory-limit"`,
		`ostro.yaml:5: tls-port cannot be set: "x" is not a whole number`,
		`ostro.yaml:6: memory-limit cannot be set: "12XB" is not a size; write it like 512MiB or 2GB`,
		`ostro.yaml:7: port was already set in line 2`,
		`ostro.yaml:8: databases cannot be set: expected one value, found a mapping`,
		`ostro.yaml:9: unknown setting "zzzzzzzzzzzz"; ` + "`ostro config default` lists all",
		`OSTRO_LOOPS cannot be set: "many" is not a whole number`,
		`--durability cannot be set: unknown durability "sometimes"`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("missing: %s", want)
		}
	}
	if len(wrong.Problems) != 10 {
		t.Errorf("%d problems, want 10:\n%s", len(wrong.Problems), text)
	}
}

func TestAFileThatIsNotYAMLOrNotThereIsSaid(t *testing.T) {
	for text, want := range map[string]string{
		"port: [1":   "is not YAML: line 1",
		"- a\n- b\n": "expected settings of the form",
		"just words": "expected settings of the form",
	} {
		if _, err := server.Load(server.Sources{File: yamlFile(t, text)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
	if _, err := server.Load(server.Sources{File: "/no/such"}); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("got %v", err)
	}
}

func TestAnEmptyFileChangesNothing(t *testing.T) {
	for _, text := range []string{"", "# only a comment\n"} {
		if _, err := server.Load(server.Sources{File: yamlFile(t, text)}); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestVariablesOfOthersDoNoHarm(t *testing.T) {
	got, err := server.Load(server.Sources{Environ: []string{
		"OSTRO_PORT=tcp://10.0.0.7:6379", // Kubernetes
		"OSTRO_SERVICE_HOST=10.0.0.7",
		"OSTRO_DURABILTY=always",
	}})
	if err != nil || got.Port != 6379 {
		t.Fatalf("port %d, %v", got.Port, err)
	}
	text := strings.Join(got.Warnings, "\n")
	if !strings.Contains(text, "Kubernetes") || !strings.Contains(text, "did you mean OSTRO_DURABILITY?") || len(got.Warnings) != 2 {
		t.Fatalf("warnings: %s", text)
	}
}

func TestChecksSayWhatDoesNotFitTogether(t *testing.T) {
	for _, c := range []struct {
		flags map[string]string
		want  string
	}{
		{map[string]string{"port": "0"}, "nobody could connect"},
		{map[string]string{"proto-max-bulk-len": "1"}, "from 1MiB to 512MiB"},
		{map[string]string{"port": "-5"}, "--port must be from 0 to 65535"},
		{map[string]string{"tls-port": "6380"}, "tls-cert-file is missing"},
		{map[string]string{"tls-port": "6380", "tls-cert-file": "/no/cert", "tls-key-file": "/no/key"}, "--tls-cert-file cannot be used: open /no/cert"},
		{map[string]string{"tls-cert-file": "/no/cert", "tls-key-file": "/no/key"}, "tls-port is not set"},
		{map[string]string{"bind": "127.0.0.1:6379"}, "without a port"},
		{map[string]string{"bind": ""}, "--bind is empty"},
		{map[string]string{"segment-size": "3MiB"}, "power of two"},
		{map[string]string{"memory-limit": "1MiB"}, "at least 8 segments"},
		{map[string]string{"blob-url": "ftp://x"}, "must begin with file://"},
		{map[string]string{"dir": "", "blob-url": "file:///x"}, "needs a data directory"},
		{map[string]string{"disk-limit": "1GB"}, "--disk-limit needs a shared tier"},
		{map[string]string{"admin-addr": "9736"}, "must be HOST:PORT"},
		{map[string]string{"databases": "0"}, "--databases must be from 1"},
		{map[string]string{"shutdown-timeout": "0s"}, "longer than 0s"},
	} {
		_, err := server.Load(server.Sources{Flags: c.flags})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: got %v, want %q", c.flags, err, c.want)
		}
	}
}

func TestTheDefaultIsGood(t *testing.T) {
	if err := server.Default().Check(); err != nil {
		t.Fatal(err)
	}
}

func TestEverySettingReadsBackWhatItPrints(t *testing.T) {
	config := server.Default()
	for _, s := range config.Settings() {
		before := s.String()
		if err := s.Set(before); err != nil || s.String() != before {
			t.Errorf("%s: %q became %q, %v", s.Key, before, s.String(), err)
		}
	}
}

func TestPasswordsAreNotShown(t *testing.T) {
	config := server.Default()
	config.RequirePass = "hunter2"
	for _, s := range config.Settings() {
		if strings.Contains(s.Shown(), "hunter2") {
			t.Errorf("%s shows the password", s.Key)
		}
	}
}

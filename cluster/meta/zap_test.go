package meta

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

func TestEtcdsWarningsAreDetailsInOurLog(t *testing.T) {
	var out bytes.Buffer
	log := zapTo(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})))
	log.Debug("one")
	log.Info("two")
	log.With(zap.String("who", "me")).Warn("three", zap.Int("n", 3))
	log.Error("four")
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 ||
		!strings.Contains(lines[0], "level=DEBUG msg=two") ||
		!strings.Contains(lines[1], "level=DEBUG msg=three from=etcd who=me n=3") ||
		!strings.Contains(lines[2], "level=WARN msg=four from=etcd") {
		t.Fatal(out.String())
	}
}

func TestAnEtcdThatCannotGoOnSaysWhyAndWhatToDo(t *testing.T) {
	full := &fs.PathError{Op: "write", Path: "db", Err: syscall.ENOSPC}
	for want, fields := range map[string][]zapcore.Field{
		"the etcd in this process cannot go on: failed to commit tx": {zap.Int("n", 1)},
		"the etcd in this process cannot go on: failed to commit tx: it is broken": {
			zap.Error(errors.New("it is broken")),
		},
		"the etcd in this process cannot go on: failed to commit tx: write db: no space left on device; free space and start again: it goes on with what is there": {
			zap.String("dir", "d"), zap.Error(full),
		},
	} {
		if got := whyNot("failed to commit tx", fields); got != want {
			t.Errorf("it says %q, want %q", got, want)
		}
	}
}

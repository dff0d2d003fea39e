package meta

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"go.uber.org/zap"
)

func TestEtcdSpeaksThroughOurLogOneLevelDown(t *testing.T) {
	var out bytes.Buffer
	log := zapTo(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelInfo})))
	log.Debug("one")
	log.Info("two")
	log.With(zap.String("who", "me")).Warn("three", zap.Int("n", 3))
	log.Error("four")
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 ||
		!strings.Contains(lines[0], "level=INFO msg=three from=etcd who=me n=3") ||
		!strings.Contains(lines[1], "level=WARN msg=four from=etcd") {
		t.Fatal(out.String())
	}
}

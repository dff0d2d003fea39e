package meta

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"go.uber.org/zap"
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

package meta

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"syscall"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// zapTo is a logger for etcd's code that speaks through log. etcd tells of its
// everyday life at Info, and at Warn of every attempt to reach a server that is away, many times a
// second: both are details here. Who depends on etcd says so when it does not answer.
func zapTo(log *slog.Logger) *zap.Logger {
	return zap.New(slogCore{log.With("from", "etcd")}, zap.WithFatalHook(lastWords{}))
}

// lastWords ends the process when etcd's code cannot go on, as it does by itself, and says why where somebody looks: its log may be a file.
type lastWords struct{}

// OnWrite makes it a zapcore.CheckWriteHook.
func (lastWords) OnWrite(e *zapcore.CheckedEntry, fields []zapcore.Field) {
	fmt.Fprintln(os.Stderr, "ostro:", whyNot(e.Message, fields))
	os.Exit(1)
}

func whyNot(message string, fields []zapcore.Field) string {
	why := "the etcd in this process cannot go on: " + message
	for _, f := range fields {
		err, ok := f.Interface.(error)
		if !ok {
			continue
		}
		why += ": " + err.Error()
		if errors.Is(err, syscall.ENOSPC) {
			why += "; free space and start again: it goes on with what is there"
		}
	}
	return why
}

type slogCore struct{ log *slog.Logger }

func quieter(l zapcore.Level) slog.Level {
	if l >= zapcore.ErrorLevel {
		return slog.LevelWarn
	}
	return slog.LevelDebug
}

// Enabled and the methods below make it a zapcore.Core.
func (c slogCore) Enabled(l zapcore.Level) bool {
	return l >= zapcore.InfoLevel && c.log.Enabled(context.Background(), quieter(l))
}

func (c slogCore) With(fields []zapcore.Field) zapcore.Core {
	return slogCore{c.log.With(attrs(fields)...)}
}

func (c slogCore) Check(e zapcore.Entry, to *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return to.AddCore(e, c)
	}
	return to
}

func (c slogCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	c.log.Log(context.Background(), quieter(e.Level), e.Message, attrs(fields)...)
	return nil
}

func (slogCore) Sync() error { return nil }

func attrs(fields []zapcore.Field) []any {
	enc := zapcore.NewMapObjectEncoder()
	var out []any
	for _, f := range fields {
		f.AddTo(enc)
		if v, ok := enc.Fields[f.Key]; ok {
			out = append(out, slog.Any(f.Key, v))
		}
	}
	return out
}

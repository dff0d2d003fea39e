package ostropebble

import (
	"fmt"
	"log/slog"

	"github.com/cockroachdb/pebble/v2"
)

// onlyFailures is the logger where none was given: Pebble tells of every file.
type onlyFailures struct{}

func (onlyFailures) Infof(string, ...any) {}

func (onlyFailures) Errorf(format string, args ...any) {
	slog.Error("pebble: " + fmt.Sprintf(format, args...))
}

// Fatalf must not return: Pebble calls it when it cannot keep its promises.
func (onlyFailures) Fatalf(format string, args ...any) {
	panic("pebble: " + fmt.Sprintf(format, args...))
}

// final is a logger whose Fatalf ends the call for sure. If it returned, Pebble
// would acknowledge the commit that has failed.
type final struct{ pebble.Logger }

func (l final) Fatalf(format string, args ...any) {
	l.Logger.Fatalf(format, args...)
	panic("pebble: " + fmt.Sprintf(format, args...))
}

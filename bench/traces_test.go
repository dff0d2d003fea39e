package bench

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestAnExperimentThatDoesNotEndWhenItIsInterruptedLeavesNothing(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	release := make(chan struct{})
	defer close(release)
	var dir string
	var c *child
	_, err := interruptible(ctx, 0, func() (outcome, error) {
		var err error
		if dir, err = makeDir(t.TempDir()); err != nil {
			return nil, err
		}
		if c, err = startProgram("one that sleeps", "sleep", "1000"); err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(dir, "data"), nil, 0o600); err != nil {
			return nil, err
		}
		interrupt()
		<-release // It hears nothing.
		return nil, nil
	})
	if !errors.Is(err, errInterrupted) {
		t.Fatal(err)
	}
	<-c.done
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("its directory is still there: %v", err)
	}
}

func TestAnExperimentThatIsNotInterruptedSaysWhatItMeasured(t *testing.T) {
	want := errors.New("no server")
	if _, err := interruptible(t.Context(), grace, func() (outcome, error) { return nil, want }); !errors.Is(err, want) {
		t.Error(err)
	}
}

package await

import (
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestMain(m *testing.M) { os.Exit(RunToEnd(m)) }

func TestWhatIsFoundIsLookedForAgainUntilItIsGoneOrForAsLongAsPatienceLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		found := errors.New("a goroutine")
		for _, c := range []struct {
			gone time.Duration
			left error
		}{{0, nil}, {time.Second, nil}, {Patience + time.Second, found}} {
			begun := time.Now()
			err := leftAfter(func() error {
				if time.Since(begun) < c.gone {
					return found
				}
				return nil
			})
			if !errors.Is(err, c.left) {
				t.Errorf("of what is gone after %s there is %v in the end, want %v", c.gone, err, c.left)
			}
		}
	})
}

func TestWhatHangsIsToldByTheNameOfItsTest(t *testing.T) {
	let, ready := make(chan struct{}), make(chan struct{})
	defer close(let)
	t.Run("inner", func(t *testing.T) {
		for range 2 {
			go waits(ready, let)
			<-ready
		}
		said := hanging(stacks())
		if !strings.Contains(said, "2 goroutines at internal/await.waits ") {
			t.Errorf("nothing is said of goroutines that wait:\n%s", said)
		}
		_, last, _ := strings.Cut(said, "\n\n")
		if !strings.Contains(last, "await.TestWhatHangsIsToldByTheNameOfItsTest.func") || !strings.Contains(last, "/run_test.go:") {
			t.Errorf("the end does not tell of this test:\n%s", said)
		}
		if strings.Contains(said, "testing.") || strings.Count(last, "goroutine ") != 1 {
			t.Errorf("others are told of:\n%s", said)
		}
	})
}

func waits(ready chan<- struct{}, until <-chan struct{}) {
	ready <- struct{}{}
	<-until
}

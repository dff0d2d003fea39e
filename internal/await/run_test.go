package await

import (
	"os"
	"strings"
	"testing"
)

func TestMain(m *testing.M) { os.Exit(Run(m)) }

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

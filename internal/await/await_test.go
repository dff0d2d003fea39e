package await_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/ostrodb/ostro/internal/await"
)

func TestComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			after time.Duration
			comes bool
		}{{0, true}, {time.Second, true}, {await.Patience - time.Second, true}, {await.Patience + time.Second, false}} {
			begun := time.Now()
			if got := await.Comes(func() bool { return time.Since(begun) >= c.after }); got != c.comes {
				t.Errorf("what comes after %s is found: %v", c.after, got)
			}
			if took := time.Since(begun); took > min(c.after+2*time.Millisecond, await.Patience+time.Millisecond) {
				t.Errorf("it took %s to find what comes after %s", took, c.after)
			}
		}
	})
}

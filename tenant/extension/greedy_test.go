package extension_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/ostrodb/ostro/tenant/extension"
	"github.com/ostrodb/ostro/tenant/extension/local"
)

// A trial runs on the goroutine that serves everybody: what its host calls have the server do is in its fuel.
func TestATrialPaysForAllThatItHasTheHostDo(t *testing.T) {
	p := newPool(t, "greedy", extension.PoolOptions{})
	s := local.New(nil)
	c := &extension.Changes{}
	for i := range 20_000 {
		c.Writes = append(c.Writes, extension.Write{Key: fmt.Appendf(nil, "key:%d", i)})
	}
	if err := s.Commit(c); err != nil {
		t.Fatal(err)
	}
	long := bytes.Repeat([]byte("x"), 4<<20)
	for fn, most := range map[string]int64{"cutargs": 1, "longkeys": 4, "longmultigets": 1, "nothingfound": 1} {
		res, err := attempt(t, p, &extension.Invocation{Function: fn, Keys: [][]byte{[]byte("k")}, Args: [][]byte{long}, Store: s, Trial: true, Fuel: 60_000})
		if !errors.Is(err, extension.ErrAbandoned) || res.HostCalls > most {
			t.Errorf("%s: %d host calls, %v; want no more than %d", fn, res.HostCalls, err, most)
		}
	}
}

// What a call has read is kept until its end, so its keys are as limited as what it writes.
func TestKeysThatWereReadTakeNoMoreMemoryThanWritesMay(t *testing.T) {
	limits := extension.DefaultLimits()
	limits.Call.WriteBytes = 1 << 20
	p := poolOf(t, compile(t, "greedy"), limits, extension.PoolOptions{})
	for _, fn := range []string{"longkeys", "longmultigets"} {
		res, err := invoke(p, local.New(nil), fn, "k")
		if wantKind(t, err, extension.OverLimit); res.Reads > limits.Call.WriteBytes/65535 {
			t.Errorf("%s: the names of %d keys are kept, of 65535 bytes each", fn, res.Reads)
		}
	}
}

func TestAPrefixThatIsLongerThanAnyKeyIsTooLarge(t *testing.T) {
	p := newPool(t, "greedy", extension.PoolOptions{})
	_, err := invoke(p, storeOf(t, "k=v"), "longprefix", "k")
	if e := wantKind(t, err, extension.Returned); e.Code != int32(extension.TooLarge) {
		t.Fatal(err)
	}
}

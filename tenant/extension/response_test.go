package extension_test

import (
	"errors"
	"os"
	"testing"

	"github.com/ostrodb/ostro/tenant/extension"
	"github.com/ostrodb/ostro/tenant/extension/local"
)

// A guest that has the host copy for it uses hardly any fuel of its slices, and used to give way once in sixteen megabytes.
func TestACallGivesWayAsOftenWhereTheHostDoesItsWork(t *testing.T) {
	slice := extension.DefaultLimits().Call.Slice
	for fn, module := range map[string]string{"giantresponse": "hostile", "randomflood": "hostile", "ownvalue": "greedy"} {
		p := newPool(t, module, extension.PoolOptions{})
		times := int64(0)
		res, err := p.Call(&extension.Invocation{Function: fn, Keys: [][]byte{{'k'}}, Store: local.New(nil), Fuel: 32 << 20, Turns: turns(func(extension.Reason) error {
			times++
			return nil
		})})
		if err == nil || times < res.Fuel/(2*slice) {
			t.Errorf("%s gave way %d times for %d units of fuel, %v", fn, times, res.Fuel, err)
		}
	}
}

// oddPieces is what the function of that name answers.
func oddPieces() (all []byte) {
	big := make([]byte, 1<<20)
	for i := range big {
		big[i] = byte(i*7 + i>>8)
	}
	for i := range 60 {
		all = append(all, big[i:][:i*7919%70001]...)
	}
	return all
}

func TestALongResponseComesWholeAndBehindWhatWasThere(t *testing.T) {
	greedy, hostile := newPool(t, "greedy", extension.PoolOptions{}), newPool(t, "hostile", extension.PoolOptions{})
	want := "before" + string(oddPieces())
	for range 3 {
		res, err := greedy.Call(&extension.Invocation{Function: "oddpieces", Store: local.New(nil), Into: []byte("before")})
		if err != nil || string(res.Response) != want {
			t.Fatalf("%d bytes of %d, or not the same, %v", len(res.Response), len(want), err)
		}
		_, err = invoke(hostile, local.New(nil), "giantresponse", "k") // Its parts are used again.
		wantKind(t, err, extension.OverLimit)
	}
}

func TestACallThatIsEndedAnywhereInALongResponseGivesNone(t *testing.T) {
	money := &purse{limit: 1 << 30}
	p := newPool(t, "greedy", extension.PoolOptions{Memory: money})
	for last, ended := 0, true; ended; last++ {
		left := last
		res, err := p.Call(&extension.Invocation{Function: "oddpieces", Store: local.New(nil), Turns: turns(func(extension.Reason) error {
			if left--; left < 0 {
				return os.ErrDeadlineExceeded
			}
			return nil
		})})
		if ended = left < 0; ended {
			if wantKind(t, err, extension.Killed); res.Response != nil {
				t.Fatalf("ended at the %dth time that it gave way, it left %d bytes", last, len(res.Response))
			}
		} else if err != nil || len(res.Response) != len(oddPieces()) {
			t.Fatalf("%d bytes, %v", len(res.Response), err)
		}
		if money.held != 0 {
			t.Fatalf("%d bytes that it kept did not come back", money.held)
		}
	}
}

// It costs the guest nothing to say that a megabyte of its memory is the response, and a loop a tenth of a millisecond to copy it.
func TestATrialThatLeavesALongResponseIsGivenUp(t *testing.T) {
	p := newPool(t, "area", extension.PoolOptions{})
	_, err := attempt(t, p, &extension.Invocation{Function: "long", Store: local.New(nil), Trial: true, Fuel: 60_000})
	if !errors.Is(err, extension.ErrAbandoned) {
		t.Fatal(err)
	}
	if got := call(t, p, local.New(nil), "long", "k"); len(got) != 1<<20 || got[len(got)-1] != '.' {
		t.Fatalf("%d bytes", len(got))
	}
}

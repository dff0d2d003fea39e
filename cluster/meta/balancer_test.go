package meta

import (
	"strings"
	"testing"
)

func TestABalancerThatMakesNoSenseIsRefused(t *testing.T) {
	for want, b := range map[string]Balancer{
		"use auto, dry-run or off": {Mode: "yes"},
		"never let the cluster":    {Mode: BalancerAuto, Trigger: 1},
		"too few":                  {Moves: -1},
		"nothing to tell":          {Every: 1},
		"less than none":           {HourBytes: -1},
	} {
		if err := b.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", b, err, want)
		}
	}
	if err := (Balancer{}).Check(); err != nil || (Balancer{}).Does() != BalancerAuto {
		t.Errorf("who decides nothing gets %s, %v", Balancer{}.Does(), err)
	}
}

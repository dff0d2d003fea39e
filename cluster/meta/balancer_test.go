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
	} {
		if err := b.check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", b, err, want)
		}
	}
	if err := (Balancer{}).check(); err != nil || (Balancer{}).Does() != BalancerDryRun {
		t.Errorf("who decides nothing gets %s, %v", Balancer{}.Does(), err)
	}
}

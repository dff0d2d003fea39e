package fabric

import (
	"reflect"
	"testing"
)

func TestAddForgetsNoCounter(t *testing.T) {
	var one, sum Metrics
	for i, v := 0, reflect.ValueOf(&one).Elem(); i < v.NumField(); i++ {
		v.Field(i).SetUint(uint64(i + 1))
	}
	sum.Add(one)
	sum.Add(one)
	for i, v := 0, reflect.ValueOf(sum); i < v.NumField(); i++ {
		if got := v.Field(i).Uint(); got != uint64(2*(i+1)) {
			t.Errorf("%s is %d", v.Type().Field(i).Name, got)
		}
	}
}

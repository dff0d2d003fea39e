package group

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"time"
)

func FuzzControlMessagesOfAnyBytesAreRefusedOrMeanTheSameAgain(f *testing.F) {
	var good bytes.Buffer
	spec := Spec{Mode: FanOut, Replicas: 2, Window: 3, Slots: 4, MaxWrite: 5, Patience: time.Second}
	if err := writeControl(&good, controlRequest{Verb: askOffer, Spec: &spec}); err != nil {
		f.Fatal(err)
	}
	f.Add(good.Bytes())
	f.Add([]byte{2, 0, 0, 0, '{', '}'})
	f.Add([]byte{255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, in []byte) {
		var first, second controlRequest
		if readControl(bytes.NewReader(in), &first, func() {}) != nil {
			return
		}
		var out bytes.Buffer
		if err := writeControl(&out, first); err != nil {
			return // JSON may grow by escaping, past the limit.
		}
		if err := readControl(&out, &second, func() {}); err != nil || !reflect.DeepEqual(first, second) {
			a, _ := json.Marshal(first)
			b, _ := json.Marshal(second)
			t.Fatalf("%s became %s, %v", a, b, err)
		}
	})
}

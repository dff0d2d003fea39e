package store

import (
	"fmt"
	"testing"

	"github.com/ostrodb/ostro/engine/record"
)

// BenchmarkSurvey draws as many of a million records as the balancer has every node draw.
func BenchmarkSurvey(b *testing.B) {
	st, err := Open(Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer st.Close()
	ss, err := st.NewSession()
	if err != nil {
		b.Fatal(err)
	}
	defer ss.Close()
	for i := range 1_000_000 {
		ss.Begin()
		k := ss.Key(0, fmt.Appendf(nil, "key:%d", i))
		if s := ss.Put(&k, Write{Value: make([]byte, 100)}, nil); s != OK {
			b.Fatal(s)
		}
		ss.Seal()
		ss.End()
	}
	for b.Loop() {
		st.Survey(4096, func(record.Place, int64) {})
	}
}

package workload

import (
	"fmt"
	"testing"
	"time"
)

func TestKeysReadAsDocumented(t *testing.T) {
	for _, c := range []struct {
		e    Encoding
		id   uint64
		want string
	}{
		{Binary8, 0x0102, "\x02\x01\x00\x00\x00\x00\x00\x00"},
		{Text16, 42, "key:000000000042"},
		{Text30, 987654321098, "user00000000000000987654321098"},
		{Tagged30, 987654321098, "{bench}00000000000987654321098"},
	} {
		key := make([]byte, c.e.Len())
		c.e.Put(key, c.id)
		if string(key) != c.want {
			t.Errorf("got %q, want %q", key, c.want)
		}
	}
}

func TestPatchGivesTheKeyThatPutGives(t *testing.T) {
	for _, e := range []Encoding{Binary8, Text16, Text30, Tagged30} {
		for id := uint64(1); id < MaxRecords; id = id*7 + 3 {
			put, patched := make([]byte, e.Len()), make([]byte, e.Len())
			e.Put(put, id)
			e.Put(patched, 0)
			e.Patch(patched, id)
			if string(put) != string(patched) {
				t.Fatalf("patched %q, want %q", patched, put)
			}
		}
	}
}

func TestDigitsAreThoseOfFmt(t *testing.T) {
	dst := make([]byte, digits)
	for id := uint64(0); id < 1e12; id = id*3 + 1 {
		PutDigits(dst, id)
		if want := fmt.Sprintf("%012d", id); string(dst) != want {
			t.Fatalf("got %s, want %s", dst, want)
		}
	}
}

func TestAValueTellsItsRecordAndGeneration(t *testing.T) {
	scratch := make([]byte, 256)
	for _, size := range []int{8, 100, 256} {
		v := make([]byte, size)
		FillValue(v, 41, 3)
		if err := CheckValue(v, 41, 3, size, scratch); err != nil {
			t.Errorf("%d bytes: %v", size, err)
		}
		if CheckValue(v, 42, 3, size, scratch) == nil {
			t.Errorf("%d bytes: the value of another record was accepted", size)
		}
		if size > 8 && CheckValue(v, 41, 4, size, scratch) == nil {
			t.Errorf("%d bytes: another generation was accepted", size)
		}
		if CheckValue(v[:size-1], 41, 3, size, scratch) == nil {
			t.Errorf("%d bytes: a short value was accepted", size)
		}
	}
	if CheckValue(nil, 1, 0, 100, scratch) == nil {
		t.Error("a missing value was accepted")
	}
}

func TestLatencySummarisesWhatWasRecorded(t *testing.T) {
	one, two := NewLatency(), NewLatency()
	one.Record(1000, 990)
	two.Record(5000, 9)
	two.Record(int64(time.Hour), 1)
	one.Merge(two)
	got := one.Summary()
	within := func(what string, got, want time.Duration) {
		if got < want*995/1000 || got > want*1005/1000 {
			t.Errorf("%s is %v, want %v", what, got, want)
		}
	}
	within("p50", got.P50, time.Microsecond)
	within("p99", got.P99, time.Microsecond)
	within("p99.9", got.P999, 5*time.Microsecond)
	within("max", got.Max, time.Minute)
	one.Reset()
	if one.Summary() != (Summary{}) {
		t.Error("something is left after a reset")
	}
}

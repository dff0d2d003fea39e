package bench

import (
	"bytes"
	"strings"
	"testing"

	"github.com/ostrodb/ostro/bench/workload"
)

func ringOf(t *testing.T, m workload.Mix, value []byte) *requests {
	t.Helper()
	r, err := newRequests(m, workload.Text16, value, 16, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRequestsAreWhatAClientWouldSend(t *testing.T) {
	value := make([]byte, workload.StampLen)
	workload.FillValue(value, 0, 7)
	for _, c := range []struct {
		mix     workload.Mix
		want    string
		replies int
	}{
		{workload.YCSBC, "*2\r\n$3\r\nGET\r\n$16\r\nkey:000000000042\r\n", 1},
		{workload.Writes, "*3\r\n$3\r\nSET\r\n$16\r\nkey:000000000042\r\n$25\r\n000000000042:000000000007\r\n", 1},
		{workload.Counter, "*2\r\n$4\r\nINCR\r\n$16\r\nkey:000000000042\r\n", 1},
	} {
		r := ringOf(t, c.mix, value)
		r.patch(3, []uint32{42})
		s := r.slots[3]
		if got := string(r.bytes[s.from:s.to]); got != c.want || s.replies != c.replies {
			t.Errorf("%s: got %q with %d replies, want %q", c.mix.Name, got, s.replies, c.want)
		}
	}
}

func TestAReadModifyWriteReadsAndWritesOneKey(t *testing.T) {
	r := ringOf(t, workload.YCSBF, []byte("v"))
	both := 0
	for i, s := range r.slots {
		r.patch(i, []uint32{uint32(i)})
		words := string(r.bytes[s.from:s.to])
		key := words[s.key[0]-s.from:][:16]
		if s.replies == 2 {
			both++
			if strings.Count(words, key) != 2 || !strings.Contains(words, "SET") {
				t.Fatalf("got %q", words)
			}
		}
	}
	if both != len(r.slots)/2 {
		t.Errorf("%d of %d operations read and write, want half", both, len(r.slots))
	}
}

func TestRequestsOfOneConnectionAreItsOwn(t *testing.T) {
	r := ringOf(t, workload.YCSBC, nil)
	before := bytes.Clone(r.bytes)
	r.copy().patch(0, []uint32{9})
	if !bytes.Equal(r.bytes, before) {
		t.Error("patching a copy changed the original")
	}
}

func TestInsertsAreRefused(t *testing.T) {
	if _, err := newRequests(workload.YCSBD, workload.Text16, nil, 1, 1, 0); err == nil {
		t.Error("a mix that inserts was accepted")
	}
}

func TestPatchingAllocatesNothing(t *testing.T) {
	r := ringOf(t, workload.YCSBA, make([]byte, 100))
	ids := make([]uint32, 16)
	if n := testing.AllocsPerRun(100, func() { r.patch(0, ids) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

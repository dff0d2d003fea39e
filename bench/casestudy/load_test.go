package casestudy

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"
)

// memory is a database that is nothing but a map.
type memory map[string][]byte

func (m memory) Commit(pairs ...Pair) error {
	for _, p := range pairs {
		m[string(p.Key)] = bytes.Clone(p.Value)
	}
	return nil
}

func (m memory) Get(key []byte) ([]byte, error) { return m[string(key)], nil }
func (m memory) Close() error                   { return nil }

// after is a database in which a writer has made so many transactions.
func after(t *testing.T, l load, n uint64) memory {
	t.Helper()
	m := memory{}
	for i := range n {
		if err := m.Commit(l.transaction(1, i+1)...); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

func TestInspectFindsTheLastTransaction(t *testing.T) {
	l := load{Writers: 2, Bytes: 10}
	for _, n := range []uint64{0, 1, 2, ringKeys - 1, ringKeys, ringKeys + 1, 5*ringKeys + 7} {
		if last, err := l.inspect(after(t, l, n), 1); err != nil || last != n {
			t.Errorf("after %d transactions: %d, %v", n, last, err)
		}
	}
}

func TestInspectFindsEveryPartThatIsMissing(t *testing.T) {
	l := load{Writers: 2, Bytes: 10}
	for _, n := range []uint64{1, 5, 2*ringKeys + 3} {
		for back := range min(n, ringKeys) {
			for _, p := range l.transaction(1, n-back) {
				m := after(t, l, n)
				m[string(p.Key)] = []byte("0")
				if _, err := l.inspect(m, 1); err == nil {
					t.Errorf("after %d transactions, %s was lost and nothing was said", n, p.Key)
				}
			}
		}
		m := after(t, l, n)
		m[string(l.ringKey(1, n+1))] = l.ringValue(n + 1)
		if _, err := l.inspect(m, 1); err == nil {
			t.Errorf("after %d transactions, a part of the next was there and nothing was said", n)
		}
	}
}

func TestQuantilesAreThoseOfTheUpdates(t *testing.T) {
	var all []time.Duration
	for i := range 1000 {
		all = append(all, time.Duration(1000-i))
	}
	want := Latency{Updates: 1000, Average: 500, P50: 501, P95: 951, P99: 991, Max: 1000}
	if got := summarize(all); got != want {
		t.Fatalf("got %+v, want %+v", got, want)
	}
}

func TestYCSBAReadsAsMuchAsItUpdates(t *testing.T) {
	y, m := newYCSB(100, 64), memory{}
	if err := y.fill(m); err != nil {
		t.Fatal(err)
	}
	if len(m) != 100 {
		t.Fatalf("%d records", len(m))
	}
	took, err := y.run(m, 1000, time.Minute)
	if err != nil || len(took) != 500 {
		t.Fatalf("%d updates of 1000 operations: %v", len(took), err)
	}
	clear(m)
	if _, err := y.run(m, 1000, time.Minute); err == nil {
		t.Fatal("records were missing and nothing was said")
	}
}

func TestAReportHasTheFirstModesRatios(t *testing.T) {
	r := newReport(Study{Name: "test", Paper: []PaperFigure{{Mode: "slow", What: "tail", Times: 5}}}, benchFlags{})
	r.add(contended, "fast", []time.Duration{1000, 1000})
	r.add(contended, "slow", []time.Duration{3000})
	r.add(contended, "slow", []time.Duration{5000})
	var table strings.Builder
	r.write(&table)
	if got := r.Cells[1].Ratios["average"]; got != 4 || !strings.Contains(table.String(), "tail 5.0x") {
		t.Fatalf("ratio %v in\n%s", got, table.String())
	}
	var b bytes.Buffer
	if err := r.writeJSON(&b); err != nil {
		t.Fatal(err)
	}
	var back Report
	if err := json.Unmarshal(b.Bytes(), &back); err != nil || back.Cells[1].Average != 4000 {
		t.Fatalf("%v: %s", err, b.String())
	}
}

func TestFlagsThatMakeNoSenseAreRefused(t *testing.T) {
	for _, args := range []string{
		"-modes fast", "-load some", "-replicas 8", "-ops 0", "-realtime 1", "-value 7", "more",
	} {
		if _, err := parseFlags(Study{}, strings.Fields(args), io.Discard); err == nil {
			t.Errorf("%s was accepted", args)
		}
	}
	if _, err := parseFlags(Study{}, nil, io.Discard); err != nil {
		t.Error(err)
	}
}

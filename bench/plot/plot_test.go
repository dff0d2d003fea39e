package plot

import (
	"bytes"
	"encoding/xml"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func sampleBars() Bars {
	return Bars{
		Title: "RESP servers, 50 connections", Subtitle: "medians of 3 rounds <interleaved>", Unit: "operations/s",
		Rows: []string{"GET P1", "GET P16", "SET P128"},
		Series: []Series{
			{"redis", []float64{54_000, 248_000, 368_000}},
			{"ostro", []float64{61_000, 640_000, 1_200_000}},
			{"other", []float64{math.NaN(), 250_000, 400_000}},
		},
	}
}

func sampleLog() Bars {
	return Bars{
		Title: "p99 beside busy processes", Subtitle: "3 replicas", Unit: "µs", Log: true,
		Rows:   []string{"gWRITE", "gCAS"},
		Series: []Series{{"chain", []float64{19.6, 35}}, {"naive", []float64{18_400, math.NaN()}}, {"none", []float64{0, 1}}},
	}
}

func sampleLines() Lines {
	return Lines{
		Title: "Reads while data outgrows memory", Subtitle: "1M records", XLabel: "seconds", YLabel: "Mops/s",
		Curves: []Curve{
			{"in memory", []float64{0, 1, 2, 3}, []float64{1, 1.1, 1.05, 1.2}},
			{"spilled", []float64{0, 1, 2, 3}, []float64{0.9, math.NaN(), 0.4, 0.5}},
		},
	}
}

func TestChartsMatchTheirGoldenFiles(t *testing.T) {
	for name, got := range map[string][]byte{
		"bars.svg":   sampleBars().SVG(),
		"log.svg":    sampleLog().SVG(),
		"lines.svg":  sampleLines().SVG(),
		"column.svg": Column{sampleBars(), sampleLog(), sampleLines()}.SVG(),
	} {
		path := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(path, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s differs from its golden file; look at both, then run the test with -update", name)
		}
	}
}

func TestChartsAreWellFormedXML(t *testing.T) {
	for _, chart := range [][]byte{sampleBars().SVG(), sampleLog().SVG(), sampleLines().SVG(), Bars{}.SVG(), Bars{Log: true}.SVG(), Lines{}.SVG(), Column{}.SVG(), Column{sampleLog(), sampleLines()}.SVG()} {
		d := xml.NewDecoder(bytes.NewReader(chart))
		for {
			if _, err := d.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%v in\n%s", err, chart)
			}
		}
		if strings.Contains(string(chart), "NaN") {
			t.Errorf("a gap was drawn:\n%s", chart)
		}
	}
}

func TestTicksAreRoundAndReachTheTop(t *testing.T) {
	for _, top := range []float64{1e-9, 0.3, 1, 1.2, 99, 100, 1234, 5e7} {
		at := ticks(top)
		if last := at[len(at)-1]; last < top*(1-1e-9) || last > 2*top {
			t.Errorf("ticks(%v) end at %v", top, last)
		}
		if len(at) < 3 || len(at) > 7 {
			t.Errorf("ticks(%v) are %d", top, len(at))
		}
	}
	for _, top := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		if at := ticks(top); len(at) != 2 {
			t.Errorf("ticks(%v) = %v", top, at)
		}
	}
}

func TestNumbersHaveThreeDigits(t *testing.T) {
	var got []string
	for _, v := range []float64{0, 0.0512, 1.2345, 123.4, 9876, 54_321, 123_456, 1_234_567} {
		got = append(got, number(v))
	}
	want := "[0 0.0512 1.23 123 9876 54.3k 123k 1.23M]"
	if fmt.Sprint(got) != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestPowersOfTenEncloseTheValues(t *testing.T) {
	for _, c := range []struct {
		least, top float64
		want       string
	}{
		{19.6, 18_400, "[10 100 1000 10000 100000]"},
		{10, 100, "[1 10 100]"},
		{0.5, 0.7, "[0.1 1]"},
		{math.Inf(1), 0, "[1 10]"},
	} {
		if got := fmt.Sprint(powers(c.least, c.top)); got != c.want {
			t.Errorf("powers(%v, %v) = %v, want %v", c.least, c.top, got, c.want)
		}
	}
}

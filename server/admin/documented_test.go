package admin

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

var update = flag.Bool("update", false, "write docs/metrics.md anew")

const metricsPage = "../../docs/metrics.md"

const pageHead = `# Metrics

All that a node tells at ` + "`/metrics`" + ` of its admin port, beside what Go's own collectors tell of the process. What a node has no part of, such as migrations on a server
on its own, is not there. Made by ` + "`go test ./server/admin -run Documented -update`" + `.

| metric | labels | |
|---|---|---|
`

// described is the metrics of a collector: names, labels and helps.
func described(c prometheus.Collector) (names []string, page string) {
	descs := make(chan *prometheus.Desc)
	go func() {
		defer close(descs)
		c.Describe(descs)
	}()
	words := regexp.MustCompile(`fqName: "([^"]*)", help: "([^"]*)", (?:unit: "[^"]*", )?constLabels: {}, variableLabels: {([^}]*)}`)
	var rows []string
	for d := range descs {
		w := words.FindStringSubmatch(d.String())
		if w == nil {
			continue
		}
		names = append(names, w[1])
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s |\n", w[1], strings.ReplaceAll(w[3], ",", ", "), strings.ReplaceAll(w[2], "|", `\|`)))
	}
	slices.Sort(rows)
	return names, pageHead + strings.Join(slices.Compact(rows), "")
}

func TestAllMetricsAreDocumented(t *testing.T) {
	_, page := described(newCollector("x", &node{}))
	if *update {
		if err := os.WriteFile(metricsPage, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(metricsPage)
	if err != nil {
		t.Fatal(err)
	}
	if string(kept) != page {
		t.Errorf("docs/metrics.md is not what the metrics say: run `go test ./server/admin -run Documented -update`, and look at the difference")
	}
}

func TestMetricsThatAreDocumentedExist(t *testing.T) {
	names, _ := described(newCollector("x", &node{}))
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(files) == 0 {
		t.Fatalf("no documentation: %v", err)
	}
	// Histograms have more names than one; and not everything of this prefix is a metric, but of these parts all is.
	metric := regexp.MustCompile("`(ostro_(?:sched|tenant|function|native|migrate|balancer|cluster|loop|replica|memory|disk|cold|reply|commands|connections)_[a-z_]+[a-z])(?:{[a-z,]*})?`")
	found := 0
	for _, file := range append(files, "../../README.md") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range metric.FindAllStringSubmatch(string(text), -1) {
			found++
			name := regexp.MustCompile("_(bucket|sum|count)$").ReplaceAllString(m[1], "")
			if !slices.Contains(names, m[1]) && !slices.Contains(names, name) {
				t.Errorf("%s tells of %s, which is not there", filepath.Base(file), m[1])
			}
		}
	}
	if found < 30 {
		t.Errorf("only %d are documented: they are written in another way?", found)
	}
}

package bench

import (
	"fmt"
	"strings"
	"time"
)

// splinterOutcome is what `ostro bench splinter` found.
type splinterOutcome struct {
	Tenants    int            `json:"tenants"`
	Records    uint64         `json:"records"`
	ValueBytes int            `json:"value_bytes"`
	Batch      int            `json:"batch"`
	Window     int            `json:"window"`
	Redis      string         `json:"redis,omitempty"`
	Cells      []splinterCell `json:"cells,omitempty"`
	Install    *installed     `json:"install,omitempty"`
	EndedIn    string         `json:"ended_in,omitempty"` // the part in which the run was interrupted
}

// part is the cells of a part, and of its cases in their order.
func (o *splinterOutcome) part(name string) (cells []splinterCell) {
	for _, c := range o.Cells {
		if c.Part == name {
			cells = append(cells, c)
		}
	}
	return cells
}

// cell finds one; nil if it was not measured.
func (o *splinterOutcome) cell(part string, at float64, way string) *splinterCell {
	for i := range o.Cells {
		if c := &o.Cells[i]; c.Part == part && c.X == at && c.Way == way {
			return c
		}
	}
	return nil
}

// ratioTo is the median of what rounds of a cell have of those of another beside them.
func (c *splinterCell) ratioTo(base *splinterCell, figure func(splinterRound) float64) float64 {
	return median(c.ratiosTo(base, figure))
}

// ratiosTo is the same of each round.
func (c *splinterCell) ratiosTo(base *splinterCell, figure func(splinterRound) float64) (all []float64) {
	for i := range c.Rounds {
		all = append(all, figure(c.Rounds[i])/figure(base.Rounds[i]))
	}
	return all
}

// splinterTitles are the parts as tables have them, in their order.
var splinterTitles = []struct{ part, title string }{
	{"get", "Gets and puts (YCSB-B), plain and by functions"},
	{"get at a load", "The same at equal loads: latency from the moment an operation was due"},
	{"tenants", "Gets and puts by the number of tenants"},
	{"skew, as many as are answered", "Calls of 512 gets: what is served at most"},
	{"skew", "Tenants that call more than others, calls of 512 gets at an equal load"},
	{"long calls, as many as are answered", "Short and long calls: what is served at most"},
	{"long", "Latency of short calls beside long ones, at an equal load"},
	{"hostile", "Calls that never end, beside those of others"},
	{"hostile at a load", "The same at an equal load: what the others feel"},
	{"kinds", "What hostile tenants do, beside others"},
	{"kinds at a load", "The same at an equal load: what the others feel"},
	{"aggregate", "The sum over records that another record lists"},
	{"aggregate alone", "The same, one at a time"},
	{"compute", "The sum of two records to a power"},
	{"tao", "TAO: objects and ranges of associations"},
}

func (o *splinterOutcome) tables() (all []table) {
	for _, t := range splinterTitles {
		if cells := o.part(t.part); len(cells) > 0 {
			all = append(all, o.table(t.part, t.title, cells))
		}
	}
	if o.Install != nil {
		all = append(all, o.Install.table())
	}
	if lines := o.judge(); len(lines) > 0 {
		all = append(all, verdictsTable(lines))
	}
	return all
}

// table shows the cells of a part; ratios are to the first way of each case.
func (o *splinterOutcome) table(part, title string, cells []splinterCell) table {
	t := table{
		title: fmt.Sprintf("%s; medians of %d rounds in turns", title, len(cells[0].Rounds)),
		names: 2,
		head:  []string{"case", "way", "ops/s", "ratio", "p50", "ratio", "p99", "ratio", "p99.9", "ratio", "server CPU/op", "ratio", "client busy"},
	}
	bad := strings.HasPrefix(part, "hostile") || strings.HasPrefix(part, "kinds")
	if bad {
		t.head = append(t.head, "bad", "ended in time")
	}
	installs := strings.HasPrefix(part, "kinds")
	if installs {
		t.head = append(t.head, "others' installs, p50", "longest")
	}
	first := &cells[0]
	for i := range cells {
		c := &cells[i]
		if c.Case != first.Case {
			first = c
		}
		row := []string{c.Case, c.Way, rate(c.of(splinterRate)), times(c.ratioTo(first, splinterRate))}
		for _, figure := range []func(splinterRound) float64{splinterP50, splinterP99, splinterP999} {
			row = append(row, short(time.Duration(c.of(figure))), times(c.ratioTo(first, figure)))
		}
		row = append(row, micro(c.of(splinterCPU)), times(c.ratioTo(first, splinterCPU)),
			decimals(100*c.of(func(r splinterRound) float64 { return r.ClientBusy }), 0)+"%")
		if bad {
			row = append(row, rate(c.of(func(r splinterRound) float64 { return float64(r.Bad) })), rate(c.of(func(r splinterRound) float64 { return float64(r.Answered) })))
		}
		if installs {
			row = append(row, c.installs(func(r splinterRound) float64 { return r.Install }), c.installs(func(r splinterRound) float64 { return r.InstallMost }))
		}
		t.add(row...)
	}
	return t
}

// installs is how long somebody's installations took, where there were any.
func (c *splinterCell) installs(figure func(splinterRound) float64) string {
	if d := c.of(figure); d > 0 {
		return short(time.Duration(d))
	}
	return ""
}

func (i *installed) table() table {
	t := table{
		title: fmt.Sprintf("%s modules of a function each, of %s, no two alike", grouped(int64(i.Functions)), many(i.Tenants, "tenant", "tenants")),
		names: 1,
		head:  []string{"", "figure", "each"},
	}
	each := func(bytes int64) string { return bytesShort(bytes / int64(i.Functions)) }
	t.add("installed in", short(i.Took), short(i.Took/time.Duration(i.Functions)))
	t.add("memory before", bytesShort(i.Empty), "")
	t.add("memory after", bytesShort(i.Full), each(i.Full-i.Empty))
	t.add("memory after each was called", bytesShort(i.Called), each(i.Called-i.Empty))
	t.add("restart", short(i.Restart), "")
	t.add("memory then", bytesShort(i.Restarted), "")
	t.add(fmt.Sprintf("first call of %s, p50", many(i.Calls, "function", "functions")), short(i.First.P50), "")
	t.add("p99", short(i.First.P99), "")
	t.add("longest", short(i.First.Max), "")
	t.add("second call, p50", short(i.Again.P50), "")
	t.add("p99", short(i.Again.P99), "")
	return t
}

func (o *splinterOutcome) notes() []string {
	notes := []string{
		fmt.Sprintf("%s, %s records of %d B together, %d batches under way, of %d operations where nothing else is said; server and clients share the cores; writes have no identity",
			many(o.Tenants, "tenant", "tenants"), grouped(int64(o.Records)), 30+o.ValueBytes, o.Window, o.Batch),
		"ratios are medians over rounds that stand beside each other, to the first way of the case; a pipeline or batch counts with the time until its last answer",
	}
	if o.EndedIn != "" {
		notes = append(notes, "THE RUN WAS INTERRUPTED in "+o.EndedIn+": what is missing was not measured")
	}
	for _, n := range splinterNotes {
		if len(o.part(n.part)) > 0 {
			notes = append(notes, n.text)
		}
	}
	if o.Redis != "" {
		notes = append(notes, "beside: "+o.Redis+", with as many connections as batches are under way, and pipelines of their size")
	}
	return notes
}

// splinterNotes are what the paper says, and what must be known, by part.
var splinterNotes = []struct{ part, text string }{
	{"get", "get, the paper: 5.3 million operations a second plain, 4.3 by functions (19% less), both at 9 µs below 3.5 million"},
	{"tenants", "tenants, the paper: by functions 4.0 million a second with 8 tenants and 3.3 with 1,024, always within 22% of plain ones"},
	{"skew", "skew, the paper: without stealing the 99th percentile doubles at skew 0.9 and more; without homes the median is 42% to 86% and the tail 38% to 155% worse"},
	{"long", "long, the paper: the short ones' median falls from 38 to 22 µs as the long ones yield more often, down to 8 gets between two yields, and rises again below"},
	{"hostile", "hostile, the paper: throughput stays; the 99th percentile is within 100 µs up to one in a million, and suffers beyond"},
	{"aggregate", "aggregate, the paper, 4 records: 1.2 million a second by clients and 1.6 by functions (1.33x), median 16 and 10 µs (0.62x) at little load; 2 records 1.5 and 2.4 million; always more than 1.5x by Figure 4.14's text"},
	{"compute", "compute, the paper: functions serve 1.8 million a second, clients 1.6; above 2,000 multiplications functions fall behind, and are half as fast at 5,000. Its clients had a machine of their own; ours share the server's cores"},
	{"tao", "tao, the paper: 2.8 million a second by functions at 30 µs, 3.2 with plain gets of objects; that is 400,000 more than by plain operations alone"},
	{"tao", "tao: native clients read the ids of a list and then its associations by a multi-get, as in the paper; the last row's know the record in which the module has a list's newest associations whole, which is one get"},
}

package bench

import (
	"fmt"

	"github.com/ostrodb/ostro/bench/plot"
)

func (o *takeoverOutcome) tables() []table {
	t := table{
		title: fmt.Sprintf("A node of %d dies with SIGKILL; records of 30 B keys and %d B values", o.Nodes, o.ValueBytes),
		names: 2,
		head: []string{
			"records", "mode", "detected after", "fenced, planned", "served after", "after detection", "records/s",
			"first answer after", "copies after", "all read back", "loaded at",
		},
	}
	for _, r := range o.Rounds {
		took := r.Served - r.Detected
		t.add(grouped(int64(r.Records)), r.Mode, short(r.Detected), "+"+short(r.Planned-r.Detected), short(r.Served), short(took),
			rate(float64(r.Records)/took.Seconds()), short(r.Answered), short(r.Copied), short(r.ReadBack), rate(r.LoadRate)+"/s")
	}
	return []table{t}
}

func (o *takeoverOutcome) notes() []string {
	return []string{
		"detected: the dead node's ranges have heirs in etcd; served: the last heir has replayed its part and serves it; every record was then read back and compared",
		"copies: all that heirs took has two backups again, and the dead node's log is given up; until then its own copies are kept, and the read back goes on meanwhile",
		"between load and kill the file systems are synced, as they would be after a while",
		"first answer: to a client that asks for one of the dead node's records without end and follows redirections",
		"the paper: 1M objects in 0.5 s, 10M in 2.5 s, on 10 machines; here three heirs, etcd and client share the cores",
	}
}

func (o *takeoverOutcome) chart(where string) []byte {
	c := plot.Bars{
		Title:    fmt.Sprintf("Recovery of a node of %d", o.Nodes),
		Subtitle: where, Unit: "seconds",
	}
	detect, replay := plot.Series{Name: "until detected"}, plot.Series{Name: "from then until all is served"}
	for _, r := range o.Rounds {
		c.Rows = append(c.Rows, fmt.Sprintf("%s, %s", grouped(int64(r.Records)), r.Mode))
		detect.Values = append(detect.Values, r.Detected.Seconds())
		replay.Values = append(replay.Values, (r.Served - r.Detected).Seconds())
	}
	c.Series = []plot.Series{detect, replay}
	return c.SVG()
}

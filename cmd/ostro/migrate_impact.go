package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/view"
)

// impact is what a migration does to the clients of its two nodes, by the nodes' own histograms
// of how long they took to answer. It is nil if nobody wants to know.
type impact struct {
	nodes []*nodeImpact
}

// nodeImpact is one node's. Histograms count from the node's start; only differences are shown.
type nodeImpact struct {
	ID       view.NodeID
	url      string // of its metrics; empty if it has none
	mu       sync.Mutex
	calm     replyHistogram // before
	first    replyHistogram // when it began
	lastSeen replyHistogram
}

// nodeImpactReport is what is told of a node. Times are 0 if there were too few replies.
type nodeImpactReport struct {
	Node    view.NodeID   `json:"node"`
	Before  time.Duration `json:"p999_before_ns"`
	During  time.Duration `json:"p999_during_ns"`
	Replies uint64        `json:"replies_during"`
}

func newImpact(s *meta.Snapshot, nodes ...view.NodeID) *impact {
	i := &impact{}
	for _, n := range nodes {
		one := &nodeImpact{ID: n}
		if addr := s.Nodes[n].AdminAddress; addr != "" {
			one.url = "http://" + addr + "/metrics"
		}
		i.nodes = append(i.nodes, one)
	}
	return i
}

// before looks at the nodes for a while.
func (i *impact) before(ctx context.Context, d time.Duration) {
	var start []replyHistogram
	i.each(ctx, func(_ *nodeImpact, h replyHistogram) { start = append(start, h) })
	if d > 0 {
		select {
		case <-ctx.Done():
		case <-time.After(d):
		}
	}
	n := 0
	i.each(ctx, func(one *nodeImpact, h replyHistogram) {
		one.calm, one.first = h.since(start[n]), h
		n++
	})
}

// look takes what the nodes tell now.
func (i *impact) look(ctx context.Context) {
	if i == nil {
		return
	}
	i.each(ctx, func(one *nodeImpact, h replyHistogram) {
		if h != nil {
			one.lastSeen = h
		}
	})
}

// each asks all nodes at once and tells of each in order.
func (i *impact) each(ctx context.Context, f func(*nodeImpact, replyHistogram)) {
	got := make([]replyHistogram, len(i.nodes))
	var all sync.WaitGroup
	for n, one := range i.nodes {
		all.Go(func() { got[n] = readReplies(ctx, one.url) })
	}
	all.Wait()
	for n, one := range i.nodes {
		one.mu.Lock()
		f(one, got[n])
		one.mu.Unlock()
	}
}

func (i *impact) report() (all []nodeImpactReport) {
	if i == nil {
		return nil
	}
	for _, one := range i.nodes {
		one.mu.Lock()
		during := one.lastSeen.since(one.first)
		all = append(all, nodeImpactReport{one.ID, one.calm.quantile(0.999), during.quantile(0.999), during.total()})
		one.mu.Unlock()
	}
	return all
}

// text is a few words for the end of a progress line.
func (i *impact) text() string {
	var parts []string
	for _, r := range i.report() {
		parts = append(parts, fmt.Sprintf("%s %s (was %s)", r.Node, latencyText(r.During), latencyText(r.Before)))
	}
	if len(parts) == 0 {
		return ""
	}
	return "p99.9 " + strings.Join(parts, ", ")
}

func latencyText(d time.Duration) string {
	switch {
	case d == 0:
		return "-"
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.2f ms", float64(d)/1e6)
	}
	return fmt.Sprintf("%.0f ms", float64(d)/1e6)
}

// replyHistogram is how many replies took up to so many seconds, by rising bounds.
type replyHistogram []replyBucket

type replyBucket struct {
	seconds float64
	count   uint64 // up to here
}

const replyMetric = `ostro_reply_seconds_bucket{le="`

// readReplies asks a node for its histogram; nil if it does not tell.
func readReplies(ctx context.Context, url string) replyHistogram {
	if url == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	return parseReplies(resp.Body)
}

func parseReplies(text io.Reader) (h replyHistogram) {
	lines := bufio.NewScanner(text)
	for lines.Scan() {
		rest, ok := strings.CutPrefix(lines.Text(), replyMetric)
		bound, count, ok2 := strings.Cut(rest, `"} `)
		if !ok || !ok2 {
			continue
		}
		seconds, err := strconv.ParseFloat(bound, 64) // It takes +Inf.
		n, err2 := strconv.ParseFloat(count, 64)
		if err == nil && err2 == nil {
			h = append(h, replyBucket{seconds, uint64(n)})
		}
	}
	slices.SortFunc(h, func(a, b replyBucket) int {
		if a.seconds < b.seconds {
			return -1
		}
		return 1
	})
	return h
}

// since is what was counted after an earlier reading. A node that began anew meanwhile counts from there.
func (h replyHistogram) since(earlier replyHistogram) replyHistogram {
	if len(earlier) != len(h) || h.total() < earlier.total() {
		return h
	}
	diff := slices.Clone(h)
	for i := range diff {
		diff[i].count -= min(diff[i].count, earlier[i].count)
	}
	return diff
}

func (h replyHistogram) total() uint64 {
	if len(h) == 0 {
		return 0
	}
	return h[len(h)-1].count
}

// fewReplies is how many there must be for a thousandth of them to mean something.
const fewReplies = 1000

// quantile is the time within which a share of replies left; 0 if there were too few.
func (h replyHistogram) quantile(share float64) time.Duration {
	if h.total() < fewReplies {
		return 0
	}
	wanted := share * float64(h.total())
	for i, b := range h {
		if float64(b.count) < wanted {
			continue
		}
		if i == len(h)-1 && i > 0 {
			b = h[i-1] // The last has no end.
		}
		return time.Duration(b.seconds * float64(time.Second))
	}
	return 0
}

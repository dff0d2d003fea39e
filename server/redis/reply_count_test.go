package redis_test

import (
	"testing"

	"github.com/ostrodb/ostro/internal/await"
	"github.com/ostrodb/ostro/server/redis"
)

// replies is how many times of a node were counted, and the longest that surely occurred.
func (n *townNode) replies() (count int64, longest int) {
	for i, c := range n.srv.Metrics().Replies.Counts {
		if count += c; c > 0 {
			longest = i
		}
	}
	return count, longest
}

func TestRepliesAreTimedFromWhenTheirCommandWasRead(t *testing.T) {
	tw := newTown(t, 2, redis.Config{})
	n, key := tw.nodes[0], tw.keyOf(0, 0)
	c := tw.dial(0)
	const prompt = 10
	for range prompt {
		ask(t, c, "set", key, "1")
	}
	await.True(t, "all are counted", func() bool { count, _ := n.replies(); return count == prompt })
	// One that waits for its range counts once, with the time that it waited.
	tw.recovers(0, key)
	must(t, c.send("get", key))
	n.waits(t, 1)
	if count, _ := n.replies(); count != prompt {
		t.Fatalf("%d replies were counted, one of them before it left", count)
	}
	tw.recovered(0)
	if r, err := c.receive(); err != nil || r.text != "1" {
		t.Fatalf("%+v, %v", r, err)
	}
	await.True(t, "the late one is counted", func() bool { count, _ := n.replies(); return count == prompt+1 })
}

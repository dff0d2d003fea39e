package redis

import (
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/wire/resp"
)

// A proxy has every node flush what is its own. A range that goes meanwhile from a node that has not flushed yet
// to one that has would keep its keys. So it looks at the map again when all have answered, and
// whoever is in another view by then flushes once more, until a round changes no view.
//
// Why that is right: call a node clean if nothing is left in its ranges that was there before the command. Who flushed in a round,
// and is in the same view at both ends of it, is clean: it had the same ranges all the time, knew of all of them when it
// began (Mapper), and waited for what was still to arrive. Who is clean stays so until it gets ranges, by a migration, by
// its return or as an heir, and then it is in another view and flushes in the next round. So after a round
// that changes no view all are clean.

// flushRounds is how often nodes flush for one command. Each but the first is for ranges that changed hands in the one before.
const flushRounds = 16

const errFlushMoves = "TRYAGAIN keys have moved from node to node all the time: send the command again"

// flushing is what a hop that flushes all nodes remembers.
type flushing struct {
	body   []byte
	since  view.Map // as it was before the round
	rounds int
}

// round makes the parcels for the owners that are in another view than before.
func (f *flushing) round(now view.Map) (parts []*parcel) {
	for _, n := range now.Owners() {
		if now.ViewID(n) != f.since.ViewID(n) {
			parts = append(parts, &parcel{node: n, body: f.body, replies: 1})
		}
	}
	f.since = now
	f.rounds++
	return parts
}

// spreadFlush makes a hop a flush of all nodes.
func (l *loop) spreadFlush(h *hop, args [][]byte) {
	h.flush = &flushing{body: resp.AppendCommand(nil, args...)}
	h.parts = h.flush.round(l.routing.places)
}

// nextRound has the map looked at when all nodes have flushed; false if the hop is over.
func (l *loop) nextRound(h *hop) bool {
	if h.flush == nil || isAnyError(h.reply) {
		return false
	}
	l.srv.latest(func(now view.Map, err error) {
		l.post(message{run: func() { l.roundOver(h, now, err) }})
	})
	return true
}

// roundOver begins the next round of a flush, or ends it.
func (l *loop) roundOver(h *hop, now view.Map, err error) {
	if h.c.net.closed {
		return
	}
	parts := h.flush.round(now)
	switch {
	case err != nil:
		h.reply = errorReply("ERR " + err.Error())
	case len(parts) == 0:
	case h.flush.rounds > flushRounds:
		h.reply = errorReply(errFlushMoves)
	default:
		h.parts, h.left, h.until = parts, len(parts), 0
		for _, p := range parts {
			p.hop = h
			l.dispatch(p)
		}
		return
	}
	h.parts = nil
	l.finishHop(h)
}

func errorReply(text string) []byte {
	var w resp.Writer
	w.Error(text)
	return w.Bytes()
}

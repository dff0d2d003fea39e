package linearize

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// History is what all clients did. Each client has a Recorder of its own.
type History struct {
	began time.Time

	mu        sync.Mutex
	recorders []*Recorder
	clients   int
}

// NewHistory begins one.
func NewHistory() *History { return &History{began: time.Now()} }

// Recorder notes the operations of one client, one at a time.
type Recorder struct {
	history *History
	client  int
	ops     []Op
	open    bool
}

// Client returns a new client's recorder.
func (h *History) Client() *Recorder {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := &Recorder{history: h, client: h.clients}
	h.clients++
	h.recorders = append(h.recorders, r)
	return r
}

// Now is the time on the history's clock.
func (h *History) Now() int64 { return time.Since(h.began).Nanoseconds() }

// At is a time on the history's clock, readable.
func At(t int64) string { return fmt.Sprintf("%.3f ms", float64(t)/1e6) }

// Call notes an operation that is about to be sent.
func (r *Recorder) Call(o Op) {
	if r.open {
		panic("linearize: a client began an operation before the last one ended")
	}
	o.Client, o.Call, o.Return = r.client, r.history.Now(), Never
	r.ops, r.open = append(r.ops, o), true
}

// Answered notes the answer to the last call.
func (r *Recorder) Answered(got string, found bool) {
	o := r.end()
	o.Got, o.Found, o.Return = got, found, r.history.Now()
}

// Lost notes that no answer will come. The client goes on under another number, for
// this operation may still happen beside its next ones.
func (r *Recorder) Lost() {
	r.end()
	r.history.mu.Lock()
	defer r.history.mu.Unlock()
	r.client = r.history.clients
	r.history.clients++
}

// Refused notes that the last call surely never took effect, nor will.
func (r *Recorder) Refused() {
	r.end()
	r.ops = r.ops[:len(r.ops)-1]
}

func (r *Recorder) end() *Op {
	if !r.open {
		panic("linearize: an operation ended that had not begun")
	}
	r.open = false
	return &r.ops[len(r.ops)-1]
}

// Ops returns all that was noted, in the order of calls. Nobody may record meanwhile.
func (h *History) Ops() []Op {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []Op
	for _, r := range h.recorders {
		all = append(all, r.ops...)
	}
	slices.SortStableFunc(all, func(a, b Op) int { return int(min(1, max(-1, a.Call-b.Call))) })
	return all
}

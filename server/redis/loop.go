package redis

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ostrodb/ostro/cluster/balance"
	"golang.org/x/sys/unix"

	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/wire/resp"
)

const (
	windowBytes  = 256 << 10 // a loop's input of one round
	readBytes    = 64 << 10  // most that one connection gives per round
	minReadBytes = 16 << 10
	joinBytes    = 16 << 10 // commands up to this size are completed in the window
	eventsAtOnce = 256

	// A connection whose replies grow beyond this in one round goes on in the
	// next, so that others have their turn and the socket takes some.
	replySliceBytes = 256 << 10
	// A connection that reads values beyond this gets them one at a time, for
	// most of a batch of them would not fit the slice.
	bulkyBytes = 16 << 10
	// A connection with so many replies unsent executes nothing until its
	// client has read some.
	replyPauseBytes = 64 << 20
)

// loop serves connections: one goroutine on one thread with one session. It
// works in rounds:
//
//	wait for events
//	begin; for each ready connection: one read, all complete commands; seal; end
//	one write per connection that has replies
//
// A connection with many replies, or whose functions have used their slice, goes on in the next round.
// Nothing in a round blocks. A command that misses a key in memory parks its
// connection (park.go); replies that are not durable yet are held (hold.go).
//
// Everything belongs to the loop's goroutine but for poller.wake, the inbox,
// and what is atomic.
type loop struct {
	srv    *Server
	id     int
	poller poller
	inbox  inbox
	sess   *store.Session

	parser resp.Parser
	call   call
	batch  batch
	ahead  lookahead
	tally  tally
	pool   buffers

	conns  []*conn // served here, in no order; conn.net.slot is the index
	byFD   []*conn
	listen []*listener // accepted here; only the first loop has any
	active []*conn     // have replies of this round
	again  []*conn     // have commands that can run without reading more
	sliced []*conn     // have enough replies for this round
	fuel   fuelSlice   // that calls may use in it
	ready  []*conn     // have a pipe and something to do
	held   []hold      // rounds that wait to become durable, oldest first
	spare  [][]heldReplies

	readySpare []*conn
	moved      atomic.Bool // the durable mark moved
	asleep     atomic.Bool // it waits for events, and must be woken to see that

	routing   *Routing // of this round; nil: no cluster
	gauge     *balance.Gauge
	noting    *balance.Gauge // gauge in rounds that are looked at, else nil
	lease     leaseView
	exposed   bool               // replies of this round tell of data
	waiting   []*conn            // until the routing changes
	waitUntil int64              // when the first of them has waited long enough
	rerouted  atomic.Bool        // the routing changed
	links     map[linkKey]*link  // to other nodes, for all clients
	allLinks  map[*link]struct{} // and those of single clients
	retries   []*parcel          // to be sent again
	retryAt   int64              // when, if nothing is heard before
	departed  int64              // hops so far
	pass      int64              // tries so far

	parks    []*park // fetches to start when the round is over
	arrived  []*park // fetches that are there
	resumed  []*park // fetches whose commands run in this round
	fetching int     // fetches under way

	window    []byte
	windowEnd int
	open      bool // between Begin and End
	now       int64
	last      *command // the last one that ran
	pause     pauseView
	stop      bool  // shutting down: no more input
	swept     int64 // when timeouts were last looked at

	acceptAgain int64 // when to accept again after a failure; 0: there was none
	yielded     int64

	load     loadMeter
	gather   gatherer
	thin     atomic.Bool // rounds of the last window had few commands
	balancer balancer
	drowsy   bool         // so little to do that it need not wake to say so
	num      atomic.Int64 // len(conns), for others
	wg       *sync.WaitGroup
}

func (s *Server) newLoop(id int) (*loop, error) {
	sess, err := s.store.NewSession()
	if err != nil {
		return nil, err
	}
	l := &loop{srv: s, id: id, sess: sess, window: make([]byte, windowBytes), wg: &s.loopsDone, waitUntil: never, retryAt: never}
	if err := l.poller.open(eventsAtOnce); err != nil {
		sess.Close()
		return nil, err
	}
	l.call = call{srv: s, ss: sess, caller: s.calls.NewCaller(sess)}
	l.call.request.Worker = id
	l.gauge = s.cfg.Heat.Gauge()
	sess.Notify(l.durableMoved)
	l.tally.init()
	l.load.start()
	return l, nil
}

// run is the loop's goroutine. It ends when the server shuts down and every
// connection is closed.
func (l *loop) run() {
	defer l.wg.Done()
	defer l.release()
	l.sess.Attend()
	defer l.sess.Leave(false)
	for !l.stop || len(l.conns) > 0 {
		l.round(l.events())
		l.yield()
	}
}

// yield lets the Go scheduler have the thread now and then. A goroutine that
// does not is stopped by a signal after 10 ms, and the runtime's monitor thread
// then wakes every 20 microseconds for a while, which costs several percent.
func (l *loop) yield() {
	if l.load.mark-l.yielded > int64(5*time.Millisecond) {
		l.yielded = l.load.mark
		runtime.Gosched()
	}
}

// release gives back what the loop holds.
func (l *loop) release() {
	l.closeLinks()
	l.abandonParked()
	l.closeListeners()
	l.srv.cfg.Heat.Drop(l.gauge)
	l.sess.Close()
	l.poller.close()
}

// events returns what is ready, waiting for it if there is nothing else to do.
// To wait costs little more than to poll when something is ready already.
func (l *loop) events() []unix.EpollEvent {
	if len(l.again) > 0 || len(l.ready) > 0 {
		return l.poller.poll()
	}
	l.gather.rest(l.load.utilisation())
	if len(l.held) > 0 && l.sess.Attends() {
		if events, found := l.watchCopies(); found {
			return events
		}
	}
	return l.sleep()
}

// watchCopies looks for events and for copies of what is held, for as long as that is better than to sleep.
func (l *loop) watchCopies() (events []unix.EpollEvent, found bool) {
	l.sess.Look()
	if events = l.poller.poll(); len(events) > 0 || l.moved.Load() {
		return events, true
	}
	if l.sess.Linger(l.held[0].ticket) {
		l.moved.Store(true)
		return l.poller.poll(), true
	}
	return nil, false
}

// sleep waits for events.
func (l *loop) sleep() []unix.EpollEvent {
	l.asleep.Store(true)
	defer l.asleep.Store(false)
	if l.moved.Load() {
		return l.poller.poll()
	}
	l.sess.Leave(len(l.held) > 0)
	defer l.sess.Attend()
	return l.poller.wait(l.patience())
}

// patience is how many milliseconds the loop may sleep before it has to look
// at timeouts; negative: as long as it likes.
func (l *loop) patience() int {
	usual := l.usualPatience()
	if l.srv.cfg.Cluster != nil {
		return l.clusterPatience(usual)
	}
	return usual
}

func (l *loop) usualPatience() int {
	switch {
	case l.stop:
		return 10
	case l.acceptAgain != 0:
		return sweepMillis
	case len(l.pause.conns) > 0:
		return int(max(l.pause.until-l.now, 1))
	case len(l.conns) > 0 && (l.srv.settings.timeoutMillis.Load() > 0 || l.srv.settings.outputSoft.Load() > 0):
		return sweepMillis
	case !l.drowsy && l.srv.adaptive && l.srv.active.Load() > 1:
		return balanceMillis
	}
	return -1
}

// round handles one batch of events.
func (l *loop) round(events []unix.EpollEvent) {
	now := time.Now()
	l.now = now.UnixMilli()
	l.load.resume(now)
	l.call.now = l.now
	l.fuel.begin(len(l.again))
	for _, e := range events {
		if int(e.Fd) == l.poller.event {
			l.poller.drained() // Before anything is looked at that it may have been woken for.
			l.takeInbox()
		}
	}
	l.lookAtPause()
	if l.srv.cfg.Cluster != nil {
		l.lookAtCluster()
	}
	if len(l.held) > 0 {
		l.sess.Look()
	}
	if l.moved.Load() && l.moved.Swap(false) {
		l.releaseHeld()
	}
	l.goOnParked()
	l.goOn()
	l.servePipes()
	for _, e := range events {
		l.handle(int(e.Fd), e.Events)
	}
	l.finish()
	l.gather.round(l.load.mark, l.tally.calls)
	l.tally.publish(l.load.lap(), l.srv.settings.slowlogMicros.Load())
	l.housekeep()
}

// handle serves one event.
func (l *loop) handle(fd int, ready uint32) {
	if fd < len(l.byFD) {
		if c := l.byFD[fd]; c != nil {
			l.serve(c, ready)
			return
		}
	}
	for _, ln := range l.listen {
		if ln.fd == fd {
			l.accept(ln)
		}
	}
}

// serve reacts to what epoll reported of a connection.
func (l *loop) serve(c *conn, ready uint32) {
	if ready&writable != 0 {
		l.write(c)
	}
	n := &c.net
	switch {
	case n.closed || ready&^writable == 0 || n.more:
		// Closed by the write; or nothing to read; or not its turn to read.
	case !n.waits() && !n.eof:
		l.gather.meet(n)
		l.read(c)
	case ready&hungUp != 0:
		l.close(c) // Nobody is left to answer.
	default:
		l.watch(c, n.interest&^readable)
	}
}

// goOn runs commands that were left over from earlier rounds.
func (l *loop) goOn() {
	again := l.again
	l.again = l.again[len(l.again):]
	for i, c := range again {
		again[i] = nil
		if c.net.closed || !c.net.more {
			continue
		}
		c.net.more = false
		if !c.net.waits() {
			l.execute(c, c.net.in, true)
		}
	}
	if len(l.again) == 0 {
		l.again = again[:0]
	}
}

// begin opens the session for this round, once something needs it.
func (l *loop) begin() {
	if !l.open {
		l.open = true
		l.sess.Begin()
		if cluster := l.srv.cfg.Cluster; cluster != nil {
			l.enterCluster(cluster)
		}
	}
}

// finish ends a round: answers what is still in the batch, seals what was
// written, and sends the replies or holds them until they are durable.
func (l *loop) finish() {
	l.flushBatch()
	if !l.open {
		return
	}
	l.open = false
	ticket := l.sess.SealRound()
	l.sess.End()
	l.releaseResumed()
	l.startParked()
	l.sendOrHold(ticket)
	l.unslice()
	l.windowEnd = 0
}

// enqueue notes that c has replies in this round.
func (l *loop) enqueue(c *conn) {
	if !c.net.queued {
		c.net.queued = true
		l.active = append(l.active, c)
	}
}

// continueLater lets c run the commands in its buffer in the next round.
func (l *loop) continueLater(c *conn) {
	if !c.net.more {
		c.net.more = true
		l.again = append(l.again, c)
	}
}

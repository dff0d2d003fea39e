package redis

import (
	"bytes"
	"sync"
)

const (
	timedBytes    = 64 << 10 // commands as large as this are timed even if their kind is fast
	timeAllMicros = 1000     // a slow log threshold below which every command is timed
	maxErrorCodes = 128      // codes to tell apart in INFO errorstats
)

// commandStat is what INFO commandstats shows of one command.
type commandStat struct {
	calls, nanos     int64
	rejected, failed int64 // refused before it ran; ran and answered an error
}

func (a *commandStat) add(b commandStat) {
	a.calls += b.calls
	a.nanos += b.nanos
	a.rejected += b.rejected
	a.failed += b.failed
}

// stats are one loop's counters, for everyone to read.
type stats struct {
	mu       sync.Mutex
	commands []commandStat // by command.index
	calls    int64
	rounds   int64
	bytesIn  int64
	bytesOut int64
	errors   map[string]int64 // by code
	replies  ReplyTimes
}

// tally counts one round in plain numbers and adds them to stats when it
// ends, so that counting costs no atomic operation per command.
//
// Time: commands that are not quick are timed one by one. The quick ones
// share what is left of the round among them.
type tally struct {
	commands []commandStat
	touched  []int // indexes of commands that ran or were refused
	bytesIn  int64
	bytesOut int64
	errors   map[string]int64
	timed    int64 // nanoseconds that were attributed already
	calls    int64
	timeAll  bool
	prompt   int64   // connections that were answered in the round they asked in
	late     []int64 // nanoseconds that others took

	stats stats
}

func (t *tally) init() {
	t.commands = make([]commandStat, len(commandList))
	t.stats.commands = make([]commandStat, len(commandList))
	t.errors = make(map[string]int64)
	t.stats.errors = make(map[string]int64)
}

func (t *tally) touch(cmd *command) *commandStat {
	s := &t.commands[cmd.index]
	if *s == (commandStat{}) {
		t.touched = append(t.touched, cmd.index)
	}
	return s
}

func (t *tally) ran(cmd *command) { t.ranMany(cmd, 1) }

func (t *tally) ranMany(cmd *command, n int) {
	if n == 0 {
		return
	}
	t.touch(cmd).calls += int64(n)
	t.calls += int64(n)
}

func (t *tally) took(cmd *command, nanos int64) {
	t.touch(cmd).nanos += nanos
	t.timed += nanos
}

// failed counts an error reply; text begins with its code.
func (t *tally) failed(cmd *command, text []byte) {
	t.touch(cmd).failed++
	t.countError(text)
}

// refused counts a command that did not run; cmd is nil if it does not exist.
func (t *tally) refused(cmd *command, text string) {
	if cmd != nil {
		t.touch(cmd).rejected++
	}
	t.countError([]byte(text))
}

func (t *tally) countError(text []byte) {
	code, _, _ := bytes.Cut(text, []byte{' '})
	t.errors[string(code)]++
}

// publish ends a round that lasted so many nanoseconds.
func (t *tally) publish(round int64, slowlogMicros int64) {
	t.timeAll = slowlogMicros >= 0 && slowlogMicros < timeAllMicros
	share := t.share(round)
	s := &t.stats
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range t.touched {
		c := &t.commands[i]
		if c.nanos == 0 {
			c.nanos = c.calls * share
		}
		s.commands[i].add(*c)
		*c = commandStat{}
	}
	t.touched = t.touched[:0]
	s.calls += t.calls
	s.rounds++
	s.bytesIn += t.bytesIn
	s.bytesOut += t.bytesOut
	t.calls, t.bytesIn, t.bytesOut, t.timed = 0, 0, 0, 0
	t.publishReplies(round)
	if len(t.errors) > 0 {
		s.addErrors(t.errors)
		clear(t.errors)
	}
}

// publishReplies counts how long replies of the round took.
func (t *tally) publishReplies(round int64) {
	if t.prompt > 0 {
		t.stats.replies.add(round, t.prompt)
		t.prompt = 0
	}
	for _, nanos := range t.late {
		t.stats.replies.add(nanos, 1)
	}
	t.late = t.late[:0]
}

// share is the time of each command that was not timed.
func (t *tally) share(round int64) int64 {
	untimed := int64(0)
	for _, i := range t.touched {
		if t.commands[i].nanos == 0 {
			untimed += t.commands[i].calls
		}
	}
	return max(round-t.timed, 0) / max(untimed, 1)
}

func (s *stats) addErrors(errors map[string]int64) {
	for code, n := range errors {
		if _, known := s.errors[code]; known || len(s.errors) < maxErrorCodes {
			s.errors[code] += n
		}
	}
}

// commandStats merges every loop's counters, by command.index.
func (s *Server) commandStats() []commandStat {
	all := make([]commandStat, len(commandList))
	for _, l := range s.startedLoops() {
		st := &l.tally.stats
		st.mu.Lock()
		for i, c := range st.commands {
			all[i].add(c)
		}
		st.mu.Unlock()
	}
	return all
}

// errorStats merges every loop's error counts by code.
func (s *Server) errorStats() map[string]int64 {
	all := make(map[string]int64)
	for _, l := range s.startedLoops() {
		st := &l.tally.stats
		st.mu.Lock()
		for code, n := range st.errors {
			all[code] += n
		}
		st.mu.Unlock()
	}
	return all
}

// resetStats is CONFIG RESETSTAT.
func (s *Server) resetStats() {
	for _, l := range s.startedLoops() {
		st := &l.tally.stats
		st.mu.Lock()
		clear(st.commands)
		clear(st.errors)
		st.calls, st.rounds, st.bytesIn, st.bytesOut, st.replies = 0, 0, 0, 0, ReplyTimes{}
		st.mu.Unlock()
	}
	s.totals.reset()
}

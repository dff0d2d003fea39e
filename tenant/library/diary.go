package library

import (
	"sync"
	"time"
)

// Level is how much a line matters.
type Level byte

// Levels, as functions give them.
const (
	Debug Level = iota
	Info
	Warning
	Error
)

var levelNames = [...]string{"debug", "info", "warning", "error"}

func (l Level) String() string { return levelNames[min(l, Error)] }

// Line is what a function wrote to its log.
type Line struct {
	Number   int64     `json:"number"` // of the module on this node, from 1 on
	At       time.Time `json:"at"`
	Level    string    `json:"level"`
	Function string    `json:"function"`
	Version  int       `json:"version"`
	Text     string    `json:"text"`
}

const (
	// logBytes is what a module's log keeps; leanBytes when all logs together have more than allLogBytes.
	logBytes    = 64 << 10
	leanBytes   = 2 << 10
	allLogBytes = 64 << 20
	// logRate is how many lines a second a module may write, and logBurst how many at once.
	logRate  = 200
	logBurst = 1000
	// lineCost is what a line takes beside its text.
	lineCost = 96
)

// diary is what is written about a module on this node, whichever version it is: its log and its tallies.
type diary struct {
	lib *Library

	mu      sync.Mutex
	tallies map[string]*tally
	lines   []Line // the oldest first
	bytes   int64
	last    int64 // number of the last line
	lost    int64 // lines over the rate
	full    time.Time
}

func newDiary(l *Library) *diary { return &diary{lib: l, tallies: map[string]*tally{}} }

func (d *diary) tally(function string) *tally {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.tallies[function]
	if t == nil {
		t = &tally{}
		d.tallies[function] = t
	}
	return t
}

// Log writes a line to the module's log. A line over the rate is counted, and lost.
func (f *Function) Log(level int, text []byte) {
	f.edition.diary.write(time.Now(), Line{Level: Level(max(level, 0)).String(), Function: f.Name, Version: f.Version, Text: string(text)})
}

func (d *diary) write(now time.Time, line Line) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.full.Before(now) {
		d.full = now
	}
	if d.full.Sub(now) > logBurst*time.Second/logRate {
		d.lost++
		return
	}
	d.full = d.full.Add(time.Second / logRate)
	d.last++
	line.Number, line.At = d.last, now.UTC()
	d.lines = append(d.lines, line)
	d.grow(line.cost())
	d.shrink()
}

func (l *Line) cost() int64 { return int64(len(l.Text)) + lineCost }

func (d *diary) grow(n int64) {
	d.bytes += n
	d.lib.logged.Add(n)
}

// shrink drops the oldest lines that there is no room for, but never the last.
func (d *diary) shrink() {
	most := int64(logBytes)
	if d.lib.logged.Load() > allLogBytes {
		most = leanBytes
	}
	n := 0
	for d.bytes > most && n < len(d.lines)-1 {
		d.grow(-d.lines[n].cost())
		n++
	}
	if n > 0 {
		d.lines = append(d.lines[:0], d.lines[n:]...)
		clear(d.lines[len(d.lines):cap(d.lines)])
	}
}

// end forgets the log of a module that was deleted, and returns what its calls have done.
func (d *diary) end() (sum Counts) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.grow(-d.bytes)
	d.lines = nil
	for _, t := range d.tallies {
		counts := t.counts()
		sum.Add(&counts)
	}
	return sum
}

// Lines are a part of a log.
type Lines struct {
	Lines []Line `json:"lines"`
	Last  int64  `json:"last"` // number of the last line that there is
	Lost  int64  `json:"lost"` // lines over the rate since the start
}

// Logs returns lines of a module with numbers above after, of at least a level, the latest of them if there are more
// than most; false: there is no such module.
func (s *Shelf) Logs(module string, after int64, least Level, most int) (Lines, bool) {
	e := s.content.Load().editions[module]
	if e == nil {
		return Lines{}, false
	}
	return e.diary.read(after, least, most), true
}

func (d *diary) read(after int64, least Level, most int) Lines {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := Lines{Lines: []Line{}, Last: d.last, Lost: d.lost}
	for i := range d.lines {
		if d.lines[i].Number > after && levelOf(d.lines[i].Level) >= least {
			out.Lines = append(out.Lines, d.lines[i])
		}
	}
	if n := len(out.Lines); n > most {
		out.Lines = out.Lines[n-most:]
	}
	return out
}

func levelOf(name string) Level {
	l, _ := ParseLevel(name)
	return l
}

// ParseLevel finds a level by its name.
func ParseLevel(name string) (Level, bool) {
	for l, n := range levelNames {
		if n == name {
			return Level(l), true
		}
	}
	return 0, false
}

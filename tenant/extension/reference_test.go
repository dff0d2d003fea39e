package extension

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// machine does what docs/function-abi.md says that a script does, in the plainest way: it has no fuel, no turns, no pools.
// What the host does is compared with it.
type machine struct {
	setting
	store  *model
	mem    []byte
	used   pages // of it
	chance *rand.ChaCha8

	args      []byte // the whole block
	hostCalls int64
	response  []byte
	views     [][]byte
	viewBytes int
	buffers   []buffer
	reads     []Read
	readBytes int
	writes    []Write
	written   int // bytes
	logged    int
	lost      int
	lines     []byte
	short     bool // it got no memory

	note string // how the step went
	seen *seen
}

// setting is what a script runs in.
type setting struct {
	limits   CallLimits
	readOnly bool
	trial    bool
	poor     bool // the tenant has no memory left
	expects  bool // the first key's value is put into the area
}

// ending is how a call has ended.
type ending struct {
	kind      Kind // 0: well
	code      int32
	abandoned bool
}

// ended tells of a call that was ended in its middle, after which its instance begins anew.
func (e ending) ended() bool {
	return e.abandoned || e.kind != 0 && e.kind != Returned && e.kind != NotCommitted
}

// pages are some of those that memory has at first, in parts that are small enough to leave most of them alone.
type pages [pageBytes / partBytes]bool

const partBytes = 4096

// add notes bytes that may be written.
func (p *pages) add(at, n uint64) {
	for i := at / partBytes; i < uint64(len(p)) && i*partBytes < at+n; i++ {
		p[i] = true
	}
}

func (p *pages) addAll(o *pages) {
	for i, yes := range o {
		p[i] = p[i] || yes
	}
}

// seen counts how each step went.
type seen [128]map[string]int

func (s *seen) add(step int, note string) {
	if s[step] == nil {
		s[step] = map[string]int{}
	}
	s[step][note]++
}

// The host's time, where its random bytes begin, and what goes before each response.
var (
	modelTime = time.UnixMilli(1_700_000_000_123)
	modelSeed = [32]byte{1}
	modelHead = []byte("head:")
)

// run executes the script that is in the block of arguments.
func (m *machine) run() (e ending) {
	m.hostCalls, m.views, m.viewBytes, m.buffers = 0, nil, 0, nil
	m.reads, m.readBytes, m.writes, m.written = nil, 0, nil, 0
	m.logged, m.lost, m.lines, m.short = 0, 0, nil, false
	m.response = slices.Clone(modelHead)
	m.used.add(areaAt, firstBytes)
	m.placeArgs()
	placed := m.placeFirst()
	e = m.guest()
	if e == (ending{}) || e.kind == Returned {
		if left := m.fetch(); left != (ending{}) {
			e = left
		}
	}
	if placed && m.word(areaAt+36) == 0 {
		m.reads = m.reads[1:]
	}
	if e == (ending{}) && m.store.unlucky && (len(m.writes) > 0 || len(m.reads) > 1) {
		e.kind = NotCommitted
	}
	return e
}

func (m *machine) word(at uint64) uint32 { return binary.LittleEndian.Uint32(m.mem[at:]) }

func (m *machine) setWord(at uint64, v uint32) { binary.LittleEndian.PutUint32(m.mem[at:], v) }

func (m *machine) placeArgs() {
	m.setWord(areaAt+8, uint32(len(m.args)))
	m.setWord(areaAt+20, 0)
	if to, ok := m.span(uint64(m.word(areaAt)), uint64(len(m.args))); ok && len(m.args) <= int(m.word(areaAt+4)) {
		copy(to, m.args)
	}
}

func (m *machine) placeFirst() bool {
	m.setWord(areaAt+32, noFirst)
	m.setWord(areaAt+36, 0)
	buf, ok := m.span(uint64(m.word(areaAt+24)), uint64(m.word(areaAt+28)))
	if !m.expects || !ok {
		return false
	}
	var v Value
	if !m.store.Prompt(scriptKeys[0], buf, &v) {
		return false
	}
	m.setWord(areaAt+32, uint32(v.Len))
	m.reads = append(m.reads, Read{0, scriptKeys[0], v.Version})
	m.readBytes += len(scriptKeys[0])
	return true
}

// fetch takes the response that was left in the area.
func (m *machine) fetch() ending {
	n := m.word(areaAt + 20)
	b, ok := m.span(uint64(m.word(areaAt+12)), uint64(n))
	switch {
	case n == 0:
		return ending{}
	case !ok || n > m.word(areaAt+16):
		return ending{kind: Misused}
	case m.tooLong(len(b)):
		return ending{kind: OverLimit}
	case m.trial && len(m.response)+len(b) > keptBytes:
		return ending{abandoned: true}
	case m.cannotKeep(len(b)):
		return ending{kind: OverLimit}
	}
	m.response = append(m.response, b...)
	return ending{}
}

// guest does what the interpreter does.
func (m *machine) guest() (e ending) {
	which := -1
	defer func() {
		if r := recover(); r != nil {
			e = r.(ending)
			if which >= 0 {
				m.seen.add(which, m.note)
			}
		}
	}()
	pc := m.word(areaAt)
	end := uint32(m.load(uint64(pc)+8+4*uint64(len(scriptKeys)), 4))
	pc += uint32(scriptAt)
	end += pc
	for range stepsMost {
		if end < pc+stepBytes {
			break
		}
		place := m.load(uint64(pc)+1, 2)
		which = int(m.load(uint64(pc), 1)) % len(steps)
		s := steps[which]
		operands, next := m.operands(uint64(pc)+stepBytes, s.params)
		pc = next
		m.note = "ok"
		result := m.do(which, operands)
		m.seen.add(which, m.note)
		which = -1
		switch s.result {
		case "i":
			m.save(place, result, 4)
		case "l":
			m.save(place, result, 8)
		}
	}
	return ending{}
}

// operands are those of a step, and where the next step is.
func (m *machine) operands(at uint64, params string) (all []uint64, next uint32) {
	for _, p := range params {
		size := uint64(4)
		if p == 'l' {
			size = 8
		}
		all = append(all, m.load(at, size))
		at += size
	}
	return all, uint32(at)
}

// load and save are the guest's own: what is not there is a trap.
func (m *machine) load(at, size uint64) uint64 {
	var b [8]byte
	copy(b[:size], m.inside(at, size))
	return binary.LittleEndian.Uint64(b[:])
}

func (m *machine) save(at, v, size uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], v)
	copy(m.inside(at, size), b[:size])
}

func (m *machine) inside(at, size uint64) []byte {
	if at+size > uint64(len(m.mem)) {
		m.trap()
	}
	m.used.add(at, size)
	return m.mem[at : at+size]
}

// trap is put down to memory that the guest did not get, if there was such.
func (m *machine) trap() {
	if m.short {
		m.stop(OverLimit, "trap without memory")
	}
	m.stop(Trapped, "trap")
}

func (m *machine) stop(kind Kind, note string) {
	m.note = note
	panic(ending{kind: kind})
}

func (m *machine) do(which int, a []uint64) uint64 {
	name := steps[which].name
	if f := reference[name]; f != nil {
		return f(m, a)
	}
	m.enter()
	if slices.Contains(noFiles, name) {
		m.note = "bad descriptor"
		return wasiBadFD
	}
	m.note = "no such call"
	return wasiNoCall
}

// noFiles are calls of WASI that would work if there were files.
var noFiles = strings.Fields("fd_close fd_prestat_get fd_prestat_dir_name fd_read fd_seek fd_fdstat_set_flags fd_filestat_get")

// reference is what each step does; calls of WASI that are not here do nothing.
var reference = map[string]func(m *machine, a []uint64) uint64{
	"args": (*machine).doArgs, "get": (*machine).doGet, "read": (*machine).doRead, "multiget": (*machine).doMultiget,
	"alloc": (*machine).doAlloc, "fill": (*machine).doFill, "put": (*machine).doPut, "set": (*machine).doSet, "del": (*machine).doDel,
	"scan": (*machine).doScan, "resp": (*machine).doResp, "yield": (*machine).doNothing, "log": (*machine).doLog, "now": (*machine).doNow,
	"random": (*machine).doRandom, "fail": (*machine).doFail,

	"args_get": (*machine).doNothing, "environ_get": (*machine).doNothing, "sched_yield": (*machine).doNothing,
	"args_sizes_get": (*machine).doNoSizes, "environ_sizes_get": (*machine).doNoSizes,
	"clock_res_get": (*machine).doClockRes, "clock_time_get": (*machine).doClockTime, "random_get": (*machine).doRandom,
	"fd_write": (*machine).doWrite, "fd_fdstat_get": (*machine).doStat, "poll_oneoff": (*machine).doPoll, "proc_exit": (*machine).doExit,

	"grow": (*machine).doGrow, "store": (*machine).doStore, "return": (*machine).doReturn, "trap": (*machine).doTrap,
}

// enter counts a call of the host.
func (m *machine) enter() {
	if m.hostCalls++; m.hostCalls > m.limits.HostCalls {
		m.stop(OverLimit, "too many calls")
	}
}

func (m *machine) span(at, n uint64) ([]byte, bool) {
	at, n = uint64(uint32(at)), uint64(uint32(n))
	if at+n > uint64(len(m.mem)) {
		return nil, false
	}
	m.used.add(at, n)
	return m.mem[at : at+n], true
}

// bytes are memory that a call of the host names.
func (m *machine) bytes(at, n uint64) []byte {
	b, ok := m.span(at, n)
	if !ok {
		m.stop(Misused, "outside")
	}
	return b
}

// says is a result that is no success.
func (m *machine) says(s Status) uint64 {
	m.note = statusNames[s]
	return uint64(uint32(s))
}

var statusNames = map[Status]string{OK: "ok", Absent: "absent", Elsewhere: "elsewhere", TooLarge: "too large", ReadOnly: "read only", NoSuchTable: "no such table"}

// keeps ends a call that keeps more than its tenant has memory for.
func (m *machine) keeps(more int) {
	if m.poor && len(m.response)+m.written+m.viewBytes+more > keptBytes {
		m.stop(OverLimit, "no room")
	}
}

func (m *machine) later() {
	m.note = "later"
	panic(ending{abandoned: true})
}

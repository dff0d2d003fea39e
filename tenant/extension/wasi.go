package extension

import "encoding/binary"

const wasiModule = "wasi_snapshot_preview1"

// Errors that WASI calls return.
const (
	wasiOK     = 0
	wasiBadFD  = 8
	wasiFault  = 28 // invalid argument
	wasiNoCall = 52
)

// wasiCalls are all of WASI's first preview, for runtimes of languages import many that they never call. Few do
// anything: a function has a clock, random bytes and a log, and nothing else of what a process has.
var wasiCalls = []hostCall{
	{"args_get", "ii", "i", wasiNothing},
	{"args_sizes_get", "ii", "i", wasiNoSizes},
	{"environ_get", "ii", "i", wasiNothing},
	{"environ_sizes_get", "ii", "i", wasiNoSizes},
	{"clock_res_get", "ii", "i", wasiClockRes},
	{"clock_time_get", "ili", "i", wasiClockTime},
	{"random_get", "ii", "i", wasiRandom},
	{"fd_write", "iiii", "i", wasiWrite},
	{"fd_fdstat_get", "ii", "i", wasiStat},
	{"poll_oneoff", "iiii", "i", wasiPoll},
	{"sched_yield", "", "i", wasiYield},
	{"proc_exit", "i", "", wasiExit},

	{"fd_close", "i", "i", wasiNoFile},
	{"fd_prestat_get", "ii", "i", wasiNoFile},
	{"fd_prestat_dir_name", "iii", "i", wasiNoFile},
	{"fd_read", "iiii", "i", wasiNoFile},
	{"fd_seek", "ilii", "i", wasiNoFile},
	{"fd_fdstat_set_flags", "ii", "i", wasiNoFile},
	{"fd_filestat_get", "ii", "i", wasiNoFile},

	{"fd_advise", "illi", "i", wasiNot},
	{"fd_allocate", "ill", "i", wasiNot},
	{"fd_datasync", "i", "i", wasiNot},
	{"fd_fdstat_set_rights", "ill", "i", wasiNot},
	{"fd_filestat_set_size", "il", "i", wasiNot},
	{"fd_filestat_set_times", "illi", "i", wasiNot},
	{"fd_pread", "iiili", "i", wasiNot},
	{"fd_pwrite", "iiili", "i", wasiNot},
	{"fd_readdir", "iiili", "i", wasiNot},
	{"fd_renumber", "ii", "i", wasiNot},
	{"fd_sync", "i", "i", wasiNot},
	{"fd_tell", "ii", "i", wasiNot},
	{"path_create_directory", "iii", "i", wasiNot},
	{"path_filestat_get", "iiiii", "i", wasiNot},
	{"path_filestat_set_times", "iiiilli", "i", wasiNot},
	{"path_link", "iiiiiii", "i", wasiNot},
	{"path_open", "iiiiillii", "i", wasiNot},
	{"path_readlink", "iiiiii", "i", wasiNot},
	{"path_remove_directory", "iii", "i", wasiNot},
	{"path_rename", "iiiiii", "i", wasiNot},
	{"path_symlink", "iiiii", "i", wasiNot},
	{"path_unlink_file", "iii", "i", wasiNot},
	{"proc_raise", "i", "i", wasiNot},
	{"sock_accept", "iii", "i", wasiNot},
	{"sock_recv", "iiiiii", "i", wasiNot},
	{"sock_send", "iiiii", "i", wasiNot},
	{"sock_shutdown", "ii", "i", wasiNot},
}

func wasiNothing(t *Task, stack []uint64) { t.enter(); stack[0] = wasiOK }

func wasiNot(t *Task, stack []uint64) { t.enter(); stack[0] = wasiNoCall }

func wasiNoFile(t *Task, stack []uint64) { t.enter(); stack[0] = wasiBadFD }

// wasiNoSizes: where the count goes, where the bytes' length goes.
func wasiNoSizes(t *Task, stack []uint64) {
	t.enter()
	clear(t.bytes(stack[0], 4))
	clear(t.bytes(stack[1], 4))
	stack[0] = wasiOK
}

// wasiClockRes: clock, where the result goes.
func wasiClockRes(t *Task, stack []uint64) {
	t.enter()
	binary.LittleEndian.PutUint64(t.bytes(stack[1], 8), 1_000_000)
	stack[0] = wasiOK
}

// wasiClockTime: clock, precision, where the result goes. All clocks are the tenant's.
func wasiClockTime(t *Task, stack []uint64) {
	t.enter()
	binary.LittleEndian.PutUint64(t.bytes(stack[2], 8), uint64(t.now()))
	stack[0] = wasiOK
}

func wasiRandom(t *Task, stack []uint64) {
	t.enter()
	t.random(t.bytes(stack[0], stack[1]))
	stack[0] = wasiOK
}

// piecesMost is how many pieces one write may have.
const piecesMost = 1024

// wasiWrite: descriptor, pieces, their number, where the length goes. Output is the log at level info, errors at level
// warning; a line each.
func wasiWrite(t *Task, stack []uint64) {
	t.enter()
	fd, n := uint32(stack[0]), uint32(stack[2])
	switch {
	case fd != 1 && fd != 2:
		stack[0] = wasiBadFD
		return
	case n > piecesMost:
		stack[0] = wasiFault
		return
	}
	pieces := t.bytes(stack[1], uint64(n)*8)
	sum := uint32(0)
	for i := range int(n) {
		ptr, size := binary.LittleEndian.Uint32(pieces[8*i:]), binary.LittleEndian.Uint32(pieces[8*i+4:])
		b := t.bytes(uint64(ptr), uint64(size))
		sum += size
		if k := len(b); k > 0 && b[k-1] == '\n' {
			b = b[:k-1]
		}
		t.logLine(int(fd), b)
	}
	binary.LittleEndian.PutUint32(t.bytes(stack[3], 4), sum)
	stack[0] = wasiOK
}

// wasiStat: descriptor, where 24 bytes go. The three that every process has are devices.
func wasiStat(t *Task, stack []uint64) {
	t.enter()
	b := t.bytes(stack[1], 24)
	if uint32(stack[0]) > 2 {
		stack[0] = wasiBadFD
		return
	}
	clear(b)
	b[0] = 2
	stack[0] = wasiOK
}

const (
	subscriptionBytes = 48
	eventBytes        = 32
)

// wasiPoll: subscriptions, events, their number, where the number of events goes. Clocks are due at once: whoever waits
// looks at the time again, while others run. There is nothing else to wait for.
func wasiPoll(t *Task, stack []uint64) {
	t.enter()
	n := uint32(stack[2])
	if n == 0 || n > piecesMost {
		stack[0] = wasiFault
		return
	}
	subs, events := t.bytes(stack[0], uint64(n)*subscriptionBytes), t.bytes(stack[1], uint64(n)*eventBytes)
	for i := range int(n) {
		from, to := subs[i*subscriptionBytes:], events[i*eventBytes:][:eventBytes]
		user, tag := binary.LittleEndian.Uint64(from), from[8]
		clear(to)
		binary.LittleEndian.PutUint64(to, user)
		to[10] = tag
		if tag != 0 {
			to[8] = wasiBadFD
		}
	}
	binary.LittleEndian.PutUint32(t.bytes(stack[3], 4), n)
	t.spend(1000)
	t.yield(Asked)
	stack[0] = wasiOK
}

func wasiYield(t *Task, stack []uint64) {
	t.enter()
	t.yield(Asked)
	stack[0] = wasiOK
}

func wasiExit(t *Task, stack []uint64) {
	code := int32(uint32(stack[0]))
	t.stop(&CallError{Kind: Failed, Code: code, Message: "ended itself by proc_exit"})
}

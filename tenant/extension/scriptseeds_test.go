package extension

import "strings"

// seedScript is a script that is worth to begin with.
type seedScript struct {
	how    how
	script script
}

// beyond is a pointer that no memory has.
const beyond = 1<<32 - 1

// seeds are scripts after which every answer of every call has been seen.
func seeds() []seedScript {
	all := append(plainSeeds(), limitSeeds()...)
	for i, step := range steps {
		zeros := make([]uint64, len(step.params))
		all = append(all, seedScript{0, script{}.do(step.name, freeAt, zeros...)})
		if i < len(hostCalls)+len(wasiCalls) {
			all = append(all, seedScript{tight, yields(12).do(step.name, freeAt, zeros...)})
		}
		for n := range meanings[step.name] {
			operands := make([]uint64, len(step.params))
			operands[n] = beyond
			all = append(all, seedScript{0, script{}.do(step.name, freeAt, operands...)})
		}
	}
	return all
}

func yields(n int) (s script) {
	for range n {
		s = s.do("yield", 0)
	}
	return s
}

// dels removes so many keys of one byte, from memory that has each byte once.
func (s script) dels(n int) script {
	s = s.do("store", freeAt, 0x0706050403020100)
	for i := range n {
		s = s.do("del", freeAt+16, 1, freeAt+uint64(i), 1)
	}
	return s
}

// plainSeeds are about what calls do.
func plainSeeds() []seedScript {
	a, large, none, far, huge, key := wordAt["a"], wordAt["large"], wordAt["none"], wordAt["far"], wordAt["huge!!"], wordAt["key"]
	const free = freeAt
	get := script{}.do("get", freeAt, 0, a, 1, free+16, 300).do("get", freeAt, 0, large, 5, free, 0).do("read", freeAt, 1, 10, free, 100)
	moves := script{}.do("get", 0, 0, wordAt[moving], 6, 0, 0).do("get", 8, 0, wordAt[moving], 6, 0, 0)
	made := script{}.do("alloc", freeAt, 0, a, 1, 10)
	written := made.do("fill", freeAt, 0, 3, wordsAt, 7).do("put", freeAt, 0, 1000)
	return []seedScript{
		{0, get.do("read", freeAt, 1, 5000, free, 100).do("resp", freeAt, free, 500)},
		{again | expected, moves.do("read", 16, 1, 0, 100, 200).do("read", 20, 2, 0, 300, 200).do("resp", 0, 0, 600)},
		{0, get.do("read", freeAt, 1, 0, beyond, 1)},
		{0, script{}.do("get", freeAt, 0, none, 4, free, 9).do("get", freeAt, 5, a, 1, free, 9).do("get", freeAt, 0, 0, pageBytes, free, 9)},
		{partial, script{}.do("get", freeAt, 0, none, 4, free, 9).do("alloc", 0, 0, none, 4, 1).do("set", 0, 0, none, 4, 0, 1, 0).do("del", 0, 0, none, 4).do("scan", 0, 0, free, none, 4, free, 9, 0)},
		{waits, script{}.do("log", 0, 2, a, 1).do("get", 0, 0, far, 3, 0, 0)},
		{waits, script{}.do("multiget", 0, 0, listAt, 7, free, free+200, 9999)},
		{waits, script{}.do("alloc", 0, 0, far, 3, 1)},
		{waits, script{}.do("set", 0, 0, far, 3, 0, 1, 0)},
		{waits, script{}.do("del", 0, 0, far, 3)},
		{waits, script{}.do("scan", 0, 0, free, far, 3, free, 100, 1)},
		{forReading, script{}.do("alloc", 0, 0, a, 1, 1).do("set", 0, 0, a, 1, 0, 1, 0).do("del", 0, 0, a, 1).do("get", 0, 0, a, 1, 0, 0)},
		{2 * sliceBits, written.do("get", freeAt, 0, a, 1, free, 10).do("get", freeAt+16, 0, a, 1, free+32, 3).do("read", 0, 1, 0, free+48, 10).do("resp", 0, free, 100)},
		{unlucky, written},
		{0, written.do("put", freeAt, 0, 0)},
		{0, made.do("fill", freeAt, 0, 4, 0, 7)},
		{0, made.do("fill", freeAt, 0, 0, beyond, 1)},
		{0, made.do("put", freeAt, 0, 1<<63)},
		{0, script{}.do("set", 0, 0, a, 1, 0, 1, 1<<62)},
		{0, script{}.do("alloc", 0, 9, a, 1, 1).do("set", 0, 9, a, 1, 0, 1, 0).do("del", 0, 9, a, 1).do("scan", 0, 9, free, 0, 0, free, 9, 0)},
		{0, script{}.do("alloc", 0, 0, a, 1, 100_001).do("set", 0, 0, 0, pageBytes, 0, 1, 0).do("del", 0, 0, 0, pageBytes).do("scan", 0, 0, 0, 0, pageBytes, 0, 0, 0)},
		{again, script{}.do("set", 0, 0, a, 1, free, 300, 0).do("set", 0, 1, a, 1, free, 3, 5).do("del", 0, 0, large, 5).do("get", 0, 0, large, 5, 0, 9).do("del", 0, 0, a, 1)},
		{3 * sliceBits, script{}.do("scan", free, 1, free+8, key, 3, free+16, 900, 1).do("scan", free, 1, free+8, key, 3, free+16, 900, 0).do("store", freeAt+8, 20).do("scan", free, 1, free+8, key, 3, free+16, 900, 1)},
		{0, script{}.do("scan", free, 0, free+8, key, 3, free+16, 4, 1).do("scan", free, 0, free+8, key, 3, free+16, 20, 1)},
		{0, script{}.do("multiget", 0, 0, listAt, 2, free, free+200, 1000).do("multiget", 0, 0, listAt, 6, free, free+200, 9999).do("multiget", 0, 0, listAt, 8, free, free+200, 10).do("read", 0, 1, 0, free, 100)},
		{0, script{}.do("multiget", 0, 0, listAt, 3, wordsAt, listAt, 9).do("multiget", 0, 8, listAt, 3, free, free, 9)},
		{0, script{}.do("multiget", 0, 0, listAt, 5000, 0, 0, 0)},
		{0, script{}.do("get", 0, 0, huge, 6, 0, 0).do("read", 0, 1, 65_600, free, 100).do("resp", 0, free, 100).do("read", 0, 1, 0, 0, pageBytes)},
		{0, script{}.do("get", 0, 0, large, 5, large-10, 6000).do("get", 0, 0, a, 1, a, 1).do("get", 0, 0, none, 4, none, 4)},
		{0, script{}.do("scan", 0, 1, free, key, 3, key-16, 900, 1).do("resp", 0, wordsAt, 900)},
		{endBits, script{}.do("args", freeAt, free+8, 200).do("args", freeAt, free+300, 10).do("resp", 0, free, 400)},
		{0, script{}.do("store", areaAt+20, 200|firstAt<<32).do("store", areaAt+36, 1)},
		{expected, script{}.do("store", areaAt+20, 200|firstAt<<32).do("store", areaAt+36, 1).do("set", 0, 0, a, 1, firstAt, 40, 0)},
		{again, script{}.do("store", areaAt, 1<<32-1)},
		{0, script{}.do("store", areaAt+16, 5000|5000<<32)},
		{0, script{}.do("now", freeAt).do("random", 0, free+8, 100).do("log", 0, 7, a, 5).do("resp", 0, free, 108).do("yield", 0).do("return", 0, 0).do("trap", 0)},
		{0, script{}.do("fd_write", 0, 1, listAt, 3, free).do("fd_write", 0, 2, listAt, 1, free).do("fd_write", 0, 3, 0, 0, 0).do("fd_write", 0, 1, 0, 1025, 0)},
		{0, script{}.do("fd_write", 0, 1, beyond, 1, 0)},
		{0, script{}.do("poll_oneoff", 0, wordsAt, free, 4, free+200).do("poll_oneoff", 0, 0, 0, 0, 0).do("fd_fdstat_get", 0, 1, free).do("fd_fdstat_get", 0, 3, free)},
		{0, script{}.do("poll_oneoff", 0, beyond, free, 1, free)},
		{again, script{}.do("grow", freeAt, 1).do("set", 0, 0, a, 1, 0, 100_000, 0).do("grow", freeAt, 2).do("grow", freeAt, beyond)},
		{again, script{}.do("store", freeAt, 7).do("return", 0, 3)},
		{0, written.do("proc_exit", 0, 3)},
		{0, written.do("fail", 0, 7, a, 5)},
		{0, written.do("trap", 0)},
		{2*endBits + 3*partBits, get.do("random", 0, 0, 60_000)},
		{3*endBits + 1*partBits, written.do("yield", 0).do("yield", 0).do("yield", 0)},
	}
}

// limitSeeds are about what calls may have.
func limitSeeds() []seedScript {
	a, large, huge := wordAt["a"], wordAt["large"], wordAt["huge!!"]
	const free = freeAt
	var reads, views, buffers script
	for i := range uint64(6) {
		reads = reads.do("get", 0, 1, free+i, i, 0, 0)
		views = views.do("get", 0, 0, a, 1, 0, 0)
		buffers = buffers.do("alloc", 0, 0, a, 1, 1)
	}
	much := script{}.do("set", 0, 0, a, 1, free, 400, 0)
	full := script{}.do("set", 0, 0, a, 1, 0, 65_500, 0)
	return []seedScript{
		{tight, reads},
		{tight, script{}.do("multiget", 0, 0, listAt, 6, free, free+200, 9999)},
		{tight, views},
		{tight, script{}.do("multiget", 0, 0, listAt, 5, free, 0, 0)},
		{tight, buffers},
		{tight, script{}.dels(5).do("get", 0, 0, a, 1, 0, 500).do("get", 0, 0, large, 5, 0, 500)},
		{tight, script{}.dels(5).do("multiget", 0, 0, listAt, 2, free, free+200, 999)},
		{tight, script{}.do("alloc", 0, 0, a, 1, 1).dels(6).do("put", 0, 0, 0)},
		{tight, script{}.dels(6).do("set", 0, 0, a, 1, 0, 1, 0)},
		{tight, script{}.dels(7)},
		{tight, much.do("set", 0, 0, large, 5, free, 400, 0)},
		{tight, much.do("alloc", 0, 0, large, 5, 400)},
		{tight, much.do("del", 0, 0, 0, 300)},
		{tight, script{}.do("alloc", 0, 0, a, 1, 401).do("set", 0, 0, a, 1, 0, 401, 0)},
		{tight, script{}.do("resp", 0, 0, 300).do("resp", 0, 0, 1)},
		{tight, script{}.do("log", 0, 1, 0, 99).do("log", 0, 1, 0, 0)},
		{tight, script{}.do("store", freeAt, 200<<32).do("fd_write", 0, 1, free, 1, free)},
		{poor, script{}.do("get", 0, 0, huge, 6, 0, 0)},
		{poor, script{}.do("multiget", 0, 0, listAt, 8, free, free+200, 9999)},
		{poor, script{}.do("set", 0, 0, a, 1, 0, pageBytes, 0)},
		{poor, script{}.do("alloc", 0, 0, a, 1, 70_000)},
		{poor, full.do("del", 0, 0, 0, 100)},
		{poor, script{}.do("resp", 0, 0, pageBytes)},
		{0, script{}.do("resp", 0, 0, pageBytes).do("resp", 0, 0, pageBytes).do("resp", 0, 0, 100)},
		{poor, script{}.do("grow", freeAt, 1).do("trap", 0)},
	}
}

// answers are what a call can answer, and how it can end a script.
func answers(step string) []string {
	all := []string{"too many calls"}
	for _, a := range strings.Split(ownAnswers[step], ", ") {
		switch a {
		case "":
			all = append(all, "no such call")
		case "writes":
			all = append(all, "ok", "read only", "too large", "elsewhere", "no such table", "later", "too much", "no room", "outside")
		case "reads":
			all = append(all, "ok", "view", "outside", "later", "too many reads", "too many keys", "too many views", "no room")
		default:
			all = append(all, a)
		}
	}
	switch step {
	case "proc_exit", "grow", "store", "return", "trap":
		return all[1:]
	}
	return all
}

var ownAnswers = map[string]string{
	"args": "ok, a part, outside", "get": "reads, absent, elsewhere, too large, no such table", "read": "ok, nothing, no such view, outside",
	"multiget": "reads, some are not there, too many at once", "alloc": "writes, too many buffers", "fill": "ok, no such buffer, outside, beyond its end",
	"put": "ok, no such buffer, no such time, too many keys", "set": "writes, no such time, too many keys", "del": "writes, too many keys",
	"scan": "ok, more, too large, elsewhere, no such table, later, outside", "resp": "ok, too long, no room, outside", "yield": "ok",
	"log": "ok, dropped, outside", "now": "ok", "random": "ok, outside", "fail": "failed, outside",

	"args_get": "ok", "environ_get": "ok", "sched_yield": "ok", "args_sizes_get": "ok, outside", "environ_sizes_get": "ok, outside",
	"clock_res_get": "ok, outside", "clock_time_get": "ok, outside", "random_get": "ok, outside", "proc_exit": "failed",
	"fd_write": "ok, dropped, bad descriptor, too many pieces, outside", "fd_fdstat_get": "ok, bad descriptor, outside", "poll_oneoff": "ok, bad number, outside",
	"fd_close": "bad descriptor", "fd_prestat_get": "bad descriptor", "fd_prestat_dir_name": "bad descriptor", "fd_read": "bad descriptor",
	"fd_seek": "bad descriptor", "fd_fdstat_set_flags": "bad descriptor", "fd_filestat_get": "bad descriptor",

	"grow": "ok, too large, no room", "store": "ok", "return": "ok", "trap": "trap, trap without memory",
}

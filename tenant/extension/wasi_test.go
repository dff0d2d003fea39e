package extension

import (
	"context"
	"encoding/binary"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ostrodb/ostro/tenant/extension/wasm"
)

// What the guest hands over: everything lies in the second KiB of its memory, which begins as one byte again and again.
const (
	wasiRoom = 1024
	wasiFill = 0xa5
)

// probeWASI is a module with a function for each call of WASI, which makes that call and answers with what it returned and the room.
func probeWASI(args map[string][]uint64) []byte {
	m := &wasm.Module{}
	m.AddImport(HostModule, "resp", m.AddType(wasm.FuncType{Params: types("ii"), Results: types("i")}))
	for _, h := range wasiCalls {
		m.AddImport(wasiModule, h.name, m.AddType(wasm.FuncType{Params: types(h.params), Results: types(h.result)}))
	}
	m.Memories = []wasm.Limits{{Min: 1}}
	m.Exports = []wasm.Export{{Name: memoryName, Kind: wasm.KindMemory}}
	room := slices.Repeat([]byte{wasiFill}, wasiRoom)
	m.Datas = []wasm.Data{{Offset: wasm.Const{Instr: wasm.Instr{Op: wasm.I32Const, A: wasiRoom}}, Bytes: room}}
	for i, h := range wasiCalls {
		var b []byte
		put := func(op wasm.Op, a uint64) {
			in := wasm.Instr{Op: op, A: a}
			b = in.Append(b)
		}
		put(wasm.I32Const, 0) // where the result goes
		for n, c := range h.params {
			v := uint64(wasiRoom + 64*n) // a place, whatever it means
			if own := args[h.name]; n < len(own) {
				v = own[n]
			}
			if c == 'l' {
				put(wasm.I64Const, v)
			} else {
				put(wasm.I32Const, v)
			}
		}
		put(wasm.Call, uint64(i+1))
		if h.result == "" {
			put(wasm.I32Const, 0)
		}
		put(wasm.I32Store, 0)
		put(wasm.I32Const, 0)
		put(wasm.I32Const, 2*wasiRoom)
		put(wasm.Call, 0)
		put(wasm.End, 0)
		m.Funcs = append(m.Funcs, m.AddType(wasm.FuncType{Results: []byte{wasm.I32}}))
		m.Code = append(m.Code, wasm.Code{Body: b})
		m.Exports = append(m.Exports, wasm.Export{Name: functionPrefix + h.name, Kind: wasm.KindFunc, Index: uint32(m.ImportedFuncs() + i)})
	}
	return m.Encode()
}

// No call of WASI gives a function anything of the process: no arguments, environment, files, directories or sockets. What is there
// is the tenant's clock, random bytes, and the log.
func TestNoCallOfWASIGivesAnythingOfTheProcess(t *testing.T) {
	t.Setenv("OSTRO_SECRET", "SECRET")
	rt, err := NewRuntime(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close(context.Background())
	m, err := rt.Compile(t.Context(), probeWASI(map[string][]uint64{
		"fd_write": {1, wasiRoom, 0, wasiRoom + 64}, "fd_fdstat_get": {0, wasiRoom}, "random_get": {wasiRoom, 32}, "poll_oneoff": {wasiRoom, wasiRoom + 64, 1, wasiRoom + 128},
		"fd_read": {0, wasiRoom, 1, wasiRoom + 64}, "fd_prestat_get": {3, wasiRoom}, "fd_prestat_dir_name": {3, wasiRoom, 64}, "path_open": {3, 0, wasiRoom, 1, 0, 0, 0, 0, wasiRoom + 64},
	}), DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	at := time.Unix(1_800_000_000, 0)
	p, err := m.NewPool(DefaultLimits(), PoolOptions{Limits: DefaultLimits().Call, Fresh: true, Clock: &Clock{Source: func() time.Time { return at }}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	// What each returns, and how many bytes of the room it may change.
	given := map[string]struct{ errno, bytes uint32 }{
		"args_get": {wasiOK, 0}, "args_sizes_get": {wasiOK, 8}, "environ_get": {wasiOK, 0}, "environ_sizes_get": {wasiOK, 8},
		"clock_res_get": {wasiOK, 8}, "clock_time_get": {wasiOK, 8}, "random_get": {wasiOK, 32}, "sched_yield": {wasiOK, 0},
		"fd_write": {wasiOK, 4}, "fd_fdstat_get": {wasiOK, 24}, "poll_oneoff": {wasiOK, 36},
		"fd_close": {wasiBadFD, 0}, "fd_prestat_get": {wasiBadFD, 0}, "fd_prestat_dir_name": {wasiBadFD, 0}, "fd_read": {wasiBadFD, 0}, "fd_seek": {wasiBadFD, 0},
		"fd_fdstat_set_flags": {wasiBadFD, 0}, "fd_filestat_get": {wasiBadFD, 0},
	}
	for _, h := range wasiCalls {
		res, err := p.Call(&Invocation{Function: h.name, Store: &model{t: t}})
		if h.name == "proc_exit" {
			if err == nil || !strings.Contains(err.Error(), "proc_exit") {
				t.Errorf("proc_exit: %v", err)
			}
			continue
		}
		if err != nil || len(res.Response) != 2*wasiRoom {
			t.Errorf("%s: %d bytes, %v", h.name, len(res.Response), err)
			continue
		}
		want, known := given[h.name]
		if !known {
			want.errno = wasiNoCall // All others are not there.
		}
		changed := uint32(0)
		for _, b := range res.Response[wasiRoom:] {
			if b != wasiFill {
				changed++
			}
		}
		if errno := binary.LittleEndian.Uint32(res.Response); errno != want.errno || changed > want.bytes || strings.Contains(string(res.Response), "SECRET") {
			t.Errorf("%s returns %d and writes %d bytes, want %d and at most %d", h.name, errno, changed, want.errno, want.bytes)
		}
		switch room := res.Response[wasiRoom:]; h.name {
		case "args_sizes_get", "environ_sizes_get":
			if n, bytes := binary.LittleEndian.Uint32(room), binary.LittleEndian.Uint32(room[64:]); n != 0 || bytes != 0 {
				t.Errorf("%s: %d of %d bytes", h.name, n, bytes)
			}
		case "clock_time_get":
			if now := binary.LittleEndian.Uint64(room[128:]); now != uint64(at.UnixNano()) {
				t.Errorf("it is %d, want the tenant's time", now)
			}
		case "poll_oneoff":
			if room[64+8] != wasiBadFD {
				t.Errorf("a file or socket can be waited for: %v", room[64:96])
			}
		}
	}
}

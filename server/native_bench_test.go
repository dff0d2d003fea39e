package server_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"

	"github.com/ostrodb/ostro/internal/port"
	"github.com/ostrodb/ostro/server"
	"github.com/ostrodb/ostro/wire"
)

const (
	benchKeys  = 1 << 17
	benchValue = 100
	benchConns = 16
)

// BenchmarkNativeAgainstRESP measures both front doors of one node with clients that do as
// little as can be: fixed requests, replies counted. An operation of the benchmark is one GET or SET.
func BenchmarkNativeAgainstRESP(b *testing.B) {
	c := server.Default()
	c.Bind, c.Port, c.NativePort, c.AdminAddr = []string{"127.0.0.1"}, port.For(b).Number, port.For(b).Number, ""
	c.Dir, c.MemoryLimit = b.TempDir(), server.Budget{Bytes: 1 << 30}
	n, err := server.Start(c)
	if err != nil {
		b.Fatal(err)
	}
	defer n.Stop(context.Background())
	resp := speaker{fmt.Sprint("127.0.0.1:", c.Port), nil, respRequest, respReply}
	native := speaker{fmt.Sprint("127.0.0.1:", c.NativePort), nativeHello, nativeRequest, nativeReply}
	resp.run(b, benchKeys, 128, true) // so that all keys are there
	for _, depth := range []int{1, 16, 128} {
		for _, write := range []bool{false, true} {
			name := fmt.Sprintf("%s/P%d", map[bool]string{false: "GET", true: "SET"}[write], depth)
			b.Run(name+"/resp", func(b *testing.B) { resp.run(b, b.N, depth, write) })
			b.Run(name+"/native", func(b *testing.B) { native.run(b, b.N, depth, write) })
		}
	}
}

// speaker is a protocol as far as the benchmark needs it.
type speaker struct {
	addr    string
	greet   func(net.Conn) error
	request func(from, depth int, write bool) []byte
	reply   func(depth int, write bool) int // bytes of the answer to a request
}

// run sends n operations over all connections, depth at a time.
func (s speaker) run(b *testing.B, n, depth int, write bool) {
	b.ReportAllocs()
	conns := make([]net.Conn, min(benchConns, (n+depth-1)/depth))
	for i := range conns {
		c, err := net.Dial("tcp", s.addr)
		if err != nil {
			b.Fatal(err)
		}
		defer c.Close()
		if s.greet != nil {
			if err := s.greet(c); err != nil {
				b.Fatal(err)
			}
		}
		conns[i] = c
	}
	requests := make([][]byte, benchKeys/depth)
	for i := range requests {
		requests[i] = s.request(i*depth, depth, write)
	}
	b.ResetTimer()
	before := cpuTime(b)
	defer func() { b.ReportMetric(float64(cpuTime(b)-before)/float64(n), "cpu-ns/op") }()
	var all sync.WaitGroup
	for i, c := range conns {
		all.Go(func() {
			answer := make([]byte, s.reply(depth, write))
			for j := i; j*depth < n; j += len(conns) {
				if _, err := c.Write(requests[j*7919%len(requests)]); err != nil {
					b.Error(err)
					return
				}
				if _, err := io.ReadFull(c, answer); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

// cpuTime is what the process has used, of which the client's share is the same for both protocols: a
// busy machine changes it less than the time on the clock.
func cpuTime(b *testing.B) int64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return used.Utime.Nano() + used.Stime.Nano()
}

func benchKey(i int) string { return fmt.Sprintf("key-%026d", i) }

func respRequest(from, depth int, write bool) (b []byte) {
	for i := from; i < from+depth; i++ {
		if write {
			b = fmt.Appendf(b, "*3\r\n$3\r\nSET\r\n$30\r\n%s\r\n$%d\r\n%0100d\r\n", benchKey(i), benchValue, i)
		} else {
			b = fmt.Appendf(b, "*2\r\n$3\r\nGET\r\n$30\r\n%s\r\n", benchKey(i))
		}
	}
	return b
}

func respReply(depth int, write bool) int {
	if write {
		return depth * len("+OK\r\n")
	}
	return depth * (len("$100\r\n") + benchValue + 2)
}

func nativeHello(c net.Conn) error {
	if _, err := c.Write(wire.AppendHello([]byte(wire.Magic), &wire.Hello{Version: wire.Version})); err != nil {
		return err
	}
	for range 2 { // welcome, map
		var head [4]byte
		if _, err := io.ReadFull(c, head[:]); err != nil {
			return err
		}
		n := int64(head[0]) | int64(head[1])<<8
		if _, err := io.CopyN(io.Discard, c, n); err != nil {
			return err
		}
	}
	return nil
}

func nativeRequest(from, depth int, write bool) []byte {
	b, start := wire.BeginBatch(nil, &wire.Batch{View: 1, Client: 1})
	for i := range depth {
		op := wire.Op{Code: wire.OpRead, Tag: uint32(i), Key: []byte(benchKey(from + i))}
		if write {
			op.Code, op.Arg = wire.OpPut, fmt.Appendf(nil, "%0100d", from+i)
		}
		b = wire.AppendOp(b, &op, 0)
	}
	return wire.EndBatch(b, start, depth)
}

func nativeReply(depth int, write bool) int {
	b, start := wire.BeginResults(nil)
	r := wire.Result{Value: make([]byte, benchValue)}
	if write {
		r.Value = nil
	}
	for range depth {
		b = wire.AppendResult(b, &r)
	}
	return len(wire.EndResults(b, start, depth))
}

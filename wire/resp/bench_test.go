package resp

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

var (
	get16  = []byte("*2\r\n$3\r\nGET\r\n$16\r\nkey:000000123456\r\n")
	set100 = []byte("*3\r\n$3\r\nSET\r\n$16\r\nkey:000000123456\r\n$100\r\n" + strings.Repeat("x", 100) + "\r\n")
)

func drain(t testing.TB, p *Parser, input []byte) {
	var st State
	for len(input) > 0 {
		n, err := p.Next(input, &st)
		if err != nil || n == 0 {
			t.Fatal(n, err)
		}
		input = input[n:]
	}
}

func BenchmarkParse(b *testing.B) {
	for _, c := range []struct {
		name    string
		command []byte
	}{{"get", get16}, {"set100", set100}, {"inline", []byte("GET key:000000123456\r\n")}} {
		b.Run(c.name, func(b *testing.B) {
			input := bytes.Repeat(c.command, 100)
			var p Parser
			b.SetBytes(int64(len(input)))
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				drain(b, &p, input)
				n += 100
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/command")
		})
	}
}

func BenchmarkWriteBulk(b *testing.B) {
	for _, size := range []int{3, 100, 1024} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			value := make([]byte, size)
			var w Writer
			b.ReportAllocs()
			for b.Loop() {
				if w.Len() > 1<<14 {
					w.Truncate(0)
				}
				w.Bulk(value)
			}
		})
	}
}

func BenchmarkSkipReplies(b *testing.B) {
	reply := []byte("$100\r\n" + strings.Repeat("x", 100) + "\r\n")
	input := bytes.Repeat(reply, 100)
	src := bytes.NewReader(input)
	d := NewReplyReader(src)
	b.ReportAllocs()
	for b.Loop() {
		src.Reset(input)
		for range 100 {
			if _, err := d.Skip(); err != nil {
				b.Fatal(err)
			}
		}
	}
}

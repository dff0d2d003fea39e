package replica_test

import (
	"fmt"
	"net"
	"testing"

	"github.com/ostrodb/ostro/cluster/peer"
	"github.com/ostrodb/ostro/cluster/replica"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
)

// fullText is a closed segment of records of 130 bytes, each its own batch of ten.
func fullText(id record.SegmentID, bytes int) ([]byte, replica.Closing, int) {
	b := make([]byte, bytes)
	chain := record.NewChain(id)
	at := record.EncodeSegmentHeader(b, logID, id, 0, uint32(bytes))
	chain.Add(record.PtrOf(b))
	n, batch := 0, record.BatchID(id)*1_000_000
	for at+10*160+2*record.SealBytes < bytes {
		for range 10 {
			h := record.Header{Type: record.TypePut, Version: uint64(n)}
			size := record.Encode(b[at:], &h, fmt.Appendf(nil, "key-%012d-%012d", id, n), make([]byte, 100), true)
			chain.Add(record.PtrOf(b[at:]))
			at += size
			n++
		}
		batch++
		chain.PutSeal(b[at:], batch, false)
		at += record.SealBytes
	}
	chain.PutSeal(b[at:], batch+1, true)
	at += record.SealBytes
	return b[:at], replica.Closing{End: uint32(at), Batch: batch + 1, Sum: replica.Sum(b[:at])}, n
}

// BenchmarkFetch is what it takes heirs to read a log of 32 segments from two backups, each a third
// of the places.
func BenchmarkFetch(b *testing.B) {
	const bytes, segments, heirs = record.MaxSegmentBytes, 32, 3
	addrs := map[view.NodeID]string{}
	pool := must(peer.NewPool(peer.PoolOptions{Node: "primary", Secret: secret, Address: func(n view.NodeID) (string, error) { return addrs[n], nil }}))(b)
	defer pool.Close()
	var ids []record.SegmentID
	for i := range record.SegmentID(segments) {
		ids = append(ids, i+1)
	}
	nodes := []view.NodeID{"b1", "b2"}
	records := 0
	for _, n := range nodes {
		backup := must(replica.OpenBackup(replica.BackupOptions{Dir: b.TempDir(), SegmentBytes: bytes, FlushRate: 1 << 30, ScrubRate: -1}))(b)
		defer backup.Close()
		server := must(peer.NewServer(peer.ServerOptions{Node: n, Secret: secret}))(b)
		defer server.Close()
		backup.Handle(server)
		l := must(net.Listen("tcp", "127.0.0.1:0"))(b)
		defer l.Close()
		addrs[n] = l.Addr().String()
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go server.ServeConn(c)
			}
		}()
		for _, id := range ids {
			text, closing, count := fullText(id, bytes)
			q := replica.PutRequest{Log: logID, Segment: id, Closing: closing, Roster: roster(1, 1<<60, ids...)}
			must(pool.Call(b.Context(), n, replica.MethodPut, q, text, nil))(b)
			records += count
		}
	}
	records /= len(nodes)
	f := must(replica.Survey(b.Context(), pool, nodes, logID, true))(b)
	for b.Loop() {
		for i := range uint64(heirs) {
			const third = 1<<64/heirs - 1
			rs := view.Ranges{{First: record.Place(i * third), Last: record.Place(i*third + third - 1)}}
			check(b, f.Fetch(b.Context(), replica.FetchOptions{Ranges: rs, Cut: 1 << 60, Sink: func(int, []byte) error { return nil }}))
		}
	}
	b.ReportMetric(float64(records)*float64(b.N)/b.Elapsed().Seconds(), "records/s")
	b.SetBytes(f.Bytes())
}

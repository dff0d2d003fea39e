package redis_test

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/server/redis"
)

// TestAClientWhoseWriteMayBeLostIsNotLeftWaiting fails the disk under a write
// that must be synced before its reply.
func TestAClientWhoseWriteMayBeLostIsNotLeftWaiting(t *testing.T) {
	dev := device.NewMemory()
	t.Cleanup(func() { dev.Close() })
	srv, st := launch(t, store.Options{Device: dev, Durability: store.Always, SegmentBytes: 64 << 10}, redis.Config{})
	c := dial(t, "tcp", srv.Addr().String())
	sendTo(t, c, bulk("SET", "k", "1"))
	expect(t, c, "+OK\r\n")

	for n := range 1000 { // Some are of segments that are being made ready, and lose nothing.
		dev.Fail(device.OpSync, n+1, errors.New("the disk is broken"))
	}
	sendTo(t, c, bulk("SET", "k", "2"))
	if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	reply, err := io.ReadAll(c)
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() || len(reply) > 0 && reply[0] == '+' {
		t.Errorf("reply %q, %v: want an error or a closed connection", reply, err)
	}
	if st.Health() == nil {
		t.Error("the store is healthy with a broken disk")
	}
	if err := srv.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
	if st.Close() == nil {
		t.Error("closing over a broken disk reported success")
	}
}

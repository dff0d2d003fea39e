package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/view"
)

// await waits until every node serves clients, and tells what it waits for if that takes long.
func (d *devCluster) await(ctx context.Context) error {
	c, err := meta.ParseURL(d.state.Etcd)
	if err != nil {
		return err
	}
	c.Log = quietLog()
	s, err := meta.Open(ctx, c)
	if err != nil {
		return err
	}
	defer s.Close()
	told, began := "", time.Now()
	for {
		missing, err := d.missing(ctx, s)
		if err != nil || missing == "" {
			return err
		}
		if missing != told && time.Since(began) > 3*time.Second {
			d.out.waiting(missing)
			told = missing
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case err := <-d.failed:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// missing says what is not yet as it should be, or nothing.
func (d *devCluster) missing(ctx context.Context, s *meta.Store) (string, error) {
	snap, err := s.Read(ctx)
	if err != nil {
		return "", err
	}
	state := d.snapshot()
	for _, n := range state.Nodes {
		if !snap.IsAlive(view.NodeID(n.ID)) {
			return fmt.Sprintf("%s has not joined yet (its log: %s)", n.ID, n.Log), nil
		}
	}
	if snap.Map.IsZero() {
		return "the keys are not dealt out to the nodes yet", nil
	}
	for _, r := range snap.Recoveries {
		return fmt.Sprintf("what %s had is being recovered", r.Node), nil
	}
	for _, n := range state.Nodes {
		if !answersPing(n.Redis) {
			return n.ID + " does not serve clients yet", nil
		}
	}
	return "", nil
}

// answersPing tells whether a node serves Redis clients: who asks for a password does, too.
func answersPing(addr string) bool {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return false
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Second))
	if _, err := c.Write([]byte("PING\r\n")); err != nil {
		return false
	}
	b := make([]byte, len("-NOAUTH"))
	n, err := io.ReadFull(c, b)
	return err == nil && (strings.HasPrefix(string(b[:n]), "+PONG") || string(b[:n]) == "-NOAUTH")
}

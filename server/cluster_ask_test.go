package server

import (
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/peer"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/internal/await"
)

func TestANodeThatIsAskedWithoutItsSecretIsNotCalledSilent(t *testing.T) {
	node, err := peer.NewServer(peer.ServerOptions{Node: "a", Secret: []byte("what the nodes share")})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = l.Close(), node.Close() })
	go func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			go node.ServeConn(c)
		}
	}()
	s := &meta.Snapshot{
		Nodes: map[view.NodeID]meta.Node{"a": {ID: "a", Address: l.Addr().String()}, "b": {ID: "b", Address: "127.0.0.1:1"}},
		Alive: map[view.NodeID]meta.Presence{"a": {}, "b": {}},
	}
	for what, secret := range map[string][]byte{"another": []byte("another secret of etcd"), "none": nil} {
		var status ClusterStatus
		await.True(t, "a has refused to answer, within the second that it had", func() bool {
			facts, silence := askAll(t.Context(), s, secret)
			status = StatusOf(s, facts, silence)
			return status.Nodes[0].Secretive
		})
		a, b := status.Nodes[0], status.Nodes[1]
		if b.Secretive != (secret == nil) || b.Silence == "" {
			t.Errorf("%s: %+v, and %+v", what, a, b)
		}
		if !slices.ContainsFunc(status.Problems, func(p string) bool { return strings.Contains(p, "--secret-file") }) {
			t.Errorf("%s: nobody says what to do: %q", what, status.Problems)
		}
	}
}

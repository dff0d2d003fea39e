package group_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/ostrodb/ostro/cluster/group"
	"github.com/ostrodb/ostro/fabric/frame"
)

const testSecret = "between client and replicas"

// served lets a scene's replicas be reached over a network, unix or tcp.
func (s *scene) served(network string) (servers []*group.Server, urls []string) {
	s.t.Helper()
	secret := filepath.Join(s.t.TempDir(), "secret")
	check(s.t, os.WriteFile(secret, []byte(testSecret+"\n"), 0o600))
	for i, r := range s.replicas {
		url := "unix://" + filepath.Join(s.t.TempDir(), fmt.Sprintf("replica-%d.sock", i))
		if network == "tcp" {
			url = "tcp://127.0.0.1:0?secret-file=" + secret
		}
		srv := must(group.Serve(url, r, group.ServeOptions{}))(s.t)
		s.t.Cleanup(func() { check(s.t, srv.Close()) })
		if network == "tcp" {
			url = "tcp://" + srv.Addr() + "?secret-file=" + secret
		}
		servers, urls = append(servers, srv), append(urls, url)
	}
	return servers, urls
}

func (s *scene) dial(url string) *group.Remote {
	s.t.Helper()
	m := must(group.Dial(s.ctx(), url, group.DialOptions{Name: s.t.Name()}))(s.t)
	s.t.Cleanup(func() { check(s.t, m.Close()) })
	return m
}

func TestReplicasAreReachedOverAConnection(t *testing.T) {
	for _, network := range []string{"unix", "tcp"} {
		t.Run(network, func(t *testing.T) {
			s := prepare(t, "tcp", 3)
			_, urls := s.served(network)
			var members []group.Member
			for _, url := range urls {
				members = append(members, s.dial(url))
			}
			for round := range 3 { // Replicas can be in one group after the other.
				g := must(group.Open(s.ctx(), s.client, group.Spec{Window: 8}, members...))(t)
				word := fmt.Sprintf("round %d", round)
				s.ok(g.Write(s.ctx(), 0, []byte(word)))
				s.want(0, []byte(word))
				h := must(members[2].(*group.Remote).Health(s.ctx()))(t)
				if !h.Member || h.Index != 2 || h.Replicas != 3 || h.Bytes != memoryBytes || h.Name != "replica-2" || h.Joins != uint64(round+1) {
					t.Fatalf("its health is %+v", h)
				}
				check(t, g.Close())
				for _, r := range s.replicas { // An offer waits a moment only until they have.
					wait(t, s.ctx(), r.Left())
				}
			}
		})
	}
}

func TestARemoteReplicaInAGroupIsBusyAndLeavesWhenTold(t *testing.T) {
	s := prepare(t, "inproc", 1)
	_, urls := s.served("unix")
	one, two := s.dial(urls[0]), s.dial(urls[0])
	g := must(group.Open(s.ctx(), s.client, group.Spec{}, one))(t)
	defer g.Close()
	if _, err := group.Open(s.ctx(), s.client, group.Spec{}, two); !errors.Is(err, group.ErrBusy) {
		t.Fatalf("a second group: %v", err)
	}
	check(t, two.Leave(s.ctx()))
	wait(t, s.ctx(), g.Broken())
	again := must(group.Open(s.ctx(), s.client, group.Spec{}, two))(t)
	check(t, again.Close())
}

func TestAnOfferEndsWithItsConnection(t *testing.T) {
	s := prepare(t, "inproc", 1)
	_, urls := s.served("unix")
	m := s.dial(urls[0])
	must(m.Offer(s.ctx(), spec(1)))(t)
	left := s.replicas[0].Left()
	check(t, m.Close())
	wait(t, s.ctx(), left)
}

func TestAnOfferThatAnotherClientReplacedCannotBeJoined(t *testing.T) {
	s := prepare(t, "inproc", 1)
	_, urls := s.served("unix")
	one, two := s.dial(urls[0]), s.dial(urls[0])
	first := must(one.Offer(s.ctx(), spec(1)))(t)
	must(two.Offer(s.ctx(), spec(1)))(t)
	if err := one.Join(s.ctx(), group.Join{Offer: first.ID}); err == nil || !strings.Contains(err.Error(), "another client") {
		t.Fatalf("joining a replaced offer: %v", err)
	}
}

// spec is one as Open would fill it in.
func spec(replicas int) group.Spec {
	return group.Spec{Mode: group.Chain, Replicas: replicas, Window: 4, Slots: 8, MaxWrite: 64, Heartbeat: -1, Timeout: -1}
}

func TestACallEndsWithItsContext(t *testing.T) {
	l := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close() // It takes connections and says nothing.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := group.Dial(ctx, "tcp://"+l.Addr().String(), group.DialOptions{Secret: []byte("x")})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("it ended with %v", err)
	}
}

func TestARestartedReplicaIsReachedByTheNextCall(t *testing.T) {
	s := prepare(t, "inproc", 1)
	servers, urls := s.served("unix")
	m := s.dial(urls[0])
	must(m.Health(s.ctx()))(t)
	check(t, servers[0].Close())
	if _, err := m.Health(s.ctx()); err == nil {
		t.Fatal("a closed server answered")
	}
	srv := must(group.Serve(urls[0], s.replicas[0], group.ServeOptions{}))(t)
	defer srv.Close()
	must(m.Health(s.ctx()))(t)
}

func TestWrongPlacesSayWhatToDo(t *testing.T) {
	for url, want := range map[string]string{
		"http://x":                               "use unix:///path/to/replica.sock or tcp://",
		"unix://host/x":                          "use unix:///path",
		"tcp://127.0.0.1":                        "use unix:///path",
		"tcp://127.0.0.1:1":                      "?secret-file=PATH",
		"tcp://127.0.0.1:1?secret-file=/nowhere": "read the secret",
		"unix:///nowhere/at/all":                 "reach the replica at unix:///nowhere/at/all",
		"%":                                      "group",
	} {
		if _, err := group.Dial(t.Context(), url, group.DialOptions{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", url, err, want)
		}
	}
}

func TestAClientWithoutTheSecretIsRefusedAndCounted(t *testing.T) {
	s := prepare(t, "inproc", 1)
	servers, urls := s.served("tcp")
	addr, _, _ := strings.Cut(urls[0], "?")
	_, err := group.Dial(s.ctx(), addr, group.DialOptions{Secret: []byte("another")})
	if !errors.Is(err, frame.ErrUnauthorized) {
		t.Fatalf("it ended with %v", err)
	}
	// One that does not care who the replica is.
	c := must(net.Dial("tcp", servers[0].Addr()))(t)
	defer c.Close()
	must(c.Write(append([]byte("OSTROGM1"), make([]byte, 32)...)))(t)
	must(c.Read(make([]byte, 72)))(t)
	must(c.Write(append(make([]byte, 32), 2, 0, '{', '}')))(t)
	for ctx := s.ctx(); servers[0].Metrics().Unauthorized == 0; runtime.Gosched() {
		check(t, ctx.Err())
	}
	must(s.dial(urls[0]).Health(s.ctx()))(t)
}

// raw is an authenticated connection that says what it likes.
func (s *scene) raw(srv *group.Server) net.Conn {
	s.t.Helper()
	c := must(net.Dial("unix", srv.Addr()))(s.t)
	s.t.Cleanup(func() { _ = c.Close() })
	check(s.t, frame.Introduce(c, "OSTROGM1", nil, []byte("{}")))
	check(s.t, frame.Answered(c))
	return c
}

func message(body string) []byte {
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(body))), body...)
}

func TestRequestsThatMakeNoSenseAreRefusedAndTheConnectionGoesOn(t *testing.T) {
	s := prepare(t, "inproc", 1)
	servers, _ := s.served("unix")
	c := s.raw(servers[0])
	hostile := []string{
		`{}`, `{"Verb":"offer"}`, `{"Verb":"join"}`, `{"Verb":"burn"}`,
		`{"Verb":"offer","Spec":{"Mode":"chain","Replicas":99,"Window":1,"Slots":1,"MaxWrite":1,"Heartbeat":-1,"Timeout":-1}}`,
		`{"Verb":"offer","Spec":{"Mode":"chain","Replicas":1,"Window":-1,"Slots":1,"MaxWrite":1,"Heartbeat":-1,"Timeout":-1}}`,
		`{"Verb":"offer","Spec":{"Mode":"chain","Replicas":1,"Window":4096,"Slots":4096,"MaxWrite":1048576,"Heartbeat":-1,"Timeout":-1}}`,
		`{"Verb":"offer","Spec":{"Mode":"chain","Replicas":1,"Window":1,"Slots":1,"MaxWrite":1,"Heartbeat":1,"Misses":1,"Timeout":-1}}`,
		`{"Verb":"join","Join":{"Offer":0,"Index":-3}}`,
	}
	for _, body := range hostile {
		must(c.Write(message(body)))(t)
		answer := make([]byte, 4096)
		n := must(c.Read(answer))(t)
		if !bytes.Contains(answer[:n], []byte(`"Error"`)) {
			t.Errorf("%s: answered %q", body, answer[4:n])
		}
	}
	if m := servers[0].Metrics(); m.Refused != uint64(len(hostile)) {
		t.Errorf("%d refusals were counted of %d", m.Refused, len(hostile))
	}
}

func TestConnectionsThatAreNotUnderstoodEndAndAreCounted(t *testing.T) {
	s := prepare(t, "inproc", 1)
	servers, urls := s.served("unix")
	for i, bad := range [][]byte{{255, 255, 255, 255}, message("no JSON"), message(`{"Verb":7}`), message(`{"Join":{"Up":"x"}}`)} {
		c := s.raw(servers[0])
		must(c.Write(bad))(t)
		if n, err := c.Read(make([]byte, 10)); err == nil {
			t.Fatalf("%q: %d bytes came back", bad, n)
		}
		for ctx := s.ctx(); servers[0].Metrics().Malformed <= uint64(i); runtime.Gosched() {
			check(t, ctx.Err())
		}
	}
	g := must(group.Open(s.ctx(), s.client, group.Spec{}, s.dial(urls[0])))(t)
	check(t, g.Close())
}

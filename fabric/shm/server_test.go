package shm_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/fabrictest"
	"github.com/ostrodb/ostro/fabric/nic"
	"github.com/ostrodb/ostro/fabric/shm"
)

func dialRaw(t *testing.T, path string) *net.UnixConn {
	t.Helper()
	c, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestNonsenseOnTheSocketEndsOneSessionOnly(t *testing.T) {
	path := serve(t)
	a, b := fabrictest.Pair(t, open(t, path, "a", "b"))
	for _, packet := range []string{
		"x", "{}", `{"Version":99,"Name":"old"}`, `{"Version":2,"Name":` + strings.Repeat("[", 9000),
		`{"Version":2,"Name":"` + strings.Repeat("n", 20000) + `"}`,
	} {
		c := dialRaw(t, path)
		if _, err := c.Write([]byte(packet)); err != nil {
			t.Fatal(err)
		}
		answer := make([]byte, 1000)
		if n, _ := c.Read(answer); !strings.Contains(string(answer[:n]), "Error") {
			t.Errorf("%.40q was answered %q", packet, answer[:n])
		}
	}
	if c := a.Do(fabric.Write(b.At(0), a.Piece(0, 8))); c.Status != fabric.OK {
		t.Fatal(c.Status)
	}
}

func TestControlRequestsThatMakeNoSenseAreRefused(t *testing.T) {
	path := serve(t)
	c := dialRaw(t, path)
	ask := func(packet string) string {
		t.Helper()
		if _, err := c.Write([]byte(packet)); err != nil {
			t.Fatal(err)
		}
		answer := make([]byte, 4000)
		n, _, _, _, err := c.ReadMsgUnix(answer, make([]byte, 100))
		if err != nil {
			t.Fatalf("%s ended the session: %v", packet, err)
		}
		return string(answer[:n])
	}
	if got := ask(`{"Version":2,"Name":"odd"}`); strings.Contains(got, "Error") {
		t.Fatal(got)
	}
	ask(`{"Verb":"new-domain"}`)
	for _, packet := range []string{
		`{"Verb":"sing"}`, `{"Verb":"close-domain","Domain":77}`, `{"Verb":"register","Domain":1,"Bytes":4096}`,
		`{"Verb":"register-ring","Domain":1,"QP":4}`, `{"Verb":"revoke","Key":123456789}`, `{"Verb":"revoke","Key":18446744073709551615}`,
		`{"Verb":"new-cq","Domain":1,"Depth":3}`, `{"Verb":"new-cq","Domain":1,"Depth":1099511627776}`, `{"Verb":"close-cq","Domain":1,"CQ":9}`,
		`{"Verb":"new-qp","Domain":1,"SendDepth":8,"RecvDepth":8}`, `{"Verb":"new-qp","Domain":1}`,
		`{"Verb":"connect","Domain":1,"QP":1}`, `{"Verb":"close-qp","Domain":1,"QP":4294967295}`,
	} {
		if got := ask(packet); !strings.Contains(got, "Error") {
			t.Errorf("%s was answered %s", packet, got)
		}
	}
}

func TestASocketServesOneNICAndAStaleOneIsReplaced(t *testing.T) {
	path := serve(t)
	e, err := nic.New(nic.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if _, err := shm.Serve(path, e, nil); err == nil || !strings.Contains(err.Error(), "already") {
		t.Fatalf("a second NIC on one socket: %v", err)
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Fatalf("the socket has mode %v, %v", st.Mode(), err)
	}
	stale := filepath.Join(t.TempDir(), "stale.sock")
	l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: stale, Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	_ = l.Close()
	s, err := shm.Serve(stale, e, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := shm.Open(stale, "late"); err == nil || !strings.Contains(err.Error(), stale) {
		t.Fatalf("attaching to no NIC: %v", err)
	}
}
